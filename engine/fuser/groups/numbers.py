"""Numbers in groups: questions about the forms of tensors, and arithmetic with the answers.

In: an operator that computes with no elements of tensors, and its operands: descriptions of tensors, numbers of the
call, constants, lists of these.  Out: a constant where all that matters is known, else an expression, whose value in
the example is in `Group.numbers`.  What a call is asked (whether a size is 1) has the same answer in each: guards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, Final

from engine.aten.dispatch.op import Op
from engine.aten.kernels.rules import wrap_dim
from engine.aten.values import xp
from engine.fuser.groups.extents import Extent, known
from engine.fuser.groups.fusion_group import DTYPES, Group, Lowered
from engine.fuser.groups.schedule import Value
from engine.fuser.ir.kernel import FLOATS, HALVES, Constant, Expression, apply, constant, convert, product
from engine.lang.types import TensorType, walk

Given = Sequence[Lowered]
SIZE: Final = "aten::size"


def is_of_numbers(op: Op) -> bool:
    """True if the operator looks at numbers, or at the forms of tensors, and at no elements."""
    types = [each.type for each in (*op.schema.arguments, *op.schema.returns)]
    if any(isinstance(part, TensorType) for type in types for part in walk(type)):
        return _rule_of(op) is not None
    return op.qualified_name in _OF_LISTS or not (op.side_effects or op.is_mutable or op.nondeterministic)


def _rule_of(op: Op) -> Callable[..., Any] | None:
    return _FORMS.get(op.name) or _FORMS.get(op.qualified_name)


def number(group: Group, op: Op, given: Given) -> Lowered:
    """The operator's result."""
    if (rule := _rule_of(op)) is not None:
        return rule(group, *given)
    if op.qualified_name in _OF_LISTS:
        return op.run(*given)
    function = _FUNCTIONS.get(op.name)
    if function is None or any(isinstance(each, list) for each in given):
        return op.run(*(_fixed(group, each) for each in given))
    if not any(isinstance(each, Expression) for each in given):
        return op.run(*given)
    examples = [_example(group, each) for each in given]
    result = op.run(*examples)
    type = "f64" if any(isinstance(each, float) for each in (*examples, result)) else "i64"
    made = function(*(convert(each, type) if isinstance(each, Expression) else constant(each, type) for each in given))
    if isinstance(result, bool):
        group.extents.guards.append(made if result else apply("bitnot", made))
        return result
    group.numbers[made] = result
    return made


def _fixed(group: Group, value: Lowered) -> Any:
    """The value as it is in the example, which then each call has to have."""
    if isinstance(value, list):
        return [_fixed(group, each) for each in value]
    if not isinstance(value, Expression):
        return value
    example = group.numbers[value]
    if value.type == "i64":
        group.extents.require(Extent(value, int(example)), known(int(example)))
    else:
        group.extents.guard("eq", value, constant(example, value.type))
    return example


_FUNCTIONS: Final[dict[str, Callable[..., Expression]]] = {
    **{f"aten::{name}": partial(apply, name) for name in "add sub mul div neg eq ne lt le gt ge sqrt".split()},
    "prim::max": lambda a, b: apply("select", apply("gt", b, a), b, a),
    "prim::min": lambda a, b: apply("select", apply("lt", b, a), b, a),
    "aten::Float": lambda x: convert(x, "f64"), "aten::Int": lambda x: convert(x, "i64"),
}  # fmt: skip
"""Arithmetic of numbers that only calls know, of NaN too; what is not here has operands that are those of the
example."""
_OF_LISTS: Final = frozenset(
    f"aten::{name}" for name in "__getitem__.t len.t append.t copy.t slice.t add.t mul.left_t mul.right_".split()
)
"""Operators of lists, whatever is in these."""

# ------------------------------------------------------------------ forms


def _sizes(group: Group, value: Value) -> list[Lowered]:
    found = [group.extents.canonical(each) for each in value.shape]
    group.numbers.update((each.size, each.example) for each in found)
    return [each.example if isinstance(each.size, Constant) else each.size for each in found]


def _size(group: Group, value: Value, *place: Lowered) -> Lowered:
    """All sizes, or one."""
    sizes = _sizes(group, value)
    return sizes[wrap_dim(_fixed(group, place[0]), len(sizes))] if place else sizes


def _count(group: Group, value: Value) -> Lowered:
    """The number of elements."""
    found = [group.extents.canonical(each) for each in value.shape]
    total = product([each.size for each in found])
    group.numbers[total] = prod(each.example for each in found)
    return group.numbers[total] if isinstance(total, Constant) else total


def _are_alike(group: Group, a: Sequence[Lowered], b: Sequence[Lowered]) -> bool:
    """True if lists of sizes are the same, as they are in each call then."""
    if len(a) != len(b) or any(_example(group, x) != _example(group, y) for x, y in zip(a, b, strict=True)):
        return bool(_fixed(group, [*a]) == _fixed(group, [*b]))
    for x, y in zip(a, b, strict=True):
        group.extents.require(*(Extent(_size_of(each), _example(group, each)) for each in (x, y)))
    return True


def _example(group: Group, value: Lowered) -> Any:
    return group.numbers[value] if isinstance(value, Expression) else value


def _size_of(value: Lowered) -> Expression:
    return convert(value, "i64") if isinstance(value, Expression) else constant(value, "i64")


def _dtype(group: Group, value: Value) -> int:
    return xp.FROM_NUMPY[DTYPES[value.type]].number


_FORMS: Final[dict[str, Callable[..., Any]]] = {
    SIZE: _size, "aten::numel": _count, "prim::dtype": _dtype,
    "aten::eq.int_list": _are_alike, "aten::ne.int_list": lambda group, a, b: not _are_alike(group, a, b),
    "aten::dim": lambda group, value: len(value.shape), "aten::Bool.Tensor": lambda group, value: value,
    "aten::is_complex": lambda group, value: False,
    "aten::is_floating_point": lambda group, value: value.type in (*FLOATS, *HALVES),
    "aten::__is__": lambda group, a, b: a is b,
    "aten::__isnot__": lambda group, a, b: a is not b,
}  # fmt: skip
"""Operators of the forms of tensors, and of sizes; `is` is asked about None.  The truth of an element is for branches
of which one raises."""
