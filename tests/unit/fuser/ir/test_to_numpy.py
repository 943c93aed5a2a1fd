"""Kernels as machine code do what their definition in Python does."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np
import pytest

from engine.fuser.backend import machine
from engine.fuser.ir import to_numpy
from engine.fuser.ir.kernel import (
    FLOATS,
    FUNCTIONS,
    HALVES,
    TYPES,
    WHOLE,
    Apply,
    Buffer,
    Constant,
    Expression,
    For,
    Kernel,
    Load,
    Name,
    Scalar,
    Store,
    apply,
    convert,
)
from engine.fuser.ir.kernel_text import parse
from engine.fuser.ir.numeric_functions import NUMPY
from engine.fuser.ir.to_numpy import OutOfBounds
from tests.unit.fuser.reference import Array, filled, outcome, same, specials, ulps

N: Final = Name("n", "i64")
INDEX: Final = Name("i", "i64")
EXACT: Final = frozenset(
    "add sub mul div neg abs eq ne lt le gt ge minimum maximum fma quotient rest shift_left shift_right "
    "shift_right_logical bitand bitor bitxor bitnot floor ceil trunc round sqrt copysign select convert bits_to_f32 "
    "bits_of_f32 bits_to_f64 bits_of_f64 fmod".split()
)
"""Functions that are as the definition has them, bit by bit; the others are near (see `math`)."""


def over_elements(name: str, types: list[str], value: dict[str, Expression]) -> Kernel:
    """A kernel that computes each value for each element of x0, x1, … of these types."""
    inputs = [Buffer(f"x{k}", type, (N,)) for k, type in enumerate(types)]
    outputs = [Buffer(f"out_{key}", each.type, (N,), access="out") for key, each in value.items()]
    stores = tuple(Store(f"out_{key}", (INDEX,), each) for key, each in value.items())
    return Kernel(name, (Scalar("n", "i64"), *inputs, *outputs), (For("i", Constant(0, "i64"), N, stores),))


def compared(kernel: Kernel, columns: list[Array]) -> dict[str, tuple[Array, Array]]:
    """What machine code and the definition make of these columns, by the name of the output."""
    outs = [np.zeros(len(columns[0]), NUMPY[b.type]) for b in kernel.buffers if b.access == "out"]
    found, wanted = (
        outcome(kernel, len(columns[0]), *columns, *outs, by=by) for by in (machine.callable_kernel, to_numpy.compiled)
    )
    names = [b.name.removeprefix("out_") for b in kernel.buffers if b.access == "out"]
    first = 1 + len(columns)
    return dict(zip(names, zip(found[first:], wanted[first:], strict=True), strict=True))


def _safe(name: str, type: str, columns: list[Array]) -> list[Array]:
    """Without what the function is not defined for."""
    if type not in WHOLE or len(columns) < 2:
        return columns
    if name.startswith("shift"):
        return [columns[0], np.abs(columns[1] % (8 * columns[1].dtype.itemsize)).astype(columns[1].dtype)]
    if name in ("quotient", "rest", "mod", "floordiv"):
        return [columns[0], np.where(np.isin(columns[1], [0, -1]), 3, columns[1]).astype(columns[1].dtype)]
    return columns


@pytest.mark.parametrize("type", [*FLOATS, *WHOLE, "bool"])
def test_functions_of_numbers(type: str) -> None:
    """Every function of that type, over pairs of special numbers."""
    pairs = list(itertools.product(specials(type), repeat=2))
    columns = [filled([pair[k % 2] for pair in pairs], type) for k in range(3)]
    names = [name for name, row in FUNCTIONS.items() if type in row.types and name not in ("select", "convert")]
    for group in (names[k::3] for k in range(3)):
        values: dict[str, Expression] = {}
        for name in group:
            fitted = _safe(name, type, columns[: FUNCTIONS[name].operands])
            columns += fitted
            first = len(columns) - len(fitted)
            operands = [Load(f"x{first + j}", (INDEX,), type) for j in range(len(fitted))]
            values[name] = apply(name, *operands)
        kernel = over_elements(f"functions_{type}_{len(columns)}", [type] * len(columns), values)
        for name, (found, wanted) in compared(kernel, columns).items():
            if name in EXACT:
                assert same(found, wanted), name
            elif type in FLOATS:
                assert ulps(found, wanted) <= (2 if type == "f32" else 4), name
            else:
                assert same(found, wanted), name


@pytest.mark.parametrize("source", TYPES)
def test_conversions(source: str) -> None:
    column = filled([*specials(source), *(1e10, -1e10, 255.6, 65519.0, 65520.0, 3e-8) * (source in FLOATS)], source)
    values = {type: convert(Load("x0", (INDEX,), source), type) for type in TYPES if type != source}
    for type, (found, wanted) in compared(over_elements(f"from_{source}", [source], values), [column]).items():
        assert same(found, wanted), type


@pytest.mark.parametrize("type", TYPES)
def test_choices_and_constants(type: str) -> None:
    column = filled(specials(type), type)
    number = column[1]
    known = Constant(number.item() if type not in HALVES else float(number), type)
    values: dict[str, Expression] = {
        "chosen": Apply("select", (Load("x1", (INDEX,), "bool"), Load("x0", (INDEX,), type), known), type),
        "known": known,
    }
    inputs = [Buffer("x0", type, (N,)), Buffer("x1", "bool", (N,))]
    outputs = [Buffer(f"out_{key}", type, (N,), access="out") for key in values]
    body = tuple(Store(f"out_{key}", (INDEX,), each) for key, each in values.items())
    kernel = Kernel(f"chosen_{type}", (Scalar("n", "i64"), *inputs, *outputs), (For("i", Constant(0, "i64"), N, body),))
    for found, wanted in compared(kernel, [column, np.arange(len(column)) % 2 == 0]).values():
        assert same(found, wanted)


# ------------------------------------------------------------------ statements

STATEMENTS: Final = """
def least(n: i64, x: f64[n], found: Out[i64[1]]):
    best: f64 = f64("inf")
    found[0] = -1
    for i in range(n):
        if x[i] < best:
            best = x[i]
            found[0] = i
        else:
            continue
    return n

@any_order
def f(n: i64, m: i64, flag: bool, a: i32, x: f64[m], y: f64[n:m, m:3], out: Out[f64[n, m]], sums: InOut[f64[4]]):
    room = allocate(f64[n, m])
    place = allocate(i64[1])
    for i in parallel(n):
        most: f64 = f64("-inf")
        total: f64 = 0.0
        for j in vector(m):
            value = (y[i, j] * x[j]) + f64(a)
            room[i, j] = value
            most = reduce(maximum, value)
            total = reduce(add, value)
        for j in range(m - 1, -1, -1):
            if flag:
                out[i, j] = room[i, m - 1 - j] - most
            else:
                out[i, j] = total
    count: i64 = least(n * m, address(room[0, 0]), address(place[0]))
    sums[0] = sums[0] + f64(place[0])
    k: i64 = 0
    while True:
        k = k + 1
        if k > count:
            break
        sums[1] = f64(k)
    far: f64 = call(exp, 1.0)
    sums[2] = far
    if flag:
        return 7
    words = view(f64[...], bits_of_f64(sums[3]))
    words[0] = 0.25
"""


@pytest.mark.parametrize(
    ("n", "m", "flag"), [(3, 4, True), (5, 1, False), (0, 3, False), (2, 0, True), (70, 33, False)]
)
def test_statements(n: int, m: int, flag: bool) -> None:
    """Loops, branches, sums, allocated buffers, views, strides, calls and codes."""
    kernel, generator = parse(STATEMENTS), np.random.default_rng(n)
    viewed = np.zeros(1)
    rows = np.lib.stride_tricks.as_strided(generator.normal(size=n * m + 3 * m), (n, m), (8 * m, 24))
    args = [n, m, flag, -3, generator.normal(size=m), rows, np.zeros((n, m))]
    args.append(np.array([1.0, 0, 0, np.int64(viewed.ctypes.data).view(np.float64)]))
    found = outcome(kernel, *args, by=machine.callable_kernel)
    for by in (to_numpy.compiled, lambda kernel: to_numpy.compiled(kernel, backwards=True)):
        viewed[0] = 0
        for a, b in zip(found, outcome(kernel, *args, by=by), strict=True):
            np.testing.assert_allclose(a, b, 1e-12)
        assert viewed[0] == (0 if flag else 0.25)


def test_the_definition_tells_what_is_out_of_bounds() -> None:
    head = "def f(n: i64, x: f32[n], y: InOut[f32[...]]):\n    "
    x = np.zeros(8, np.float32)
    for line in (
        "y[0] = x[n]",
        "y[0] = x[-1]",
        "y[8] = x[0]",
        "y[-1] = x[0]",
        "room = allocate(f32[n])\n    room[n] = x[0]",
    ):
        with pytest.raises(OutOfBounds):
            to_numpy.compiled(parse(head + line))(4, x, x.copy())
    with pytest.raises(OutOfBounds):  # the array is smaller than the kernel has it
        to_numpy.compiled(parse(head + "y[0] = x[n - 1]"))(9, x, x.copy())


def test_the_definition_does_not_hide_what_was_never_written() -> None:
    text = "def f(out: Out[f32[1]], count: Out[i64[1]]):\n    a = allocate(f32[1])\n    b = allocate(i64[1])\n"
    out, count = np.zeros(1, np.float32), np.zeros(1, np.int64)
    to_numpy.compiled(parse(text + "    out[0] = a[0]\n    count[0] = b[0]\n"))(out, count)
    assert np.isnan(out[0])
    assert abs(count[0]) > 2**50


def test_loops_that_depend_on_their_order_show_it_backwards() -> None:
    kernel = parse("def f(n: i64, x: InOut[f32[n]]):\n    for i in vector(1, n):\n        x[i] = x[i - 1] + 1.0\n")
    forwards, backwards = np.zeros(4, np.float32), np.zeros(4, np.float32)
    to_numpy.compiled(kernel)(4, forwards)
    to_numpy.compiled(kernel, backwards=True)(4, backwards)
    assert forwards.tolist() == [0, 1, 2, 3]
    assert backwards.tolist() == [0, 1, 1, 1]


def test_values_of_expressions() -> None:
    names = {"n": np.int64(7), "x": np.float32(0.5)}
    doubled = apply("mul", Name("x", "f32"), Constant(2.0, "f32"))
    assert to_numpy.evaluated(apply("add", convert(N, "f32"), doubled), names) == np.float32(8)
    assert "f_add" in to_numpy.source(parse("def f(a: i64):\n    b = a + 1\n"))
