"""What `torch.jit.trace` refuses, and says so: empty examples, backward hooks, methods, dicts of other things."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch
from engine.lang.errors import CompileError
from engine.torch import nn

X = torch.ones(2)


@pytest.mark.parametrize(
    ("example", "wanted"),
    [
        ([], "List trace inputs must have elements"),
        ({1: []}, "List trace inputs must have elements"),
        ({}, "Dictionary inputs must have entries"),
    ],
)
def test_examples_have_to_hold_something(example: Any, wanted: str) -> None:
    with pytest.raises(CompileError, match=wanted):
        torch.jit.trace(lambda _: X, (example,))


def test_backward_hooks_are_not_lost_in_silence() -> None:
    inner = nn.Linear(2, 2)
    handle = inner.register_full_backward_hook(lambda module, given, taken: None)
    with pytest.raises(ValueError, match="backward hooks assigned can't be compiled: Linear"):
        torch.jit.trace(nn.Sequential(inner), X)
    handle.remove()
    assert torch.jit.trace(nn.Sequential(inner), X)(X).shape == (2,)


def test_one_method_is_traced_by_trace_module() -> None:
    class Model(nn.Module):
        def half(self, x: Any) -> Any:
            return x / 2

    with pytest.raises(AttributeError, match="individual module's functions; use trace_module"):
        torch.jit.trace(Model().half, X)


def test_returned_dicts_hold_tensors_or_tuples_of_them() -> None:
    with pytest.raises(CompileError, match="cannot be understood by the tracer, only outputs matching"):
        torch.jit.trace(lambda x: {"a": {"b": x}}, X, strict=False)
