"""Accesses to memory that move several elements at once.

In: the nest of loops that threads share.  Out: `Vectors`: the nest's body with loads and stores of whole vectors taken
out, or None where elements are not next to each other.

    for j in n: out[j] = x[j] + y    →    load x[j … j+3]; store.0 = load.0 + y for each of these; store out[j … j+3]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Final

from engine.fuser.gpu.walking import Nest, loads_of, stored
from engine.fuser.ir.affine import Affine, affine
from engine.fuser.ir.kernel import (
    SIZES,
    Accumulate,
    Constant,
    Expression,
    Let,
    Load,
    Name,
    Statement,
    Store,
    all_expressions,
    index,
    rewritten,
)
from engine.lang.records import dataclass

BYTES: Final = 16
"""The greatest size that one instruction moves."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """`width` elements at a time.

    `body`: the statements for one element, with a name for each of `loads`, and a let for each of `stores`.
    `multiples`: i64 expressions that have to be multiples of the width; the buffers' addresses have to be of their own
    vectors' sizes.
    """

    width: int
    loads: tuple[tuple[str, Load], ...]
    stores: tuple[tuple[str, Store], ...]
    body: tuple[Statement, ...]
    multiples: tuple[Expression, ...]
    lines: dict[str, int] = field(compare=False, repr=False)
    """Those of the statements that the loads and stores are of."""


def vectors_of(nest: Nest) -> Vectors | None:
    """The nest in vectors along its last index; None where accesses are neither contiguous nor all of one element."""
    body = nest.body
    if not all(isinstance(each, (Let, Store, Accumulate)) for each in body):
        return None
    stores = [each for each in body if isinstance(each, Store)]
    loads = [*dict.fromkeys(loads_of(body))]
    if any(load.buffer in stored(body) for load in loads):
        return None
    bound = {each.name for each in body if isinstance(each, Let)}
    accesses: list[Load | Store] = [*loads, *stores]
    places = {each: _place(each.indices, nest, bound) for each in accesses}
    moved = [each for each in loads if _step(places[each], nest) == index(1)]
    if not (moved or stores) or not all(_is_even(place, nest) for place in places.values()):
        return None
    if any(_step(places[each], nest) != index(1) for each in stores):
        return None
    types = (*(each.type for each in moved), *(each.value.type for each in stores))
    width = BYTES // max(SIZES[each] for each in types)
    if width < 2:
        return None
    named_loads = tuple((f"load.{i}", each) for i, each in enumerate(moved))
    named_stores = tuple((f"store.{i}", each) for i, each in enumerate(stores))
    wanted = dict.fromkeys(
        _multiples(nest, [places[each] for each in accesses if isinstance(each, Store) or each in moved])
    )
    lines = {name: next(each.line for each in body if load in loads_of([each])) for name, load in named_loads}
    lines |= {name: store.line for name, store in named_stores}
    return Vectors(width, named_loads, named_stores, _body(body, named_loads, named_stores), tuple(wanted), lines)


def _place(indices: Sequence[Expression], nest: Nest, bound: set[str]) -> Affine | None:
    (place,) = indices
    names = {each.name for each in all_expressions(place) if isinstance(each, Name)}
    return None if names & bound else affine(place, nest.indices)


def _step(place: Affine | None, nest: Nest) -> Expression | None:
    return None if place is None else place.steps.get(nest.indices[-1], index(0))


def _is_even(place: Affine | None, nest: Nest) -> bool:
    return _step(place, nest) in (index(0), index(1))


def _multiples(nest: Nest, places: Sequence[Affine | None]) -> Iterator[Expression]:
    if len(nest.indices) > 1:
        yield nest.extents[-1]
    for place in places:
        assert place is not None
        for each in (place.first, *(step for name, step in place.steps.items() if name != nest.indices[-1])):
            if not isinstance(each, Constant) or each.value % BYTES:
                yield each


def _body(
    body: Sequence[Statement], loads: Sequence[tuple[str, Load]], stores: Sequence[tuple[str, Store]]
) -> tuple[Statement, ...]:
    names = {load: name for name, load in loads}
    kept = {id(store): name for name, store in stores}

    def change(of: Expression) -> Expression:
        return Name(names[of], of.type) if isinstance(of, Load) and of in names else of

    made: list[Statement] = []
    for each in body:
        assert isinstance(each, (Let, Store, Accumulate))
        value = rewritten(each.value, change)
        is_kept = isinstance(each, Store)
        made.append(Let(kept[id(each)], value, line=each.line) if is_kept else replace(each, value=value))
    return tuple(made)
