"""Kernels from text."""

import numpy as np
import pytest

from engine.fuser.ir.kernel import (
    Accumulate,
    Address,
    Assign,
    Buffer,
    Call,
    Constant,
    Declare,
    For,
    If,
    Kernel,
    Let,
    Load,
    Name,
    Return,
    Scalar,
    Store,
    View,
    all_statements,
    apply,
    convert,
    index,
)
from engine.fuser.ir.kernel_text import numbered, parse, show

TEXT = """
def k(n: i64, at: i64, x: f32[n], out: Out[f32[2]]):
    total: f32 = 0.0
    words = view(i64[...], at)
    for i in vector(1, n):
        twice = x[i] * 2.0
        total = reduce(add, twice)
    if total > -1.5:
        total = select(total < 2.0, total, f32(n))
    r: i64 = helper(words[0] + 1, address(x[1]))
    out[1] = total
    return -1
"""


def test_statements_and_the_types_of_literals():
    n, at, total = Name("n", "i64"), Name("at", "i64"), Name("total", "f32")
    loop = For(
        "i",
        index(1),
        n,
        (
            Let("twice", apply("mul", Load("x", (Name("i", "i64"),), "f32"), Constant(2.0, "f32"))),
            Accumulate("total", "add", Name("twice", "f32")),
        ),
        kind="vector",
    )
    chosen = apply("select", apply("lt", total, Constant(2.0, "f32")), total, convert(n, "f32"))
    branch = If(apply("gt", total, Constant(-1.5, "f32")), (Assign("total", chosen),))
    word = apply("add", Load("words", (index(0),), "i64"), index(1))
    call = Call("helper", (word, Address("x", (index(1),))), "r", "i64")
    assert parse(TEXT) == Kernel(
        "k",
        (
            Scalar("n", "i64"),
            Scalar("at", "i64"),
            Buffer("x", "f32", (n,)),
            Buffer("out", "f32", (index(2),), None, "out"),
        ),
        (
            Declare("total", Constant(0.0, "f32")),
            View(Buffer("words", "i64", None, None, "inout"), at),
            loop,
            branch,
            call,
            Store("out", (index(1),), total),
            Return(index(-1)),
        ),
    )


def test_parsed_kernels_run():
    machine = pytest.importorskip("engine.fuser.backend.machine")
    pytest.importorskip("llvmlite")
    head = "def f(n: i64, x: f64[n], out: Out[f64[n]]):\n"
    text = head + "    for i in range(n):\n        out[n - 1 - i] = sqrt(x[i]) + 1.0\n"
    given, found = np.array([1.0, 4.0, 9.0]), np.empty(3)
    assert machine.callable_kernel(parse(text))(3, given, found) == 0
    assert found.tolist() == [4.0, 3.0, 2.0]


@pytest.mark.parametrize("line", ["x = a @ a", "import x", "x = f(a)", "x = a if a > 0 else a", "del a", "y = x[0:3]"])
def test_other_python_is_refused(line):
    with pytest.raises((SyntaxError, KeyError)):
        parse(f"def f(a: i64, x: f32[8]):\n    {line}\n")


_ALL = """\
def k(n: i64, x: f32[n, n * 2], y: InOut[i64[...]], out: Out[f32[n]], flag: bool):
    total: f64 = 0.5
    for i in parallel(n):
        a = (x[i, 0] * f32(0.5)) + (x[i, 1] - f32(-1.5))
        out[i] = select(a < f32(0.0), tanh(a), a)
    for j in vector(1, n):
        total = reduce(add, f64(x[j, j]))
    for j in range(n, 0, -2):
        if y[j] == 3:
            break
        else:
            continue
    several: f32x4 = f32x4(f32(0.0))
    several = muladd(x[0, n:4], f32x4(x[0, 1]), several)
    out[n:4] = zip_low(several, several) + several
    room = allocate(f32[n])
    seen = view(i64[...], y[0])
    while flag:
        total = total / 2.0
        if y[0] >= n:
            return 1
    return 0
"""


def test_what_is_shown_reads_back() -> None:
    kernel = parse(_ALL)
    assert show(kernel) == _ALL.rstrip()
    assert parse(show(kernel)) == kernel


def test_strides_and_helpers_are_shown() -> None:
    n = Name("n", "i64")
    helper = Kernel("g", (Scalar("m", "i8"),), (Return(index(2)),))
    kernel = Kernel("k", (Scalar("n", "i64"), Buffer("x", "f32", (n, n), (n, index(1)))), (), helpers=(helper,))
    assert show(kernel) == ("def g(m: i8):\n    return 2\n\ndef k(n: i64, x: f32[n:n, n:1]):\n    pass")


def test_what_is_shown_is_read_again() -> None:
    """Flags, helpers, strides, infinities and empty blocks."""
    text = (
        "def helper(n: i64):\n    return n\n\n"
        "@any_order\n"
        "def spread(n: i64, s: i64, x: f32[n:s, n:1], out: Out[f32[n]]):\n"
        "    for i in range(n):\n"
        '        most: f32 = f32("-inf")\n'
        "        for j in vector(n):\n"
        "            most = reduce(maximum, x[i, j])\n"
        "        if most > f32(0.0):\n"
        "            pass\n"
        "        out[i] = most"
    )
    kernel = parse(text)
    assert kernel.any_order
    assert [each.name for each in kernel.helpers] == ["helper"]
    assert show(kernel) == text
    assert parse(show(kernel)) == kernel


LINED = """@any_order
def helper(n: i64, x: InOut[f32[n]]):
    for i in vector(n):
        if x[i] > f32(0.0):
            pass
        else:
            x[i] = f32(1.0)
    return 3

@is_rare
def empty(n: i64):
    pass

def k(n: i64, x: InOut[f32[n]]):
    r: i64 = helper(n, address(x[0]))
    while r < n:
        r: i64 = empty(n)
    if r == 1:
        x[0] = f32(2.0)
        break
    else:
        continue
    return r
"""


def test_statements_know_their_lines() -> None:
    kernel = parse(LINED)
    found = numbered(kernel)
    text = show(found).splitlines()
    assert found == kernel and repr(found) == repr(kernel) and text == show(kernel).splitlines() == LINED.splitlines()
    for function in (*found.helpers, found):
        assert text[function.line - 1].startswith(f"def {function.name}(")
        for statement in all_statements(function.body):
            assert text[statement.line - 1].strip() == show(statement).splitlines()[0]
