"""Operators that give a tensor another shape or a part of it, as arithmetic on indices.

In: the description of a tensor, and sizes or bounds, known or numbers of the call.  Out: the description of the result;
`RESHAPING` has a function for each operator, by name.

Sizes that go together are found by the example: `(n, 3, 4)` as `(n, 12)` leaves n alone, and makes one index of two by
`quotient` and `rest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from engine.aten.kernels.rules import wrap_dim
from engine.aten.values.tensor import Tensor
from engine.fuser.groups.choosing import dimension
from engine.fuser.groups.extents import ONE, Extent, known
from engine.fuser.groups.from_expression import Unsupported
from engine.fuser.groups.fusion_group import Choose, Group, Handler, Lowered, Operands, elements, shown
from engine.fuser.groups.schedule import Indices, Value
from engine.fuser.ir.kernel import Apply, Constant, Expression, Name, add, apply, convert, index, multiply, product

Given = Operands
_END: Final = 2**63 - 1


def _tensor(given: Given, name: str = "self") -> Value:
    value = given[name]
    if not isinstance(value, Value):
        raise Unsupported(f"{name} is no tensor")
    return value


def extent_of(group: Group, number: Lowered) -> Extent:
    """A number as a size, with its example."""
    if type(number) is int:
        return known(number)
    if not isinstance(number, (Name, Apply)) or number not in group.numbers:
        raise Unsupported("a size that is not known")
    return Extent(convert(number, "i64"), int(group.numbers[number]))


def _whole(value: Lowered) -> int:
    if type(value) is not int:
        raise Unsupported("a dimension that is not known")
    return value


def less(a: Extent, b: Extent) -> Extent:
    """a - b."""
    return Extent(add(a.size, multiply(index(-1), b.size)), a.example - b.example)


# ------------------------------------------------------------------ parts


def _slice(group: Group, name: str, given: Given, sample: Any) -> Value:
    """From `start` to before `end`, both counted from the end where negative."""
    value = _tensor(given)
    d = dimension(value, _whole(given["dim"]))
    extent, step = group.extents.canonical(value.shape[d]), _whole(given["step"])
    start, end = (_bound(group, extent, given[key], first) for key, first in (("start", 0), ("end", _END)))
    if step < 1 or end.example < start.example:
        raise Unsupported("an empty part")
    group.extents.guard("ge", end.size, start.size)
    length = less(end, start)
    if step > 1:
        more = add(length.size, index(step - 1))
        length = Extent(_quotient(more, index(step)), (length.example + step - 1) // step)

    def choose(at: Indices) -> Indices:
        return (*at[:d], add(start.size, multiply(index(step), at[d])), *at[d + 1 :])

    return shown(value, name, [*value.shape[:d], length, *value.shape[d + 1 :]], choose)


def _bound(group: Group, extent: Extent, wanted: Lowered, otherwise: int) -> Extent:
    """A bound of a slice within the size, guarded to lie where it lies in the example."""
    bound = extent_of(group, otherwise if wanted is None else wanted)
    if bound.example == _END and isinstance(bound.size, Constant):
        return extent
    if bound.example < 0:
        group.extents.guard("lt", bound.size, index(0))
        bound = Extent(add(extent.size, bound.size), extent.example + bound.example)
    elif bound.example > 0 or not isinstance(bound.size, Constant):
        group.extents.guard("ge", bound.size, index(0))
    for end, outside in ((known(0), "lt"), (extent, "gt")):
        if (bound.example < 0) if outside == "lt" else (bound.example > extent.example):
            group.extents.guard(outside, bound.size, end.size)
            return end
    group.extents.guard("ge", bound.size, index(0))
    group.extents.guard("le", bound.size, extent.size)
    return bound


def _squeeze(group: Group, name: str, given: Given, sample: Any) -> Value:
    """Without the sizes of 1, at these dimensions or at all."""
    value, wanted = _tensor(given), given.get("dim")
    rank = len(value.shape)
    listed = [*range(rank)] if wanted is None else wanted if isinstance(wanted, list) else [wanted]
    dims = {wrap_dim(_whole(d), rank) for d in listed}
    kept = [d for d in range(rank) if d not in dims or not group.extents.is_one(value.shape[d])]
    for d in set(kept) & dims:
        group.extents.guard("ne", group.extents.canonical(value.shape[d]).size, index(1))

    def choose(at: Indices) -> Indices:
        places = dict(zip(kept, at, strict=True))
        return tuple(places.get(d, index(0)) for d in range(rank))

    return shown(value, name, [value.shape[d] for d in kept], choose)


def _expand_as(group: Group, name: str, given: Given, sample: Any) -> Value:
    value, other = _tensor(given), _tensor(given, "other")
    shape = group.extents.broadcast(value.shape, other.shape)
    for own, wanted in zip(other.shape, shape, strict=True):
        group.extents.require(own, wanted)
    return _expanded(group, value, shape)


def _broadcast(group: Group, name: str, given: Given, sample: Any) -> list[Value]:
    """All in the shape of a result of theirs."""
    tensors: list[Value] = given["tensors"]
    shape = group.extents.broadcast(*(each.shape for each in tensors))
    made = [_expanded(group, each, shape) for each in tensors]
    for value, tensor in zip(made, tensors, strict=True):
        group.samples[value] = Tensor(np.ones((1,) * len(shape), group.samples[tensor].array.dtype))
    return made


def _expanded(group: Group, value: Value, shape: tuple[Extent, ...]) -> Value:
    return Value(value.name, value.type, shape, lambda body, at: elements(body, value, at, group.extents), value.stages)


# ------------------------------------------------------------------ other shapes


def _view(group: Group, name: str, given: Given, sample: Any) -> Value:
    sizes = given["shape"] if "shape" in given else given["size"]
    if not isinstance(sizes, list):
        raise Unsupported("sizes that are not known")
    value = _tensor(given)
    return reshaped(group, name, value, _with_rest(group, value.shape, [extent_of(group, each) for each in sizes]))


def _view_as(group: Group, name: str, given: Given, sample: Any) -> Value:
    return reshaped(group, name, _tensor(given), list(_tensor(given, "other").shape))


def _flatten(group: Group, name: str, given: Given, sample: Any) -> Value:
    value = _tensor(given)
    rank = len(value.shape)
    first, last = (wrap_dim(_whole(given[key]), rank) for key in ("start_dim", "end_dim"))
    if first > last:
        raise Unsupported("dimensions in the wrong order")
    shape = [group.extents.canonical(each) for each in value.shape]
    if not shape:
        return reshaped(group, name, value, [ONE])
    return reshaped(group, name, value, [*shape[:first], _whole_of(shape[first : last + 1]), *shape[last + 1 :]])


def _whole_of(shape: Sequence[Extent]) -> Extent:
    return Extent(product([each.size for each in shape]), prod(each.example for each in shape))


def _with_rest(group: Group, shape: Sequence[Extent], sizes: Sequence[Extent]) -> list[Extent]:
    """The sizes with the one that is -1 worked out: sizes of the tensor that the others do not have."""
    places = [i for i, each in enumerate(sizes) if each.example == -1]
    if not places:
        return [*sizes]
    if len(places) > 1 or any(each.example == 0 for each in (*shape, *sizes)):
        raise Unsupported("a size that cannot be told")
    (place,) = places
    group.extents.guard("eq", sizes[place].size, index(-1))
    left = [group.extents.canonical(each) for each in shape]
    others: list[Extent] = []
    for each in map(group.extents.canonical, (*sizes[:place], *sizes[place + 1 :])):
        if each in left:
            left.remove(each)
        else:
            others.append(each)
    whole, part = _whole_of(left), _whole_of(others)
    if whole.example % part.example:
        raise Unsupported("sizes that do not fit")
    if part.example != 1 or not isinstance(part.size, Constant):
        group.extents.guard("gt", part.size, index(0))
        divisor = apply("maximum", part.size, index(1)) if not isinstance(part.size, Constant) else part.size
        group.extents.guard("eq", apply("rest", whole.size, divisor), index(0))
        whole = Extent(_quotient(whole.size, divisor), whole.example // part.example)
    return [*sizes[:place], whole, *sizes[place + 1 :]]


def reshaped(group: Group, name: str, value: Value, shape: Sequence[Extent]) -> Value:
    """The elements in their order in another shape."""
    own = [group.extents.canonical(each) for each in value.shape]
    new = [group.extents.canonical(each) for each in shape]
    if prod(each.example for each in own) != prod(each.example for each in new):
        raise Unsupported("sizes that do not fit")
    if any(each.example == 0 for each in own) or any(each.example < 0 for each in new):
        raise Unsupported("no elements")
    pairs = _pairs(own, new)
    for before, after in pairs:
        _guard_alike(group, [own[d] for d in before], [new[d] for d in after])

    def choose(at: Indices) -> Indices:
        places: dict[int, Expression] = {}
        for before, after in pairs:
            found = _places([at[d] for d in after], [new[d] for d in after], [own[d] for d in before])
            places |= zip(before, found, strict=True)
        return tuple(places[d] for d in range(len(own)))

    return shown(value, name, new, choose)


def _pairs(own: Sequence[Extent], new: Sequence[Extent]) -> list[tuple[list[int], list[int]]]:
    """The dimensions of two shapes that go together, as few as possible."""
    pairs: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(own) or j < len(new):
        before, after = [*range(i, min(i + 1, len(own)))], [*range(j, min(j + 1, len(new)))]
        i, j = i + len(before), j + len(after)
        while (a := prod(own[d].example for d in before)) != (b := prod(new[d].example for d in after)):
            if (a < b and i < len(own)) or j == len(new):
                before, i = [*before, i], i + 1
            else:
                after, j = [*after, j], j + 1
        pairs.append((before, after))
    return pairs


def _guard_alike(group: Group, own: Sequence[Extent], new: Sequence[Extent]) -> None:
    """Guard that both have as many elements, in each call."""
    if len(own) == len(new) == 1:
        group.extents.require(own[0], new[0])
    elif own != new and _whole_of(own).size != _whole_of(new).size:
        group.extents.guard("eq", _whole_of(own).size, _whole_of(new).size)


def _places(at: Sequence[Expression], new: Sequence[Extent], own: Sequence[Extent]) -> list[Expression]:
    """The indices in the shape `own` of the element that has the indices `at` in the shape `new`."""
    if len(own) == len(new) == 1:
        return [*at]
    place: Expression = index(0)
    for d, each in enumerate(at):
        place = add(place, multiply(each, product([e.size for e in new[d + 1 :]])))
    found: list[Expression] = []
    for d, extent in enumerate(own):
        inner = product([each.size for each in own[d + 1 :]])
        outer = _quotient(place, inner)
        found.append(outer if d == 0 else _rest(outer, extent.size))
    return found


def chunks(group: Group, value: Value, count: int, d: int, name: str) -> list[Value]:
    """Equal parts along a dimension."""
    extent = group.extents.canonical(value.shape[d])
    if count < 1 or extent.example % count or not extent.example:
        raise Unsupported("parts of different sizes")
    group.extents.guard("eq", _rest(extent.size, index(count)), index(0))
    part = Extent(_quotient(extent.size, index(count)), extent.example // count)
    shape = [*value.shape[:d], part, *value.shape[d + 1 :]]

    def choose(i: int) -> Choose:
        return lambda at: (*at[:d], add(multiply(index(i), part.size), at[d]), *at[d + 1 :])

    made = [shown(value, name, shape, choose(i)) for i in range(count)]
    for each in made:
        group.samples[each] = group.samples[value]
    return made


def _is_one(size: Expression) -> bool:
    return isinstance(size, Constant) and size.value == 1


def _quotient(a: Expression, b: Expression) -> Expression:
    if isinstance(a, Constant) and isinstance(b, Constant):
        return index(int(a.value) // int(b.value))
    return a if _is_one(b) else apply("quotient", a, b)


def _rest(a: Expression, b: Expression) -> Expression:
    if isinstance(a, Constant) and isinstance(b, Constant):
        return index(int(a.value) % int(b.value))
    return index(0) if _is_one(b) else apply("rest", a, b)


def _unflatten(group: Group, name: str, given: Given, sample: Any) -> Value:
    value, sizes = _tensor(given), given["sizes"]
    if not isinstance(sizes, list):
        raise Unsupported("sizes that are not known")
    d = dimension(value, _whole(given["dim"]))
    inside = _with_rest(group, [value.shape[d]], [extent_of(group, each) for each in sizes])
    return reshaped(group, name, value, [*value.shape[:d], *inside, *value.shape[d + 1 :]])


RESHAPING: Final[dict[str, Handler]] = {
    "aten::broadcast_tensors": _broadcast,
    "aten::slice": _slice, "aten::squeeze": _squeeze, "aten::expand_as": _expand_as,
    **dict.fromkeys(("aten::view", "aten::reshape", "aten::_unsafe_view", "aten::_reshape_alias"), _view),
    **dict.fromkeys(("aten::view_as", "aten::reshape_as"), _view_as),
    "aten::flatten": _flatten, "aten::unflatten": _unflatten,
}  # fmt: skip
"""Those whose elements are elements of their argument, in its dtype."""
