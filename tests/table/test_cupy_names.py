"""What kernels ask of numpy, compared with what cupy has: names, keywords, methods of arrays and universal functions.

Nothing is run, so no GPU is needed: cupy can be imported and looked at without one.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import engine.aten
from engine.aten.devices.namespace_rebinding import (
    _CREATION_FUNCTIONS,
    _DEVICE_AWARE,
    _NUMPY_ONLY,
    _TAKING_SUBOK,
)
from engine.aten.devices.universal import _ACCUMULATIONS, _AT, _REDUCTIONS
from engine.lang.python_syntax import parse_python

cupy = pytest.importorskip("cupy", reason="cupy is not installed")

ROOT = Path(engine.aten.__file__).parent
OF_UFUNCS = frozenset({"out", "where", "dtype", "casting"})
ON_HOST = frozenset("insert apply_along_axis vectorize nanquantile nanpercentile ndindex spacing copyto".split())
"""Functions that run on copies on the CPU, or that kernels hand no arrays of devices."""
OF_UFUNCS_ON_HOST = frozenset("maximum minimum multiply logaddexp".split())
"""Universal functions of whose methods some run on copies on the CPU."""


def modules() -> Iterator[Path]:
    """Modules whose functions are rebound."""
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(("engine", "aten", *path.relative_to(ROOT).with_suffix("").parts))
        if name not in _DEVICE_AWARE and not name.startswith("engine.aten.autograd") and "stepwise" not in path.parts:
            yield path


@cache
def keywords(function: Any) -> frozenset[str] | None:
    """What a function of cupy's takes by name; None: anything, or nobody knows."""
    if isinstance(function, cupy.ufunc):
        return OF_UFUNCS
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return _documented(function)
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters)


def _documented(function: Any) -> frozenset[str] | None:
    """The same of what is compiled: its documentation begins with its signature."""
    found = re.match(r"[\w.]+\((.*?)\)(?: ->.*)?$", (inspect.getdoc(function) or "").partition("\n")[0])
    if found is None:
        return None
    parts = [part.partition("=")[0].strip().lstrip("*") for part in found[1].split(",")]
    return frozenset(part.split()[-1] for part in parts if part)


def path_of(node: ast.expr) -> tuple[str, ...] | None:
    """`np.linalg.solve` -> (linalg, solve); None for what does not begin with np."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return tuple(reversed(names)) if isinstance(node, ast.Name) and node.id == "np" and names else None


def found_in(namespace: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        namespace = getattr(namespace, name, None)
    return namespace


def uses(path: Path) -> Iterator[tuple[int, tuple[str, ...], frozenset[str]]]:
    """(line, names after np, keywords of the call) of each use of numpy."""
    tree = parse_python(path.read_text(encoding="utf-8"))
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (names := path_of(node)):
            call = called.get(id(node))
            given = frozenset(k.arg for k in call.keywords if k.arg) if call else frozenset()
            yield node.lineno, names, given


def trouble(names: tuple[str, ...], given: frozenset[str]) -> str:
    """What cupy would not do with it; empty when all is well."""
    first, original = names[0], found_in(np, names)
    if first in _NUMPY_ONLY or original is None or isinstance(original, (type, ModuleType)) or not callable(original):
        return ""
    if isinstance(getattr(np, first), np.ufunc) and len(names) == 2:
        return _method_trouble(first, names[1])
    function = found_in(cupy, names)
    if function is None:
        return "" if first in ON_HOST or isinstance(original, np.ufunc) else "cupy lacks it, so it runs on the CPU"
    known = keywords(function)
    taken = given - {"subok"} if first in _TAKING_SUBOK else given
    missing = taken - known if known is not None else frozenset()
    return f"cupy's does not take {', '.join(sorted(missing))}" if missing else ""


def _method_trouble(name: str, method: str) -> str:
    handled = {"reduce": _REDUCTIONS, "accumulate": _ACCUMULATIONS, "at": {*_AT, "subtract"}}
    if method not in handled or name in handled[method] or name in OF_UFUNCS_ON_HOST:
        return ""
    return f"{name}.{method} runs on the CPU"


@pytest.mark.parametrize("path", [*modules()], ids=lambda path: str(path.relative_to(ROOT)))
def test_cupy_has_what_kernels_ask_of_numpy(path: Path) -> None:
    found = {
        f"{path.name}:{line} np.{'.'.join(names)}": problem
        for line, names, given in uses(path)
        if (problem := trouble(names, given))
    }
    assert not found


@pytest.mark.parametrize("path", [*modules()], ids=lambda path: str(path.relative_to(ROOT)))
def test_arrays_of_cupy_have_the_methods_that_kernels_call(path: Path) -> None:
    """By name: a method of numpy's arrays that is called with a keyword is one of cupy's that takes it."""
    found = {}
    for node in ast.walk(parse_python(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or path_of(node.func):
            continue
        name, given = node.func.attr, {k.arg for k in node.keywords if k.arg}
        if not hasattr(np.ndarray, name) or name.startswith("__") or given & {"key", "reverse"}:  # of lists
            continue
        method = getattr(cupy.ndarray, name, None)
        known = None if method is None else keywords(method)
        if method is None and name not in ("resize", "setflags"):
            found[f"{path.name}:{node.lineno} .{name}"] = "cupy lacks it"
        elif known is not None and given - known and name not in ("to", "view"):
            found[f"{path.name}:{node.lineno} .{name}"] = f"takes no {', '.join(sorted(given - known))}"
    assert not found


def test_makers_of_arrays_are_cupy_s() -> None:
    assert not [name for name in _CREATION_FUNCTIONS if not hasattr(cupy, name)]
