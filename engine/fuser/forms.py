"""Which forms of an operator native code has, and which methods of tensors run them.

In: an operator whose function is `Watched`, kinds of element.  Out: its `Form` with a typed expression for each of the
kinds that the Python function computes in themselves; `Method`s over such forms.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final

from engine.aten.op import Op
from engine.aten.scalar import is_tensor
from engine.aten.tensor import Tensor
from engine.fuser import entry, samples
from engine.fuser.entry import Form, Method, Parameter
from engine.fuser.expression import FLOATS, KINDS, Unsupported, Value, typed
from engine.fuser.process import row_function
from engine.lang.schema import Argument
from engine.lang.types import NUMBER, TensorType


@dataclass(eq=False, slots=True)
class Watched:
    """An operator with its function, which goes through states: it counts, it waits, it calls native code."""

    op: Op
    run: FunctionType
    plain: FunctionType
    """The function as it was."""
    noting: FunctionType
    """The same, after a look at what it was called with."""
    patience: int
    """So many calls make it worth looking at them."""
    kinds: set[str]
    """The kinds of element that calls have brought up."""

    @property
    def body(self) -> Any:
        """The operator without hooks, in Python."""
        return self.run.__globals__["_body"]


def form_of(watched: Watched, kinds: Collection[str]) -> Form | None:
    """What native code makes of an overload; None where it has nothing."""
    op = watched.op
    source = op.functional or op
    assert source.scalar is not None
    parameters = tuple(Parameter(a.name, _role(a)) for a in op.schema.arguments)
    in_place = op is not source
    form = Form(
        op.qualified_name, parameters, {}, in_place, watched.plain, watched.noting, watched.patience, watched.body
    )
    values = {kind: _value(source.scalar, form, kind) for kind in _kinds(source) if kind in kinds}
    bodies = {kind: value for kind, value in values.items() if value is not None}
    return dataclasses.replace(form, bodies=bodies) if bodies else None


def _role(argument: Argument) -> str:
    if is_tensor(argument):
        return "tensor" if isinstance(argument.type, TensorType) else "ignored"
    return "number" if argument.type == NUMBER else "ignored"


def _kinds(op: Op) -> Sequence[str]:
    """The kinds of element that the operator may compute in themselves."""
    rule = str(op.dtype or "promote").partition(":")[0].strip()
    return FLOATS if rule == "float" else KINDS


def _value(text: str, form: Form, kind: str) -> Value | None:
    tensors, numbers = ([form.parameters[i].name for i in places] for places in (form.tensors, form.numbers))
    try:
        value = typed(text, tensors, numbers, kind)
        for function, row_kind in entry.library_calls(value):
            row_function(function, row_kind)
    except Unsupported:
        return None
    is_fit = not form.in_place or value.kind == kind
    return value if is_fit and samples.expected_kind(form, kind) == value.kind else None


# ------------------------------------------------------------------ methods

_OPERATORS: Final[dict[str, tuple[str, ...]]] = {
    "add": ("__add__", "__radd__"), "sub": ("__sub__",), "rsub": ("__rsub__",), "mul": ("__mul__", "__rmul__"),
    "div": ("__truediv__",), "floor_divide": ("__floordiv__",), "remainder": ("__mod__",),
    "eq": ("__eq__",), "ne": ("__ne__",), "lt": ("__lt__",), "le": ("__le__",), "gt": ("__gt__",), "ge": ("__ge__",),
    "neg": ("__neg__",), "add_": ("__iadd__",), "sub_": ("__isub__",), "mul_": ("__imul__",), "div_": ("__itruediv__",),
}  # fmt: skip
"""Python's operators that are nothing but an operator of the table."""


REPLACED: Final[dict[str, FunctionType]] = {}
"""The methods as they were."""


def methods_of(name: str, ops: Sequence[Op], forms: Sequence[Form]) -> Iterator[Method]:
    """The methods of tensors that run these forms."""
    short = name.removeprefix("aten::")
    if not name.startswith("aten::"):
        return
    pairs = list(zip(ops, forms, strict=True))
    named = [pair for pair in pairs if "method" in pair[0].variants]
    for method, runs in ((short, named), *((special, pairs) for special in _OPERATORS.get(short, ()))):
        if runs and (found := _method(method, runs)) is not None:
            yield found


def _method(name: str, runs: Sequence[tuple[Op, Form]]) -> Method | None:
    """None where somebody has put another kind of thing there."""
    getattr(samples.fresh_tensor(), name, None)  # methods are looked up when first asked for
    present = vars(Tensor).get(name)
    if isinstance(present, FunctionType):
        REPLACED[name] = present
    elif name not in REPLACED:
        return None
    given, found = None, []
    for op, form in runs:
        arguments = op.schema.arguments
        wanted = sum(not a.has_default for a in arguments) - 1
        if given is None or given == wanted:
            given = wanted
            found.append((form, tuple(a.default for a in arguments[wanted + 1 :])))
    return Method(name, given, tuple(found), REPLACED[name]) if given is not None else None
