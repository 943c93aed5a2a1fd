"""Aliases of operators carry one name after compiling."""

from __future__ import annotations

import pytest

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.frontend.compilation.compile import compile_source


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("torch.absolute(x)", "aten::abs"),
        ("x.multiply_(2)", "aten::mul_"),
        ("torch.special.expit(x)", "aten::sigmoid"),
        ("x.greater(1)", "aten::gt"),
        ("x.clip(0, 1)", "aten::clamp"),
    ],
)
def test_aliases(expression: str, kind: str) -> None:
    graph = compile_source(f"def f(x: Tensor):\n    return {expression}\n").functions["f"].graph
    assert graph.outputs[0].node.kind == kind
    assert graph.outputs[0].node.op is None or isinstance(graph.outputs[0].node.op, Op)


def test_reversed_subtraction_of_tensors() -> None:
    graph = compile_source("def f(x: Tensor, y: Tensor):\n    return torch.rsub(x, y)\n").functions["f"].graph
    node = graph.outputs[0].node
    assert node.kind == "aten::sub"
    assert node.inputs[:2] == [graph.inputs[1], graph.inputs[0]]


def test_identity_of_bools_is_equality() -> None:
    graph = compile_source("def f(x: bool, y: bool):\n    return x is y\n").functions["f"].graph
    assert graph.outputs[0].node.kind == "aten::eq"


def test_no_alias_of_an_alias() -> None:
    aliases = {entry.name: entry.alias_of for entry in table.entries() if entry.alias_of}
    assert aliases
    assert not set(aliases) & set(aliases.values())
