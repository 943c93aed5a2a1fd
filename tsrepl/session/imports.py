"""Import statements: TorchScript text has `torch`, `math` and `typing` without them, and files begin with them.

In: the text of an entry.  Out: the names that its imports bind, each with the path that it stands for, and the
statements behind them.  Nothing is imported.
"""

from __future__ import annotations

import ast
import math
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import engine.torch as torch
from engine.lang.errors import CompileError, did_you_mean
from engine.lang.python_syntax import parse_python
from engine.lang.source import Source, SourceRange

_ROOTS: Final[Mapping[str, Any]] = {"torch": torch, "math": math, "typing": typing, "typing_extensions": typing}
"""The modules that are there."""
_FUTURE: Final = "__future__"
_OWN: Final = ("torch", "math")
"""Those whose names programs read; names of `typing` stand in annotations, under their own names."""


class Imports(NamedTuple):
    """`names` are bound to paths, `rest` is the text behind the imports, from its `line` on (from 1, in the entry)."""

    names: dict[str, str]
    rest: str
    line: int


def imports_of(text: str, filename: str, first_line: int) -> Imports | None:
    """The imports that a text begins with; None for what does not parse.  Raises CompileError for what is not there."""
    try:
        statements = parse_python(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names: dict[str, str] = {}
    for statement in statements:
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            lines = text.split("\n")[statement.lineno - 1 :]
            return Imports(names, "\n".join([lines[0][statement.col_offset :], *lines[1:]]), statement.lineno)
        range = _range(statement, Source(text, filename, first_line))
        names.update(_imported(statement, range) if isinstance(statement, ast.Import) else _taken(statement, range))
    return Imports(names, "", 1)


def python_value(path: str) -> Any:
    """The object of Python that a path stands for, `torch.nn.functional`.  Raises AttributeError."""
    first, *rest = path.split(".")
    found = _ROOTS[first]
    for part in rest:
        found = getattr(found, part)
    return found


def _imported(statement: ast.Import, range: SourceRange) -> Iterator[tuple[str, str]]:
    """`import torch.nn as nn` and the like."""
    for each in statement.names:
        _check(each.name, range)
        if each.asname and each.name.partition(".")[0] in _OWN:
            yield each.asname, each.name


def _taken(statement: ast.ImportFrom, range: SourceRange) -> Iterator[tuple[str, str]]:
    """`from torch.nn import functional as F` and the like."""
    module = statement.module or ""
    if module == _FUTURE:
        return
    _check(module if not statement.level else "." * statement.level + module, range)
    for each in statement.names:
        if each.name == "*":
            raise CompileError("a program names what it imports", range, hints=("write import torch, and torch.relu",))
        path = f"{module}.{each.name}"
        _check(path, range)
        if module.partition(".")[0] in _OWN:
            yield each.asname or each.name, path
        elif each.asname not in (None, each.name):
            raise CompileError(
                "names of typing stay as they are", range, hints=(f"write from {module} import {each.name}",)
            )


def _check(path: str, range: SourceRange) -> None:
    """Raise CompileError for what is not there."""
    first, *rest = path.split(".")
    if first not in _ROOTS:
        there = ", ".join(name for name in _ROOTS if name != "typing_extensions")
        raise CompileError(
            f"there is no {path or 'module'} in TorchScript: its text sees {there}", range,
            hints=(*did_you_mean(first, _ROOTS), "leave the import out, and what needs it"),
        )  # fmt: skip
    found = _ROOTS[first]
    for at, part in enumerate(rest):
        if not hasattr(found, part):
            owner = ".".join([first, *rest[:at]])
            raise CompileError(f"there is no {part} in {owner}", range, hints=did_you_mean(part, dir(found)))
        found = getattr(found, part)


def _range(statement: ast.stmt, source: Source) -> SourceRange:
    starts = source.line_starts()
    end_line, end = statement.end_lineno or statement.lineno, statement.end_col_offset or statement.col_offset
    return SourceRange(source, starts[statement.lineno - 1] + statement.col_offset, starts[end_line - 1] + end)
