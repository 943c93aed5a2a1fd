"""Stubs run their kernel where the guard holds and leave everything else to the fallback, counting references right."""

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch import calls
from engine.aten.dispatch.grad_mode import no_grad
from engine.aten.values.hooks import HOOKS
from engine.aten.values.parameter import Parameter
from engine.aten.values.tensor import Tensor
from engine.fuser.backend.cpython_abi import AbiError
from engine.fuser.ir.kernel import (
    Accumulate,
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
    Return,
    Scalar,
    Store,
    apply,
    constant,
    convert,
    index,
    multiply,
)
from engine.fuser.stubs import process, stub
from engine.fuser.stubs.binding import (
    RELEASE_AFTER,
    Argument,
    Binding,
    NumberArgument,
    NumberResult,
    Result,
    TensorArgument,
    size,
    stride,
)

Array = np.ndarray[Any, Any]
N, INDEX = Name("n", "i64"), Name("i", "i64")


def call(name: str, *args: Any) -> Any:
    """The operator."""
    return calls.call(name, args, {})


class Fallback:
    """Notes the calls that come to it."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, *args: Any) -> str:
        self.calls.append(args)
        return "fallback"


def fails(*_: Any) -> Any:
    raise AssertionError("the fallback was called")


def tensor(values: Any, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.array(values, dtype))


def loop(*body: Any) -> For:
    return For("i", index(0), N, body, kind="vector")


def at(buffer: str, type: str = "f32") -> Load:
    return Load(buffer, (INDEX,), type)


def numel(name: str, rank: int) -> Expression:
    total: Expression = index(1)
    for axis in range(rank):
        total = multiply(total, size(name, axis))
    return total


def alike(a: str, b: str, rank: int) -> tuple[Expression, ...]:
    return tuple(apply("eq", size(a, i), size(b, i)) for i in range(rank))


def adding(rank: int = 1, type: str = "f32", **more: Any) -> Binding:
    """x + y of contiguous tensors of one shape."""
    total: Expression = apply("add", at("x", type), at("y", type)) if type != "bool" else at("x", type)
    if type in ("f16", "bf16"):
        total = convert(apply("add", convert(at("x", type), "f32"), convert(at("y", type), "f32")), type)
    buffers = (Buffer("x", type, (N,)), Buffer("y", type, (N,)), Buffer("out", type, (N,), access="out"))
    kernel = Kernel("adding", (*buffers, Scalar("n", "i64")), (loop(Store("out", (INDEX,), total)),))
    shape = tuple(size("x", i) for i in range(rank))
    return Binding(
        kernel,
        (TensorArgument("x", type, rank), TensorArgument("y", type, rank)),
        (Result("out", type, shape),),
        alike("x", "y", rank),
        (Let("n", numel("x", rank)),),
        **more,
    )


def numbers(*arguments: tuple[str, str], code: int = 0) -> Binding:
    """Each number as it came."""
    parameters = tuple(Scalar(name, type) for name, type in arguments)
    results = tuple(Buffer(f"{name}_out", type, (), access="out") for name, type in arguments)
    body = tuple(Store(f"{name}_out", (), Name(name, type)) for name, type in arguments)
    return Binding(
        Kernel("numbers", (*parameters, *results), (*body, Return(index(code)))),
        tuple(NumberArgument(name, type) for name, type in arguments),
        tuple(NumberResult(f"{name}_out", type) for name, type in arguments),
    )


X, Y = tensor([1, 2, 3]), tensor([10, 20, 30])

# ------------------------------------------------------------------ what is computed


def test_results_are_new_tensors() -> None:
    add = stub.bind("add", [adding()], fails)
    made = add(X, Y)
    assert type(made) is type(call("add", X, Y)) and made.array.tolist() == [11, 22, 33]
    assert not made.requires_grad and made.is_leaf and made._base is None and made.output_nr == 0
    assert made.array.dtype is np.dtype(np.float32) and made.array.flags.owndata
    made.bump_version()
    assert made._version == 1
    made.note = "attributes as of any tensor"
    assert weakref.ref(made)() is made


@pytest.mark.parametrize("type", process.DTYPES)
def test_elements_of_each_type(type: str) -> None:
    x, y = (Tensor(np.arange(5).astype(process.DTYPES[type])) for _ in range(2))
    made = stub.bind("add", [adding(type=type)], fails)(x, y).array
    expected = call("add", x, y) if type != "bool" else x
    assert made.dtype is process.DTYPES[type] and made.tobytes() == expected.array.tobytes()


@pytest.mark.parametrize("shape", [(), (1,), (0,), (7,), (2, 3), (0, 4), (3, 0, 2), (1, 2, 1, 3)])
def test_shapes(shape: tuple[int, ...]) -> None:
    x, y = (Tensor(np.random.default_rng(i).normal(size=shape).astype(np.float32).reshape(shape)) for i in range(2))
    made = stub.bind("add", [adding(len(shape))], fails)(x, y).array
    assert made.shape == shape and np.array_equal(made, x.array + y.array)


def test_numbers_are_of_exact_types() -> None:
    wanted = ("a", "f64"), ("b", "i64"), ("c", "bool")
    fallback = Fallback()
    run = stub.bind("run", [numbers(*wanted)], fallback)
    for given in ((2.5, -(2**63), True), (float("inf"), 2**63 - 1, False)):
        found = run(*given)
        assert found == given and [type(each) for each in found] == [float, int, bool]
    for wrong in ((1, 1, True), (1.0, True, True), (1.0, 1, 1), (1.0, 2**63, True), (np.float64(1), 1, True), (1.0, 1)):
        assert run(*wrong) == "fallback" and fallback.calls[-1] == wrong
    assert stub.bind("none", [numbers()], fails)() is None


def test_one_number_is_returned_itself() -> None:
    n = Name("n", "i64")
    kernel = Kernel(
        "sum",
        (Buffer("x", "f32", (n,)), Buffer("total", "f32", (), access="out"), Scalar("n", "i64")),
        (
            Declare("t", constant(0, "f32")),
            loop(Accumulate("t", "add", at("x"))),
            Store("total", (), Name("t", "f32")),
        ),
    )
    binding = Binding(
        kernel, (TensorArgument("x", "f32", 1),), (NumberResult("total", "f32"),), (), (Let("n", size("x", 0)),)
    )
    assert stub.bind("sum", [binding], fails)(X) == 6.0


def test_several_results_are_a_tuple() -> None:
    binding = two_results(N)
    made = stub.bind("two", [binding], fails)(X, 5)
    assert type(made) is tuple and [type(each) for each in made] == [type(call("add", X, Y)), int]
    assert made[0].array.tolist() == [1, 2, 3] and made[1] == 5


def two_results(extent: Expression) -> Binding:
    """A copy of x and a number; `extent` is that of the copy."""
    buffers = (Buffer("x", "f32", (N,)), Buffer("a", "f32", (extent,), access="out"))
    kernel = Kernel(
        "two",
        (*buffers, Buffer("m", "i64", (), access="out"), Scalar("n", "i64"), Scalar("k", "i64")),
        (loop(Store("a", (INDEX,), at("x"))), Store("m", (), Name("k", "i64"))),
    )
    return Binding(
        kernel,
        (TensorArgument("x", "f32", 1), NumberArgument("k", "i64")),
        (Result("a", "f32", (extent,)), NumberResult("m", "i64")),
        (),
        (Let("n", size("x", 0)),),
    )


@pytest.mark.parametrize(("function", "within"), [("tanh", 0.5), ("exp", -1.0), ("sqrt", 0.25)])
def test_guards_may_ask_for_any_function(function: str, within: float) -> None:
    """Also for those that are written out, which become part of the stub."""
    k = Name("k", "f64")
    kernel = Kernel("given", (Buffer("m", "f64", (), access="out"), Scalar("k", "f64")), (Store("m", (), k),))
    guard = apply("lt", apply(function, k), constant(1, "f64"))
    binding = Binding(kernel, (NumberArgument("k", "f64"),), (NumberResult("m", "f64"),), (guard,), ())
    fallback = Fallback()
    run = stub.bind("given", [binding], fallback)
    assert run(within) == within and not fallback.calls
    assert run(400.0) == "fallback"


def test_the_first_binding_that_holds_runs() -> None:
    fallback = Fallback()
    run = stub.bind("add", [adding(1), adding(2), adding(1, "f64")], fallback)
    assert run(X, Y).array.tolist() == [11, 22, 33]
    square = tensor([[1, 2]])
    assert run(square, square).array.tolist() == [[2, 4]]
    double = tensor([1.5], np.float64)
    assert run(double, double).array.tolist() == [3.0] and not fallback.calls
    assert run(X, double) == "fallback" and fallback.calls == [(X, double)]


def test_no_binding_is_the_fallback() -> None:
    assert stub.bind("nothing", [], fails) is fails


# ------------------------------------------------------------------ what stubs leave alone


def _other(kind: Callable[[Array], Any]) -> Any:
    return kind(np.arange(3, dtype=np.float32))


def _read_unaligned(array: Array) -> Tensor:
    raw = np.zeros(array.nbytes + 1, np.uint8)[1:].view(np.float32)
    raw[:] = array
    return Tensor(raw)


class _Kind(np.ndarray[Any, Any]):
    pass


OTHERS: dict[str, Callable[[Array], Any]] = {
    "a number": lambda a: 1.0,
    "an array": lambda a: a,
    "None": lambda a: None,
    "another dtype": lambda a: Tensor(a.astype(np.float64)),
    "another byte order": lambda a: Tensor(a.astype(">f4")),
    "another rank": lambda a: Tensor(a.reshape(1, 3)),
    "another size": lambda a: Tensor(a[:2].copy()),
    "gaps": lambda a: Tensor(np.repeat(a, 2)[::2]),
    "unaligned": _read_unaligned,
    "a kind of array": lambda a: _with_array(Tensor(), a.view(_Kind)),
    "a kind of tensor": lambda a: type("Special", (Tensor,), {})(a),
    "records": lambda a: Tensor(a, requires_grad=True),
}


def _with_array(of: Tensor, array: Array) -> Tensor:
    of.array = array
    return of


@pytest.mark.parametrize("what", OTHERS)
def test_other_arguments_go_to_the_fallback(what: str) -> None:
    fallback, other = Fallback(), _other(OTHERS[what])
    add = stub.bind("add", [adding()], fallback)
    assert add(X, other) == "fallback" and add(other, X) == "fallback"
    assert [[id(each) for each in given] for given in fallback.calls] == [[id(X), id(other)], [id(other), id(X)]]


@pytest.mark.parametrize("given", [(), (X,), (X, Y, X)])
def test_another_number_of_arguments(given: tuple[Any, ...]) -> None:
    fallback = Fallback()
    assert stub.bind("add", [adding()], fallback)(*given) == "fallback" and fallback.calls == [given]


def test_arguments_by_name_go_to_the_fallback() -> None:
    add = stub.bind("add", [adding(), adding(2)], lambda x, *, other, alpha=1: (x, other, alpha))
    assert add(X, other=Y) == (X, Y, 1) and add(X, alpha=2, other=Y) == (X, Y, 2)
    with pytest.raises(TypeError, match="other"):
        add(X)


def test_errors_of_the_fallback_pass() -> None:
    def refuse(*_: Any) -> Any:
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        stub.bind("add", [adding()], refuse)(X, 1)


def test_what_records_is_computed_where_nothing_is_recorded() -> None:
    fallback = Fallback()
    add = stub.bind("add", [adding()], fallback)
    parameter = Parameter(X)
    assert add(parameter, X) == "fallback"
    with no_grad():
        made = add(parameter, X)
    assert made.array.tolist() == [2, 4, 6] and not made.requires_grad
    assert add(Parameter(X, requires_grad=False), X).array.tolist() == [2, 4, 6]


def test_views_are_looked_at_after_a_base_came_to_record() -> None:
    fallback = Fallback()
    add = stub.bind("add", [adding()], fallback)
    base = tensor([1, 2, 3, 4])
    view = call("slice", base, 0, 0, 3, 1)
    assert view._base is base and add(view, X).array.tolist() == [2, 4, 6]
    before = HOOKS.rebased
    HOOKS.rebased = 1
    try:
        assert add(view, X) == "fallback" and add(X, X) != "fallback"
    finally:
        HOOKS.rebased = before


# ------------------------------------------------------------------ layouts


def reading(rank: int) -> Binding:
    """A contiguous copy of a tensor of any strides, by loops over its dimensions."""
    indices = tuple(Name(f"i{axis}", "i64") for axis in range(rank))
    sizes, strides = ([f("x", axis) for axis in range(rank)] for f in (size, stride))
    body: Any = Store("out", indices, Load("x", indices, "f32"))
    for axis in reversed(range(rank)):
        body = For(f"i{axis}", index(0), sizes[axis], (body,))
    scalars = tuple(Scalar(each.name, "i64") for each in (*sizes, *strides))
    x, out = Buffer("x", "f32", tuple(sizes), tuple(strides)), Buffer("out", "f32", tuple(sizes), access="out")
    return Binding(
        Kernel("reading", (*scalars, x, out), (body,)),
        (TensorArgument("x", "f32", rank, "strided"),),
        (Result("out", "f32", tuple(sizes)),),
    )


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a,
        lambda a: a.T,
        lambda a: a[::-1, ::2],
        lambda a: a[1:1],
        lambda a: np.broadcast_to(a[0], (5, 4)),
        lambda a: a[2:3, 1:],
    ],
)
def test_strided_arguments(view: Callable[[Array], Array]) -> None:
    array = view(np.arange(12, dtype=np.float32).reshape(3, 4))
    made = stub.bind("read", [reading(2)], fails)(Tensor(array)).array
    assert made.flags.c_contiguous and np.array_equal(made, array)


def test_strides_are_whole_elements() -> None:
    odd = np.zeros(3, np.dtype([("a", np.float32), ("b", np.int16)]))["a"]
    assert stub.bind("read", [reading(1)], Fallback())(Tensor(odd)) == "fallback"


def test_guards_see_sizes_strides_and_numbers() -> None:
    binding = numbers(("a", "i64"))
    guarded = Binding(
        binding.kernel,
        (NumberArgument("a", "i64"), TensorArgument("x", "f32", 2, "strided")),
        binding.results,
        (
            apply("gt", Name("a", "i64"), index(3)),
            apply("eq", stride("x", 1), size("x", 0)),
        ),
    )
    run = stub.bind("guarded", [guarded], Fallback())
    assert run(4, Tensor(np.zeros((3, 3), np.float32).T)) == 4
    assert run(3, Tensor(np.zeros((3, 3), np.float32).T)) == "fallback"
    assert run(4, Tensor(np.zeros((3, 3), np.float32))) == "fallback"


# ------------------------------------------------------------------ failures and references


def test_codes_go_to_the_handler() -> None:
    seen: list[Any] = []

    def on_error(code: int, *args: Any) -> Any:
        seen.append((code, args))
        if code == 7:
            raise ZeroDivisionError("seven")
        return "handled"

    assert stub.bind("f", [numbers(("a", "i64"), code=-3)], fails, on_error=on_error)(5) == "handled"
    with pytest.raises(ZeroDivisionError, match="seven"):
        stub.bind("f", [numbers(("a", "i64"), code=7)], fails, on_error=on_error)(6)
    assert seen == [(-3, (5,)), (7, (6,))]
    assert stub.bind("f", [numbers(("a", "i64"), code=1)], Fallback())(5) == "fallback"


def _counts(*values: Any) -> list[int]:
    return [sys.getrefcount(each) for each in (*values, np.dtype(np.float32), None, False, 0, Tensor)]


def _many(run: Callable[[], Any], *values: Any, limit: int = 20) -> None:
    """Run it often; the values have as many references afterwards."""
    run()
    gc.collect()
    before = _counts(*values)
    for _ in range(1000):
        run()
    gc.collect()
    after = _counts(*values)
    assert all(abs(a - b) < limit for a, b in zip(after, before, strict=True)), (before, after)


def test_references_are_counted_exactly() -> None:
    add = stub.bind("add", [adding()], fallback := lambda *_: None)
    two = stub.bind("two", [two_results(N)], fallback)
    x, y = tensor([1, 2, 3]), tensor([1, 2, 3])
    arrays = x.array, y.array
    _many(lambda: add(x, y), x, y, *arrays)
    _many(lambda: add(x, arrays), x, y, *arrays)
    _many(lambda: two(x, 10**9), x, y, *arrays)
    made = add(x, y)
    counts = sys.getrefcount(made), sys.getrefcount(made.array)
    assert counts == (2, 2)
    free = weakref.ref(made)
    del made
    assert free() is None


def test_references_when_something_fails() -> None:
    fallback = lambda *_: None  # noqa: E731
    x = tensor([1, 2, 3])
    handler = stub.bind("f", [failing_copy()], fallback, on_error=lambda *_: None)
    _many(lambda: handler(x), x, x.array)
    dropped = stub.bind("f", [failing_copy()], fallback)
    _many(lambda: dropped(x), x, x.array)
    huge = stub.bind("two", [two_results(multiply(N, index(2**45)))], fallback)
    _many(lambda: huge(x, 1), x, x.array)
    second = stub.bind("f", [failing_second()], fallback)
    _many(lambda: second(x), x, x.array)


def failing_copy() -> Binding:
    """Makes a result, and fails."""
    check = If(apply("gt", N, index(0)), (Return(index(4)),))
    buffers = (Buffer("x", "f32", (N,)), Buffer("a", "f32", (N,), access="out"))
    kernel = Kernel("failing", (*buffers, Scalar("n", "i64")), (check, loop(Store("a", (INDEX,), at("x")))))
    return Binding(kernel, (TensorArgument("x", "f32", 1),), (Result("a", "f32", (N,)),), (), (Let("n", size("x", 0)),))


def failing_second() -> Binding:
    """Makes a result, and finds no memory for the other."""
    huge = multiply(N, index(2**45))
    buffers = (Buffer("a", "f32", (N,), access="out"), Buffer("b", "f32", (huge,), access="out"))
    return Binding(
        Kernel("second", (*buffers, Scalar("n", "i64")), ()),
        (TensorArgument("x", "f32", 1),),
        (Result("a", "f32", (N,)), Result("b", "f32", (huge,))),
        (),
        (Let("n", size("x", 0)),),
    )


def test_no_memory_is_the_fallbacks_to_tell() -> None:
    fallback = Fallback()
    assert stub.bind("two", [two_results(multiply(N, index(2**45)))], fallback)(X, 1) == "fallback"
    assert stub.bind("two", [two_results(apply("sub", index(0), N))], fallback)(X, 1) == "fallback"
    assert len(fallback.calls) == 2


def test_a_stub_lets_go_of_its_fallback() -> None:
    fallback = Fallback()
    free = weakref.ref(fallback)
    run = stub.bind("add", [adding()], fallback)
    del fallback
    assert run(X, 1) == "fallback"
    del run
    gc.collect()
    assert free() is None


# ------------------------------------------------------------------ threads


def counting(work: Expression | None) -> Binding:
    """A number that takes a while: x[0] times a chain of products."""
    t = Name("t", "f32")
    body = (
        Declare("t", Load("x", (index(0),), "f32")),
        For("i", index(0), Name("times", "i64"), (Assign("t", apply("sub", constant(1, "f32"), t)),)),
        Store("out", (), t),
    )
    kernel = Kernel(
        "counting",
        (Buffer("x", "f32", (index(1),)), Buffer("out", "f32", (), access="out"), Scalar("times", "i64")),
        body,
    )
    arguments: tuple[Argument, ...] = (TensorArgument("x", "f32", 1), NumberArgument("times", "i64"))
    return Binding(kernel, arguments, (NumberResult("out", "f32"),), work=work)


@pytest.mark.parametrize("work", [Name("times", "i64"), Constant(1e9, "f64"), Constant(RELEASE_AFTER + 1, "i64")])
def test_others_run_meanwhile(work: Expression) -> None:
    run, x = stub.bind("counting", [counting(work)], fails), tensor([0.25])
    turns, stop = [0], threading.Event()

    def turn() -> None:
        while not stop.is_set():
            turns[0] += 1

    other = threading.Thread(target=turn)
    other.start()
    try:
        run(x, 1)
        before = turns[0]
        while turns[0] == before:
            assert run(x, 10_000_000) == 0.25
    finally:
        stop.set()
        other.join()
    _many(lambda: run(x, 30_000), x, x.array)
    assert turns[0] > before


def test_arrays_live_until_the_kernel_has_ended() -> None:
    run, x = stub.bind("counting", [counting(Constant(1e9, "f64"))], fails), tensor([0.25])
    other = threading.Thread(target=lambda: setattr(x, "array", np.zeros(1, np.float32)))
    free = weakref.ref(x.array)
    other.start()
    assert run(x, 20_000_000) in (0.25, 0.0)
    other.join()
    assert free() is None


def test_threads_call_one_stub() -> None:
    add, wrong = stub.bind("add", [adding(2, work=Constant(1e6, "f64"))], fails), []

    def check(seed: int) -> None:
        generator = np.random.default_rng(seed)
        for _ in range(200):
            x, y = (generator.normal(size=generator.integers(0, 9, 2)).astype(np.float32) for _ in range(2))
            y = np.resize(y, x.shape).astype(np.float32) if y.size else np.zeros_like(x)
            if not np.array_equal(add(Tensor(x), Tensor(y)).array, x + y):
                wrong.append((x, y))

    workers = [threading.Thread(target=check, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


# ------------------------------------------------------------------ this process


def test_nothing_is_an_address() -> None:
    binding = two_results(N)
    text = str(stub.module(binding))
    assert "inttoptr" not in text and text == str(stub.module(binding))


def test_another_process_has_no_stubs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_found", AbiError("not as expected"))
    with pytest.raises(AbiError):
        stub.bind("add", [adding()], fails)
