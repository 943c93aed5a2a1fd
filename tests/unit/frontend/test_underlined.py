"""What errors underline: of a call what is called, of what is made by calls all but their closing bracket."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pytest

import engine.torch as torch
from engine.lang.errors import EngineError
from engine.torch import Tensor

ONES = torch.ones(2)

FAILING = {
    "x + torch.ones(3)": "x + torch.ones(3",
    "(x + torch.ones(3)).sum()": "x + torch.ones(3",
    "torch.add(x, torch.ones(3)).sum()": "torch.add",
    "x.to(torch.long).view(5)": "x.to(torch.long).view",
    "x.view(3) + x.view(4)": "x.view",
    "x[0, 3]": "x[0, 3]",
    "x < torch.ones(3)": "x < torch.ones(3",
    "torch.jit.annotate(int, x.item())": "x.item",
    "int(x)": "int",
    "[1 // n, 2][0]": "1 // n",
}
"""Expression -> what its run-time error underlines; recorded from PyTorch."""

REFUSED = {
    "x.foo(1)": "x.foo",
    "foo(1)": "foo",
    "y(1)": "y",
    "torch.add(1)": "torch.add",
    "print(x)": "print(x",
    "getattr(x)": "getattr(x",
    "range(3)": "range(3",
    "x.shape[0](1)": "x.shape[0]",
    "y.pop(0)(1)": "y.pop(0",
    "'a' + x.sum()": "'a' + x.sum(",
    "1 if n else x.sum()": "1 if n else x.sum(",
}
"""Expression -> what its compile-time error underlines in a text; recorded from PyTorch."""


def underlined(error: EngineError) -> str:
    lines = str(error).split("\n")
    at = next(index for index, line in enumerate(lines) if "<--- HERE" in line)
    mark = re.search("~+", lines[at])
    assert mark is not None
    return lines[at - 1][slice(*mark.span())]


def attempt(call: Callable[[], Any]) -> str:
    with pytest.raises(EngineError) as caught:
        call()
    return underlined(caught.value)


@pytest.mark.parametrize(("expression", "expected"), [*FAILING.items(), *REFUSED.items()])
def test_in_a_text(expression: str, expected: str) -> None:
    source = f"def f(x: Tensor, y: List[int], n: int):\n    return {expression}\n"
    assert attempt(lambda: torch.jit.CompilationUnit(source).f(ONES, [1], 0)) == expected


def calls(x: Tensor) -> Tensor:
    return torch.add(x, torch.ones(3)).sum()


def adds(x: Tensor) -> Tensor:
    return x + torch.ones(3)


def refuses(x: Tensor) -> Tensor:
    return x + print(x)


@pytest.mark.parametrize(
    ("function", "expected"), [(calls, "torch.add"), (adds, "x + torch.ones(3"), (refuses, "print(x")]
)
def test_in_a_python_function(function: Callable[[Tensor], Tensor], expected: str) -> None:
    assert attempt(lambda: torch.jit.script(function)(ONES)) == expected


def test_the_range_still_has_the_whole_text() -> None:
    graph = torch.jit.script(adds)._function.graph
    added = next(node for node in graph.nodes() if node.kind == "aten::add")
    assert added.range.text == "x + torch.ones(3)"


def test_archives_keep_what_is_underlined() -> None:
    compiled = torch.jit.script(Adding())
    loaded = torch.jit.load(io.BytesIO(compiled.save_to_buffer()))
    with pytest.raises(EngineError) as caught:
        loaded(ONES)
    assert "x.add(torch.ones(3))" in str(caught.value)
    assert "~~~~~ <--- HERE" in str(caught.value)


class Adding(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.add(torch.ones(3))
