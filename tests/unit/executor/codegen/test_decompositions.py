"""Attention in parts gives what it gives in one piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.executor.codegen.decompositions import decompose
from engine.executor.plans.executor import executor_of
from engine.fuser.backend import tiering
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph

PROGRAM = """
def f(x, w, b, p, c, heads: int, wants: bool):
    return torch._native_multi_head_attention(x, x, x, x.size(2), heads, w, b, p, c, None, {wants}, True, None)
def g(x, w, b, p, c, heads: int, wants: bool):
    return torch._native_multi_head_attention(x, w, x, x.size(2), heads, w, b, p, c, None, False, True, None)[0] + 1
"""


@pytest.fixture(params=["eager", "off"])
def _mode(request: pytest.FixtureRequest) -> Iterator[None]:
    before = tiering.mode()
    tiering.set_mode(request.param)
    yield
    tiering.set_mode(before)


def _arguments(width: int = 12) -> list[Any]:
    shapes = ((2, 5, width), (3 * width, width), (3 * width,), (width, width), (width,))
    random = np.random.default_rng(0)
    return [torch.from_numpy(random.standard_normal(shape).astype(np.float32)) for shape in shapes]


def _taken_apart(function: str, wants: bool) -> Graph:
    unit = torch.jit.CompilationUnit(PROGRAM.format(wants=wants))
    with torch.no_grad():
        graph = copy_graph(executor_of(unit._unit.functions[function]).plan_for([*_arguments(), 3, wants]).graph)
    decompose(graph)
    return graph


def _kinds(function: str, wants: bool) -> set[str]:
    return {node.kind for node in _taken_apart(function, wants).nodes()}


def test_it_is_taken_apart_where_it_is_plain() -> None:
    assert "aten::_native_multi_head_attention" not in _kinds("f", wants=False)
    assert "aten::_native_multi_head_attention" in _kinds("f", wants=True)
    assert "aten::_native_multi_head_attention" in _kinds("g", wants=False)


def test_parts_stand_where_the_author_wrote_the_call() -> None:
    ranges = [node.range for node in _taken_apart("f", wants=False).all_nodes() if node.range is not None]
    assert {found.filename for found in ranges} != {"<ir>"} and {found.line for found in ranges} == {3}


@pytest.mark.usefixtures("_mode")
@pytest.mark.parametrize("wants", [True, False])
def test_results(wants: bool) -> None:
    f, (x, w, b, p, c) = torch.jit.CompilationUnit(PROGRAM.format(wants=wants)).f, _arguments()
    for heads in (3, 2, 3):
        with torch.no_grad():
            found, weights = f(x, w, b, p, c, heads, wants)
        q, k, v = ((x @ w.t() + b).view(2, 5, 3, heads, -1).permute(2, 0, 3, 1, 4)[i] for i in range(3))
        shares = (q @ k.transpose(-2, -1) / (12 // heads) ** 0.5).softmax(-1)
        expected = (shares @ v).transpose(1, 2).reshape(2, 5, 12) @ p.t() + c
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)
        assert weights.shape == ((2, 5, 5) if wants else (0,))
