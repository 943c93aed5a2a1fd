"""Gradients of gradients of gradients through differentiable graphs: those of operators that are recorded alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import engine
from engine.executor.plans.executor import executor_of
from engine.executor.plans.lowered import SETTINGS
from engine.executor.profiling.settings import PROFILING
from engine.fuser.backend import tiering

DEPTH = 3


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    """Graphs are split before the first call."""
    before = tiering.mode()
    tiering.set_mode("eager")
    yield
    tiering.set_mode(before)


@pytest.fixture
def unfused() -> Iterator[None]:
    """Plans run without kernels, which there would be hundreds of."""
    before, SETTINGS.compilers["cpu"] = SETTINGS.compiler_for(None), None
    yield
    SETTINGS.compilers["cpu"] = before


@pytest.fixture
def profiled() -> Iterator[None]:
    """Plans are made from profiles."""
    PROFILING.is_enabled = True
    yield
    PROFILING.is_enabled = False


BODIES = {
    "pointwise": "return torch.tanh(x * y) * torch.sigmoid(y) + torch.exp(-x * x)",
    "quotients and roots": "return torch.sqrt(x * x + 1) / (y * y + 2), torch.log(x * x + y * y + 1)",
    "powers": "return (x * y + 1.5).pow(3), torch.sin(x) * torch.cos(y * x)",
    "products": "return torch.tanh(x.mm(y.t())), (x * y).sum(0)",
    "softmax": "return torch.softmax(x * y, -1) * x, torch.log_softmax(y * x, 0)",
    "norms": "return torch.nn.functional.layer_norm(x * y, [3]) * y",
    "reductions": "return (x * y).mean(0) * x.sum(), torch.tanh(x).sum(-1, keepdim=True) * y",
    "broadcasting": "return torch.tanh(x * y[0]) * y[:, 1:2], x.sum(1) * y[:, 0]",
    "parts": """
    a, b, c = torch.tanh(x * y).chunk(3, 1)
    d, e = (x * x).unbind(0)
    return a * b + c, d * e, torch.cat([a * c, b * b], 1)""",
    "choices": "return torch.where(x > 0, x * x * y, torch.tanh(y) * x), torch.relu(x * y) * y",
    "a branch": """
    z = torch.tanh(x) * y
    if n > 1:
        z = torch.sigmoid(z * y) * x
    else:
        z = z * 2
    return z * torch.exp(-y * y), z""",
    "a loop": """
    z = x * y
    for i in range(n):
        z = torch.tanh(z) * y + x * i
    return torch.sigmoid(z) * z""",
    "a loop of branches": """
    z = x * 1
    while n > 0:
        if n % 2 == 0:
            z = torch.sin(z) * y
        else:
            z = z * torch.cos(x) + y
        n -= 1
    return z * z""",
    "a part that is not recorded": """
    with torch.no_grad():
        a = torch.tanh(x * y) * 2
    return torch.tanh(x * a) * y, x.detach() * y * y""",
    "a result that is not used": "return torch.tanh(x * y) * x, (torch.sigmoid(x) * y).detach(), x.size(0)",
    "one argument twice": "return torch.tanh(x) * x * torch.sigmoid(x)",
}


def function_of(body: str) -> Any:
    indented = body if body.startswith("\n") else f"\n    {body}"
    return engine.CompilationUnit(f"def f(x, y, n: int):{indented}\n").f


def tensors(values: Any) -> list[Any]:
    listed = values if isinstance(values, tuple) else (values,)
    return [each for each in listed if isinstance(each, engine.Tensor) and each.requires_grad]


def arguments() -> list[Any]:
    engine.manual_seed(7)
    return [engine.randn(2, 3, dtype=engine.float64, requires_grad=True) for _ in range(2)]


def derivatives(f: Any, depth: int = DEPTH, *, used: slice = slice(None)) -> list[Any]:
    """The gradients of each order, each of a sum of squares of those before; None where there is no gradient."""
    leaves = arguments()
    results = tensors(f(*leaves, 3))[used]
    found: list[Any] = []
    for _ in range(depth):
        total = sum((each * each).sum() + each.sum() * 0.5 for each in results)
        given = engine.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        found += given
        results = tensors(tuple(given))
        if not results:
            break
    return found


def by_operators(body: str, **rest: Any) -> list[Any]:
    with engine.jit.optimized_execution(False):
        return derivatives(function_of(body), **rest)


def agree(found: list[Any], wanted: list[Any]) -> bool:
    def same(one: Any, other: Any) -> bool:
        if one is None or other is None:
            return one is other
        return one.requires_grad == other.requires_grad and engine.allclose(one, other, rtol=1e-8, atol=1e-10)

    return len(found) == len(wanted) and all(map(same, found, wanted))


def groups_of(f: Any) -> list[Any]:
    """The differentiable graphs of the plan that ran last, as far as they were split."""
    plan = executor_of(f._function).recent_plan
    groups = plan.differentiation.groups if plan is not None and plan.differentiation is not None else []
    return [group for group in groups if group.variants]


def check(body: str, depth: int = DEPTH) -> None:
    f, wanted = function_of(body), by_operators(body, depth=depth)
    for _ in range(3):
        assert agree(derivatives(f, depth), wanted)
    assert groups_of(f)


@pytest.mark.usefixtures("unfused")
@pytest.mark.parametrize("body", BODIES.values(), ids=[*BODIES])
def test_derivatives_to_the_third_are_those_of_operators(body: str) -> None:
    check(body)


@pytest.mark.usefixtures("unfused", "profiled")
@pytest.mark.parametrize("name", ["parts", "a branch", "a loop", "a part that is not recorded"])
def test_derivatives_are_right_behind_guards(name: str) -> None:
    check(BODIES[name])


def test_derivatives_are_right_with_kernels() -> None:
    check(BODIES["pointwise"], depth=2)


SEVERAL = """
    a = torch.tanh(x * y)
    b = torch.sigmoid(a) * x
    c = torch.exp(-b * b) * y
    return a, b * 2, c"""


@pytest.mark.usefixtures("unfused")
@pytest.mark.parametrize("used", [slice(0, 1), slice(1, 2), slice(2, 3), slice(0, 2), slice(1, 3), slice(0, 3, 2)])
def test_gradients_that_are_not_defined_count_as_none(used: slice) -> None:
    """Some results are not used: no gradient comes for them, and none is made of nothing."""
    f = function_of(SEVERAL)
    for _ in range(2):
        assert agree(derivatives(f, used=used), by_operators(SEVERAL, used=used))


@pytest.mark.usefixtures("unfused")
def test_arguments_without_a_way_to_the_result_have_no_gradient() -> None:
    body = "return torch.tanh(x) * torch.sigmoid(x), torch.tanh(y) * torch.exp(y)"
    f = function_of(body)
    for _ in range(2):
        found = derivatives(f, used=slice(0, 1))
        assert [each is None for each in found] == [False, True] * DEPTH
        assert agree(found, by_operators(body, used=slice(0, 1)))


@pytest.mark.usefixtures("unfused")
def test_only_one_argument_requires_grad() -> None:
    body = BODIES["pointwise"]

    def second_derivative(f: Any) -> Any:
        x, y = arguments()
        (first,) = engine.autograd.grad(f(x, y.detach(), 3).sum(), x, create_graph=True)
        (second,) = engine.autograd.grad((first * first).sum(), x, create_graph=True)
        return engine.autograd.grad(second.sum(), x)[0]

    f = function_of(body)
    with engine.jit.optimized_execution(False):
        wanted = second_derivative(function_of(body))
    for _ in range(3):
        assert engine.allclose(second_derivative(f), wanted, rtol=1e-8, atol=1e-10)


def test_a_single_node_is_left_as_it_is() -> None:
    """It takes two nodes and more to pay."""
    together, alone = (function_of(f"return {value}") for value in ("torch.tanh(x) * y", "torch.tanh(x)"))
    for each in (together, alone):
        for _ in range(3):
            derivatives(each, depth=1)
    assert groups_of(together)
    assert not groups_of(alone)
    assert agree(derivatives(alone), by_operators("return torch.tanh(x)"))


@pytest.mark.usefixtures("unfused")
def test_derivatives_are_right_for_calls_of_other_sizes() -> None:
    body = BODIES["a loop"]
    f = function_of(body)

    def third(f: Any, rows: int) -> Any:
        engine.manual_seed(rows)
        x, y = (engine.randn(rows, 3, dtype=engine.float64, requires_grad=True) for _ in range(2))
        found = f(x, y, 2)
        for _ in range(DEPTH):
            (found,) = engine.autograd.grad((found * found).sum(), x, create_graph=True)
        return found

    for rows in (2, 5, 1, 2, 0, 5):
        with engine.jit.optimized_execution(False):
            wanted = third(function_of(body), rows)
        assert engine.allclose(third(f, rows), wanted, rtol=1e-7, atol=1e-9)
