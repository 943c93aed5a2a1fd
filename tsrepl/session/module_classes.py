"""Classes of modules that entries define, and the modules that entries make.

In: `class Net(nn.Module): ...`, and calls of such classes, `Net(8)`, with Python's names.  Out: the class, whose
statement runs as Python; objects, compiled as `torch.jit.script` does when the outermost `__init__` has ended.  Methods
that no compiled one calls are compiled when they are first called.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import math
import typing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Final

import engine.torch as torch
from engine.aten.values.ivalue import Object
from engine.frontend.python.modifiers import IGNORED, modifier_of
from engine.frontend.python.resolver import is_module_class
from engine.frontend.python.trees import tree_from_function
from engine.lang.errors import EngineError
from engine.lang.python_syntax import parse_python, parse_python_expression
from engine.lang.source import SourceRange
from engine.torch import nn
from engine.torch.compiled.objects import ScriptMethod
from engine.torch.jit.scripting.python_program import MODULES
from engine.torch.jit.scripting.script import script
from engine.torch.jit.scripting.script_module import CompiledAtOnce, ScriptModule
from tsrepl.session.entries import Entry
from tsrepl.session.python_errors import GLUE, TOP, told_by_lines

Names = dict[str, Any]
_STANDARD: Final[Names] = {
    "torch": torch, "nn": nn, "F": nn.functional, "math": math, "Tensor": torch.Tensor,
    **{name: getattr(typing, name) for name in ("Any", "Dict", "Final", "List", "Optional", "Tuple", "Union")},
}  # fmt: skip
"""Names that mean this without an import, in the place of other modules, too; what else Python calls so counts."""
_OF_MODULES: Final = ("nn.", "torch.nn.")
_METACLASS: Final = "__compiled_module__"


class ModuleClass(CompiledAtOnce):
    """Metaclass of the classes that entries define; `_statement` is the text as it was typed."""

    _statement: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # tracebacks of IPython and others leave this frame out
        if _MAKING.get():
            return type.__call__(cls, *args, **kwargs)  # its owner is compiled with all that is in it
        with _making():
            module = type.__call__(cls, *args, **kwargs)
        return script(module)

    def attribute(cls, module: ScriptModule, name: str) -> Any:
        """The method, compiled now; None without one."""
        method = MODULES.method(module._ivalue.type, name)
        return None if method is None else ScriptMethod(method, module._ivalue)


_MAKING: Final = ContextVar("making", default=False)
"""True in the `__init__` of a module that will be compiled."""


@contextmanager
def _making() -> Iterator[None]:
    token = _MAKING.set(True)
    try:
        yield
    finally:
        _MAKING.reset(token)


# -- definitions


def module_statement(entry: Entry, names: Names) -> ast.ClassDef | None:
    """The statement of an entry that defines a class of modules; None of any other, and of one that does not parse.

    A base of which `nn` knows nothing is for Python to refuse.
    """
    try:
        (node,) = parse_python(entry.text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(node, ast.ClassDef):
        return None
    bases = map(ast.unparse, node.bases)
    return node if any(base.startswith(_OF_MODULES) or module_class(base, names) for base in bases) else None


def module_class(path: str, names: Names) -> type | None:
    """The class of modules under a dotted name of Python; None for anything else."""
    first, *rest = path.split(".")
    found = _standard(names).get(first, names.get(first))
    for part in rest:
        found = getattr(found, part, None)
    return found if isinstance(found, type) and is_module_class(found) else None


def layer_names() -> list[str]:
    """The classes of modules that `nn` has."""
    return [name for name in dir(nn) if not name.startswith("_") and layer(f"torch.nn.{name}") is not None]


def layer(path: str) -> type | None:
    """The class of modules of `torch.nn` under that path; None for anything else."""
    found = getattr(nn, path.removeprefix("torch.nn."), None) if path.startswith("torch.nn.") else None
    return found if isinstance(found, type) and is_module_class(found) else None


def define_module_class(entry: Entry, filename: str, names: Names) -> ModuleClass:
    """Run the statement, which binds its name among Python's.  Raises CompileError, PythonError."""
    node = module_statement(entry, names)
    assert node is not None, "only classes of modules are Python"
    _remember(entry, filename)
    before = {name: names[name] for name in [node.name] if name in names}
    ast.increment_lineno(node, entry.line - 1)
    if all(type(module_class(ast.unparse(base), names) or object) is type for base in node.bases):
        node.keywords.append(ast.keyword("metaclass", ast.Name(_METACLASS, ast.Load())))
    statements = [ast.Global([node.name]), node, ast.Return(ast.Name(node.name, ast.Load()))]
    try:
        with _told():
            made = _run(statements, filename, names)
        _check(made)
    except BaseException:
        names.pop(node.name, None)
        names.update(before)
        raise
    made._statement = entry.text
    return made  # type: ignore[no-any-return]  # its metaclass is what the keyword says, or derived from a base's


def _remember(entry: Entry, filename: str) -> None:
    """Let Python find the text of the entry, under its lines of the file; what was further down is an older text's."""
    known, first = linecache.cache.get(filename, ()), entry.line - 1
    before = known[2][:first] if len(known) == 4 and filename.startswith("<") else []
    lines = [*before, *["\n"] * (first - len(before)), *(f"{line}\n" for line in entry.text.split("\n"))]
    linecache.cache[filename] = sum(map(len, lines)), None, lines, filename


def _check(cls: type) -> None:
    """Read the methods, so that later texts of the same name do not matter.  Raises NotSupportedError for `forward`."""
    for name, member in vars(cls).items():
        function = inspect.unwrap(member) if inspect.isfunction(member) else getattr(member, "__func__", None)
        if inspect.isfunction(function) and modifier_of(function) not in IGNORED:
            if name == "forward" or modifier_of(function) == "export":
                tree_from_function(function)
            else:
                with suppress(EngineError):
                    tree_from_function(function)


# -- modules


def made_module(call: SourceRange, names: Names) -> Object:
    """The compiled module of a call, which runs as Python, arguments and all."""
    with _told(call):
        node = parse_python_expression(f"({call.text})")
        with _making():
            module = _run([ast.Return(node)], GLUE, names)
        made: Object = script(module)._ivalue
        return made


# -- running Python


@contextmanager
def _told(call: SourceRange | None = None) -> Iterator[None]:
    """Errors of the block by the lines of Python that led to them."""
    try:
        yield
    except Exception as error:
        raise told_by_lines(error, call) from None


def _standard(names: Names) -> Names:
    """The standard names that Python does not use for what is no module."""
    return {name: each for name, each in _STANDARD.items() if isinstance(names.get(name, math), ModuleType)}


def _run(statements: Sequence[ast.stmt], filename: str, names: Names) -> Any:
    """The value that the statements return as the body of a function, which has the standard names as parameters.

    So they are the statements' own, and Python's names are as they were.
    """
    used = {each.id for part in statements for each in ast.walk(part) if isinstance(each, ast.Name)}
    offered = {**_standard(names), _METACLASS: ModuleClass}
    given = {name: each for name, each in offered.items() if name in used}
    arguments = ast.arguments([], [ast.arg(name) for name in given], None, [], [], None, [])
    function = ast.FunctionDef(TOP, arguments, [*statements], [], None)
    code = compile(ast.fix_missing_locations(ast.Module([function], [])), filename, "exec", dont_inherit=True)
    made: Names = {}
    exec(code, names, made)
    return made[TOP](**given)
