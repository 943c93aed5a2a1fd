"""Kernels from text."""

import numpy as np
import pytest

from engine.fuser.kernel import (
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
    apply,
    convert,
    index,
)
from engine.fuser.kernel_text import parse

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
    machine = pytest.importorskip("engine.fuser.machine")
    pytest.importorskip("llvmlite")
    head = "def f(n: i64, x: f64[n], out: Out[f64[n]]):\n"
    text = head + "    for i in range(n):\n        out[n - 1 - i] = sqrt(x[i]) + 1.0\n"
    given, found = np.array([1.0, 4.0, 9.0]), np.empty(3)
    assert machine.callable_kernel(parse(text))(3, given, found) == 0
    assert found.tolist() == [4.0, 3.0, 2.0]


@pytest.mark.parametrize("line", ["x = a @ a", "import x", "x = f(a)", "x = a if a > 0 else a", "del a"])
def test_other_python_is_refused(line):
    with pytest.raises((SyntaxError, KeyError)):
        parse(f"def f(a: i64):\n    {line}\n")
