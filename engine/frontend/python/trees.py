"""From Python functions and classes to trees, through Python's own parser.

In: a function, a class, or Python text.  Out: the same `Tree` that the text front end makes of the same
program (but for the signs of literals, which only text takes into the literal).  Ranges are those in the file:
errors name its lines.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any, Final
from weakref import WeakKeyDictionary

from engine.frontend.python import ignored_blocks
from engine.frontend.python.definitions import class_def, declaration, definition, function
from engine.frontend.python.expressions import PythonSource, refused
from engine.frontend.python.modifiers import modifier_of
from engine.frontend.python.overloads import overloads_of
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import ClassDef, Def, Property
from engine.lang.errors import CompileError, NotSupportedError, ParseError
from engine.lang.generated import source_of
from engine.lang.interpreter_settings import deep_recursion
from engine.lang.python_syntax import parse_python
from engine.lang.source import Source, SourceRange

_TREES: Final[WeakKeyDictionary[Callable[..., Any], tuple[CodeType, Tree]]] = WeakKeyDictionary()
"""The trees of the functions read so far, with their code: a function stays what it is when its file changes, until a
tool gives it other code in place."""


def tree_from_function(fn: Callable[..., Any]) -> Tree:
    """The `(def ...)` of a Python function or method.

    Raises NotSupportedError for what TorchScript does not have, CompileError when the source cannot be read.
    """
    if not inspect.isfunction(fn):
        return _read(fn)
    code, known = getattr(inspect.unwrap(fn), "__code__", fn.__code__), _TREES.get(fn)
    if known is None or known[0] is not code:
        known = _TREES[fn] = code, _read(fn)
    return known[1]


def _read(fn: Callable[..., Any]) -> Tree:
    if getattr(fn, "__name__", "") == "<lambda>":
        raise _refused_lambda(fn)
    place, node = _only_statement(fn)
    if not isinstance(node, ast.FunctionDef):
        raise refused(node, place.range(node))
    defaults = _defaults(node, fn)
    _refuse_mutable_defaults(defaults, place.range(node))
    with _recursion_over(place):
        tree = function(
            place, node, is_method=_is_method(node, fn), defaults=defaults, is_overloaded=bool(overloads_of(fn))
        )
    if place.ignored:
        blocks = {
            name: ignored_blocks.function_of(name, variables, body, fn.__globals__)
            for name, (variables, body) in place.ignored.items()
        }
        setattr(fn, ignored_blocks.BLOCKS, blocks)
    return tree


def _is_method(node: ast.FunctionDef, fn: Callable[..., Any]) -> bool:
    """True for what has `self`, and for what the body of a class defines under another name for it."""
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
    owner = getattr(inspect.unwrap(fn), "__qualname__", "").rpartition(".")[0]
    is_in_class = bool(owner) and not owner.endswith("<locals>")
    decorators = {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
    return names[:1] == ["self"] or (bool(names) and is_in_class and "staticmethod" not in decorators)


def _defaults(node: ast.FunctionDef, fn: Callable[..., Any]) -> dict[str, Any]:
    """The values of the defaults of positional parameters."""
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
    values = getattr(inspect.unwrap(fn), "__defaults__", None) or ()
    return dict(zip(reversed(names), reversed(values), strict=False))


def _refuse_mutable_defaults(defaults: Mapping[str, Any], range: SourceRange) -> None:
    for name, value in defaults.items():
        if (value := _mutable_part(value)) is not None:
            raise NotSupportedError(
                "Mutable default parameters are not supported because Python binds them to the function and they "
                f"persist across function calls. Found {type(value)} on parameter {name}",
                range,
                hints=("make the default None, and the value in the function",),
            )


def _mutable_part(value: Any) -> Any:
    """The list, dict or set that is the value or is in its tuples; None if there is none."""
    if isinstance(value, tuple):
        return next((part for part in map(_mutable_part, value) if part is not None), None)
    return value if isinstance(value, (list, dict, set)) else None


def commented_types(fn: Callable[..., Any]) -> Tree | None:
    """The declaration of a Python function whose types stand in comments; None where there are none, or no source.

    Raises ParseError for a comment that does not fit the function.
    """
    try:
        place, node = _only_statement(fn)
    except CompileError:
        return None
    if not isinstance(node, ast.FunctionDef):
        return None
    arguments = node.args.args
    if node.type_comment is None and all(each.type_comment is None for each in arguments):
        return None
    return declaration(place, node, is_method=[each.arg for each in arguments[:1]] == ["self"])


def tree_from_class(cls: type) -> Tree:
    """The `(class_def ...)` of a Python class.  Raises as `tree_from_function` does."""
    place, node = _only_statement(cls)
    if not isinstance(node, ast.ClassDef):
        raise CompileError(f"the source of '{cls.__name__}' is no class", place.source.whole())
    node.body = [part for part in node.body if not _is_dropped(cls, part)]
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and inspect.isfunction(method := vars(cls).get(part.name)):
            _refuse_mutable_defaults(_defaults(part, method), place.range(part))
    with _recursion_over(place):
        unused = {name for name, member in vars(cls).items() if modifier_of(member) == "unused"}
        tree = class_def(place, node, unused, as_python=True)
    ignored_blocks.check_none(place)
    return tree


def _is_dropped(cls: type, part: ast.stmt) -> bool:
    """True for a method that the class is to drop, which is not even read."""
    return isinstance(part, ast.FunctionDef) and modifier_of(vars(cls).get(part.name)) == "drop"


def methods_by_name(tree: Tree) -> Tree:
    """The class with only its methods and properties, sorted by name."""
    view = ClassDef(tree)
    methods = sorted((part for part in view.body if part.kind == "def"), key=lambda part: Def(part).name)
    properties = sorted((part.tree for part in view.properties), key=lambda part: Property(part).name)
    return ClassDef.make(view.range, view.name, view.superclass, methods, properties)


def trees_from_text(source: Source) -> list[Tree]:
    """The functions, classes and statements of a Python text."""
    if "\r" in source.text:
        source = Source(_with_python_lines(source.text), source.filename, source.first_line)
    place = PythonSource(source)
    nodes = _parsed(place)
    with _recursion_over(place):
        trees = [definition(place, node) for node in nodes]
    ignored_blocks.check_none(place)
    return trees


def _only_statement(thing: Callable[..., Any] | type) -> tuple[PythonSource, ast.stmt]:
    """The source of a function or class, and its one statement."""
    place = _source_of(thing)
    nodes = _parsed(place)
    if place.skipped and isinstance(nodes[0], ast.If):
        nodes = nodes[0].body
    if len(nodes) != 1:
        raise CompileError("expected a single top-level function", place.source.whole())
    return place, nodes[0]


def _source_of(thing: Callable[..., Any] | type) -> PythonSource:
    name = getattr(thing, "__qualname__", repr(thing))
    try:
        lines, first_line, filename = _lines_of(thing)
    except (OSError, TypeError, IndexError, SyntaxError) as error:
        raise CompileError(
            f"cannot read the source of '{name}': {error}",
            hints=("define it in a file or a notebook cell", "or compile its text with CompilationUnit"),
        ) from None
    text = _with_python_lines("".join(lines))
    return PythonSource(Source(text, filename, max(1, first_line)), skipped=1 if text[:1] in (" ", "\t") else 0)


def _lines_of(thing: Callable[..., Any] | type) -> tuple[list[str], int, str]:
    """The lines of source, the number of the first, and the file.  Raises OSError, TypeError and others of inspect."""
    if (text := source_of(thing)) is not None:
        return text.splitlines(keepends=True), 1, "<generated>"
    try:
        lines, first = inspect.getsourcelines(thing)
    except (OSError, TypeError):
        # The module of a class in a notebook has no file, while the code of its methods names the cell.
        found = _lines_by_methods(thing) if isinstance(thing, type) else None
        if found is None:
            raise
        return found
    if isinstance(thing, type) and any(not 0 <= at - first < len(lines) for _, at in _lines_of_methods(thing)):
        # A file may have several classes of one name, of which `inspect` takes any.
        return _lines_by_methods(thing) or (lines, first, inspect.getsourcefile(thing) or "<unknown>")
    if inspect.isfunction(own := inspect.unwrap(thing)) and not _defines(lines, own.__code__.co_name):
        # Tools that give a function new code in place, as IPython's autoreload, compile it alone: its lines begin at 1.
        return _lines_by_name(own) or (lines, first, inspect.getsourcefile(thing) or "<unknown>")
    return lines, first, inspect.getsourcefile(thing) or "<unknown>"


def _defines(lines: Sequence[str], name: str) -> bool:
    """True if the lines begin with the function of that name, or with a decorator."""
    return re.match(rf"\s*(?:@|(?:async\s+)?def\s+{re.escape(name)}\b)", lines[0]) is not None


def _lines_by_name(fn: FunctionType) -> tuple[list[str], int, str] | None:
    """The lines of a function, its first line and its file, as its name tells them; the last of that name counts."""
    filename = fn.__code__.co_filename
    lines = linecache.getlines(filename)
    inside: Sequence[ast.AST] = [parse_python("".join(lines))]
    for part in fn.__qualname__.split("."):
        kinds = (ast.FunctionDef, ast.ClassDef)
        inside = [each for outer in inside for each in ast.walk(outer) if isinstance(each, kinds) and each.name == part]
    for node in inside[-1:]:
        assert isinstance(node, (ast.FunctionDef, ast.ClassDef))
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        return lines[first - 1 : node.end_lineno], first, filename
    return None


def _lines_of_methods(cls: type) -> Iterator[tuple[str, int]]:
    """The file and the first line of each method that the class itself defines."""
    for name, method in vars(cls).items():
        if inspect.isfunction(method) and method.__qualname__ == f"{cls.__qualname__}.{name}":
            yield method.__code__.co_filename, method.__code__.co_firstlineno


def _lines_by_methods(cls: type) -> tuple[list[str], int, str] | None:
    """The lines of a class, its first line and its file, as the code of its methods tells them."""
    for filename, inside in _lines_of_methods(cls):
        lines = linecache.getlines(filename)
        for node in ast.walk(parse_python("".join(lines))):
            if isinstance(node, ast.ClassDef) and node.name == cls.__name__ and _holds(node, inside):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                return lines[first - 1 : node.end_lineno], first, filename
    return None


def _holds(node: ast.ClassDef, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _with_python_lines(text: str) -> str:
    """The text with the line ends that Python counts."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


@contextmanager
def _recursion_over(place: PythonSource) -> Iterator[None]:
    """Walk Python's trees of the source.  Python refuses to parse what nests deeper than its own recursion limit, but
    another thread may have raised that: so what this walk finds too deep is refused as well."""
    try:
        with deep_recursion():
            yield
    except RecursionError:
        raise _too_deep(place) from None


def _too_deep(place: PythonSource) -> ParseError:
    return ParseError("nested too deeply", place.source.whole())


def _parsed(place: PythonSource) -> list[ast.stmt]:
    """The statements of the source.  Indented text becomes the body of an `if` on a line before it."""
    text = "if True:\n" * place.skipped + place.source.text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _with_type_comments(text).body
    except SyntaxError as error:
        line, column = (error.lineno or 1) - place.skipped, max(0, (error.offset or 1) - 1)
        start = place.offset(line + place.skipped, 0) + column
        raise ParseError(f"invalid syntax: {error.msg}", SourceRange(place.source, start, start + 1)) from None
    except (RecursionError, MemoryError):
        raise _too_deep(place) from None
    except ValueError as error:
        raise ParseError(str(error), place.source.whole()) from None


def _with_type_comments(text: str) -> ast.Module:
    """The module with its type comments, if all stand where Python allows them."""
    try:
        return parse_python(text, type_comments=True)
    except SyntaxError:
        return parse_python(text)


def _refused_lambda(fn: Callable[..., Any]) -> CompileError:
    source = _source_of(fn).source
    return NotSupportedError("lambdas aren't supported", source.whole(), hints=("write a function of its own",))
