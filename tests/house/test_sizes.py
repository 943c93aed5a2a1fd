"""The rules of the house that a program can check: sizes, docstrings, imports at the top."""

from __future__ import annotations

import ast
import statistics
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from engine.lang.python_syntax import parse_python

ROOT = Path(__file__).parents[2]
MODULES = sorted(p for package in ("engine", "tsrepl") for p in (ROOT / package).rglob("*.py"))
MODULE_LINES = 800
FUNCTION_LINES = 80
MEDIAN_FUNCTION_LINES = 10
TABLES = ROOT / "engine" / "aten" / "ops"


class Facts(NamedTuple):
    """What the rules look at in a module; `functions` are their names, with the line, and numbers of lines."""

    docstring: str | None
    functions: list[tuple[str, int]]


@cache
def facts(path: Path) -> Facts:
    tree = parse_python(path.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return Facts(ast.get_docstring(tree), [(f"{each.name} (line {each.lineno})", length(each)) for each in found])


def length(node: ast.FunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_module_keeps_the_rules(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if TABLES not in path.parents:
        assert text.count("\n") <= MODULE_LINES, "split it"
    assert not [(name, lines) for name, lines in facts(path).functions if lines > FUNCTION_LINES]
    if text.strip():
        assert facts(path).docstring, "say what comes in and what goes out"


def test_functions_are_short() -> None:
    lengths = [lines for path in MODULES for _, lines in facts(path).functions]
    assert statistics.median(lengths) < MEDIAN_FUNCTION_LINES
