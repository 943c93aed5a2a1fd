"""Kernels of recurrent layers of float32: all steps of one layer in one direction.

In: a `Layer`.  Out: its kernel, for all sizes; and `ahead`, the kernels that the library of operators has.

Note [A step]
One product has the contributions of the inputs to the gates of all steps.
The weights are copied once into panels, one for some units and one gate; those of all gates of the same units follow
one another.  A part of a step is some rows of the batch by some units: a product for each gate, then the new state of
these units, which needs no other.  Threads share the parts, each mostly the same units in every step, whose panels then
stay in its cache.  States alternate between two places, where the batch is filled up to whole tiles with zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from engine.aten.kernels.recurrence import GATES
from engine.fuser.groups import gemm
from engine.fuser.groups.gemm import Matrix, Tile
from engine.fuser.ir.kernel import (
    Address,
    Buffer,
    Expression,
    For,
    Kernel,
    Let,
    Load,
    Name,
    Parameter,
    Scalar,
    Statement,
    Store,
    add,
    allocate,
    apply,
    constant,
    index,
    multiply,
)
from engine.lang.records import dataclass

_WIDTHS: Final = (4, 2, 1)
"""Vectors in a row of a tile."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A kind of layer: `has_bias`, one for all of a gate; `has_own_bias`, one of the state's part alone; `keeps` what a
    backward pass wants.  `input_tile`: that of the product with the inputs; None: it is made of dot products."""

    kind: str
    tile: Tile
    input_tile: Tile | None
    has_bias: bool
    has_own_bias: bool
    keeps: bool

    @property
    def gates(self) -> int:
        return GATES[self.kind]

    @property
    def keeps_more(self) -> bool:
        """True if the gates are kept, and one more value; of kinds with one gate, outputs tell all."""
        return self.keeps and self.gates > 1

    @property
    def symbol(self) -> str:
        """The kernel's in the library of operators."""
        return f"{self.kind}_layer_{self.tile.rows}"


def tile_for(rows: int, units: int) -> Tile:
    """The tile that leaves the least of the batch and of the units over."""
    widest = gemm.tile_for(along="k")
    blocks = -(-rows // widest.rows)
    height = -(-rows // blocks)
    sums, lanes = widest.rows * widest.vectors, widest.lanes
    widths = [width for width in _WIDTHS if height * width <= sums]
    best = min(widths, key=lambda width: -(-units // (width * lanes)) * width)
    return Tile(height, best, widest.vector, "k")


def layer_for(
    kind: str, sizes: tuple[int, int, int], units: int, has_bias: bool, has_own_bias: bool, keeps: bool
) -> Layer:
    """The layer for so many steps, rows of the batch and features."""
    steps, rows, _ = sizes
    few = steps * rows <= gemm.FEWEST_ROWS
    input_tile = None if few else gemm.tile_for(steps * rows, GATES[kind] * units, along="k")
    return Layer(kind, tile_for(rows, units), input_tile, has_bias, has_own_bias, keeps)


def common(kind: str, rows: int) -> Layer:
    """The layer of the library that serves so many rows of a batch: with all biases, for no backward pass."""
    widest = gemm.tile_for(along="k")
    height = min((each for each in widest.heights if each >= rows), default=widest.rows)
    tile = Tile(height, widest.vectors, widest.vector, "k")
    return Layer(kind, tile, widest, has_bias=True, has_own_bias=kind == "gru", keeps=False)


def ahead() -> Iterator[Kernel]:
    """The kernels of the library, under their symbols."""
    for kind in _UNITS:
        for height in gemm.tile_for(along="k").heights:
            yield kernel_of(common(kind, height))


# ------------------------------------------------------------------ statements


def _i(name: str) -> Name:
    return Name(name, "i64")


def _f(name: str) -> Name:
    return Name(name, "f32")


def kernel_of(made: Layer) -> Kernel:
    sizes = tuple(Scalar(each, "i64") for each in ("steps", "m", "n", "features", "start", "by"))
    steps, m, n = _i("steps"), _i("m"), _i("n")
    state, all_states = (m, n), (steps, m, n)
    buffers = [
        Buffer("x", "f32", None), Buffer("w_ih", "f32", None), Buffer("w", "f32", None), Buffer("state", "f32", state),
        Buffer("gates", "f32", (multiply(steps, m), multiply(index(made.gates), n)), access="inout"),
        Buffer("output", "f32", all_states, access="out"),
    ]  # fmt: skip
    if made.kind == "lstm":
        buffers.append(Buffer("cell", "f32", state, access="inout"))
    if made.keeps_more:
        buffers.append(Buffer("more", "f32", all_states, access="out"))
    if made.has_bias:
        buffers.append(Buffer("bias", "f32", None))
    if made.has_own_bias:
        buffers.append(Buffer("own_bias", "f32", None))
    parameters: tuple[Parameter, ...] = (*sizes, *buffers)
    body = (*_projection(made), *_prologue(made), For("step", index(0), steps, (*_step(made),)))
    projecting = gemm.dots_helpers() if made.input_tile is None else gemm.helpers(made.input_tile, turns=True)
    helpers = (*projecting, gemm.tile_helper(made.tile), gemm.turn_helper(made.tile.vector))
    return Kernel(made.symbol, parameters, body, helpers=tuple(dict.fromkeys(helpers)))


def _projection(made: Layer) -> tuple[Statement, ...]:
    """The contributions of the inputs to the gates of all steps, and what is added to all of a gate."""
    rows, k, tile = multiply(_i("steps"), _i("m")), _i("features"), made.input_tile
    columns, x, w = multiply(index(made.gates), _i("n")), Matrix("x", k), Matrix("w_ih", k)

    def put(row: Expression, column: Expression, value: Expression) -> Sequence[Statement]:
        found = apply("add", value, Load("bias", (column,), "f32")) if made.has_bias else value
        return [Store("gates", (row, column), found)]

    if tile is None:
        return gemm.dots(rows, columns, k, x, w, put)
    return gemm.product_by_columns(rows, columns, k, x, w.transposed, put, tile, packed="inputs")


def _prologue(made: Layer) -> Iterator[Statement]:
    """The weights in panels, and the first state."""
    n, tile = _i("n"), made.tile
    yield Let("unit_panels", gemm.panels(n, tile))
    yield Let("row_blocks", apply("quotient", add(_i("m"), index(tile.rows - 1)), index(tile.rows)))
    yield allocate("packed", "f32", multiply(index(made.gates), gemm.packed_size(n, n, tile)))
    yield For("part", index(0), multiply(_i("unit_panels"), index(made.gates)), (*_packing(made),), kind="parallel")
    yield Let("filled", multiply(_i("row_blocks"), index(tile.rows)))
    yield allocate("states", "f32", index(2), _i("filled"), n)
    given = Load("state", (apply("minimum", _i("row"), add(_i("m"), index(-1))), _i("j")), "f32")
    known = apply("select", apply("lt", _i("row"), _i("m")), given, constant(0, "f32"))
    copies = (
        Store("states", (index(0), _i("row"), _i("j")), known),
        Store("states", (index(1), _i("row"), _i("j")), constant(0, "f32")),
    )
    yield For("row", index(0), _i("filled"), (For("j", index(0), n, copies, kind="vector"),))


def _packing(made: Layer) -> Iterator[Statement]:
    """The panel of some units and one gate."""
    n, width = _i("n"), made.tile.width
    yield Let("unit", multiply(apply("quotient", _i("part"), index(made.gates)), index(width)))
    yield Let("line", add(multiply(apply("rest", _i("part"), index(made.gates)), n), _i("unit")))
    yield Let("place", multiply(multiply(_i("part"), n), index(width)))
    weights = Matrix("w", index(1), n, multiply(_i("line"), n))
    fill = gemm.fill_from(weights, apply("sub", n, _i("unit")), made.tile)
    yield from fill(index(0), index(0), n, "packed", _i("place"))


def _step(made: Layer) -> Iterator[Statement]:
    yield Let("at", add(_i("start"), multiply(_i("step"), _i("by"))))
    yield Let("now", apply("bitand", _i("step"), index(1)))
    yield Let("next", apply("sub", index(1), _i("now")))
    yield For("part", index(0), multiply(_i("unit_panels"), _i("row_blocks")), (*_part(made),), kind="parallel")


def _part(made: Layer) -> Iterator[Statement]:
    """Some rows of the batch by some units."""
    n, tile, size = _i("n"), made.tile, made.tile.rows * made.tile.width
    yield allocate("sums", "f32", index(made.gates * size))
    yield Let("panel", apply("quotient", _i("part"), _i("row_blocks")))
    yield Let("top", multiply(apply("rest", _i("part"), _i("row_blocks")), index(tile.rows)))
    yield Let("unit", multiply(_i("panel"), index(tile.width)))
    states, operand = Matrix("states", n), Address("states", (_i("now"), _i("top"), index(0)))
    for gate in range(made.gates):
        place = multiply(multiply(add(multiply(_i("panel"), index(made.gates)), index(gate)), n), index(tile.width))
        sums, panel = Address("sums", (index(gate * size),)), Matrix("packed", index(tile.width), first=place)
        yield gemm.tile_call(tile, states, operand, panel, sums, index(0), n)
    yield Let("rows", apply("minimum", apply("sub", _i("m"), _i("top")), index(tile.rows)))
    yield Let("units", apply("minimum", apply("sub", n, _i("unit")), index(tile.width)))
    unit = For("j", index(0), _i("units"), (Let("u", add(_i("unit"), _i("j"))), *_unit(made)), kind="vector")
    yield For("r", index(0), _i("rows"), (Let("row", add(_i("top"), _i("r"))), unit))


def _unit(made: Layer) -> Iterator[Statement]:
    """One unit's new state, of one row of the batch."""
    for gate in range(made.gates):
        line = add(multiply(_i("r"), index(made.tile.width)), _i("j"))
        yield Let(f"given{gate}", Load("gates", _gate(gate), "f32"))
        sums: Expression = Load("sums", (add(index(gate * made.tile.rows * made.tile.width), line),), "f32")
        if made.has_own_bias:
            sums = apply("add", sums, Load("own_bias", (add(multiply(index(gate), _i("n")), _i("u")),), "f32"))
        yield Let(f"sum{gate}", sums)
    yield from _UNITS[made.kind](made)
    yield Store("output", (_i("at"), _i("row"), _i("u")), _f("new"))
    yield Store("states", (_i("next"), _i("row"), _i("u")), _f("new"))


def _gate(gate: int) -> tuple[Expression, ...]:
    """The place of a unit's gate among those of all steps."""
    return (add(multiply(_i("at"), _i("m")), _i("row")), add(multiply(index(gate), _i("n")), _i("u")))


def _both(gate: int) -> Expression:
    return apply("add", _f(f"given{gate}"), _f(f"sum{gate}"))


def _kept(made: Layer, gates: Sequence[str], more: str) -> Iterator[Statement]:
    """Stores of what a backward pass wants: the activated gates, and one more value."""
    if made.keeps_more:
        for gate, name in enumerate(gates):
            yield Store("gates", _gate(gate), _f(name))
        yield Store("more", (_i("at"), _i("row"), _i("u")), _f(more))


def _lstm(made: Layer) -> Iterator[Statement]:
    """Gates: input, forget, cell, output."""
    place = (_i("row"), _i("u"))
    functions = {"taken": "sigmoid", "forget": "sigmoid", "candidate": "tanh", "out": "sigmoid"}
    for gate, (name, function) in enumerate(functions.items()):
        yield Let(name, apply(function, _both(gate)))
    before = apply("mul", Load("cell", place, "f32"), _f("forget"))
    yield Let("after", apply("add", before, apply("mul", _f("taken"), _f("candidate"))))
    yield Let("new", apply("mul", apply("tanh", _f("after")), _f("out")))
    yield Store("cell", place, _f("after"))
    yield from _kept(made, (*functions,), "after")


def _gru(made: Layer) -> Iterator[Statement]:
    """Gates: reset, update, new."""
    yield Let("reset", apply("sigmoid", _both(0)))
    yield Let("update", apply("sigmoid", _both(1)))
    of_state = apply("mul", _f("reset"), _f("sum2"))
    yield Let("candidate", apply("tanh", apply("add", _f("given2"), of_state)))
    before = Load("states", (_i("now"), _i("row"), _i("u")), "f32")
    kept = apply("mul", apply("sub", before, _f("candidate")), _f("update"))
    yield Let("new", apply("add", kept, _f("candidate")))
    yield from _kept(made, ("reset", "update", "candidate"), "sum2")


def _rnn_tanh(made: Layer) -> Iterator[Statement]:
    yield Let("new", apply("tanh", _both(0)))


def _rnn_relu(made: Layer) -> Iterator[Statement]:
    yield Let("new", apply("maximum", _both(0), constant(0, "f32")))


_UNITS: Final[dict[str, Callable[[Layer], Iterator[Statement]]]] = {
    "lstm": _lstm, "gru": _gru, "rnn_tanh": _rnn_tanh, "rnn_relu": _rnn_relu,
}  # fmt: skip
