"""Facts about the output tensors of one node: sizes, strides, dtype, device, requires_grad.

In: a node that is an operator, and what is known of its inputs.  Out: facts for each output.  Only what holds for every
run is said; without a shape or dtype rule the operator is run on small stand-ins (see `fake_run`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from engine.aten.dispatch.op import Op
from engine.aten.kernels import shapes
from engine.ir.constants import NOT_CONSTANT
from engine.ir.facts.fake_run import Found, is_pointwise, pointwise_dtype, probe, probe_ranks
from engine.ir.facts.tensors import (
    FIELDS,
    Facts,
    Known,
    contiguous_strides,
    is_complete,
    is_contiguous,
    ranked,
    refined,
)
from engine.ir.graph import Node
from engine.ir.ops import op_of
from engine.lang import scalars
from engine.lang.records import dataclass
from engine.lang.scalars import DTYPE_BY_NUMBER, device, dtype
from engine.lang.types import TENSOR, ListType, TensorType

_CPU: Final = device("cpu")


@dataclass(frozen=True, slots=True)
class Reading:
    """The rules by which a pass reads a graph; those of `CERTAIN` say what a program can rely on.

    `place` tells where an operator's results are, `gradient` if they may need gradients, `partly` what is left of the
    fact about a result of operands whose sizes are not all known, `resized` of that about memory that some operator may
    give another shape.  With `ranks`, operators without a rule are run for what no size decides.
    """

    place: Callable[[Node, Known], device | None]
    gradient: Callable[[Known], bool | None]
    partly: Callable[[TensorType], TensorType]
    resized: Callable[[TensorType], TensorType]
    ranks: bool = False


def node_facts(node: Node, facts: Facts, reading: Reading) -> Found:
    """The facts about each output."""
    op = op_of(node)
    if op is None or not _gives_tensors(node):
        return [None] * len(node.outputs)
    known = Known(node, facts)
    written = _written_argument(op)
    if written is not None:
        # What is written to in place keeps its shape; operators that change it are told apart by the walk.
        return [replace(known.tensor(written), requires_grad=None)] * len(node.outputs)
    found = _by_rules(node, op, known) or probe(node, facts) or [None] * len(node.outputs)
    if reading.ranks and not all(map(_is_told, found)):
        found = [_first_known(*pair) for pair in zip(found, probe_ranks(node, facts) or found, strict=True)]
    everywhere = TensorType(device=reading.place(node, known), requires_grad=reading.gradient(known))
    all_known = all(is_complete(type.sizes) for type in _all_tensors(known))
    return [_completed(each, everywhere, _unchanged if all_known else reading.partly) for each in found]


def _is_told(found: TensorType | list[TensorType] | None) -> bool:
    return isinstance(found, list) or (found is not None and found.sizes is not None and found.dtype is not None)


def _first_known(
    found: TensorType | list[TensorType] | None, other: TensorType | list[TensorType] | None
) -> TensorType | list[TensorType] | None:
    if isinstance(found, list) or isinstance(other, list):
        return found
    return refined(other or TENSOR, found or TENSOR, FIELDS)


def _unchanged(type: TensorType) -> TensorType:
    return type


def _gives_tensors(node: Node) -> bool:
    types = [value.type for value in node.outputs]
    return any(isinstance(t.element if isinstance(t, ListType) else t, TensorType) for t in types)


def _completed(
    found: TensorType | list[TensorType] | None, everywhere: TensorType, told: Callable[[TensorType], TensorType]
) -> Any:
    if isinstance(found, list):
        return [_completed(each, everywhere, told) for each in found]
    return replace(told(found or TENSOR), device=everywhere.device, requires_grad=everywhere.requires_grad)


def _written_argument(op: Op) -> str | None:
    first = op.schema.arguments[0] if op.schema.arguments else None
    return first.name if first is not None and first.alias is not None and first.alias.is_write else None


# -- sizes and strides


def _by_rules(node: Node, op: Op, known: Known) -> Found | None:
    """The facts that need nothing to run; None if there is no rule, or if a run would tell more."""
    if is_pointwise(op):
        sizes, dtype = shapes.pointwise(known), pointwise_dtype(node, op, known.facts)
        return [_laid_out(TensorType(dtype, sizes), known)]
    if op.shape is None:
        return None
    sizes = known.sizes(op.shape) if isinstance(op.shape, str) else op.shape(known)
    found = TensorType(_dtype(op, known), sizes)
    if _is_view(op):
        return _view(node, found, known)
    if len(node.outputs) > 1:
        return probe(node, known.facts) or [TensorType(sizes=found.sizes)] * len(node.outputs)
    return [_laid_out(found, known)]


def _is_view(op: Op) -> bool:
    """True if the result is laid out as the argument: a view, or a clone."""
    alias = op.schema.returns[0].alias
    return op.name == "aten::clone" or (alias is not None and not alias.is_write and op.name not in _WHOLE)


def _view(node: Node, found: TensorType, known: Known) -> Found:
    """The facts of a view; of small tensors it is made, for its strides."""
    made = probe(node, known.facts)
    if made is not None:
        return made
    return [found if node.kind in _REORDERED else _laid_out(found, known)]


_WHOLE: Final = frozenset({"aten::detach", "aten::alias", "aten::cpu", "aten::cuda"})
"""Operators that give their argument as it is."""
_REORDERED: Final = frozenset({"aten::t", "aten::transpose", "aten::permute", "aten::select"})
"""Views that do not lie row by row where their argument does."""


def _laid_out(found: TensorType, known: Known) -> TensorType:
    """From tensors that lie row by row comes one that does."""
    if found.sizes is None or not is_complete(found.sizes) or not all(map(is_contiguous, _all_tensors(known))):
        return found
    return replace(found, strides=contiguous_strides(found.sizes))


def _all_tensors(known: Known) -> list[TensorType]:
    return known.tensors() + (known.elements("tensors") or [])


# -- dtypes


def _dtype(op: Op, known: Known) -> dtype | None:
    rule, _, argument = str(op.dtype or "floats").partition(" ")
    if rule == "int64":
        return scalars.int64
    if rule == "agreed":
        agreed = {type.dtype for type in known.tensors()} - {None}
        return agreed.pop() if len(agreed) == 1 else None
    if rule == "truth":
        return {None: None, scalars.uint8: scalars.uint8}.get(known.tensor("self").dtype, scalars.bool_)
    asked = known.value("dtype") if "dtype" in known else None
    if asked is NOT_CONSTANT:
        return None
    if isinstance(asked, int):
        return DTYPE_BY_NUMBER.get(asked)
    principal = _principal(argument, known)
    if principal is None:
        return scalars.float32 if rule == "default" else None
    if principal.is_floating_point or rule == "same":
        return principal
    return scalars.int64 if rule == "sum" and not principal.is_complex else None


def _principal(argument: str, known: Known) -> dtype | None:
    """The dtype that the operator goes by."""
    if "tensors" in known:
        found = {type.dtype for type in known.elements("tensors") or ()}
        return found.pop() if len(found) == 1 else None
    if "condition" in known and len({type.dtype for type in known.tensors()[1:]}) != 1:
        return None
    name = next((each for each in (argument, "self", "input") if each in known), None)
    return None if name is None else known.tensor(name).dtype


# -- devices and gradients


def kind_of_device(node: Node, known: Known) -> device | None:
    """The device that all operands are known to be on, or that the operator brings them to, with a number or without:
    what people want to know of a graph, and nothing that a program could rely on."""
    if node.kind in _KINDS:
        return _KINDS[node.kind]
    asked = known.value("device") if "device" in known else None
    if isinstance(asked, device):
        return asked
    found, by_one = device_of(node, known), node.kind in _FOLLOWS | _STAYS | _MOVES.keys()
    return found if by_one or all(type.device for type in _all_tensors(known)) else None


_KINDS: Final = {"aten::cuda": device("cuda"), "aten::to_mkldnn": device("mkldnn")}
"""Operators that bring a tensor to a kind of device, or what PyTorch counts among those."""


def device_of(node: Node, known: Known) -> device | None:
    """The device of an operator's results; one without a number is the current one, which only the run tells."""
    if "device" in known:
        asked = known.value("device")
        if asked is not None:
            return asked if isinstance(asked, device) and (asked == _CPU or asked.index is not None) else None
        if not known.tensors():
            return _CPU
    if "other" in known and node.kind in _FOLLOWS:
        return known.tensor("other").device
    if node.kind in _STAYS:
        return known.tensor("self").device
    if node.kind in _MOVES:
        return _MOVES[node.kind]
    return _common_device(_all_tensors(known))


_FOLLOWS: Final = frozenset({"aten::to", "aten::type_as"})
"""Operators that bring a tensor to where the other one is."""
_STAYS: Final = frozenset({"aten::view_as", "aten::expand_as", "aten::reshape_as"})
"""Operators that take the other tensor's sizes alone, wherever it is."""
_MOVES: Final[dict[str, device | None]] = {"aten::cpu": _CPU, "aten::cuda": None}
"""Operators that bring a tensor to a device; None: the current one, which only the run tells."""


def _common_device(types: Sequence[TensorType]) -> device | None:
    """The device of an operator's result: its operands are on one, but for numbers of the CPU, which go along."""
    sure = {type.device for type in types if type.device is not None and not may_go_along(type)}
    if sure:
        return sure.pop() if len(sure) == 1 else None
    return _CPU if types and all(type.device == _CPU for type in types) else None


def may_go_along(type: TensorType) -> bool:
    """True for a tensor of the CPU without dimensions, which operators take beside those of another device."""
    return type.device == _CPU and (type.sizes is None or not type.sizes)


def _requires_grad(known: Known) -> bool | None:
    """Nothing that needs gradients comes from what needs none; the other way it depends on modes."""
    if "requires_grad" in known:
        return None
    tensors = _all_tensors(known)
    return False if tensors and all(type.requires_grad is False for type in tensors) else None


def _gradient_of_first(known: Known) -> bool | None:
    """False as it is certain; None, as PyTorch's analysis of shapes has it, for what is made of several elementwise."""
    op = op_of(known.node)
    return None if op is not None and is_pointwise(op) and len(known.tensors()) > 1 else _requires_grad(known)


CERTAIN: Final = Reading(device_of, _requires_grad, _unchanged, lambda found: replace(found, sizes=None, strides=None))
"""The rules of facts that hold for every run."""
KINDS: Final = replace(CERTAIN, place=kind_of_device)
"""Those, with devices as PyTorch's analysis tells them."""
SHAPES: Final = replace(CERTAIN, gradient=_gradient_of_first, partly=ranked, resized=lambda found: TENSOR, ranks=True)
"""Those that PyTorch's analysis of shapes tells: sizes are all known or none, and nothing of memory that is resized."""
