"""Plans record gradients where the program records them, share memory where it shares it, and print in its order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

import engine
from engine.executor.profiling.settings import PROFILING
from engine.fuser.backend import tiering


@pytest.fixture(autouse=True, params=["off", "eager", "eager, profiled"])
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    """Plans without and with kernels and differentiable graphs, and made from profiles."""
    before, (wanted, *profiled) = tiering.mode(), request.param.split(", ")
    tiering.set_mode(wanted)
    PROFILING.is_enabled = bool(profiled)
    yield
    PROFILING.is_enabled = False
    tiering.set_mode(before)


def outcome(text: str, *, optimized: bool, requires_grad: bool = True) -> list[Any]:
    """Of a third call: the results, which of them require grad, the gradient, and all once results were written to."""
    f = engine.CompilationUnit(text).f
    with engine.jit.optimized_execution(optimized):
        for _ in range(3):
            x = engine.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=requires_grad)
            y = x * 1
            results = f(y, 2)
    wanted = [each.requires_grad for each in results]
    if requires_grad:
        sum((each * each).sum() for each in results if each.requires_grad).backward()
    found = [each.tolist() for each in results]
    for number, each in enumerate(results, 1):
        each.detach().add_(number)
    return [wanted, x.grad.tolist() if requires_grad else None, found, [each.tolist() for each in (*results, y)]]


def is_alike(a: Any, b: Any) -> bool:
    """True if the outcomes are the same, but for the last bits of numbers that kernels compute in their own way."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(is_alike, a, b))
    return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) if isinstance(a, float) else bool(a == b)


SWITCHING = {
    "computed within": """
def f(x, n: int):
    with torch.no_grad():
        y = torch.relu(x)
    return torch.tanh(y) * 2, x * 2
""",
    "used within": """
def f(x, n: int):
    y = torch.relu(x) * 3
    with torch.no_grad():
        z = torch.tanh(y) * 2
    return z, y
""",
    "the same before": """
def f(x, n: int):
    y = torch.relu(x) * 2
    with torch.no_grad():
        z = torch.relu(x) * 2
    return z, y * 3
""",
    "the same behind": """
def f(x, n: int):
    with torch.no_grad():
        z = torch.relu(x) * 2
    y = torch.relu(x) * 2
    return z * 3, y * 4
""",
    "in a loop": """
def f(x, n: int):
    z, w = x * 2, x
    for i in range(n):
        y = torch.relu(x) * 2
        with torch.no_grad():
            w = torch.relu(x) * 2
        z = z * y + w
    return z, torch.relu(w) * 3
""",
    "with grad again": """
def f(x, n: int):
    with torch.no_grad():
        a = torch.relu(x) * 2
        with torch.enable_grad():
            b = torch.relu(x) * 2
        c = torch.relu(x) * torch.relu(b)
    return a, b, c, torch.relu(c) + a
""",
    "without a block": """
def f(x, n: int):
    a = torch.relu(x)
    torch.set_grad_enabled(False)
    z = torch.relu(x) * torch.tanh(a)
    torch.set_grad_enabled(True)
    y = torch.relu(x) * 2 + torch.tanh(a)
    return z * 3, y * 4, torch.relu(z)
""",
    "behind a branch": """
def f(x, n: int):
    a = torch.relu(x)
    if n > 1:
        torch.set_grad_enabled(False)
    z = torch.relu(x) * torch.tanh(a)
    torch.set_grad_enabled(True)
    return z * 3, torch.relu(x) * 2
""",
}


@pytest.mark.parametrize("text", SWITCHING.values(), ids=[*SWITCHING])
def test_gradients_are_recorded_where_the_program_says_so(text: str) -> None:
    assert is_alike(outcome(text, optimized=True), outcome(text, optimized=False))


HANDING_ON = (
    "y.type_as(y)", "torch.atleast_1d(y)", "torch.dropout(y, 0.5, False)", "torch.broadcast_tensors(y, y)[0]",
    "y.sum_to_size(2, 2)", "torch.feature_dropout(y, 0.5, False)",
)  # fmt: skip


@pytest.mark.parametrize("value", HANDING_ON)
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("write", ["", "y.add_(1.0)"])
def test_operators_that_hand_on_their_argument_do_so_in_plans(value: str, requires_grad: bool, write: str) -> None:
    text = f"def f(x, n: int):\n    y = x * n\n    z = {value}\n    {write}\n    return y, z, torch.tanh(z) * 2"
    wanted = outcome(text, optimized=False, requires_grad=requires_grad)
    assert is_alike(outcome(text, optimized=True, requires_grad=requires_grad), wanted)


@pytest.mark.parametrize("value", HANDING_ON)
def test_single_calls_hand_on_their_argument_again_and_again(value: str) -> None:
    y = engine.ones(2, 2)
    for _ in range(4):
        found = eval(value, {"torch": engine, "y": y})
        found.add_(1.0)
    assert y.tolist() == [[5.0, 5.0], [5.0, 5.0]]


def test_what_is_printed_keeps_its_order(capsys: pytest.CaptureFixture[str]) -> None:
    text = """
def f(x):
    y = torch.relu(x)
    print(y.size(0), "first")
    print("second")
    z = torch.tanh(y)
    print("third")
    print(bool((z > 0).all()), "fourth")
    return z * 2 + y
"""
    f = engine.CompilationUnit(text).f
    for requires_grad in (False, True):
        for _ in range(3):
            f(engine.ones(2, 3, requires_grad=requires_grad))
            words = [line.split()[-1] for line in capsys.readouterr().out.splitlines()]
            assert words == ["first", "second", "third", "fourth"]
