"""Gradients of programs whose forward and backward graphs are compiled: values, and the memory that they are in."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.values.tensor import Tensor
from engine.executor.plans.differentiation import fresh_results
from engine.fuser.backend import machine, tiering
from engine.ir.parser import parse_ir

pytestmark = pytest.mark.skipif(not machine.has_feature("sse2") and not machine.has_feature("neon"), reason="no LLVM")

PROGRAMS = {
    "passed on": "def f(x, y):\n    return x + y\n",
    "the same for both": "def f(x, y):\n    return (x + y).tanh()\n",
    "new": "def f(x, y):\n    return (x * y).exp()\n",
    "transposed": "def f(x, y):\n    return torch.relu(x.mm(y.t())).mm(y)\n",
    "summed": "def f(x, y):\n    a, b = torch.chunk(x * y[0], 2)\n    return torch.cat([b.sigmoid(), a])\n",
}


@pytest.fixture(autouse=True)
def _eager() -> Iterator[None]:
    before = tiering.mode()
    tiering.set_mode("eager")
    yield
    tiering.set_mode(before)
    assert tiering.failures() == []


def leaves() -> list[Tensor]:
    random = np.random.default_rng(0)
    return [Tensor(random.standard_normal((8, 8)).astype(np.float32), True) for _ in range(2)]


def gradients(call: Any, given: list[Tensor]) -> list[Tensor]:
    for each in given:
        each.grad = None
    call(*given).sum().backward()
    return [each.grad for each in given if each.grad is not None]


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_leaf_gets_a_gradient_in_memory_of_its_own(name: str) -> None:
    f, given = torch.jit.CompilationUnit(PROGRAMS[name]).f, leaves()
    with torch.jit.optimized_execution(False):
        wanted = [each.array.copy() for each in gradients(f, given)]
    for _ in range(3):
        found = gradients(f, given)
        for gradient, right in zip(found, wanted, strict=True):
            assert np.allclose(gradient.array, right, rtol=1e-5, atol=1e-6)
            assert gradient.array.flags.c_contiguous and gradient.is_leaf
        assert not any(np.may_share_memory(a.array, b.array) for a, b in combinations([*found, *given], 2))


def test_gradients_that_operators_pass_on_to_several_leaves_are_copied() -> None:
    f = torch.jit.CompilationUnit(PROGRAMS["new"]).f
    a, b, c = *leaves(), leaves()[0]
    for _ in range(3):
        found = gradients(lambda a, b, c: f(a + b, c), [a, b, c])
        assert not any(np.may_share_memory(x.array, y.array) for x, y in combinations(found, 2))


def test_gradients_are_added_up_and_seen_by_hooks() -> None:
    f, (x, y) = torch.jit.CompilationUnit(PROGRAMS["new"]).f, leaves()
    first = [each.array.copy() for each in gradients(f, [x, y])]
    seen: list[Any] = []
    handle = x.register_hook(lambda gradient: seen.append(gradient))
    f(x, y).sum().backward()
    handle.remove()
    assert np.allclose(x.grad.array, 2 * first[0]) and np.allclose(y.grad.array, 2 * first[1])
    x.grad = None
    node = f(x, y)
    node.grad_fn.register_hook(lambda found, given: seen.append(found[0]))
    node.sum().backward()
    x.grad.zero_()
    assert all(np.allclose(each.array, first[0]) for each in seen) and len(seen) == 2


WHOLE = [
    "torch.layer_norm(torch.nn.functional.gelu(x), [8]) * y", "torch.nn.functional.mse_loss(x.tanh(), y)",
    "torch.nn.functional.linear(x.exp(), y).var(1)", "torch.nn.functional.linear(x.view(2, 4, 8), y).amax(1)",
    "torch.clamp(x, -0.5, 0.5).norm(2, [1]) + y.logsumexp(0)", "torch.nn.functional.huber_loss(x * y, y)",
    "torch.nn.functional.glu(x, 1) * y.mean(0)[:4]",
]  # fmt: skip


@pytest.mark.parametrize("text", WHOLE)
def test_operators_made_of_others_are_part_of_the_graph(text: str) -> None:
    f, given = torch.jit.CompilationUnit(f"def f(x, y):\n    return {text}\n").f, leaves()
    with torch.jit.optimized_execution(False):
        wanted = gradients(f, given)
    for _ in range(3):
        for found, right in zip(gradients(f, given), wanted, strict=True):
            assert np.allclose(found.array, right.array, rtol=1e-4, atol=1e-5)
    outside, _, _ = str(f.graph_for(*given)).partition("with prim::DifferentiableGraph")
    assert "prim::DifferentiableGraph" in outside and "aten::" not in outside


def test_numbers_that_calls_give_stay_numbers_of_the_call() -> None:
    text = (
        "def f(x, y, beta: float):\n    return torch.nn.functional.smooth_l1_loss(x.tanh(), y.exp(), beta=beta) * 2\n"
    )
    f, given = torch.jit.CompilationUnit(text).f, leaves()
    for beta in (1.0, 0.25, 2.0):
        with torch.jit.optimized_execution(False):
            wanted = gradients(lambda x, y, b=beta: f(x, y, b), given)
        for found, right in zip(gradients(lambda x, y, b=beta: f(x, y, b), given), wanted, strict=True):
            assert np.allclose(found.array, right.array, rtol=1e-4, atol=1e-5)


def test_results_that_share_memory_are_told_from_new_ones() -> None:
    graph = parse_ir("""graph(%g : Tensor, %x : Tensor):
      %0 : int = prim::Constant[value=0]()
      %1 : Tensor = aten::mul(%g, %x)
      %2 : Tensor = aten::t(%g)
      %3 : Tensor = aten::neg(%x)
      %4 : Tensor = aten::t(%3)
      %5 : Tensor = aten::exp(%x)
      return (%1, %2, %g, %3, %4, %5)
    """)
    assert fresh_results(graph) == {0, 5}
