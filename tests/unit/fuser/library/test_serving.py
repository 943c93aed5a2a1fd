"""The library serves operators and methods as Python does, from the first call, and leaves the rest to Python."""

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from tests.timing import uncollected
from tests.unit.fuser.outcomes import agree, copied, outcome, tensors

X = Tensor(np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4))
NAMES = (
    "add add_ sub mul mul_ div rsub neg exp sigmoid tanh sqrt relu relu_ lt eq maximum minimum logical_and addcmul "
    "remainder floor_divide leaky_relu threshold_backward softplus sign trunc isfinite square fmod atan2 silu "
    "clamp clamp_ clamp_min abs where masked_fill masked_fill_ gelu erf __and__ pow"
).split()
OVERLOADS = [op.qualified_name for name in NAMES for op in table.overloads(f"aten::{name}")]


@pytest.fixture(autouse=True)
def _served(library: None) -> None:
    """The library is there, and serves."""


def op_of(name: str) -> Op:
    found = table.find(name)
    assert found is not None
    return found


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


# ------------------------------------------------------------------ operators


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


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + x, lambda x: x * 2.5, lambda x: 1 - x, lambda x: x.exp(), lambda x: x.sum(),
        lambda x: x.mean(1), lambda x: x.softmax(-1), lambda x: x.clamp(0.0, 1.0), lambda x: x.mul_(1.0),
        lambda x: x < x, lambda x: -x,
    ],
)  # fmt: skip
def test_plain_calls_of_methods_make_no_call_of_python(call: Callable[[Any], Any]) -> None:
    assert calls_of_python(call) == []


def calls_of_python(call: Callable[[Any], Any], requires_grad: bool = False) -> list[str]:
    """The functions of Python that a second call goes through."""
    x = torch.rand(3, 4).requires_grad_(requires_grad)
    call(x)
    gc.collect()
    events: list[str] = []
    before = sys.getprofile()
    with uncollected():
        sys.setprofile(lambda frame, event, _: events.append(frame.f_code.co_qualname) if event == "call" else None)
        try:
            call(x)
        finally:
            sys.setprofile(before)
    return [each for each in events if "<lambda>" not in each]


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
        assert op.run is op.compiled.run and op.impl is op.compiled.run
        assert type(vars(Tensor)["exp"]).__name__ == "function"
    finally:
        tiering.set_mode("background")
    with counting_python("aten::exp") as calls:
        x.exp()
    assert calls == [0]


def test_operators_that_are_first_called_while_machine_code_is_off_are_served_later() -> None:
    op = op_of("aten::sinh")
    tiering.set_mode("off")
    op.give_back()
    wanted = X.sinh()
    assert op.impl is op.compiled.run
    tiering.set_mode("background")
    with counting_python("aten::sinh") as calls:
        np.testing.assert_allclose(X.sinh().array, wanted.array, rtol=1e-6)
    assert calls == [0] and isinstance(op.run, BuiltinFunctionType)


def test_autocast_is_asked() -> None:
    x = torch.ones(2, 3).bfloat16()
    assert x.prod().dtype == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert x.prod().dtype == torch.float32
    assert x.prod().dtype == torch.bfloat16


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


def test_threads_may_call_operators_that_begin() -> None:
    op_of("aten::cosh").give_back()
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


def test_programs_go_on_where_no_thread_is_to_be_had() -> None:
    program = """
import threading
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
import engine.torch as torch
class Last:
    def __init__(self): self.x = torch.ones(3)
    def __del__(self): os.write(1, b"True" if (self.x + self.x).softmax(0).sum().item() > 0.99 else b"False")
last = Last()
for _ in range(10): (last.x + last.x).softmax(0).sum()
"""
    assert run(program, TSREPL_COMPILE="background") == "True"


def test_the_first_call_of_any_operator_has_threads_to_share_long_work_with() -> None:
    program = """
import engine.torch as torch
from engine.fuser.backend import threads
assert threads._pool is None
torch.cos(torch.zeros(3))
print(threads._pool is not None)
"""
    assert run(program, TSREPL_COMPILE="background") == "True"


def test_who_holds_a_stub_gets_python_where_machine_code_is_off() -> None:
    torch.tanh(X)
    kernel = op_of("aten::tanh").run
    assert isinstance(kernel, BuiltinFunctionType)
    with counting_python("aten::tanh") as calls:
        kernel(X)
        tiering.set_mode("off")
        try:
            assert kernel(X).tolist() == np.tanh(X.array).tolist()
        finally:
            tiering.set_mode("background")
        kernel(X)
    assert calls == [1]
