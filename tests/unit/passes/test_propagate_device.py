"""Devices that the pass writes are those that all operands tell, or that an operator asks for."""

from __future__ import annotations

import pytest

import engine.torch as torch
from engine.passes.pipeline import run_pass

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def found(text: str, *inputs: tuple[torch.device | None, list[int] | None]) -> object:
    """The device of the result, for inputs on these devices and of these sizes."""
    graph = torch.jit.CompilationUnit(f"def f(x, y, n: int):\n{text}").f.graph
    for value, (device, sizes) in zip(graph.inputs(), inputs, strict=False):
        type = value.type() if sizes is None else value.type().with_sizes(sizes)
        value.setType(type if device is None else type.with_device(device))
    torch._C._jit_pass_propagate_device(graph)
    return next(graph.outputs()).type().device()


@pytest.mark.parametrize("op", ["x * y", "x + y", "torch.mm(x, y)"])
@pytest.mark.parametrize("sizes", [[2, 2], []])
def test_an_operand_that_may_be_anywhere_leaves_it_open(op: str, sizes: list[int]) -> None:
    for known, other in ((CPU, None), (None, CPU), (None, None)):
        assert found(f"    return {op}\n", (known, [2, 2]), (other, sizes)) is None
    assert found(f"    return {op}\n", (CPU, [2, 2]), (CPU, sizes)) == CPU


def test_numbers_of_the_cpu_go_along() -> None:
    assert found("    return x * y\n", (CUDA, [2]), (CPU, [])) == CUDA
    assert found("    return x * y\n", (CUDA, [2]), (CPU, [2])) is None


@pytest.mark.parametrize("start", [CPU, CUDA, None])
def test_a_loop_that_moves_its_value(start: torch.device | None) -> None:
    text = "    for _ in range(n):\n        x = x.cuda()\n    return x\n"
    assert found(text, (start, None)) == (CUDA if start == CUDA else None)
    assert found("    return x.cuda()\n", (start, None)) == CUDA


def test_a_device_that_only_the_run_tells_is_no_constant() -> None:
    graph = torch.jit.CompilationUnit("def f(x):\n    return x.cuda().device\n").f.graph._ir
    run_pass("propagate_device", graph)
    run_pass("peephole", graph)
    assert graph.find_node("prim::device") is not None


def test_the_layout_of_onednn_counts_as_a_device_and_leaves_numbers_alone() -> None:
    unit = torch.jit.CompilationUnit(
        "def f(x):\n    return x.to_mkldnn()\ndef g(x):\n    return x.to_mkldnn().to_dense()\n"
    )
    torch._C._jit_pass_propagate_device(unit.f.graph)
    assert next(unit.f.graph.outputs()).type().device() == torch.device("mkldnn")
    x = torch.rand(2, 3)
    assert torch.equal(unit.g(x), x)
