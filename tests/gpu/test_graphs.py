"""CUDA graphs: work that is captured, and done again in the same memory."""

from __future__ import annotations

import pytest

import engine.torch as torch
from engine.lang.errors import OperatorError


def test_a_captured_program_runs_again_on_what_is_in_its_memory(cuda: str) -> None:
    static = torch.zeros(4, device="cuda")
    static * 2 + 1  # kernels are loaded at a first call
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        result = static * 2 + 1
    assert not torch.cuda.is_current_stream_capturing()
    static.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0], device="cuda"))
    graph.replay()
    assert result.cpu().tolist() == [3.0, 5.0, 7.0, 9.0]
    static.fill_(5)
    graph.replay()
    assert result.cpu().tolist() == [11.0] * 4


def test_functions_are_replayed_for_arguments_of_the_samples_sizes(cuda: str) -> None:
    @torch.jit.script
    def f(x, y):  # type: ignore[no-untyped-def]
        return torch.tanh(x * y) + x

    x, y = torch.randn(3, 5), torch.randn(5)
    replayed = torch.cuda.make_graphed_callables(f, (x.cuda(), y.cuda()))
    for scale in (1.0, -2.0):
        found = replayed((x * scale).cuda(), y.cuda())
        torch.testing.assert_close(found.cpu(), f(x * scale, y))
    with pytest.raises(OperatorError, match="captured for"):
        replayed(torch.zeros(4, 5, device="cuda"), y.cuda())
    with pytest.raises(OperatorError, match="record gradients"):
        torch.cuda.make_graphed_callables(f, (x.cuda().requires_grad_(), y.cuda()))


def test_what_cannot_be_captured_or_replayed_is_refused(cuda: str) -> None:
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(OperatorError, match="nothing was captured"):
        graph.replay()
    with pytest.raises(OperatorError, match="not being captured"):
        graph.capture_end()
    with torch.cuda.graph(graph):
        with pytest.raises(OperatorError, match="being captured already"):
            torch.cuda.CUDAGraph().capture_begin()
        with pytest.raises(OperatorError, match="random numbers"):
            torch.rand(3, device="cuda")
    graph.reset()
    with pytest.raises(OperatorError, match="nothing was captured"):
        graph.replay()
