"""Operators that show a tensor's elements in another order, several times, or among others, as arithmetic on indices.

In: descriptions of tensors, and dimensions, shifts and widths, known or numbers of the call.  Out: the description of
the result; `REARRANGING` has a function for each operator, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.aten.kernels.rules import wrap_dim
from engine.fuser.groups.choosing import axis_of, dimension, joined, number, permuted, whole
from engine.fuser.groups.extents import Extent, known
from engine.fuser.groups.from_expression import Unsupported
from engine.fuser.groups.fusion_group import TYPES, Group, Handler, Lowered, Operands, shown
from engine.fuser.groups.reshaping import chunks, extent_of, less, reshaped
from engine.fuser.groups.schedule import Body, Indices, Value
from engine.fuser.ir.kernel import FLOATS, Constant, Expression, Name, add, apply, constant, convert, index, multiply

Given = Operands


def _minus(a: Expression, b: Expression) -> Expression:
    return add(a, multiply(index(-1), b))


def _replaced(at: Indices, d: int, place: Expression) -> Indices:
    return (*at[:d], place, *at[d + 1 :])


def _sizes(group: Group, value: Value) -> list[Extent]:
    return [group.extents.canonical(each) for each in value.shape]


def _integers(value: Lowered) -> list[int]:
    return [whole(each) for each in (value if isinstance(value, list) else [value])]


# ------------------------------------------------------------------ another order


def _filled_with(number: Lowered) -> Handler:
    """One number everywhere: `ones_like` and the like."""

    def handler(group: Group, name: str, given: Given, sample: Any) -> Value:
        given.without_effect("self")  # but by its form
        sizes = given.get("size")
        shape = given["self"].shape if sizes is None else [extent_of(group, each) for each in sizes]
        type, value = TYPES[sample.array.dtype], given.get("fill_value", number)
        found = constant(value, type) if isinstance(value, (int, float)) else convert(value, type)
        return Value(name, type, tuple(shape), lambda body, at: found)

    return handler


def _flip(group: Group, name: str, given: Given, sample: Any) -> Value:
    value: Value = given["self"]
    sizes = _sizes(group, value)
    dims = {wrap_dim(d, len(sizes)) for d in _integers(given["dims"])}

    def choose(at: Indices) -> Indices:
        return tuple(_minus(add(sizes[d].size, index(-1)), i) if d in dims else i for d, i in enumerate(at))

    return shown(value, name, sizes, choose)


def _roll(group: Group, name: str, given: Given, sample: Any) -> Value:
    """Along dimensions, or without any along all elements in their order."""
    value: Value = given["self"]
    shifts, dims = _integers(given["shifts"]), _integers(given["dims"])
    if not dims and len(shifts) == 1 and value.shape:
        flat = _rolled(group, name, reshaped(group, name, value, [_all_of(group, value)]), shifts[0], 0)
        return reshaped(group, name, flat, value.shape)
    if len(dims) != len(shifts) or not shifts:
        raise Unsupported("shifts without dimensions")
    for shift, d in zip(shifts, dims, strict=True):
        value = _rolled(group, name, value, shift, dimension(value, d))
    return value


def _all_of(group: Group, value: Value) -> Extent:
    total = known(1)
    for each in _sizes(group, value):
        total = Extent(multiply(total.size, each.size), total.example * each.example)
    return total


def _rolled(group: Group, name: str, value: Value, shift: int, d: int) -> Value:
    extent = group.extents.canonical(value.shape[d])
    if not extent.example:
        raise Unsupported("no elements")
    group.extents.guard("gt", extent.size, index(abs(shift)))
    if abs(shift) >= extent.example:
        raise Unsupported("a shift by more than there is")
    start = index(-shift) if shift < 0 else _minus(extent.size, index(shift))

    def choose(at: Indices) -> Indices:
        place = add(at[d], start)
        behind = apply("ge", place, extent.size)
        return _replaced(at, d, apply("select", behind, _minus(place, extent.size), place))

    return shown(value, name, value.shape, choose)


def _shuffled(group: Group, name: str, given: Given, sample: Any) -> Value:
    """`pixel_shuffle`: channels become squares of pixels."""
    value: Value = given["self"]
    factor = whole(given["upscale_factor"])
    if factor < 1 or len(value.shape) < 3:
        raise Unsupported("no pixels")
    *before, channels, high, wide = _sizes(group, value)
    n, r = len(before), known(factor)
    split = reshaped(group, name, value, [*before, _divided(group, channels, factor**2), r, r, high, wide])
    moved = permuted(split, name, [*range(n), n, n + 3, n + 1, n + 4, n + 2])
    large = [Extent(multiply(each.size, r.size), each.example * factor) for each in (high, wide)]
    return _in_order(reshaped(group, name, moved, [*before, split.shape[n], *large]))


def _unshuffled(group: Group, name: str, given: Given, sample: Any) -> Value:
    """`pixel_unshuffle`: squares of pixels become channels."""
    value: Value = given["self"]
    factor = whole(given["downscale_factor"])
    if factor < 1 or len(value.shape) < 3:
        raise Unsupported("no pixels")
    *before, channels, high, wide = _sizes(group, value)
    n, r = len(before), known(factor)
    small = [_divided(group, each, factor) for each in (high, wide)]
    split = reshaped(group, name, value, [*before, channels, small[0], r, small[1], r])
    moved = permuted(split, name, [*range(n), n, n + 2, n + 4, n + 1, n + 3])
    more = Extent(multiply(channels.size, index(factor**2)), channels.example * factor**2)
    return _in_order(reshaped(group, name, moved, [*before, more, *small]))


def _in_order(value: Value) -> Value:
    value.is_moved = False
    return value


def _divided(group: Group, extent: Extent, by: int) -> Extent:
    if extent.example % by:
        raise Unsupported("sizes that do not fit")
    if isinstance(extent.size, Constant):
        return known(extent.example // by)
    group.extents.guard("eq", apply("rest", extent.size, index(by)), index(0))
    return Extent(apply("quotient", extent.size, index(by)), extent.example // by)


# ------------------------------------------------------------------ parts


def _diagonal(group: Group, name: str, given: Given, sample: Any) -> Value:
    value: Value = given["self"]
    a, b = (axis_of(given, len(value.shape), key) for key in ("dim1", "dim2"))
    off = whole(given["offset"])
    if a == b:
        raise Unsupported("one dimension")
    first = {a: max(-off, 0), b: max(off, 0)}
    down, right = (less(group.extents.canonical(value.shape[d]), known(n)) for d, n in first.items())
    if min(down.example, right.example) < 1:
        raise Unsupported("an empty part")
    for each in (down, right):
        group.extents.guard("gt", each.size, index(0))
    least = Extent(apply("minimum", down.size, right.size), min(down.example, right.example))
    length = down if down == right else least
    kept = [d for d in range(len(value.shape)) if d not in (a, b)]

    def choose(at: Indices) -> Indices:
        places = dict(zip(kept, at, strict=False))
        places |= {d: add(at[-1], index(n)) for d, n in first.items()}
        return tuple(places[d] for d in range(len(value.shape)))

    return shown(value, name, [*(value.shape[d] for d in kept), length], choose)


def _unbind(group: Group, name: str, given: Given, sample: Any) -> list[Value]:
    value: Value = given["self"]
    d = axis_of(given, len(value.shape))
    count = group.extents.require(value.shape[d], known(group.extents.canonical(value.shape[d]).example)).example
    return _parts_of(group, name, value, d, [1] * count, is_dropped=True)


def _chunk(group: Group, name: str, given: Given, sample: Any) -> list[Value]:
    value: Value = given["self"]
    return chunks(group, value, whole(given["chunks"]), axis_of(given, len(value.shape)), name)


def _split(group: Group, name: str, given: Given, sample: Any) -> list[Value]:
    """In parts of one size, of which the last may be smaller, or of these sizes."""
    value: Value = given["self"]
    d = axis_of(given, len(value.shape))
    total = group.extents.require(value.shape[d], known(group.extents.canonical(value.shape[d]).example)).example
    wanted = given["split_size"] if "split_size" in given else given["split_sizes"]
    if isinstance(wanted, list):
        sizes = _integers(wanted)
    else:
        each = whole(wanted)
        if each < 1:
            raise Unsupported("empty parts")
        sizes = [min(each, total - start) for start in range(0, total, each)]
    if sum(sizes) != total or any(each < 1 for each in sizes):
        raise Unsupported("parts that do not fit")
    return _parts_of(group, name, value, d, sizes, is_dropped=False)


def _parts_of(group: Group, name: str, value: Value, d: int, sizes: Sequence[int], *, is_dropped: bool) -> list[Value]:
    """Parts one behind the other along a dimension, which is left out if it `is_dropped`."""

    def choose(start: int) -> Callable[[Indices], Indices]:
        if is_dropped:
            return lambda at: (*at[:d], index(start), *at[d:])
        return lambda at: _replaced(at, d, add(at[d], index(start)))

    made: list[Value] = []
    start = 0
    for size in sizes:
        own = [] if is_dropped else [known(size)]
        made.append(shown(value, name, [*value.shape[:d], *own, *value.shape[d + 1 :]], choose(start)))
        start += size
    return made


# ------------------------------------------------------------------ several times, among others


def _repeat(group: Group, name: str, given: Given, sample: Any) -> Value:
    """Copies one behind the other, along one dimension; dimensions of one element are widened."""
    value, times = given["self"], _integers(given["repeats"])
    before = len(times) - len(value.shape)
    if before < 0 or any(each < 1 for each in times):
        raise Unsupported("no repetition")
    ones = [d for d, n in enumerate(times) if d < before or (n > 1 and group.extents.is_one(value.shape[d - before]))]
    again = [d for d, n in enumerate(times) if n > 1 and d not in ones]
    if len(again) > 1 or any(times[d] > _FEW for d in again):
        raise Unsupported("many copies")
    shape = [known(n) if d in ones else value.shape[d - before] for d, n in enumerate(times)]

    def choose(at: Indices) -> Indices:
        return tuple(index(0) if d in ones else i for d, i in enumerate(at) if d >= before)

    wide = shown(value, name, shape, choose)
    for d in again:
        return joined(group, name, [wide] * times[d], d, value.type)
    return wide


_FEW: Final = 8


def _triangle(is_kept: str) -> Handler:
    """The elements whose column less their row stands in this relation to the diagonal; zeros elsewhere."""

    def handler(group: Group, name: str, given: Given, sample: Any) -> Value:
        value: Value = given["self"]
        if len(value.shape) < 2:
            raise Unsupported("no matrix")
        diagonal = number(given["diagonal"])

        def at(body: Body, indices: Indices) -> Expression:
            inside = apply(is_kept, _minus(indices[-1], indices[-2]), diagonal)
            return apply("select", inside, body.element(value, indices), constant(0, value.type))

        return Value(name, value.type, value.shape, at, value.stages)

    return handler


def _filled(group: Group, name: str, given: Given, sample: Any) -> Value:
    """`constant_pad_nd`: a number around the elements; negative widths cut."""
    value: Value = given["self"]
    fill = given["value"]
    if value.type not in FLOATS and not isinstance(fill, int):
        raise Unsupported("a number of another type")
    number = 0 if fill is None else fill
    with_what = convert(number, value.type) if isinstance(number, Name) else constant(number, value.type)
    sizes, widths = _sizes(group, value), _widths(given, len(value.shape))
    shape = [_wider(group, e, b + a) for e, (b, a) in zip(sizes, widths, strict=True)]
    if any(each.example == 0 for each in sizes):
        raise Unsupported("no elements")

    def at(body: Body, indices: Indices) -> Expression:
        places: list[Expression] = []
        inside: Expression = constant(True, "bool")
        for i, e, (before, after) in zip(indices, sizes, widths, strict=True):
            place = add(i, index(-before))
            if before > 0:
                inside = apply("bitand", inside, apply("ge", place, index(0)))
                place = apply("maximum", place, index(0))  # what is not chosen is read, too
            if after > 0:
                inside = apply("bitand", inside, apply("lt", place, e.size))
                place = apply("minimum", place, add(e.size, index(-1)))
            places.append(place)
        return apply("select", inside, body.element(value, tuple(places)), with_what)

    return Value(name, value.type, tuple(shape), at, value.stages)


def _widths(given: Given, rank: int) -> list[tuple[int, int]]:
    """The widths before and after the elements, for each dimension."""
    pad = _integers(given["pad"] if "pad" in given else given["padding"])
    if len(pad) % 2 or len(pad) > 2 * rank:
        raise Unsupported("widths that do not fit")
    pairs = [*zip(pad[0::2], pad[1::2], strict=True)]
    return [*[(0, 0)] * (rank - len(pairs)), *reversed(pairs)]


def _wider(group: Group, extent: Extent, by: int) -> Extent:
    if extent.example + by < 1:
        raise Unsupported("an empty result")
    if by < 0:
        group.extents.guard("gt", extent.size, index(-by))
    group.extents.guard("gt", extent.size, index(0))
    return Extent(add(extent.size, index(by)), extent.example + by)


def _reflected(place: Expression, last: Expression) -> Expression:
    return _minus(last, apply("abs", _minus(last, apply("abs", place))))


def _nearest(place: Expression, last: Expression) -> Expression:
    return apply("minimum", apply("maximum", place, index(0)), last)


def _mirrored(chosen: Callable[[Expression, Expression], Expression], least: int) -> Handler:
    """Elements again beyond the edges; a dimension has to have `least` elements more than are added on a side."""

    def handler(group: Group, name: str, given: Given, sample: Any) -> Value:
        value: Value = given["self"]
        sizes, widths = _sizes(group, value), _widths(given, len(value.shape))
        for e, pair in zip(sizes, widths, strict=True):
            need = max(*pair, 0) + 1 if least else 1
            if min(pair) < 0 or e.example < need:
                raise Unsupported("widths that do not fit")
            group.extents.guard("ge", e.size, index(need))
        shape = [_wider(group, e, b + a) for e, (b, a) in zip(sizes, widths, strict=True)]

        def choose(at: Indices) -> Indices:
            return tuple(
                chosen(add(i, index(-pair[0])), add(e.size, index(-1))) if any(pair) else i
                for i, e, pair in zip(at, sizes, widths, strict=True)
            )

        return shown(value, name, shape, choose)

    return handler


_REFLECT: Final = _mirrored(_reflected, 1)
_REPLICATE: Final = _mirrored(_nearest, 0)


def _padded(group: Group, name: str, given: Given, sample: Any) -> Value:
    """`pad`, by the name of its mode."""
    handler = {"constant": _filled, "reflect": _REFLECT, "replicate": _REPLICATE}.get(given["mode"])
    if handler is None or (given["mode"] != "constant" and given["value"] is not None):
        raise Unsupported(f"padding by {given['mode']}")
    found: Value = handler(group, name, given, sample)
    return found


def _without_dropping(group: Group, name: str, given: Given, sample: Any) -> Value:
    """Dropout where nothing is trained: the elements as they are."""
    if given["train"] is not False:
        raise Unsupported("random numbers")
    given.without_effect("p")
    value: Value = given["input"]
    return shown(value, name, value.shape, lambda at: at)


DROPOUT: Final[dict[str, Handler]] = dict.fromkeys(
    (f"aten::{kind}dropout" for kind in ("", "feature_", "alpha_", "feature_alpha_")), _without_dropping
)
"""Operators that are random while a module is trained, and only then."""
PARTS: Final[dict[str, Handler]] = {
    "aten::chunk": _chunk, "aten::unbind": _unbind, "aten::split": _split, "aten::split_with_sizes": _split,
}  # fmt: skip
"""Those that give lists."""
FILLED: Final[dict[str, Handler]] = {
    "aten::zeros_like": _filled_with(0), "aten::ones_like": _filled_with(1), "aten::full_like": _filled_with(0),
    "aten::new_zeros": _filled_with(0), "aten::new_ones": _filled_with(1), "aten::new_full": _filled_with(0),
}  # fmt: skip
"""Those that look at the form of their first argument alone."""
REARRANGING: Final[dict[str, Handler]] = {
    **DROPOUT, **PARTS,
    "aten::flip": _flip, "aten::roll": _roll, "aten::diagonal": _diagonal, "aten::repeat": _repeat,
    "aten::pixel_shuffle": _shuffled, "aten::pixel_unshuffle": _unshuffled,
    "aten::tril": _triangle("le"), "aten::triu": _triangle("ge"),
    "aten::pad": _padded, "aten::constant_pad_nd": _filled,
    **{f"aten::reflection_pad{n}d": _REFLECT for n in (1, 2, 3)},
    **{f"aten::replication_pad{n}d": _REPLICATE for n in (1, 2, 3)},
}  # fmt: skip
"""Those whose elements are elements of their first argument, or a number, in its dtype."""
