"""Running sums and products as stages of a kernel.

In: the description of a tensor, and a dimension.  Out: the description of the result; `SCANS` has a function for each
operator, by name.  The loops are templates: four rows go side by side where elements of the dimension are next to each
other, since each step of a row waits for the one before it; otherwise a block of columns does.  Single precision is
added up in double precision and each result rounded, as the definition does.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from engine.fuser.groups.choosing import axis_of
from engine.fuser.groups.columns import WIDTH
from engine.fuser.groups.from_expression import Unsupported
from engine.fuser.groups.fusion_group import TYPES, Group, Handler, Operands
from engine.fuser.groups.products import contiguous, place_in, template_stage
from engine.fuser.groups.schedule import Indices, Scheduler, Template, Value, split
from engine.fuser.ir.kernel import HALVES, Expression, Kernel, product
from engine.fuser.ir.kernel_text import parse

_ROWS: Final = """
def rows(before: i64, length: i64, x: {x}[...], put: Out[{type}[...]]):
    for part in parallel(quotient(before + 3, 4)):
        first = part * 4
        if first + 4 <= before:
            a: {wide} = {start}
            b: {wide} = {start}
            c: {wide} = {start}
            d: {wide} = {start}
            for i in range(length):
                a = a {with_} {of_a}
                b = b {with_} {of_b}
                c = c {with_} {of_c}
                d = d {with_} {of_d}
                put[first, i, 0] = {type}(a)
                put[first + 1, i, 0] = {type}(b)
                put[first + 2, i, 0] = {type}(c)
                put[first + 3, i, 0] = {type}(d)
        else:
            for row in range(first, before):
                total: {wide} = {start}
                for i in range(length):
                    total = total {with_} {of_row}
                    put[row, i, 0] = {type}(total)
"""
_COLUMNS: Final = """
def columns(before: i64, length: i64, after: i64, x: {x}[...], put: Out[{type}[...]]):
    blocks = quotient(after + WIDTH - 1, WIDTH)
    for part in parallel(before * blocks):
        row = quotient(part, blocks)
        first = rest(part, blocks) * WIDTH
        width = minimum(after - first, WIDTH)
        totals = allocate({wide}[WIDTH])
        for j in vector(width):
            totals[j] = {start}
        for i in range(length):
            for j in vector(width):
                total = totals[j] {with_} {of_column}
                totals[j] = total
                put[row, i, first + j] = {type}(total)
""".replace("WIDTH", str(WIDTH))
_PLACES: Final = {
    "of_a": "first * length + i", "of_b": "(first + 1) * length + i", "of_c": "(first + 2) * length + i",
    "of_d": "(first + 3) * length + i", "of_row": "row * length + i",
    "of_column": "(row * length + i) * after + first + j",
}  # fmt: skip
_WIDE: Final = {"f32": "f64", **dict.fromkeys(HALVES, "f32")}
"""The type in which elements are added up, where that is another."""


@cache
def _kernel(text: str, sign: str, given: str, type: str) -> Kernel:
    """The loops for elements of a `given` type, and sums or products of a `type`."""
    wide = _WIDE.get(type, type)
    start = "1" if sign == "*" else "0" if wide == "i64" else "-0.0"
    element = f"{wide}({{}})" if given == type else f"{wide}({type}({{}}))"
    loads = {name: element.format(f"x[{place}]") for name, place in _PLACES.items()}
    return parse(text.format(x=given, type=type, wide=wide, with_=sign, start=f"{wide}({start})", **loads))


def _scan(sign: str) -> Handler:
    """The running result of a sign along a dimension, in the dtype of the sample."""

    def handler(group: Group, name: str, given: Operands, sample: Any) -> Value:
        if group.strategy.is_threaded:
            raise Unsupported("each step waits for the one before it")
        type = TYPES.get(sample.array.dtype)
        if type is None or not given["self"].shape:
            raise Unsupported("nothing to go along")
        axis = axis_of(given, len(given["self"].shape))
        value = contiguous(group, given["self"])
        sizes = [group.extents.canonical(each).size for each in value.shape]
        before, after = sizes[:axis], sizes[axis + 1 :]
        kernel = _kernel(_COLUMNS if after else _ROWS, sign, value.type, type)

        def operands(scheduler: Scheduler) -> tuple[Mapping[str, Expression], Mapping[str, str]]:
            numbers = {"before": product(before), "length": sizes[axis], "after": product(after)}
            return {each.name: numbers[each.name] for each in kernel.scalars}, {"x": place_in(scheduler, value)}

        def indices(at: Indices) -> Indices:
            row, step, column = at
            return (*_spread(row, before), step, *_spread(column, after))

        template = Template(kernel, operands, indices)
        return template_stage(group, name, tuple(value.shape), (), (value,), template, type)

    return handler


def _spread(at: Expression, sizes: list[Expression]) -> Indices:
    """One index over all these dimensions as one for each."""
    found: list[Expression] = []
    for size in reversed(sizes[1:]):
        at, inner = split(at, size)
        found.insert(0, inner)
    return (at, *found) if sizes else ()


SCANS: Final[dict[str, Handler]] = {"aten::cumsum": _scan("+"), "aten::cumprod": _scan("*")}
