"""Tests of Python's parser where threads use it at once."""

from __future__ import annotations

import ast
import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.lang import python_syntax
from engine.lang.python_syntax import parse_python, parse_python_expression


class _Cycle:
    """Garbage that runs Python code when it is collected, so that threads may change within the parser."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        sum(range(100))


def test_threads_may_parse_at_once() -> None:
    text = "x = " + "(" * 40 + "1" + ")" * 40 + "\n" + "y = [f(a, b + c * d) for a in b]\n" * 200
    expected = ast.dump(ast.parse(text))
    old = gc.get_threshold()
    gc.set_threshold(20)

    def parse(_: int) -> str:
        for _ in range(5):
            _Cycle()
            tree = parse_python(text)
        return ast.dump(tree)

    try:
        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(parse, range(8))) == {expected}
    finally:
        gc.set_threshold(*old)


def test_mistakes_are_those_of_python() -> None:
    with pytest.raises(SyntaxError):
        parse_python("x = ")
    with pytest.raises(SyntaxError):
        parse_python_expression("x = 1")
    assert ast.dump(parse_python_expression("a + 1")) == ast.dump(ast.parse("a + 1", mode="eval").body)


def test_nobody_parses_past_the_lock() -> None:
    home = Path(python_syntax.__file__)
    packages = (home.parents[1], home.parents[2] / "tsrepl")
    modules = (path for package in packages for path in package.rglob("*.py") if path != home)
    assert not [str(path) for path in modules if "ast.parse(" in path.read_text(encoding="utf-8")]
