"""The rules of the house that a program can check: sizes, docstrings, imports at the top."""

from __future__ import annotations

import ast
import statistics
from pathlib import Path

import pytest

from engine.lang.python_syntax import parse_python

ROOT = Path(__file__).parents[2]
MODULES = sorted(p for package in ("engine", "tsrepl") for p in (ROOT / package).rglob("*.py"))
MODULE_LINES = 800
FUNCTION_LINES = 80
MEDIAN_FUNCTION_LINES = 10
TABLES = ROOT / "engine" / "aten" / "ops"


def functions(path: Path) -> list[ast.FunctionDef]:
    tree = parse_python(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def length(node: ast.FunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_module_keeps_the_rules(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if TABLES not in path.parents:
        assert text.count("\n") <= MODULE_LINES, "split it"
    too_long = [
        f"{node.name} (line {node.lineno}): {length(node)}" for node in functions(path) if length(node) > FUNCTION_LINES
    ]
    assert not too_long
    if text.strip():
        assert ast.get_docstring(parse_python(text)), "say what comes in and what goes out"


def test_functions_are_short() -> None:
    lengths = [length(node) for path in MODULES for node in functions(path)]
    assert statistics.median(lengths) < MEDIAN_FUNCTION_LINES
