"""Matrix products of float32 and float64 as stages of a kernel: `mm`, `addmm`, `linear`, `matmul`, `bmm`, `baddbmm`.

In: descriptions of the operands.  Out: the description of the result; `PRODUCTS` has a function for each operator, by
name.  The loops are templates over `gemm`: what follows element by element is done where they hand over an element.

An operand is read where it is if that takes one step in memory for each index; else it is kept first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

from engine.fuser.groups import gemm
from engine.fuser.groups.extents import Extent
from engine.fuser.groups.from_expression import Unsupported
from engine.fuser.groups.fusion_group import Group, Handler, Lowered, Operands
from engine.fuser.groups.gemm import Matrix, Tile
from engine.fuser.groups.reductions import mapped
from engine.fuser.groups.reshaping import reshaped
from engine.fuser.groups.schedule import PUT, Body, Indices, Scheduler, Stage, Template, Value, split
from engine.fuser.ir.affine import Affine, affine, is_same_product
from engine.fuser.ir.kernel import (
    Buffer,
    Expression,
    For,
    Kernel,
    Let,
    Load,
    LoopKind,
    Name,
    Scalar,
    Statement,
    Store,
    allocate,
    apply,
    constant,
    index,
    multiply,
    product,
    rewritten,
)
from engine.lang.records import dataclass

Given = Operands
_MANY: Final = 3 * gemm.BLOCK
"""Rows from which on panels are copied once for all blocks: for a few blocks, threads rather do not wait for copies."""


def _i(name: str) -> Name:
    return Name(name, "i64")


# ------------------------------------------------------------------ operands


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that is read where it is: the buffer, the place of the first element, the steps of its dimensions."""

    buffer: str
    first: Expression
    steps: tuple[Expression, ...]


def _operand(scheduler: Scheduler, value: Value) -> Operand | None:
    """The tensor as it lies in memory; None where elements have to be computed or looked for."""
    body = Body(scheduler, ())
    names = [f"d{d}" for d in range(len(value.shape))]
    element = value.at(body, tuple(map(_i, names)))
    lets = {each.name: each.value for each in body.statements if isinstance(each, Let)}
    while isinstance(element, Name) and element.name in lets:
        element = lets[element.name]
    if not isinstance(element, Load):
        return None
    place = rewritten(element.indices[0], lambda e: lets.get(e.name, e) if isinstance(e, Name) else e)
    found: Affine | None = affine(place, names)
    if found is None:
        return None
    return Operand(element.buffer, found.first, tuple(found.steps.get(name, index(0)) for name in names))


def _readable(group: Group, value: Value) -> Value:
    """The value, kept unless it can be read where it is."""
    return value if _operand(Scheduler(group.extents, ()), value) is not None else group.keep(value)


def _floats(value: Lowered) -> Value:
    if not isinstance(value, Value) or value.type not in gemm.TYPES:
        raise Unsupported("a product of other than float32 and float64")
    return value


# ------------------------------------------------------------------ templates


@dataclass(frozen=True, slots=True)
class Form:
    """A way to multiply.  `way`: "dots"; "rows", with panels of the second operand; "columns", of the first.

    `turns`: the columns of what is put into panels are contiguous; `in_place`: whole panels are read where they are;
    `is_packed`: all are copied before, as there are many rows.
    `is_batched`: several products, each by one thread.
    """

    way: str
    tile: Tile
    turns: bool = False
    in_place: bool = False
    is_packed: bool = False
    is_batched: bool = False
    ranks: int = 0
    """Dimensions before those of the matrices."""
    block: int = gemm.BLOCK
    """Rows of the first operand that a thread takes at a time."""


_SIZES: Final = ("m", "n", "k")


@cache
def _kernel(form: Form) -> Kernel:
    """The products of two operands, a (…, m, k) and b (…, k, n)."""
    m, n, k = map(_i, _SIZES)
    outer = [_i(f"o{d}") for d in range(form.ranks)]
    first = {name: _first(name, outer) for name in "ab"}
    one = index(1)
    type = form.tile.type
    turned = {"dots": "ab", "columns": "a" * form.turns, "rows": "b" * form.turns}[form.way]
    a = Matrix("a", _i("a_row"), one if "a" in turned else _i("a_column"), first["a"], type)
    b_row = one if "b" in turned else _i("b_row")
    b = Matrix("b", b_row, one if form.in_place else _i("b_column"), first["b"], type)

    def put(row: Expression, column: Expression, value: Expression) -> Sequence[Statement]:
        return [Store(PUT, (*outer, row, column), value)]

    body = _PRODUCTS[form.way](form, m, n, k, a, b, put)
    names = [*_SIZES, *(f"{each}_{part}" for each in "ab" for part in ("first", "row", "column"))]
    names += [f"{each}_step{d}" for each in "ab" for d in range(form.ranks)] + [f"size{d}" for d in range(form.ranks)]
    buffers = (Buffer("a", type, None), Buffer("b", type, None), Buffer(PUT, type, None, access="out"))
    helpers = gemm.dots_helpers(type) if form.way == "dots" else gemm.helpers(form.tile, turns=form.turns)
    return Kernel(
        "product", (*(Scalar(each, "i64") for each in names), *buffers), _batched(form, body), helpers=helpers
    )


def _first(name: str, outer: Sequence[Expression]) -> Expression:
    found: Expression = _i(f"{name}_first")
    for d, each in enumerate(outer):
        found = apply("add", found, apply("mul", each, _i(f"{name}_step{d}")))
    return found


def _batched(form: Form, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The product for each place in the dimensions before."""
    if not form.ranks:
        return body
    if form.is_batched:
        body = tuple(replace(each, kind="range") if isinstance(each, For) else each for each in body)
    sizes = [_i(f"size{d}") for d in range(form.ranks)]
    lets = [
        Let(f"o{d}", apply("rest", apply("quotient", _i("one"), product(sizes[d + 1 :])), size))
        for d, size in enumerate(sizes)
    ]
    kind: LoopKind = "parallel" if form.is_batched else "range"
    return (For("one", index(0), product(sizes), (*lets, *body), kind=kind),)


Multiply = Callable[[Form, Name, Name, Name, Matrix, Matrix, gemm.Put], tuple[Statement, ...]]


def _by_dots(form: Form, m: Name, n: Name, k: Name, a: Matrix, b: Matrix, put: gemm.Put) -> tuple[Statement, ...]:
    return gemm.dots(m, n, k, a, b.transposed, put)


def _by_rows(form: Form, m: Name, n: Name, k: Name, a: Matrix, b: Matrix, put: gemm.Put) -> tuple[Statement, ...]:
    if not form.is_packed:
        return gemm.product(m, n, k, a, put, b=b, tile=form.tile, in_place=form.in_place, block=form.block)
    return (
        allocate("packed", form.tile.type, gemm.packed_size(k, n, form.tile)),
        gemm.packing(n, k, gemm.fill_from(b, n, form.tile), "packed", form.tile),
        *gemm.product(m, n, k, a, put, packed="packed", tile=form.tile, block=form.block),
    )


def _by_columns(form: Form, m: Name, n: Name, k: Name, a: Matrix, b: Matrix, put: gemm.Put) -> tuple[Statement, ...]:
    return gemm.product_by_columns(m, n, k, a, b, put, form.tile)


_PRODUCTS: Final[dict[str, Multiply]] = {"dots": _by_dots, "rows": _by_rows, "columns": _by_columns}


def _form(
    group: Group, m: Extent, n: Extent, a: Operand, b: Operand, outer: int, ranks: int, type: str
) -> Form:  # fmt: skip
    """The way for operands like these, chosen by measuring; guarded where another one is several times as quick."""
    one, is_batched = index(1), outer > 1
    of = partial(Form, is_batched=is_batched, ranks=ranks)
    if a.steps[-1] == one and b.steps[-2] == one:
        is_few = m.example <= gemm.FEWEST_ROWS
        group.extents.guard("le" if is_few else "gt", group.extents.canonical(m).size, index(gemm.FEWEST_ROWS))
        if is_few:
            return of("dots", gemm.tile_for(type=type))
    if m.example < n.example and b.steps[-2] == one:
        return of("columns", gemm.tile_for(m.example, n.example, type, "k"), a.steps[-1] == one)
    in_place = b.steps[-1] == one and m.example <= gemm.FEW_ROWS
    is_packed = not is_batched and m.example > _MANY
    along: gemm.Along = "k" if a.steps[-1] == one else "rows" if a.steps[-2] == one else ""
    tile = gemm.tile_for(n.example, m.example, type, along)
    block, turns = gemm.block_for(m.example, tile), b.steps[-2] == one and not in_place
    return of("rows", tile, turns, in_place, is_packed, block=block)


# ------------------------------------------------------------------ products


def multiplied(group: Group, name: str, a: Value, b: Value) -> Value:
    """(…, m, k) times (…, k, n), with dimensions before that are broadcast."""
    if a.type != b.type:
        raise Unsupported("a product of two dtypes")
    extents = group.extents
    depth = extents.require(a.shape[-1], b.shape[-2])
    if not depth.example:
        raise Unsupported("a product of nothing")
    extents.guard("gt", extents.canonical(depth).size, index(0))
    before = extents.broadcast(a.shape[:-2], b.shape[:-2]) if len(a.shape) + len(b.shape) > 4 else ()
    m, n = a.shape[-2], b.shape[-1]
    a, b = _readable(group, a), _readable(group, b)
    shape = (*before, m, n)
    trial = [_operand(Scheduler(extents, ()), each) for each in (a, b)]
    assert trial[0] is not None and trial[1] is not None
    outer = 1
    for each in before:
        outer *= each.example
    form = _form(group, m, n, trial[0], trial[1], outer, len(before), a.type)

    def operands(scheduler: Scheduler) -> tuple[Mapping[str, Expression], Mapping[str, str]]:
        found: dict[str, Expression] = {
            key: extents.canonical(e).size for key, e in zip(_SIZES, (m, n, depth), strict=True)
        }
        buffers: dict[str, str] = {}
        found |= {f"size{d}": extents.canonical(e).size for d, e in enumerate(before)}
        for key, value in (("a", a), ("b", b)):
            at = _operand(scheduler, value)
            assert at is not None
            buffers[key] = at.buffer
            found |= {f"{key}_first": at.first}
            found |= {f"{key}_row": at.steps[-2], f"{key}_column": at.steps[-1]}
            own = len(at.steps) - 2
            for d in range(len(before)):
                back = d - len(before) + own
                is_own = back >= 0 and not _is_one(group, value.shape[back])
                found[f"{key}_step{d}"] = at.steps[back] if is_own else index(0)
        return found, buffers

    template = Template(_kernel(form), operands, lambda at: at)
    return template_stage(group, name, shape, (depth,), (a, b), template, a.type)


def _is_one(group: Group, extent: Extent) -> bool:
    return group.extents.canonical(extent).size == index(1)


def contiguous(group: Group, value: Value) -> Value:
    """The value, kept unless its elements are one after the other in memory from the first on."""
    found = _operand(Scheduler(group.extents, ()), value)
    sizes = [group.extents.canonical(each).size for each in value.shape]
    steps = [product(sizes[d + 1 :]) for d in range(len(sizes))]
    if found is None or found.first != index(0):
        return group.keep(value)
    evenly = all(map(is_same_product, found.steps, steps))
    return value if evenly else group.keep(value)


def place_in(scheduler: Scheduler, value: Value) -> str:
    """The buffer of a value that is contiguous."""
    found = _operand(scheduler, value)
    assert found is not None
    return found.buffer


def template_stage(
    group: Group, name: str, shape: tuple[Extent, ...], inner: tuple[Extent, ...], read: Sequence[Value],
    template: Template, type: str = "f32",
) -> Value:  # fmt: skip
    """A value that comes from a template."""
    reads = tuple(dict.fromkeys(stage for value in read for stage in value.stages))
    stage = Stage(name, type, shape, reads, inner, template=template)
    group.stages.append(stage)
    return Value(name, type, shape, lambda body, at: body.stage(stage, at), (stage,), stage)


def _rows(group: Group, name: str, a: Value, b: Value) -> Value:
    """(…, k) times (k, n): all rows at once, where they lie evenly in memory."""
    *before, m, k = a.shape
    if not before:
        return multiplied(group, name, a, b)
    extents = group.extents
    sizes = [extents.canonical(each).size for each in (*before, m)]
    at = _operand(Scheduler(extents, ()), a)
    if at is None or not _is_even(at, sizes):
        a = group.keep(a)
    rows = Extent(product(sizes), _examples((*before, m)))
    flat = multiplied(group, name, _flat(a, rows, k), b)
    stage = flat.stage
    assert stage is not None and stage.template is not None
    stage.shape = (*before, m, b.shape[-1])
    kernel, operands = stage.template.kernel, stage.template.operands

    def indices(given: Indices) -> Indices:
        row, column = given
        found: list[Expression] = []
        for size in reversed(sizes[1:]):
            row, inner = split(row, size)
            found.insert(0, inner)
        return (row, *found, column)

    stage.template = Template(kernel, operands, indices)
    return Value(name, stage.type, stage.shape, lambda body, i: body.stage(stage, i), (stage,), stage)


def _is_even(at: Operand, sizes: Sequence[Expression]) -> bool:
    """True if rows of all dimensions before lie one after the other, in the same distance."""
    pairs = range(len(sizes) - 1)
    return all(is_same_product(at.steps[d], multiply(sizes[d + 1], at.steps[d + 1])) for d in pairs)


def _examples(extents: Sequence[Extent]) -> int:
    found = 1
    for each in extents:
        found *= each.example
    return found


def _flat(value: Value, rows: Extent, k: Extent) -> Value:
    """The tensor as a matrix, of which only the place of each element is asked for: rows lie evenly."""
    rank = len(value.shape)

    def at(body: Body, indices: Indices) -> Expression:
        row, column = indices
        return value.at(body, (*[index(0)] * (rank - 2), row, column))

    return Value(value.name, value.type, (rows, k), at, value.stages)


# ------------------------------------------------------------------ operators


def _mm(group: Group, name: str, given: Given, sample: Any) -> Value:
    if given.get("out_dtype") is not None:
        raise Unsupported("a product of another dtype")
    names = ("self", "mat2") if "mat2" in given else ("self", "other")
    a, b = (_floats(given[each]) for each in names)
    return _matmul_of(group, name, a, b)


def _matmul_of(group: Group, name: str, a: Value, b: Value) -> Value:
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise Unsupported("a product with a vector")
    return _rows(group, name, a, b) if len(b.shape) == 2 else multiplied(group, name, a, b)


def _linear(group: Group, name: str, given: Given, sample: Any) -> Value:
    return linear(group, name, _floats(given["input"]), _floats(given["weight"]), given["bias"])


def linear(group: Group, name: str, x: Value, weight: Value, bias: Lowered) -> Value:
    """(…, k) times the transpose of (n, k), plus (n)."""
    if len(x.shape) < 2 or len(weight.shape) != 2:
        raise Unsupported("a product with a vector")
    return _with(group, name, _rows(group, name, x, _turned(weight)), bias, 1, 1)


def _turned(matrix: Value) -> Value:
    """The transpose."""
    shape = (matrix.shape[1], matrix.shape[0])
    return Value(matrix.name, matrix.type, shape, lambda body, at: matrix.at(body, (at[1], at[0])), matrix.stages)


def _linear_to_input(group: Group, name: str, given: Given, sample: Any) -> Value:
    return _matmul_of(group, name, _floats(given["of"]), _floats(given["weight"]))


def _linear_to_weight(group: Group, name: str, given: Given, sample: Any) -> Value:
    """The sum over all rows of products of a row's elements."""
    if len(_floats(given["weight"]).shape) != 2:
        raise Unsupported("a product with a vector")
    of, x = (_as_matrix(group, _floats(given[each])) for each in ("of", "input"))
    return multiplied(group, name, _turned(of), x)


def _as_matrix(group: Group, value: Value) -> Value:
    """All rows of the last dimension, one after the other."""
    *before, last = value.shape
    if not before:
        raise Unsupported("a product with a vector")
    rows = Extent(product([group.extents.canonical(each).size for each in before]), _examples(before))
    return value if len(before) == 1 else reshaped(group, value.name, value, [rows, last])


def _added(group: Group, name: str, given: Given, sample: Any) -> Value:
    """A product times alpha, plus another tensor times beta."""
    if given.get("out_dtype") is not None:
        raise Unsupported("a product of another dtype")
    a, b = (_floats(given[x if x in given else y]) for x, y in (("mat1", "batch1"), ("mat2", "batch2")))
    numbers = [given[each] for each in ("alpha", "beta")]
    if not all(isinstance(each, (int, float)) for each in numbers):
        raise Unsupported("a factor that is not known")
    return _with(group, name, _matmul_of(group, name, a, b), given["self"], *numbers)


def _with(group: Group, name: str, found: Value, other: Lowered, alpha: float, beta: float) -> Value:
    if other is None:
        return found
    added = _floats(other)
    if added.type != found.type:
        raise Unsupported("a product and an addend of two dtypes")

    def scaled(x: Expression, by: float) -> Expression:
        return x if by == 1 else apply("mul", x, constant(by, found.type))

    shape = found.shape
    result = mapped(group, name, lambda x, y: apply("add", scaled(x, alpha), scaled(y, beta)), found, added)
    if len(result.shape) != len(shape):
        raise Unsupported("a result of another shape")
    return result


PRODUCTS: Final[dict[str, Handler]] = {
    "aten::mm": _mm, "aten::bmm": _mm, "aten::matmul": _mm, "aten::linear": _linear,
    "aten::addmm": _added, "aten::baddbmm": _added,
    "aten::_linear_to_input": _linear_to_input, "aten::_linear_to_weight": _linear_to_weight,
}  # fmt: skip
