"""Operators that combine elements, as stages of a kernel: sums, extremes, and what is made of them.

In: the description of a tensor and the operator's other arguments.  Out: the description of the result; `REDUCTIONS`
has a function for each operator, by name.  Sums of halves and float32 are added up in float32, in many partial sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from engine.aten.kernels.rules import wrap_dim
from engine.aten.values.tensor import Tensor
from engine.fuser.groups.extents import ONE, Extent, known
from engine.fuser.groups.from_expression import Unsupported
from engine.fuser.groups.fusion_group import TYPES, Group, Handler, Operands, elements, shown, stages_of
from engine.fuser.groups.schedule import Body, Indices, Stage, Value, accumulate, offset
from engine.fuser.ir.kernel import (
    BOOL,
    FLOATS,
    HALVES,
    WHOLE,
    Expression,
    Name,
    add,
    apply,
    constant,
    convert,
    index,
    least,
    most,
    product,
)

Given = Operands
Update = Callable[[Body, Sequence[Name], Expression, Expression], None]
"""From a body, the variables, an element and its place among those reduced to statements."""
Finish = Callable[[Sequence[Expression]], Expression]


def reduce(
    group: Group, name: str, value: Value, dims: Sequence[int], start: Sequence[Expression], update: Update,
    finish: Finish, keepdim: bool,
) -> Value:  # fmt: skip
    """A reduction over dimensions, from variables with these first values."""
    kept = [d for d in range(len(value.shape)) if d not in dims]
    inner = tuple(value.shape[d] for d in dims)

    def step(body: Body, outer: Indices, at: Indices, variables: Sequence[Name]) -> None:
        places = {**dict(zip(kept, outer, strict=True)), **dict(zip(dims, at, strict=True))}
        element = body.element(value, tuple(places[d] for d in range(len(value.shape))))
        update(body, variables, element, offset(at, inner, group.extents))

    names = [f"{name}_{i}" if i else name for i in range(len(start))]
    stage = Stage(
        name, finish(start).type, tuple(value.shape[d] for d in kept), value.stages, inner or (ONE,),
        start=lambda body: [*zip(names, start, strict=True)],
        update=step if inner else lambda body, outer, at, variables: step(body, outer, (), variables),
        finish=lambda body, variables: finish(variables),
    )  # fmt: skip
    group.stages.append(stage)
    shape = tuple(ONE if d in dims else e for d, e in enumerate(value.shape)) if keepdim else stage.shape

    def at(body: Body, indices: Indices) -> Expression:
        return body.stage(stage, tuple(indices[d] for d in kept) if keepdim else indices)

    return Value(name, stage.type, shape, at, (*value.stages, stage), stage, value.is_moved and len(kept) > 1)


def mapped(group: Group, name: str, function: Callable[..., Expression], *values: Value) -> Value:
    """A function of the elements of some values, which are broadcast."""
    shape = group.extents.broadcast(*(value.shape for value in values))

    def at(body: Body, indices: Indices) -> Expression:
        return function(*(elements(body, value, indices, group.extents) for value in values))

    type = function(*(constant(0, value.type) for value in values)).type
    return Value(name, type, shape, at, stages_of(values), None, any(value.is_moved for value in values))


def accumulated(
    group: Group, name: str, value: Value, dims: Sequence[int], function: str, first: float, keepdim: bool = True
) -> Value:
    """A reduction by one function of two elements, in the value's own type.

    What is long is reduced in parts, whose results are reduced: they run in parallel, and sums lose less.
    """
    sizes = [value.shape[d].example for d in dims]
    is_whole, is_down = len(dims) == len(value.shape), len(value.shape) - 1 not in dims
    strategy = group.strategy
    least = strategy.long if is_whole else strategy.long_column if is_down else strategy.long_row
    is_split = is_whole or function == "add" or strategy.is_threaded
    if prod(sizes) < least or not is_split:
        return _folded(group, name, value, dims, function, first, keepdim)
    if len(dims) > 1:
        value = accumulated(group, f"{name}_part", value, dims[1:], function, first)
        return _folded(group, name, value, dims, function, first, keepdim)
    blocks, rest = _blocks(value, name, dims[0], strategy.block)
    parts = _folded(group, f"{name}_part", blocks, [dims[0] + 1], function, first, keepdim=False)
    totals = [
        _folded(group, f"{name}_{i}", each, dims, function, first, keepdim) for i, each in enumerate((parts, rest))
    ]
    return mapped(group, name, lambda a, b: apply(function, a, b), *totals)


def _blocks(value: Value, name: str, d: int, block: int) -> tuple[Value, Value]:
    """The value with a dimension cut into blocks, and what is left of it."""
    extent = value.shape[d]
    count = Extent(apply("quotient", extent.size, index(block)), extent.example // block)
    rest = Extent(apply("rest", extent.size, index(block)), extent.example % block)
    start = apply("mul", count.size, index(block))

    def within(at: Indices) -> Indices:
        return (*at[:d], add(apply("mul", at[d], index(block)), at[d + 1]), *at[d + 2 :])

    before, after = value.shape[:d], value.shape[d + 1 :]
    return (
        shown(value, name, [*before, count, known(block), *after], within),
        shown(value, name, [*before, rest, *after], lambda at: (*at[:d], add(start, at[d]), *at[d + 1 :])),
    )


def _folded(
    group: Group, name: str, value: Value, dims: Sequence[int], function: str, first: float, keepdim: bool
) -> Value:
    def update(body: Body, variables: Sequence[Name], element: Expression, place: Expression) -> None:
        accumulate(body, variables[0], function, element)

    start = [constant(first, value.type)]
    return reduce(group, name, value, dims, start, update, lambda found: found[0], keepdim)


def leave_if_any(group: Group, name: str, wrong: Value) -> Stage:
    """The stage that ends the kernel if any element is true; see `Group.leave_if`."""
    dims = [*range(len(wrong.shape))]
    return group.leave_if(name, accumulated(group, f"{name}_any", wrong, dims, "bitor", first=False, keepdim=False))


def as_type(group: Group, value: Value, type: str) -> Value:
    """The elements in another type."""
    return value if value.type == type else mapped(group, value.name, lambda x: convert(x, type), value)


def wide(group: Group, value: Value) -> Value:
    """The elements as they are computed with: halves in f32."""
    return as_type(group, value, "f32") if value.type in HALVES else value


def dimensions(value: Value, wanted: Any) -> list[int]:
    """The dimensions that are reduced, in order: all for None and for an empty list."""
    rank = len(value.shape)
    listed = [*range(rank)] if wanted is None or wanted == [] else wanted if isinstance(wanted, list) else [wanted]
    if not all(isinstance(d, int) for d in listed):
        raise Unsupported("dimensions that are not known")
    found = sorted(wrap_dim(d, rank) for d in listed)
    if len({*found}) != len(found):
        raise Unsupported("a dimension that is given twice")
    return [d for d in found if rank]


def count(value: Value, dims: Sequence[int], type: str) -> Expression:
    """The number of elements that are reduced to one."""
    return convert(product([value.shape[d].size for d in dims]), type)


def _require_some(group: Group, value: Value, dims: Sequence[int]) -> None:
    """Guard that there is something to choose from."""
    for d in dims:
        extent = group.extents.canonical(value.shape[d])
        if extent.example == 0:
            raise Unsupported("nothing to choose from")
        group.extents.guard("gt", extent.size, index(0))


def as_sample(group: Group, value: Value, sample: Any) -> Value:
    """The elements in the dtype of the operator's result."""
    if not isinstance(sample, Tensor) or sample.array.dtype not in TYPES:
        raise Unsupported("a result of that dtype")
    return as_type(group, value, TYPES[sample.array.dtype])


def _self(given: Given) -> Value:
    value = given.get("self", given.get("input"))
    assert isinstance(value, Value)
    return value


def _flag(given: Given, name: str, default: bool = False) -> bool:
    found = given.get(name, default)
    if not isinstance(found, bool):
        raise Unsupported(f"{name} is not known")
    return found


# ------------------------------------------------------------------ sums


def mean_of(group: Group, name: str, value: Value, dims: Sequence[int], keepdim: bool = True) -> Value:
    total = accumulated(group, f"{name}_sum", value, dims, "add", 0, keepdim)
    number = count(value, dims, value.type)
    return mapped(group, name, lambda x: apply("div", x, number), total)


def _total(combine: Callable[[Group, str, Value, Sequence[int], bool], Value]) -> Handler:
    """Computed with in the dtype of the result."""

    def handler(group: Group, name: str, given: Given, sample: Any) -> Value:
        value, type = _self(given), TYPES[sample.array.dtype]
        if type == BOOL:
            raise Unsupported("a sum of truth values")
        value = as_type(group, value, "f32" if type in HALVES else type)
        found = combine(group, name, value, dimensions(value, given.get("dim")), _flag(given, "keepdim"))
        return as_sample(group, found, sample)

    return handler


def _sum(group: Group, name: str, value: Value, dims: Sequence[int], keepdim: bool) -> Value:
    return accumulated(group, name, value, dims, "add", 0, keepdim)


def _product(group: Group, name: str, value: Value, dims: Sequence[int], keepdim: bool) -> Value:
    return accumulated(group, name, value, dims, "mul", 1, keepdim)


# ------------------------------------------------------------------ extremes, truth


def extreme_of(
    group: Group, name: str, value: Value, dims: Sequence[int], largest: bool, keepdim: bool = True
) -> Value:
    first = least(value.type) if largest else most(value.type)
    return accumulated(group, name, value, dims, "maximum" if largest else "minimum", first, keepdim)


def _extreme(largest: bool) -> Handler:
    def handler(group: Group, name: str, given: Given, sample: Any) -> Value:
        value = wide(group, _self(given))
        if value.type not in (*FLOATS, *WHOLE) or "other" in given:
            raise Unsupported(f"an extreme of {value.type}")
        dims = dimensions(value, given.get("dim"))
        _require_some(group, value, dims)
        return as_sample(group, extreme_of(group, name, value, dims, largest, _flag(given, "keepdim")), sample)

    return handler


def _place(largest: bool) -> Handler:
    """The place of the first extreme, or of the first NaN."""

    def handler(group: Group, name: str, given: Given, sample: Any) -> Value:
        value = wide(group, _self(given))
        if value.type not in (*FLOATS, *WHOLE):
            raise Unsupported(f"an extreme of {value.type}")
        dims = dimensions(value, given.get("dim"))
        _require_some(group, value, dims)
        keepdim = _flag(given, "keepdim")
        return _place_of_best(group, name, value, dims, largest, keepdim)

    return handler


def _place_of_best(group: Group, name: str, value: Value, dims: Sequence[int], largest: bool, keepdim: bool) -> Value:
    """Two reductions, which vectors do: the extreme, and the least place of an element that is like it."""
    best = extreme_of(group, f"{name}_best", value, dims, largest)

    def is_alike(x: Expression, y: Expression) -> Expression:
        both_nan = apply("bitand", apply("ne", x, x), apply("ne", y, y))
        return apply("bitor", apply("eq", x, y), both_nan)

    def update(body: Body, variables: Sequence[Name], element: Expression, place: Expression) -> None:
        accumulate(body, variables[0], "minimum", apply("select", element, place, nowhere))

    nowhere = constant(most("i64"), "i64")
    alike = mapped(group, f"{name}_is", is_alike, value, best)
    return reduce(group, name, alike, dims, [nowhere], update, lambda found: found[0], keepdim)


def _truth(function: str, first: bool) -> Handler:
    def handler(group: Group, name: str, given: Given, sample: Any) -> Value:
        value = as_type(group, _self(given), BOOL)
        if given.get("dim") == []:
            raise Unsupported("no dimensions, which leave the elements as they are")
        dims = dimensions(value, given.get("dim"))
        return as_sample(group, accumulated(group, name, value, dims, function, first, _flag(given, "keepdim")), sample)

    return handler


# ------------------------------------------------------------------ the table

REDUCTIONS: Final[dict[str, Handler]] = {
    "aten::sum": _total(_sum), "aten::prod": _total(_product), "aten::mean": _total(mean_of),
    "aten::amax": _extreme(largest=True), "aten::amin": _extreme(largest=False),
    "aten::max": _extreme(largest=True), "aten::min": _extreme(largest=False),
    "aten::argmax": _place(largest=True), "aten::argmin": _place(largest=False),
    "aten::any": _truth("bitor", first=False), "aten::all": _truth("bitand", first=True),
}  # fmt: skip
