"""The rules of kernel IR, each broken once."""

import math as libm
from dataclasses import replace

import pytest

from engine.fuser.backend import machine, tiering
from engine.fuser.ir import kernel, math
from engine.fuser.ir.kernel import (
    FLOATS,
    FUNCTIONS,
    WHOLE,
    Accumulate,
    Address,
    Allocate,
    Apply,
    Assign,
    Buffer,
    Call,
    Constant,
    Declare,
    For,
    Function,
    If,
    Kernel,
    Let,
    Load,
    Name,
    Return,
    Scalar,
    Statement,
    Store,
    View,
    While,
    apply,
    index,
)
from engine.fuser.ir.kernel_text import parse, parse_function, show
from engine.fuser.ir.kernel_verifier import KernelError, verify, verify_function

HEAD = """
def helper(n: i64, x: f32[...]):
    return 0

def f(n: i64, t: bool, a: f32, x: f32[n], h: f16[n, 2], out: Out[f32[n]]):
    total: f32 = 0.0
    steps: i64 = 0
"""
GOOD = """
    for i in parallel(n):
        most: f32 = x[i]
        for j in vector(1, n):
            most = reduce(maximum, x[j])
        out[i] = most
    for j in range(n, 0, -1):
        r: i64 = helper(j, address(x[j - 1]))
        if r != 0:
            break
        else:
            continue
    several: f32x4 = f32x4(a)
    several = muladd(x[n:4], zip_low(several, several), several)
    out[n:4] = several
    room = allocate(f32[n])
    words = view(i64[...], steps)
    while t:
        steps = steps + words[0]
        room[0] = f32(h[0, 1])
        sent: ptr = malloc(8)
        return 1
"""


def test_what_keeps_the_rules() -> None:
    with_address = parse(HEAD + GOOD.replace("sent: ptr", "sent: i64"))
    verify(with_address)


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ("a = x[0]", "a is known already"),
        ("x: f32 = a", "x is known already"),
        ("for i in range(n):\n    b = a\nc = i", "i is not known"),
        ("if t:\n    b = a\nelse:\n    out[0] = b", "b is not known"),
        ("room = allocate(f32[n])\nroom = allocate(f32[n])", "room is known already"),
        ("b = x[0, 0]", "x has 1 dimensions"),
        ("b = x[a]", "indices are i64"),
        ("x[0] = a", "x is only read"),
        ("out[0] = f64(a)", "out holds f32, not f64"),
        ("out[0:8] = f64x8(f64(a))", "out holds f32, not f64x8"),
        ("b = f32x4(n)", "i64 becomes no f32x4"),
        ("b = f32(f32x4(a))", "f32x4 becomes no f32"),
        ("b = x[0:4] + a", "add of f32x4 and f32"),
        ("b = tanh(x[0:4])", "no tanh of f32x4"),
        ("b = zip_low(a, a)", "no zip_low of f32"),
        ("b = h[0, 0] + h[0, 1]", "no add of f16"),
        ("b = n / n", "no div of i64"),
        ("b = bitand(a, a)", "no bitand of f32"),
        ("b = tanh(n)", "no tanh of i64"),
        ("b = tanh(a, a)", "tanh takes 1 operands"),
        ("b = a + n", "add of f32 and i64"),
        ("b = select(n, a, a)", "a condition is bool"),
        ("total = f64(a)", "total is f32, not f64"),
        ("while n:\n    pass", "a condition is bool"),
        ("if a:\n    pass", "a condition is bool"),
        ("return a", "i64 is returned"),
        ("break", "no loop around"),
        ("for i in range(a):\n    pass", "bounds are i64"),
        ("for i in range(0, n, 0):\n    pass", "a loop that does not step"),
        ("for i in parallel(0, n, 2):\n    pass", "threads step by one"),
        ("for i in parallel(n):\n    for j in range(n):\n        for k in parallel(n):\n            pass", "within"),
        ("for i in parallel(n):\n    total = reduce(add, x[i])", "threads share a variable"),
        ("for i in parallel(n):\n    steps = 2", "iterations depend on one another"),
        ("for i in parallel(n):\n    break", "a loop of any order is not left"),
        ("for i in vector(n):\n    while t:\n        return 2", "a loop of any order is not left"),
        ("for i in vector(n):\n    if t:\n        steps = i", "iterations depend on one another"),
        ("for i in vector(n):\n    total = reduce(add, x[i])\n    out[i] = total", "iterations read the sum total"),
        ("total = reduce(sub, a)", "no sum is sub of f32"),
        ("total = reduce(bitor, a)", "no sum is bitor of f32"),
        ("helper(n)", "helper takes"),
        ("helper(a, address(x[0]))", "helper takes"),
        ("r: f32 = helper(n, address(x[0]))", "helper gives no f32"),
        ("unknown(n)", "no function unknown"),
        ("free(a)", "free takes (ptr), not (f32)"),
        ("r: i64 = free(address(x[0]))", "free gives no i64"),
        ("b = address(x[0])", "an address that is no operand of a call"),
        ("words = view(i64[...], a)", "a view's address is i64"),
        ("words = view(i64[n], n)", "a view is of unknown extent"),
        ("room = allocate(f32[...])", "a contiguous buffer is allocated"),
        ("room = allocate(f32[a])", "extents and strides are i64"),
    ],
)
def test_rules(lines: str, rule: str) -> None:
    """Each is told beside the line that breaks it."""
    text = HEAD + "".join(f"    {line}\n" for line in lines.splitlines())
    broken = parse(text)
    with pytest.raises(KernelError) as found:
        verify(broken)
    first, *shown = str(found.value).splitlines()
    assert rule in first
    (marked,) = [line for line in shown if "# <- " in line]
    assert marked.partition("  # <- ")[2] == first
    assert marked.partition("  # <- ")[0].strip() in text
    unmarked = "\n".join(line.partition("  # <- ")[0] for line in shown)
    assert unmarked == show(replace(broken, helpers=()))


def _kernel(*body: Statement, **rest: object) -> Kernel:
    parameters = (Scalar("n", "i64"), Buffer("x", "f32", (Name("n", "i64"),)))
    return replace(Kernel("f", parameters, body), **rest)  # type: ignore[arg-type]


X = Load("x", (index(0),), "f32")


@pytest.mark.parametrize(
    "broken",
    [
        _kernel(Let("b", Constant(1, "f32"))),
        _kernel(Let("b", Constant(1.0, "i64"))),
        _kernel(Let("b", Constant(True, "i64"))),
        _kernel(Let("b", Constant(1, "bool"))),
        _kernel(Let("b", Constant(128, "i8"))),
        _kernel(Let("b", Constant(-1, "u8"))),
        _kernel(Let("b", Constant(2**63, "i64"))),
        _kernel(Let("b", Name("n", "i32"))),
        _kernel(Let("b", Load("x", (index(0),), "f64"))),
        _kernel(Let("b", Load("x", (index(0),), "f64x2"))),
        _kernel(parameters=(Scalar("n", "f32x4"),)),
        _kernel(Allocate(Buffer("room", "f32x4", (index(1),), access="inout"))),
        _kernel(
            Let("b", Load("y", (index(0),), "f32x4")),
            parameters=(Buffer("y", "f32", (index(9),), (index(2),)),),
        ),
        _kernel(Let("from", X)),
        _kernel(Let("b.c", X)),
        _kernel(Let("b", Apply("add", (X, X), "f64"))),
        _kernel(Let("b", Apply("softmax", (X,), "f32"))),
        _kernel(Let("b", Apply("convert", (X,), "ptr"))),
        _kernel(Let("b", Apply("lt", (X, X), "f32"))),
        _kernel(Assign("n", index(1))),
        _kernel(Accumulate("n", "add", index(1))),
        _kernel(Store("n", (), X)),
        _kernel(Declare("b", Address("x", (index(0),)))),
        _kernel(Allocate(Buffer("room", "f32", (index(1),)))),
        _kernel(View(Buffer("seen", "f32", None), index(0))),
        _kernel(Call("malloc", (index(1),), "b", "f32")),
        _kernel(parameters=(Scalar("n", "ptr"),)),
        _kernel(parameters=(Scalar("n", "i64"), Scalar("n", "i64"))),
        _kernel(parameters=(Buffer("x", "f32", (index(1),), (index(1), index(1))),)),
        _kernel(parameters=(Buffer("x", "f32", (Name("n", "i64"),)),)),
        _kernel(name="a b"),
        _kernel(name="malloc"),
        _kernel(helpers=(_kernel(),)),
        _kernel(helpers=(_kernel(name="g", helpers=(_kernel(name="h"),)),)),
    ],
    ids=lambda broken: show(broken).replace("\n", ";"),
)
def test_rules_that_text_cannot_break(broken: Kernel) -> None:
    with pytest.raises(KernelError):
        verify(broken)


def test_lines_are_counted_in_nested_statements() -> None:
    wrong = Let("n", index(1))
    nested = If(
        Constant(True, "bool"), (), (While(Constant(False, "bool"), ()), For("i", index(0), index(2), (wrong,)))
    )
    with pytest.raises(KernelError) as found:
        verify(replace(_kernel(nested, Return(index(0))), any_order=True))
    assert "            n = 1  # <- n is known already\n    return 0" in str(found.value)


def test_helpers_may_call_those_before_them_and_themselves() -> None:
    text = "def g(n: i64):\n    g(n)\n\ndef h(n: i64):\n    g(n)\n\ndef f(n: i64):\n    h(n)\n"
    verify(parse(text))
    with pytest.raises(KernelError, match="no function h"):
        verify(parse(text.replace("    g(n)\n\ndef h", "    h(n)\n\ndef h")))


def test_the_back_end_takes_none_that_is_broken() -> None:
    with pytest.raises(machine.MachineError, match="b is not known"):
        machine.callable_kernel(_kernel(Return(Name("b", "i64"))))
    tiering.forget_failures()


# ------------------------------------------------------------------ functions

WRITTEN = [
    found for name in FUNCTIONS for type in (*FLOATS, *WHOLE) if (found := math.function(name, type)) is not None
]


@pytest.mark.parametrize("written", WRITTEN, ids=lambda f: f"{f.name}.{f.result.type}")
def test_functions_of_numbers(written: Function) -> None:
    verify_function(written)
    assert repr(parse_function(show(written))) == repr(written)


def test_a_function_that_breaks_a_rule() -> None:
    x = Name("x", "f32")
    with pytest.raises(KernelError, match=r"f: y = x \* x  # <- x is f64, not f32"):
        verify_function(Function("f", (Scalar("x", "f64"),), (Let("y", apply("mul", x, x)),), Name("y", "f32")))
    with pytest.raises(SyntaxError):
        parse_function("def f(x: f32) -> f32:\n    x[0] = 1.0\n    return x\n")


def test_constants_of_other_types() -> None:
    """Those that are converted, infinite, or the operands of a function that gives another type."""
    for text in ("f32(i64(2))", 'i64(f64("inf"))', "bits_of_f64(1.0)", "bits_of_f32(f32(1.0))", 'f32("nan")'):
        shown = show(parse(f"def f(a: f32):\n    b = {text}\n"))
        assert shown.endswith(f"b = {text}")
        verify(parse(shown))
    (let,) = parse("def f():\n    b = bits_of_f64(1)\n").body
    assert isinstance(let, Let)
    assert repr(kernel.parts(let.value)[0]) == repr(Constant(1.0, "f64"))
    with pytest.raises(SyntaxError):
        parse("def f(n: i64):\n    b = n + 0.5\n")
    assert libm.isnan(parse('def f():\n    b = f32("nan")\n').body[0].value.value)  # type: ignore[union-attr]
