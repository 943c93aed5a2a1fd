"""Subscripts: `x[i]`, `x[1:, None, ..., mask]`, and assigning to them.

In: subscript trees.  Out: for a tensor `select`, `slice`, `unsqueeze` and `index` from left to right (from
an ellipsis on, from right to left); for lists, strings, tuples and dicts their own operators.  A slice is written
`start:stop:step`, or is the value of an expression (`slice(start, stop, step)`, or a name for that).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.aten.values.arithmetic import slice_of
from engine.frontend.diagnostics.hints import narrowing_hints
from engine.frontend.emit.emitter import Emitter
from engine.frontend.matching.schema_match import Actual
from engine.frontend.sugared.modules import ModuleValue
from engine.frontend.sugared.slices import SliceValue
from engine.frontend.sugared.sugared_value import SugaredValue
from engine.frontend.sugared.values import MethodValue, SimpleValue, SugaredTuple
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import SliceExpr, Subscript
from engine.ir.constants import constant_value
from engine.ir.graph import Value
from engine.lang.errors import CompileError, OperatorError
from engine.lang.scalars import int64
from engine.lang.source import SourceRange
from engine.lang.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    TENSOR,
    ClassType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
)  # fmt: skip


def subscript(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    """`value[...]` as an expression."""
    view = Subscript(tree)
    target = e.sugared(view.value)
    if isinstance(target, (SugaredTuple, ModuleValue)):
        return _sugared_item(e, target, view, hint)
    if not isinstance(target, SimpleValue):
        target = SimpleValue(target.as_value(e, view.value.range))
    value, parts = target.value, view.subscripts
    if len(parts) == 1 and parts[0].kind == "slice_expr":
        return SimpleValue(_slice_of(e, value, parts[0], tree))
    if len(parts) != 1:
        if isinstance(value.type, TensorType):
            return SimpleValue(index_tensor(e, value, parts, tree.range))
        raise CompileError(
            "Unsupported operation: attempted to use multidimensional indexing on a non-tensor type",
            tree.range,
            hints=("index once more: x[0][1]",),
        )
    index = e.sugared(parts[0])
    if isinstance(index, SliceValue):
        return SimpleValue(_slice_of(e, value, index, tree))
    place = index.as_value(e, parts[0].range)
    if isinstance(value.type, TensorType):
        return SimpleValue(index_tensor(e, value, parts, tree.range))
    return target.item(e, place, hint, tree.range)


def _sugared_item(e: Emitter, target: SugaredTuple | ModuleValue, view: Subscript, hint: Type | None) -> SugaredValue:
    part = view.subscripts[0]
    index = part if part.kind == "slice_expr" else e.sugared(part)
    if isinstance(index, (Tree, SliceValue)):
        parts = target.parts if isinstance(target, SugaredTuple) else target.parts(e, view.tree.range)
        return SugaredTuple(parts[_static_slice(e, index, part.range)])
    return target.item(e, index.as_value(e, part.range), hint, view.tree.range)


# -- tensors


class Index(NamedTuple):
    """A tensor after the ints, slices and Nones of a subscript, and the index tensors still to be applied."""

    value: Value
    tensors: list[Value | None]


def index_tensor(e: Emitter, value: Value, parts: Sequence[Tree], range: SourceRange) -> Value:
    """`value[parts]` for a tensor."""
    value, tensors = slice_tensor(e, value, parts, range)
    return e.insert("aten::index", [value, tensor_list(e, tensors)], range) if tensors else value


def slice_tensor(e: Emitter, value: Value, parts: Sequence[Tree], range: SourceRange) -> Index:
    """Apply the parts of the subscript that make views."""
    placed = _place(e, parts, range)
    tensors: list[Value | None] = []
    for part, (dim, index) in zip(parts, placed, strict=True):
        if part.kind == "dots":
            continue
        if index is None:
            bounds = part if part.kind == "slice_expr" else _slice_value(e, part)
            value = _tensor_slice(e, value, e.constant(dim, range), bounds, range)
        elif index.type is NONE:
            value = e.insert("aten::unsqueeze", [value, e.constant(dim, range)], range)
        elif index.type is INT:
            value = e.insert("aten::select", [value, e.constant(dim, range), index], range)
        else:
            tensors += [None] * (dim + 1 - len(tensors))
            tensors[dim] = index
    return Index(value, tensors)


def tensor_list(e: Emitter, tensors: Sequence[Value | None]) -> Value:
    """The `Tensor?[]` that `index` and `index_put_` take; None for a dimension that is left alone."""
    values = [e.constant(None) if tensor is None else tensor for tensor in tensors]
    return e.list(values, OptionalType(TENSOR))


def _place(e: Emitter, parts: Sequence[Tree], range: SourceRange) -> list[tuple[int, Value | None]]:
    """For each part the dimension it applies to, and its value unless it is a slice or the ellipsis."""
    ellipsis = [index for index, part in enumerate(parts) if part.kind == "dots"]
    if len(ellipsis) > 1:
        raise CompileError(
            "An index can only have a single ellipsis ('...')", range, hints=("write the other places as :",)
        )
    middle = ellipsis[0] if ellipsis else len(parts)
    placed: list[tuple[int, Value | None]] = []
    dim = 0
    for part in parts[:middle]:
        index, consumes = _index_value(e, part, range)
        placed.append((dim, index))
        dim += consumes
    behind: list[tuple[int, Value | None]] = []
    dim = -1
    for part in reversed(parts[middle + 1 :]):
        index, consumes = _index_value(e, part, range)
        if index is not None and isinstance(index.type, TensorType):
            raise CompileError(
                "Ellipses followed by tensor indexing is currently not supported",
                range,
                hints=("write the places that ... stands for as :",),
            )
        behind.append((dim, index))
        dim -= _consumed_from_behind(index)
    return placed + [(0, None)] * len(ellipsis) + behind[::-1]


def _consumed_from_behind(index: Value | None) -> int:
    return 0 if index is not None and index.type is NONE else 1


def _index_value(e: Emitter, part: Tree, range: SourceRange) -> tuple[Value | None, int]:
    """The part's value, and how many dimensions of the result it stands for."""
    if part.kind == "slice_expr":
        return None, 1
    # PyTorch compiles an index twice, the first time to see if it is a slice; the effects of both show.
    if isinstance(e.sugared(part), SliceValue):
        return None, 1
    index = e.expression(part)
    if isinstance(index.type, ListType):
        index = e.insert("aten::tensor", [index], range, dtype=e.constant(int64.number))
    if index.type is NONE:
        return index, 1
    if index.type is INT:
        return index, 0
    if index.type.is_subtype_of(OptionalType(TENSOR)):
        return index, 1
    raise CompileError(
        f"Unsupported operation: indexing tensor with unsupported index type '{index.type.annotation_str}'. Only ints, "
        "slices, lists and tensors are supported",
        range,
        hints=("write the parts one after the other: x[i, j]",) if isinstance(index.type, TupleType) else (),
    )


def _tensor_slice(e: Emitter, value: Value, dim: Value, bounds: Slice, range: SourceRange) -> Value:
    return e.insert("aten::slice", [value, dim, *_bounds(e, bounds, range)], range)


# -- slices

Slice = Tree | SliceValue
"""`start:stop:step`, whose parts are not compiled yet, or the value of a call of `slice`."""


def _slice_value(e: Emitter, part: Tree) -> SliceValue:
    found = e.sugared(part)
    assert isinstance(found, SliceValue)
    return found


def _given(e: Emitter, bounds: Slice) -> list[Value | None]:
    """Start, stop and step; None for what is left out."""
    if isinstance(bounds, SliceValue):
        return [bounds.start, bounds.stop, bounds.step]
    view = SliceExpr(bounds)
    return [None if bound is None else e.expression(bound) for bound in (view.start, view.end, view.step)]


def _bounds(e: Emitter, bounds: Slice, range: SourceRange) -> tuple[Value, Value, Value]:
    if isinstance(bounds, SliceValue):
        return bounds.start, bounds.stop, bounds.step
    start, stop, step = _given(e, bounds)
    one = step if step is not None else e.constant(1, range)
    none = e.constant(None, range)
    return start or none, stop or none, one


def _slice_of(e: Emitter, value: Value, bounds: Slice, tree: Tree) -> Value:
    """`value[start:stop:step]`."""
    type = value.type
    if isinstance(type, TensorType):
        return _tensor_slice(e, value, e.constant(0, tree.range), bounds, tree.range)
    if isinstance(type, TupleType):
        return _tuple_slice(e, value, type, bounds, tree)
    return e.insert("aten::slice", [value, *_bounds(e, bounds, tree.range)], tree.range)


def _tuple_slice(e: Emitter, value: Value, type: TupleType, bounds: Slice, tree: Tree) -> Value:
    """A tuple's slice has bounds that are known while compiling."""
    picked = []
    for position in range(len(type.elements))[_static_slice(e, bounds, Subscript(tree).subscripts[0].range)]:
        index = e.constant(position, tree.range)
        picked.append(e.value("prim::TupleIndex", [value, index], type.elements[position], tree.range))
    return e.tuple(picked)


def _static_slice(e: Emitter, bounds: Slice, range: SourceRange) -> slice:
    start, stop, step = (None if bound is None else _static_bound(bound, range) for bound in _given(e, bounds))
    try:
        return slice_of(start, stop, 1 if step is None else step)
    except OperatorError as error:
        raise CompileError(error.message, range, hints=("leave the step out",)) from None


def _static_bound(bound: Value, range: SourceRange) -> int:
    known = constant_value(bound)
    if isinstance(known, int):
        return known
    raise CompileError(
        "tuple slice indices must be integer constants",
        bound.node.range or range,
        hints=("the length of the result must be known while compiling: write numbers",),
    )


# -- assignment

_FIXED: Final = ("its elements never change; make a new one",)


def assign_subscript(e: Emitter, tree: Tree, new: Value, range: SourceRange) -> None:
    """`value[...] = new`."""
    view = Subscript(tree)
    value = e.expression(view.value)
    if isinstance(value.type, TensorType):
        _assign_tensor(e, value, view, new, range)
        return
    parts = view.subscripts
    if len(parts) != 1 or parts[0].kind == "slice_expr":
        raise CompileError(
            "Sliced expression not yet supported for subscripted assignment. File a bug if you want this",
            parts[0].range.to(parts[-1].range),
            hints=("assign the elements one by one, in a loop",),
        )
    if isinstance(value.type, ClassType):
        args = [Actual(e.expression(parts[0]), parts[0].range), Actual(new, range)]
        if "__setitem__" not in value.type.methods:
            raise CompileError(
                f"Class {value.type.name} does not define a __setitem__ method",
                range,
                hints=("define __setitem__(self, key, value)",),
            )
        MethodValue(value, "__setitem__").call(e, args, (), range)
        return
    if isinstance(value.type, TupleType):
        text = f"{value.type.annotation_str} does not support subscripted assignment"
        raise CompileError(text, tree.range, hints=_FIXED)
    try:
        e.insert("aten::_set_item", [value, e.expression(parts[0]), new], range)
    except CompileError as error:
        error.hints = (_FIXED if value.type is STR else narrowing_hints(value.type, "the value")) or error.hints
        raise


def as_tensor_like(e: Emitter, new: Value, like: Value) -> Value:
    """A number as a tensor of the dtype and device of `like`."""
    if new.type not in (INT, FLOAT, BOOL, COMPLEX, NUMBER):
        return new
    dtype, device = e.insert("prim::dtype", [like]), e.insert("prim::device", [like])
    return e.insert("aten::tensor", [new], dtype=dtype, device=device)


def _assign_tensor(e: Emitter, value: Value, view: Subscript, new: Value, range: SourceRange) -> None:
    sliced, tensors = slice_tensor(e, value, view.subscripts, view.tree.range)
    new = as_tensor_like(e, new, sliced)
    if tensors:
        e.insert("aten::index_put_", [sliced, tensor_list(e, tensors), new], range)
    else:
        e.insert("aten::copy_", [sliced, new], range)
