"""Library code that is written in TorchScript: all of it compiles, and says nothing of its own place in errors."""

from __future__ import annotations

import pytest

from engine.aten.dispatch import table
from engine.frontend.compilation.compile import compile_source, library_value, written_overloads
from engine.frontend.standard_library import library
from engine.frontend.standard_library.written_operators import sources
from engine.frontend.sugared.classes import ClassValue, FunctionValue
from engine.ir.verify import verify

SCOPES = ("torch.nn.functional", "torch.functional", "torch.autograd.grad_mode", "torch.nn.utils.rnn")
NAMES = [f"{scope}.{name}" for scope in SCOPES for name in library.definitions(scope)]


@pytest.mark.parametrize("name", NAMES)
def test_library_code_compiles(name: str) -> None:
    value = library_value(name)
    functions = value.functions if isinstance(value, FunctionValue) else []
    functions = list(value.type.methods.values()) if isinstance(value, ClassValue) else functions
    assert functions
    for function in functions:
        verify(function.graph)


@pytest.mark.parametrize("name", list(sources()))
def test_written_operators_compile(name: str) -> None:
    for function in written_overloads(name):
        verify(function.graph)


def test_a_written_operator_is_inlined() -> None:
    graph = compile_source("def f(x: Tensor):\n    return 2 * x, 'a' in 'abc', x.shape\n").functions["f"].graph
    assert [node.kind for node in graph.nodes() if node.kind.startswith("aten::")] == ["aten::mul", "aten::size"]


def test_a_library_function_is_called() -> None:
    graph = compile_source("def f(x):\n    return torch.nn.functional.relu(x, True)\n").functions["f"].graph
    call = graph.find_node("prim::CallFunction")
    assert call is not None
    assert call.inputs[0].node.attr("name") == "relu"


def test_overloads_of_library_functions() -> None:
    text = "def f(x):\n    return torch.nn.functional.interpolate(x, {})\n"
    for arguments in ("4", "[4]", "None, 2.0", "scale_factor=[2.0]"):
        verify(compile_source(text.format(arguments)).functions["f"].graph)


def test_operators_need_no_library() -> None:
    assert library_value("torch.nn.functional.linear") is None
    assert table.overloads("aten::linear")
