"""Operators whose result is made of elements of their arguments: another order, a part, several as one.

In: descriptions of tensors, and dimensions and indices.  Out: the description of the result.  `CHOOSING` has a function
for each operator whose elements are those of one argument, in its dtype; `JOINING` those that convert or join.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from engine.aten.kernels.rules import wrap_dim
from engine.fuser.groups.extents import ONE, Extent, known
from engine.fuser.groups.from_expression import Unsupported
from engine.fuser.groups.fusion_group import TYPES, Group, Handler, Lowered, Operands, elements, shown, stages_of
from engine.fuser.groups.schedule import Body, Indices, Piece, Value
from engine.fuser.ir.kernel import Expression, Name, add, apply, convert, index, multiply

# ------------------------------------------------------------------ dimensions


def whole(value: Lowered) -> int:
    if type(value) is not int:
        raise Unsupported("a dimension that is not known")
    return value


def axis_of(given: Operands, rank: int, name: str = "dim") -> int:
    return wrap_dim(whole(given[name]), rank)


def dimension(value: Value, d: int) -> int:
    """The number of the dimension, from 0 on, of a tensor that has any."""
    if not value.shape:
        raise Unsupported("a part of a tensor without dimensions")
    return wrap_dim(d, len(value.shape))


def number(value: Lowered) -> Expression:
    return index(value) if isinstance(value, int) else convert(value, "i64")


def _identity(group: Group, name: str, given: Operands, sample: Any) -> Value:
    """The elements as they are, in their order in memory or in that of the dimensions (memory format 0)."""
    value: Value = given["self"]
    order = given.get("memory_format")
    if order not in (None, 0, 1):
        raise Unsupported("another order in memory")
    same = shown(value, name, value.shape, lambda at: at)
    same.is_moved = value.is_moved and order != 0
    return same


def _converted(group: Group, name: str, given: Operands, sample: Any) -> Value:
    """The same elements in the dtype of the sample."""
    value: Value = given[next(iter(given))]
    given.without_effect("other")  # but for its dtype, which is the sample's
    if given.get("memory_format") not in (None, 1):
        raise Unsupported("another order in memory")
    type = TYPES.get(sample.array.dtype)
    if type is None:
        raise Unsupported(f"no kernels of {sample.array.dtype}")
    return Value(
        name, type, value.shape, lambda body, at: convert(body.element(value, at), type), value.stages, None,
        value.is_moved,
    )  # fmt: skip


def _transpose(group: Group, name: str, given: Operands, sample: Any) -> Value:
    value: Value = given["self"]
    order = [*range(len(value.shape))]
    a, b = (axis_of(given, len(order), each) for each in ("dim0", "dim1")) if "dim0" in given else (0, -1)
    if order:
        order[a], order[b] = order[b], order[a]
    return permuted(value, name, order)


def _permute(group: Group, name: str, given: Operands, sample: Any) -> Value:
    value: Value = given["self"]
    order = [wrap_dim(whole(d), len(value.shape)) for d in given["dims"]]
    if sorted(order) != [*range(len(value.shape))]:
        raise Unsupported("dimensions that are left out, or named twice")
    return permuted(value, name, order)


def permuted(value: Value, name: str, order: Sequence[int]) -> Value:
    back = [order.index(d) for d in range(len(order))]
    moved = shown(value, name, [value.shape[d] for d in order], lambda at: tuple(at[d] for d in back))
    moved.is_moved = order != sorted(order) or value.is_moved
    return moved


def _unsqueeze(group: Group, name: str, given: Operands, sample: Any) -> Value:
    value: Value = given["self"]
    d = axis_of(given, len(value.shape) + 1)
    shape = [*value.shape[:d], ONE, *value.shape[d:]]
    return shown(value, name, shape, lambda at: (*at[:d], *at[d + 1 :]))


def _select(group: Group, name: str, given: Operands, sample: Any) -> Value:
    value: Value = given["self"]
    d, at = dimension(value, whole(given["dim"])), given["index"]
    extent = group.extents.canonical(value.shape[d])
    example = group.numbers.get(at) if isinstance(at, Name) else at
    if at in group.ranges:
        count = group.ranges[at]
        if count.example > extent.example:
            raise Unsupported("more steps than there are elements")
        if count.size != extent.size:
            group.extents.guards.append(apply("le", count.size, extent.size))
        return shown(value, name, [*value.shape[:d], *value.shape[d + 1 :]], lambda i: (*i[:d], at, *i[d:]))
    if not isinstance(example, int) or not -extent.example <= example < extent.example:
        raise Unsupported("an index that is not known")
    place = number(at) if example >= 0 else add(extent.size, number(at))
    if isinstance(at, Name):
        group.extents.guard("ge", place, index(0))
        group.extents.guard("lt", place, extent.size)
    else:
        group.extents.guard("gt", extent.size, index(at if at >= 0 else -at - 1))
    shape = [*value.shape[:d], *value.shape[d + 1 :]]
    return shown(value, name, shape, lambda i: (*i[:d], place, *i[d:]))


def _cat(group: Group, name: str, given: Operands, sample: Any) -> Value:
    tensors: list[Value] = given["tensors"]
    rank = len(tensors[0].shape)
    if not rank or any(len(each.shape) != rank for each in tensors):
        raise Unsupported("tensors of different ranks")
    return joined(group, name, tensors, axis_of(given, rank), TYPES[sample.array.dtype])


def joined(group: Group, name: str, tensors: Sequence[Value], d: int, type: str) -> Value:
    """Tensors of one rank, one behind the other along a dimension."""
    rank, shape = len(tensors[0].shape), list(tensors[0].shape)
    for each in tensors[1:]:
        for axis in range(rank):
            if axis != d:
                shape[axis] = group.extents.require(shape[axis], each.shape[axis])
    starts, total = [known(0)], known(0)
    for each in tensors:
        extent = group.extents.canonical(each.shape[d])
        total = Extent(add(total.size, extent.size), total.example + extent.example)
        starts.append(total)
    shape[d] = total

    def at(body: Body, indices: Indices) -> Expression:
        def part(i: int) -> Expression:
            extent, start = group.extents.canonical(tensors[i].shape[d]), starts[i]
            own = add(indices[d], multiply(index(-1), start.size))
            last = add(extent.size, index(-1))
            inside = apply("maximum", apply("minimum", own, last), index(0))  # what is not chosen is read, too
            return convert(body.element(tensors[i], (*indices[:d], inside, *indices[d + 1 :])), type)

        found = part(len(tensors) - 1)
        for i in reversed(range(len(tensors) - 1)):
            found = apply("select", apply("lt", indices[d], starts[i + 1].size), part(i), found)
        return found

    if any(group.extents.canonical(each.shape[d]).example == 0 for each in tensors):
        raise Unsupported("an empty part")
    for each in tensors:
        group.extents.guard("gt", group.extents.canonical(each.shape[d]).size, index(0))
    pieces = tuple(Piece(each, d, start.size) for each, start in zip(tensors, starts, strict=False))
    return Value(name, type, tuple(shape), at, stages_of(tensors), pieces=pieces)


def _stack(group: Group, name: str, given: Operands, sample: Any) -> Value:
    d = axis_of(given, len(given["tensors"][0].shape) + 1)
    parts = [_unsqueeze(group, each.name, Operands({"self": each, "dim": d}), None) for each in given["tensors"]]
    return _cat(group, name, Operands({"tensors": parts, "dim": d}), sample)


def _expand(group: Group, name: str, given: Operands, sample: Any) -> Value:
    value: Value = given["self"]
    sizes = given["size"]
    if not all(isinstance(each, int) for each in sizes) or any(each < -1 for each in sizes):
        raise Unsupported("sizes that are not known")
    before = len(sizes) - len(value.shape)
    shape: list[Extent] = []
    for d, wanted in enumerate(sizes):
        own = value.shape[d - before] if d >= before else ONE
        if wanted == -1:
            shape.append(own)
        else:
            shape.append(known(wanted) if group.extents.is_one(own) else group.extents.require(own, known(wanted)))
    return Value(name, value.type, tuple(shape), lambda b, at: elements(b, value, at, group.extents), value.stages)


# ------------------------------------------------------------------ the tables

CHOOSING: Final[dict[str, Handler]] = {
    **dict.fromkeys(("aten::clone", "aten::detach", "aten::alias", "aten::contiguous"), _identity),
    "aten::transpose": _transpose, "aten::t": _transpose, "aten::permute": _permute, "aten::unsqueeze": _unsqueeze,
    "aten::select": _select, "aten::expand": _expand,
}  # fmt: skip
JOINING: Final[dict[str, Handler]] = {
    **dict.fromkeys(("aten::to", "aten::type_as", "aten::float", "aten::double", "aten::_to_copy"), _converted),
    "aten::cat": _cat, "aten::stack": _stack,
}  # fmt: skip
