"""The work of kernels, told from their loops and buffers."""

import numpy as np

from engine.aten.values.tensor import Tensor
from engine.fuser.ir.kernel import (
    Accumulate,
    Allocate,
    Assign,
    Buffer,
    Constant,
    Declare,
    Expression,
    For,
    If,
    Kernel,
    Let,
    Load,
    Name,
    Scalar,
    Statement,
    Store,
    While,
    apply,
    constant,
    index,
)
from engine.fuser.stubs.binding import Binding, NumberArgument, Result, TensorArgument, size
from engine.fuser.stubs.cost import Cost, cost, cost_of, evaluate

N, M, AT, INNER = (Name(name, "i64") for name in "nmij")
ZERO = index(0)


def load(buffer: str, *at: Expression) -> Load:
    return Load(buffer, at, "f32")


def kernel(*body: Statement, buffers: tuple[Buffer, ...] = ()) -> Kernel:
    return Kernel("k", (Scalar("n", "i64"), Scalar("m", "i64"), *buffers), body)


def test_a_pointwise_kernel() -> None:
    x, out = Buffer("x", "f32", (N,)), Buffer("out", "f64", (N,), access="out")
    value = apply("add", apply("mul", load("x", AT), load("x", AT)), constant(1, "f32"))
    made = kernel(For("i", ZERO, N, (Store("out", (AT,), value),)), buffers=(x, out))
    assert cost(made, {"n": 10, "m": 0}) == Cost(10 * 4 + 10 * 8, 20)
    assert cost(made, {"n": 0, "m": 0}) == Cost(0, 0)
    assert cost(made, {"m": 0}) is None


def test_buffers_that_are_broadcast_written_twice_or_of_unknown_extent() -> None:
    wide = Buffer("x", "f32", (N, M), (ZERO, index(1)))
    both = Buffer("y", "i8", (M,), access="inout")
    memory = Buffer("z", "f32", None)
    assert cost(kernel(buffers=(wide, both, memory)), {"n": 100, "m": 3}) == Cost(3 * 4 + 3 * 2, 0)


def test_nested_loops_with_steps_and_tiles() -> None:
    inner = For("j", AT, apply("minimum", N, apply("add", AT, index(4))), (Accumulate("s", "add", load("x", INNER)),))
    made = kernel(Declare("s", constant(0, "f32")), For("i", ZERO, N, (inner,), step=index(4)))
    assert cost(made, {"n": 10, "m": 0}) == Cost(0, 3 * 4)
    down = For("i", N, ZERO, (Accumulate("s", "add", load("x", AT)),), step=index(-3))
    assert cost(kernel(Declare("s", constant(0, "f32")), down), {"n": 10, "m": 0}) == Cost(0, 4)


def test_lets_branches_and_whiles() -> None:
    add = Assign("s", apply("add", Name("s", "f32"), constant(1, "f32")))
    more = Let("k", apply("mul", N, M))
    loop = For(
        "i",
        ZERO,
        Name("k", "i64"),
        (If(Constant(True, "bool"), (add,), (add, add)), While(Constant(False, "bool"), (add,))),
    )
    assert cost(kernel(Declare("s", constant(0, "f32")), more, loop), {"n": 2, "m": 3}) == Cost(0, 6 * 3)
    fused = apply("fma", *(Name("s", "f32"),) * 3)
    free = apply("select", Constant(True, "bool"), apply("neg", fused), fused)
    scratch = Allocate(Buffer("t", "f32", (N,)))
    assert cost(kernel(scratch, Let("t", free)), {"n": 2, "m": 3}) == Cost(0, 4)


def test_a_binding_counts_what_its_arguments_hold() -> None:
    made = Kernel(
        "k", (Buffer("x", "f32", None), Buffer("y", "i64", None), Buffer("out", "f32", None, access="out")), ()
    )
    binding = Binding(
        made,
        (
            TensorArgument("x", "f32", 2, "strided"),
            TensorArgument("y", "i64", 1),
            NumberArgument("n", "i64"),
        ),
        (Result("out", "f32", (size("x", 0), Name("twice", "i64"))),),
        lets=(Let("twice", apply("mul", Name("n", "i64"), index(2))),),
    )
    x = Tensor(np.broadcast_to(np.ones((3, 1), np.float32), (3, 100)))
    assert cost_of(binding, (x, Tensor(np.ones(5, np.int64)), 7)) == Cost(3 * 4 + 5 * 8 + 3 * 14 * 4, 0)


def test_expressions_over_sizes() -> None:
    quotient = apply("quotient", index(-7), N)
    assert [evaluate(quotient, {"n": n}) for n in (2, -2)] == [-3, 3]
    assert evaluate(apply("select", apply("lt", N, M), N, M), {"n": 5, "m": 4}) == 4
