"""Writes that a trace records as new tensors, where `_force_outplace` asks for it.

In: an operator that writes to its first argument, as `add_`.  Out: the operator that gives a new tensor, `add`; its
result stands for the tensor from then on.  Other tensors in the same memory do not see the write: a warning tells where
one of them is used.  Operators without such a form stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.frontend.tracing.forms import Recorded, found
from engine.frontend.tracing.state import TracingState

_LIKE: Final = (None, None, None, None, None)
"""dtype, layout, device, pin_memory and memory_format: those of the tensor."""
_FILLS: Final[dict[str, Callable[[Any], tuple[str, tuple[Any, ...]]]]] = {
    "aten::zero_": lambda args: ("aten::zeros_like", (args[0], *_LIKE)),
    "aten::fill_.Scalar": lambda args: ("aten::full_like", (*args, *_LIKE)),
    "aten::copy_": lambda args: ("aten::expand_as", (args[1], args[0])),
}


def out_of_place(state: TracingState, op: Op, args: tuple[Any, ...]) -> Recorded:
    """The operator and arguments that give a new tensor; the same ones where there are none.

    Tensors that miss the write become outdated in the trace.
    """
    written = args[0] if args else None
    if not isinstance(written, Tensor) or not op.name.endswith("_") or not op.schema.arguments[0].is_write:
        return op, args
    others = [each for each, _ in state.values.values() if _shares(each, written)]
    form = _form(op, args, others)
    if form is None:
        return op, args
    state.outdated.update({id(each): op.name.removeprefix("aten::") for each in others})
    return form


def _form(op: Op, args: tuple[Any, ...], others: list[Tensor]) -> Recorded | None:
    if op.qualified_name in _FILLS:
        # A copy of other numbers is converted by the write, and one into memory that is shared is seen by others.
        if op.name == "aten::copy_" and (others or args[1].dtype != args[0].dtype):
            return None
        name, given = _FILLS[op.qualified_name](args)
        return found(name), given
    name = op.name.removesuffix("_")
    form = table.find(f"{name}.{op.schema.overload}" if op.schema.overload else name)
    is_same = form is not None and len(form.schema.arguments) == len(op.schema.arguments)
    return (form, args) if form is not None and is_same else None


def _shares(thing: Any, written: Tensor) -> bool:
    return isinstance(thing, Tensor) and thing is not written and np.may_share_memory(thing.array, written.array)
