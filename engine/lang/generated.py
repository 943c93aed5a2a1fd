"""Compiles text that the engine writes: functions for calls of operators, plans, backward steps.

In: the text of a function, and the objects that its names stand for.  Out: the function; it keeps its text as `source`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

_FILE: Final = "<generated>"


def source_of(function: Any) -> str | None:
    """The text of a function that was made here, None for any other."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    return function.source if file == _FILE and isinstance(getattr(function, "source", None), str) else None


def compile_function(text: str, name: str, environment: dict[str, Any], file: str = _FILE) -> Callable[..., Any]:
    """The function `name` that the text defines, whose globals are `environment`; `file` shows in tracebacks."""
    exec(compile(text, file, "exec"), environment)
    function: Any = environment[name]
    function.source = text
    return function  # type: ignore[no-any-return]


def define(
    name: str, parameters: Sequence[str], lines: Iterable[str], environment: dict[str, Any], file: str = _FILE
) -> Callable[..., Any]:
    """The function of these parameters and lines."""
    text = "\n".join([f"def {name}({', '.join(parameters)}):", *indented(lines)])
    return compile_function(text, name, environment, file)


def indented(lines: Iterable[str]) -> list[str]:
    """The lines one level further in."""
    return [f"    {line}" for line in lines]
