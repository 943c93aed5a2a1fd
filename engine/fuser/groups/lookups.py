"""Operators that look elements up at places that a tensor holds.

In: the description of what is looked up in, and of a tensor of places.  Out: the description of the result; `LOOKUPS`
has a function for each operator, by name.  Places are looked at before anything is read by them: where one is out of
range the kernel ends, and the program raises its error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from engine.fuser.groups.choosing import axis_of
from engine.fuser.groups.extents import Extent
from engine.fuser.groups.from_expression import Unsupported
from engine.fuser.groups.fusion_group import Group, Handler, Lowered, Operands, elements, stages_of
from engine.fuser.groups.reductions import leave_if_any, mapped
from engine.fuser.groups.schedule import Body, Indices, Value
from engine.fuser.ir.kernel import Expression, add, apply, convert, index, multiply

Given = Operands
_PLACES: Final = ("i64", "i32")


def places_of(group: Group, value: Lowered) -> Value:
    """A tensor of whole numbers, as i64, computed once."""
    if not isinstance(value, Value) or value.type not in _PLACES:
        raise Unsupported("no tensor of places")
    found = mapped(group, f"{value.name}at", lambda x: convert(x, "i64"), value) if value.type != "i64" else value
    return group.kept_if_costly(found)


def checked(group: Group, name: str, places: Value, extent: Extent, *, from_end: bool = False) -> Value:
    """The places, none of which lies outside 0 … extent; those that count `from_end` are negative."""
    size = group.extents.canonical(extent).size
    least = multiply(index(-1), size) if from_end else index(0)

    def is_outside(place: Expression) -> Expression:
        return apply("bitor", apply("lt", place, least), apply("ge", place, size))

    wrong = mapped(group, f"{name}_wrong", is_outside, places)
    left = leave_if_any(group, f"{name}_check", wrong)

    def at(body: Body, indices: Indices) -> Expression:
        place = body.element(places, indices)
        return apply("select", apply("lt", place, index(0)), add(place, size), place) if from_end else place

    return Value(f"{name}_at", "i64", places.shape, at, (*stages_of([places]), left))


def _looked_up(
    group: Group, name: str, value: Value, places: Sequence[Value], d: int, shape: Sequence[Extent]
) -> Value:
    """The value's elements with places, of this common shape, for the indices from `d` on."""
    rank, before = len(shape), value.shape[:d]

    def at(body: Body, indices: Indices) -> Expression:
        inside = indices[d : d + rank]
        found = (elements(body, each, inside, group.extents) for each in places)
        return body.element(value, (*indices[:d], *found, *indices[d + rank :]))

    whole = (*before, *shape, *value.shape[d + len(places) :])
    return Value(name, value.type, whole, at, stages_of([value, *places]))


def _row(group: Group, name: str, given: Given, sample: Any) -> Value:
    """`embedding`: a row of the weight for each place."""
    given.without_effect("padding_idx")  # but on the gradient
    weight = given["weight"]
    if not isinstance(weight, Value) or len(weight.shape) != 2:
        raise Unsupported("no matrix")
    places = checked(group, name, places_of(group, given["indices"]), weight.shape[0])
    return _looked_up(group, name, weight, [places], 0, places.shape)


def _selected(group: Group, name: str, given: Given, sample: Any) -> Value:
    """`index_select`: the parts along a dimension at the places of a vector."""
    value: Value = given["self"]
    d = axis_of(given, len(value.shape))
    if not value.shape or len(given["index"].shape) != 1:
        raise Unsupported("no vector of places")
    places = checked(group, name, places_of(group, given["index"]), value.shape[d])
    return _looked_up(group, name, value, [places], d, places.shape)


def _gathered(group: Group, name: str, given: Given, sample: Any) -> Value:
    """`gather`: for each place, the element with that index along a dimension and the place's own indices else."""
    value: Value = given["self"]
    d = axis_of(given, len(value.shape))
    places = places_of(group, given["index"])
    if not value.shape or len(places.shape) != len(value.shape):
        raise Unsupported("places of another rank")
    for axis, (own, wanted) in enumerate(zip(value.shape, places.shape, strict=True)):
        own, wanted = group.extents.canonical(own), group.extents.canonical(wanted)
        if axis != d and own != wanted:
            if wanted.example > own.example:
                raise Unsupported("more places than elements")
            group.extents.guard("le", wanted.size, own.size)
    found = checked(group, name, places, value.shape[d])

    def at(body: Body, indices: Indices) -> Expression:
        return body.element(value, (*indices[:d], body.element(found, indices), *indices[d + 1 :]))

    return Value(name, value.type, places.shape, at, stages_of([value, found]))


def _indexed(group: Group, name: str, given: Given, sample: Any) -> Value:
    """`index`: tensors of places, broadcast, for dimensions that follow each other; places may count from the end."""
    value, wanted = given["self"], given["indices"]
    if not isinstance(wanted, list) or len(wanted) > len(value.shape):
        raise Unsupported("places that are not known")
    dims = [d for d, each in enumerate(wanted) if each is not None]
    if not dims or dims != [*range(dims[0], dims[-1] + 1)]:
        raise Unsupported("dimensions that do not follow each other")
    places = [checked(group, f"{name}_{d}", places_of(group, wanted[d]), value.shape[d], from_end=True) for d in dims]
    shape = group.extents.broadcast(*(each.shape for each in places)) if any(e.shape for e in places) else ()
    return _looked_up(group, name, value, places, dims[0], shape)


LOOKUPS: Final[dict[str, Handler]] = {
    "aten::embedding": _row, "aten::index_select": _selected, "aten::gather": _gathered, "aten::index": _indexed,
}  # fmt: skip
"""Those whose elements are elements of their first argument."""
