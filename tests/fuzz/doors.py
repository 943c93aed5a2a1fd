"""Where text enters the engine, for the fuzzer.

In: a text.  Out: what came of it, well made, or an error of `engine.lang.errors`; anything else is a finding.  `KINDS`
are the kinds of text: programs, graphs, operator schemas, types; each with its doors and with texts to begin with.
"""

from __future__ import annotations

import ast
import linecache
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from inspect import isclass, isfunction
from pathlib import Path
from typing import Any, Final, NamedTuple

import engine.torch
from engine.aten.dispatch import table
from engine.frontend.compilation.compile import compile_source, define
from engine.frontend.compilation.entries import compile_entry
from engine.frontend.names.resolve import TextResolver
from engine.frontend.python.resolver import PythonUnit
from engine.frontend.python.trees import trees_from_text
from engine.frontend.syntax.parser import parse_statements
from engine.frontend.syntax.tree import Tree
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.ir.unit import CompilationUnit
from engine.ir.verify import verify
from engine.lang.errors import EngineError, IRError
from engine.lang.schema_parser import parse_schema, parse_type
from engine.lang.source import Source
from tsrepl.session.definitions import Definitions
from tsrepl.session.entries import split_entries
from tsrepl.session.names import PromptResolver

TESTS: Final = Path(__file__).parents[1]
_SEPARATOR: Final = "---\n"


class Kind(NamedTuple):
    """One kind of text: what takes it, by name, and where mutants begin."""

    doors: dict[str, Callable[[str], object]]
    texts: Callable[[], Sequence[str]]


# -- programs


def _as_unit(text: str) -> None:
    _check_graphs(compile_source(text))


def _as_entry(text: str) -> None:
    """As shells and notebooks do: definitions into the session's unit, statements as a function of their own."""
    definitions = Definitions()
    split_entries(text)
    for tree in parse_statements(Source(text, "<entry 1>"), extended=True):
        if tree.kind in ("def", "class_def"):
            definitions.define([tree])
        else:
            compile_entry([tree], {}, lambda types: PromptResolver(definitions, types, ()), "_")
    _check_graphs(definitions.unit)


def _as_python(text: str) -> None:
    unit = CompilationUnit()
    trees: list[Tree] = trees_from_text(Source(text))
    define(unit, [tree for tree in trees if tree.kind in ("def", "class_def")], TextResolver(unit))
    _check_graphs(unit)


def _as_objects(text: str) -> None:
    """As decorators do: Python defines the functions and classes, we compile the objects.  Each may fail."""
    python = PythonUnit()
    failure = None
    for value in _python_objects(text):
        try:
            if isclass(value):
                python.type_of(value)
            else:
                python.function(value).ensure_defined()
        except EngineError as error:
            failure = error
    if failure is not None:
        raise failure
    _check_graphs(python.unit)


def _python_objects(text: str) -> list[Any]:
    """The functions and classes of a text that is valid Python and does nothing but define them."""
    name = "<fuzzed>"
    namespace: dict[str, Any] = {"torch": engine.torch, "math": __import__("math"), "__name__": "fuzzed"}
    exec("from typing import *", namespace)
    before = set(namespace)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            if not all(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree.body):
                return []
            exec(compile(tree, name, "exec"), namespace)
    except (Exception, SystemExit):  # what Python refuses does not get to us
        return []
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    made = [value for key, value in namespace.items() if key not in before and key != "__builtins__"]
    return [value for value in made if isfunction(value) or isclass(value)]


def _check_graphs(unit: CompilationUnit) -> None:
    """Whatever compiled is well made, and its text reads back."""
    for function in unit.functions.values():
        verify(function.graph)
        if not unit.types:  # a class is but a name in the text of a graph
            _check_text(str(function.graph))


def _check_text(printed: str) -> None:
    try:
        again = parse_ir(printed)
    except IRError:
        if "<Tensor>" not in printed:  # the text does not tell the elements
            raise
        return
    assert str(again) == printed, f"reads back as\n{again}\nwas\n{printed}"


@cache
def own_programs() -> tuple[str, ...]:
    """The programs of the golden cases and of the front end's tests."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((TESTS / "cases").rglob("*.case"))]
    sections = [section for text in texts for section in text.split("\n[source]\n")[1:]]
    programs = [section.partition("\n[")[0] + "\n" for section in sections]
    for path in (TESTS / "fuzz/programs.txt", TESTS / "unit/frontend/programs.txt"):
        programs += path.read_text(encoding="utf-8").split(_SEPARATOR)
    return tuple(programs)


# -- graphs, schemas, types


def _as_graph(text: str) -> None:
    graph = parse_ir(text)
    again = parse_ir(str(graph)) if "<Tensor>" not in str(graph) else graph
    assert str(again) == str(graph), f"prints as\n{graph}\nand then as\n{again}"
    assert isinstance(graph, Graph)


@cache
def own_graphs() -> tuple[str, ...]:
    return tuple((TESTS / "unit/ir/recorded_graphs.txt").read_text(encoding="utf-8").split("----\n"))


def _as_schema(text: str) -> None:
    schema = parse_schema(text)
    assert str(parse_schema(str(schema))) == str(schema), f"{schema} does not read back"


@cache
def own_schemas() -> tuple[str, ...]:
    return tuple(entry.text for entry in table.entries())


def _as_type(text: str) -> None:
    type = parse_type(text)
    assert str(parse_type(str(type))) == str(type), f"{type} does not read back"


def _as_type_comment(text: str) -> None:
    compile_source(f"def f(x, y):\n    # type: {text}\n    return x\n")


def _as_annotation(text: str) -> None:
    compile_source(f"def f(x: {text}):\n    return x\n")


_OWN_TYPES: Final = (
    "Float(2, *, strides=[3, 1], requires_grad=0, device=cpu)", "Dict(str, int)[]", "(int, str, Tensor?)[]",
    "Union(int, str, NoneType)", "Future(Tensor)", "NamedTuple(x : int, y : Tensor)", "__torch__.M.Net",
    "(int, Tensor) -> List[int]", "(List[Optional[Tensor]], Dict[str, int]) -> Tuple[int, str]",
    "Union[int, List[str], None]", "Optional[Dict[str, List[Tensor]]]", "BroadcastingList2[int]", "torch.Tensor",
    "int | None", "'List[int]'", "Tuple[()]", "(...) -> int",
)  # fmt: skip

KINDS: Final = {
    "program": Kind({"text": _as_unit, "entry": _as_entry, "python": _as_python, "object": _as_objects}, own_programs),
    "graph": Kind({"IR text": _as_graph}, own_graphs),
    "schema": Kind({"schema text": _as_schema}, own_schemas),
    "type": Kind(
        {"type text": _as_type, "type comment": _as_type_comment, "annotation": _as_annotation}, lambda: _OWN_TYPES
    ),
}
