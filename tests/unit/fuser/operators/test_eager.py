"""Kernels of single operators do what the operators do, take what is called often, and leave the rest to Python."""

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine.torch as torch
from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.fuser.backend import tiering
from engine.fuser.groups.from_graph import NotFused
from engine.fuser.operators import eager
from engine.fuser.operators.eager import binding_of
from engine.fuser.stubs import stub
from tests.timing import uncollected
from tests.unit.fuser.outcomes import agree, copied, outcome, tensors

X = Tensor(np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4))
Y = Tensor(np.linspace(1, 3, 4, dtype=np.float32))
NUMBER = Tensor(np.array(2.0, np.float32))
IMAGE = Tensor(np.linspace(0, 1, 32, dtype=np.float32).reshape(1, 2, 4, 4))
NAMES = (
    "add add_ sub mul mul_ div rsub neg exp sigmoid tanh sqrt relu relu_ lt eq maximum minimum logical_and addcmul "
    "remainder floor_divide leaky_relu threshold_backward softplus sign trunc isfinite square fmod atan2 silu "
    "clamp clamp_ clamp_min abs where masked_fill masked_fill_ gelu erf __and__ pow"
).split()
OVERLOADS = [op.qualified_name for name in NAMES for op in table.overloads(f"aten::{name}") if eager._has_form(op)]


@pytest.fixture(autouse=True, scope="module")
def _eager() -> Iterator[None]:
    mode = tiering.mode()
    tiering.set_mode("eager")
    yield
    tiering.set_mode(mode)


def op_of(name: str) -> Op:
    found = table.find(name)
    assert found is not None
    return found


class Missed(Exception):
    pass


def missed(*args: Any) -> Any:
    raise Missed


@contextmanager
def counting_python(name: str) -> Iterator[list[int]]:
    """Counts the calls that the Python function gets."""
    code, calls = op_of(name).compiled.run.__code__, [0]  # type: ignore[attr-defined]
    before = sys.getprofile()

    def on_event(frame: Any, event: str, argument: Any) -> None:
        calls[0] += event == "call" and frame.f_code is code

    sys.setprofile(on_event)
    try:
        yield calls
    finally:
        sys.setprofile(before)


# ------------------------------------------------------------------ one operator as a kernel


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("aten::add.Tensor", (X, Y, 1)),
        ("aten::add.Tensor", (X, X, 3)),
        ("aten::mul.Scalar", (X, 2.5)),
        ("aten::relu", (X,)),
        ("aten::gelu", (X, "tanh")),
        ("aten::sum", (X, None)),
        ("aten::sum.dim_IntList", (X, [1], False, None)),
        ("aten::sum.dim_IntList", (X, [0], True, 7)),
        ("aten::celu", (X, 0.5)),
        ("aten::softmax.int", (X, -1, None)),
    ],
)
def test_gives_what_the_operator_gives(name: str, args: tuple[Any, ...]) -> None:
    op = op_of(name)
    run = stub.bind(name, [binding_of(op, args)], missed, role="operator")
    np.testing.assert_allclose(run(*args).array, op.compiled.run(*args).array, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("aten::celu", (X, 0.5), (X, 0.0)),
        ("aten::softshrink", (X, 0.5), (X, -0.5)),
        ("aten::sum.dim_IntList", (X, [1], False, 7), (X, [1], False, 6)),
        ("aten::masked_fill.Scalar", (X, X > 0, -inf), (X, X > 0, 1e300)),
        ("aten::add.Tensor", (X, X, 0.5), (X, X, 1e300)),
        ("aten::clamp_min", (X, 0.5), (X, 1e300)),
        ("aten::lerp.Scalar", (X, X, 0.5), (X, X, -1e300)),
        ("aten::where.ScalarOther", (X > 0, X, inf), (X > 0, X, 1e300)),
        ("aten::addcmul", (X, X, X, 0.5), (X, X, X, 1e300)),
    ],
)
def test_kernels_leave_other_numbers_to_python_where_these_are_looked_at(name: str, good: Any, bad: Any) -> None:
    run = stub.bind(name, [binding_of(op_of(name), good)], missed, role="operator")
    run(*good)
    with pytest.raises(Missed):
        run(*bad)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("aten::max_pool2d", (IMAGE, [2, 2], [1, 1], [2, 2], [2, 2], False)),
        ("aten::max_pool2d", (IMAGE, [2, 2], [0, 1], [0, 0], [1, 1], False)),
        ("aten::max_pool2d", (IMAGE, [2, 2], [1, 1], [-1, 0], [1, 1], False)),
        ("aten::celu", (X, 0.0)),
        ("aten::where.Scalar", (X > 0, None, 1.0)),
        ("aten::select.int", (NUMBER, 0, 0)),
        ("aten::slice.Tensor", (NUMBER, 0, 1, None, 1)),
        ("aten::roll", (NUMBER, [1], [0])),
        ("aten::unflatten.int", (NUMBER, 0, [1, 1])),
    ],
)
def test_there_are_no_kernels_of_calls_that_are_mistakes(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(NotFused):
        binding_of(op_of(name), args)


@pytest.mark.parametrize("example", [X[:, :1], X[:1].expand(3, 4), X[:, ::2], torch.t(X[:, :1])])
def test_no_kernel_takes_dimensions_in_another_order(example: Any) -> None:
    run = stub.bind("mul", [binding_of(op_of("aten::mul.Scalar"), (example, 2.0))], missed, role="operator")
    np.testing.assert_array_equal(run(example, 2.0).array, example.array * 2)
    with pytest.raises(Missed):
        run(torch.t(X), 2.0)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (0, 3), (2, 3, 4), (3, 1, 2, 1)])
def test_one_kernel_does_all_ranks(shape: tuple[int, ...]) -> None:
    run = stub.bind("add", [binding_of(op_of("aten::add.Tensor"), (X, X, 1))], missed)
    x = Tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32))
    made = run(x, x, 1).array
    assert made.shape == shape
    np.testing.assert_array_equal(made, x.array + x.array)


@pytest.mark.parametrize("other", [(4, 3), (12,), (3, 4, 1), (4,), ()])
def test_flat_arguments_have_the_same_sizes(other: tuple[int, ...]) -> None:
    run = stub.bind("add", [binding_of(op_of("aten::add.Tensor"), (X, X, 1))], missed)
    with pytest.raises(Missed):
        run(X, Tensor(np.zeros(other, np.float32)), 1)


@pytest.mark.parametrize("other", [0, True, None, -1.0, 2**70, [-1, 0]])
def test_leaves_other_fixed_values_to_the_fallback(other: Any) -> None:
    run = stub.bind("softmax", [binding_of(op_of("aten::softmax.int"), (X, -1, None))], missed)
    with pytest.raises(Missed):
        run(X, other, None)


@pytest.mark.parametrize("other", [[0], [1, 0], [], [True], [1.0], (1,), 0, None])
def test_leaves_other_lists_to_the_fallback(other: Any) -> None:
    run = stub.bind("sum", [binding_of(op_of("aten::sum.dim_IntList"), (X, [1], False, None))], missed)
    assert run(X, [1]).array.tolist() == run(X, 1, False).array.tolist() == X.array.sum(1).tolist()
    with pytest.raises(Missed):
        run(X, other, False, None)


def test_arguments_left_at_their_default_may_be_missing() -> None:
    run = stub.bind("gelu", [binding_of(op_of("aten::gelu"), (X, "none"))], missed)
    assert run(X).array.tolist() == run(X, "".join(["no", "ne"])).array.tolist()
    for wrong in [(X, "tanh"), (X, None), (), (X, "none", 1)]:
        with pytest.raises(Missed):
            run(*wrong)


def test_refuses_lists_of_tensors() -> None:
    with pytest.raises(NotFused):
        binding_of(op_of("aten::cat"), ([X, X], 0))


NUMBERS = st.one_of(
    st.integers(-4, 4),
    st.sampled_from([2**53 + 1, -(2**63), 2**64, 10**400, True, False]),
    st.floats(width=64),
    st.sampled_from([1 + 2j, None, "1", np.float32(2.5), 1.5]),
)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[Any]]:
    name = draw(st.sampled_from(OVERLOADS))
    given: list[Any] = []
    for argument in op_of(name).schema.arguments:
        if argument.name in ("condition", "mask"):
            given.append(draw(st.one_of(tensors(), tensors([torch.bool]), tensors([torch.bool]))))
        elif argument.name == "approximate":
            given.append(draw(st.sampled_from(["none", "none", "tanh", "other"])))
        elif "Tensor" in str(argument.type):
            earlier = [each for each in given if isinstance(each, Tensor)]
            given.append(draw(st.one_of(tensors(), *([st.sampled_from(earlier)] * 3 if earlier else []))))
        else:
            given.append(draw(st.one_of(NUMBERS, st.just(argument.default) if argument.has_default else NUMBERS)))
    return name, given


@given(calls())
@settings(max_examples=200, deadline=None)
def test_operators_do_what_their_python_functions_do(call: tuple[str, list[Any]]) -> None:
    name, arguments = call
    op, one, other = op_of(name), copied(arguments), copied(arguments)
    for each in one + other:
        if isinstance(each, Tensor):
            each.memory  # noqa: B018
    agree(outcome(op.run, one), outcome(op.compiled.run, other))


# ------------------------------------------------------------------ operators and methods


@pytest.mark.usefixtures("as_at_first")
def test_where_nobody_asks_for_kernels_none_are_made() -> None:
    x = torch.rand(3, 4)
    with tiering.without_kernels():
        x.atan()
    watched = eager._watched["aten::atan"]
    assert not watched.kernels
    x.atan()
    assert watched.kernels


@pytest.mark.usefixtures("as_at_first")
@pytest.mark.parametrize("text", ["torch.tanh(x @ x) * x", "x.softmax(1) + torch.ones(2).exp() * 2", "x.var(1)"])
def test_what_is_tried_once_while_a_plan_is_made_has_no_kernels(text: str) -> None:
    """Constants, and the examples that derivatives are written with: only what runs is compiled."""
    unit = torch.jit.CompilationUnit(f"def f(x):\n    return {text}\n")
    x = torch.ones(2, 2).requires_grad_()
    before = {name for name, watched in eager._watched.items() if watched.tried}
    assert [unit.f(x).grad_fn.name() for _ in range(3)] == ["DifferentiableGraphBackward"] * 3
    tried = {name for name, watched in eager._watched.items() if watched.tried} - before
    assert tried == set()


@pytest.mark.usefixtures("as_at_first")
@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + x, lambda x: x * 2.5, lambda x: 1 - x, lambda x: x.exp(), lambda x: x.sum(),
        lambda x: x.mean(1), lambda x: x.softmax(-1), lambda x: x.clamp(0.0, 1.0), lambda x: x.mul_(1.0),
        lambda x: x < x, lambda x: -x,
    ],
)  # fmt: skip
def test_plain_calls_of_methods_make_no_call_of_python(call: Callable[[Any], Any]) -> None:
    x = torch.rand(3, 4)
    gc.collect()  # what goes now calls nobody below, and leaves no hook for the call that makes the kernel
    tiering.forget_failures()
    call(x)
    assert tiering.failures() == []
    events: list[Any] = []
    before = sys.getprofile()
    with uncollected():
        sys.setprofile(
            lambda frame, event, argument: events.append(frame.f_code.co_qualname) if event == "call" else None
        )
        try:
            call(x)
        finally:
            sys.setprofile(before)
    assert [each for each in events if "<lambda>" not in each] == []


def test_methods_and_operators_give_what_python_gives() -> None:
    x, y = torch.rand(3, 4), torch.rand(3, 4)
    for d in (torch.float32, torch.float64):
        a, b = x.to(d), y.to(d)
        assert ((a + b).array == a.array + b.array).all()
        assert ((2 - a).array == 2 - a.array).all()
        assert ((a < 0.5).array == (a.array < 0.5)).all()
        np.testing.assert_allclose(a.add(b, alpha=2).array, a.array + 2 * b.array, rtol=1e-6)
        assert (a.add(other=b).array == a.array + b.array).all()
        assert ((-a).array == -a.array).all()
    c = x.clone()
    d = c
    c += 1
    c *= y
    assert c is d and (c.array == (x.array + np.float32(1)) * y.array).all() and c._version == 2
    assert type(vars(Tensor)["__add__"]).__name__ == "method_descriptor"
    assert Tensor.add(x, y).tolist() == (x + y).tolist()


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (lambda x: x + "a", TypeError),
        (lambda x: x.add(), RuntimeError),
        (lambda x: x.add(x, 1), RuntimeError),
        (lambda x: x.exp(1), RuntimeError),
        (lambda x: x + torch.ones(7), RuntimeError),
        (lambda x: Tensor.exp(3), TypeError),
        (lambda x: x.int().exp_(), RuntimeError),
        (lambda x: x.add(x, nothing=3), RuntimeError),
    ],
)
def test_mistakes_are_told_as_before(wrong: Callable[[Any], Any], kind: type) -> None:
    for _ in range(2):
        with pytest.raises((kind, TypeError)):
            wrong(torch.ones(2, 3))


def test_the_mode_gives_python_its_functions_back() -> None:
    x, op = torch.ones(3), op_of("aten::exp")
    x.exp()
    assert op.impl is not op.compiled.run
    tiering.set_mode("off")
    try:
        assert op.impl is op.compiled.run and op.body is op.compiled.body
        assert type(vars(Tensor)["exp"]).__name__ == "function"
    finally:
        tiering.set_mode("eager")
    with counting_python("aten::exp") as calls:
        x.exp()
    assert calls == [0]


# ------------------------------------------------------------------ who steps in


def test_gradients_are_recorded() -> None:
    x = torch.rand(4, requires_grad=True)
    for _ in range(2):
        y = (x * 2 + x).sigmoid()
    assert y.grad_fn is not None and y.requires_grad
    y.sum().backward()
    s = 1 / (1 + np.exp(-3 * x.detach().array))
    assert np.allclose(x.grad.array, 3 * s * (1 - s), rtol=1e-5)
    with torch.no_grad():
        assert not (x + x).requires_grad
    view = torch.zeros(4)
    part = view[:2]
    view.mul_(x)
    assert (part + 1).requires_grad, "a view of what was written to"


def test_operators_that_are_recorded_run_as_kernels() -> None:
    x, body = torch.rand(4, requires_grad=True), op_of("aten::sin").compiled.body
    x.sin()
    assert op_of("aten::sin").body is not body


def test_traces_see_operators() -> None:
    traced = torch.jit.trace(lambda x: (x + x).exp() * 2, torch.rand(3))
    assert all(f"aten::{name}" in str(traced.graph) for name in ("add", "exp", "mul"))


def test_a_hook_that_does_the_work_is_asked() -> None:
    seen: list[str] = []

    def hook(op: Any, args: tuple[Any, ...], run: Any) -> Any:
        seen.append(op.qualified_name)
        return run(*args)

    HOOKS.trace = hook
    try:
        X + X
    finally:
        HOOKS.trace = None
    assert seen == ["aten::add.Tensor"]


def test_parameters_are_tensors() -> None:
    parameter = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    x = torch.ones(3)
    for call in (lambda: parameter + x, lambda: x + parameter, lambda: parameter + 1):
        call()
        with counting_python("aten::add.Tensor") as calls:
            assert type(call()) is Tensor
        assert calls == [0] and call().tolist() == [2, 2, 2]
    assert (torch.nn.Parameter(torch.ones(3)) * x).requires_grad


def test_other_kinds_of_tensors_go_the_long_way() -> None:
    class Mine(Tensor):
        pass

    for other in (Mine(np.ones(3, np.float32)), Mine(np.ones((2, 3), np.float32))[0]):
        assert (other + torch.ones(3)).tolist() == [2, 2, 2]
        assert (torch.ones(3) + other).tolist() == [2, 2, 2]


def test_overlapping_writes_are_refused_as_before() -> None:
    base = torch.arange(8.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        base[1:5].add_(base[:4])
    base[:4].add_(base[4:])
    assert base.tolist() == [4, 6, 8, 10, 4, 5, 6, 7]
    shared = np.arange(8.0)
    one, other = torch.from_numpy(shared[1:5]), torch.from_numpy(shared[:4])
    for each in (one, other):
        each.memory  # noqa: B018
    one.add_(other)
    assert one.tolist() == [1, 3, 5, 7], "what is written must not be read again"


def test_results_are_collected() -> None:
    y = X + X
    y.itself = y  # type: ignore[attr-defined]
    assert gc.is_tracked(y)
    del y
    assert gc.collect() >= 1


def test_threads_may_call_while_kernels_are_made() -> None:
    expected, wrong = np.cosh(X.array), []

    def work() -> None:
        for i in range(200):
            found = X.cosh() if i % 2 else X.double().cosh()  # type: ignore[attr-defined]
            if not np.allclose(found.array, expected):
                wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


# ------------------------------------------------------------------ when


def run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, check=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout.strip()


LOOP = """
import sys
from engine.fuser.backend import tiering
tiering.WORTH = {worth}
import engine.torch as torch
from engine.fuser.operators import eager
x = torch.ones(3)
for _ in range(100): y = x + x
tiering.wait()
print("llvmlite" in sys.modules, y.tolist(), (x + x).tolist(), len(eager._watched["aten::add.Tensor"].kernels))
"""


def test_operators_are_compiled_once_much_time_was_spent_in_them() -> None:
    background = {"TSREPL_COMPILE": "background"}
    assert run(LOOP.format(worth=10**12), **background) == "False [2.0, 2.0, 2.0] [2.0, 2.0, 2.0] 0"
    assert run(LOOP.format(worth=1), **background).endswith(" [2.0, 2.0, 2.0] [2.0, 2.0, 2.0] 1")


def test_programs_may_end_while_something_is_compiled() -> None:
    text = (
        "from engine.fuser.backend import tiering; tiering.WORTH = 1\nimport engine.torch as torch; x = torch.ones(3)\n"
    )
    assert run(f"{text}for _ in range(50): x.exp(); x + x; x * x; x.tanh()", TSREPL_COMPILE="background") == ""


def test_programs_go_on_where_no_thread_is_to_be_had() -> None:
    program = """
import threading
from engine.fuser.backend import tiering
tiering.WORTH = 1
import engine.torch as torch
def start(self): raise RuntimeError("can't start new thread")
threading.Thread.start = start
x = torch.ones(3)
for _ in range(100): y = x + x
print(y.tolist())
"""
    assert run(program, TSREPL_COMPILE="background") == "[2.0, 2.0, 2.0]"


def test_objects_that_die_with_python_may_call_operators() -> None:
    program = """
import os
from engine.fuser.backend import tiering
tiering.WORTH = 1
import engine.torch as torch
class Last:
    def __init__(self): self.x = torch.ones(3)
    def __del__(self): os.write(1, b"True" if (self.x + self.x).softmax(0).sum().item() > 0.99 else b"False")
last = Last()
for _ in range(10): (last.x + last.x).softmax(0).sum()
"""
    assert run(program, TSREPL_COMPILE="background") == "True"


def test_what_has_taken_a_kernel_over_leaves_it_when_machine_code_is_off() -> None:
    torch.tanh(X)
    kernel = op_of("aten::tanh").run
    assert isinstance(kernel, BuiltinFunctionType)
    with counting_python("aten::tanh") as calls:
        kernel(X)
        tiering.set_mode("off")
        try:
            assert kernel(X).tolist() == np.tanh(X.array).tolist()
        finally:
            tiering.set_mode("eager")
        kernel(X)
    assert calls == [1]
