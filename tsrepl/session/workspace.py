"""The state of a session, and the running of entries in it.

In: program text.  Out: replies; variables with their values and static types, functions and classes in one compilation
unit.  An entry is compiled as a function: the variables it reads become typed parameters, those it sets come back as
results, and so does the value of its last expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.executor.interpreter.interpreter import run_function
from engine.frontend.compilation.entries import EntryFunction, compile_entry
from engine.frontend.syntax.parser import parse_statements
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import ExprStmt, Var
from engine.ir.unit import Function
from engine.lang.errors import EngineError, ExecutionError, did_you_mean
from engine.lang.source import Source
from engine.lang.types import NONE, ClassType, OptionalType, TupleType, Type
from tsrepl.session.definitions import Definitions, failed_definitions, name_of, without_users_of
from tsrepl.session.entries import Entry, split_entries
from tsrepl.session.failures import SessionError, UsageError, caution_replies, error_replies
from tsrepl.session.modules import module_node, short_name
from tsrepl.session.names import PromptResolver
from tsrepl.session.numbered import name_of_number
from tsrepl.session.outside import outside_function
from tsrepl.session.replies import Binding, ModuleReply, Reply, SchemaReply, TextReply, ValueReply
from tsrepl.session.values import summary, tensor_facts, value_text

LAST = "_"
"""The variable that holds the value shown last."""
_NOTHING = re.compile(r"\s*(import\s+(torch|math|typing)|from\s+(typing|__future__|torch)\s+import\s+[\w, ]+)\s*$")
"""Imports of what is there without them: Python files that are read as TorchScript begin so."""


@dataclass(slots=True)
class SessionVariable:
    value: Any
    type: Type


class Dialogue(Protocol):
    """A partner that answers entries instead of the workspace for a while; `prompt` stands before them."""

    @property
    def prompt(self) -> str: ...

    def run(self, text: str) -> Iterator[Reply]: ...


@dataclass(slots=True)
class Workspace:
    """Variables, definitions and the number of entries so far.

    `history` are the entries as they were typed; `failed` is the entry that raised the last error of a running program,
    with its arguments.
    """

    variables: dict[str, SessionVariable] = field(default_factory=dict)
    definitions: Definitions = field(default_factory=Definitions)
    count: int = 0
    dialogue: Dialogue | None = None
    failed: tuple[Function, list[Any]] | None = None
    history: list[str] = field(default_factory=list)

    # -- running text

    def next_name(self) -> str:
        """The file name for source ranges in the next entry."""
        self.count += 1
        return f"<entry {self.count}>"

    def run_entry(self, entry: Entry, filename: str) -> Iterator[Reply]:
        """Run one entry; whatever goes wrong is a reply."""
        try:
            if not _NOTHING.match(entry.text):
                yield from self._run_statements(_parse(entry, filename))
        except (GeneratorExit, SystemExit):
            raise
        except BaseException as error:
            yield from error_replies(error)

    def syntax_errors(self, entries: Sequence[Entry], filename: str) -> Iterator[Reply]:
        """The syntax errors in entries that are not run."""
        for entry in entries:
            try:
                if not entry.is_command:
                    _parse(entry, filename)
            except EngineError as error:
                yield from error_replies(error)

    def run_definitions(self, entries: Sequence[Entry], filename: str) -> Iterator[Reply]:
        """Define functions and classes that may use each other; what does not compile is left out, with a reply."""
        trees: list[Tree] = []
        lost: set[str] = set()
        for entry in entries:
            try:
                trees += _parse(entry, filename)
            except EngineError as error:
                lost.update(entry.defined_names())
                yield from error_replies(error)
        yield from self._define_in_part(trees, lost)

    def _define_in_part(self, trees: Sequence[Tree], lost: set[str]) -> Iterator[Reply]:
        """Define what compiles and uses none of the names that are `lost`."""
        left = list(trees)
        while True:
            fit, unfit = without_users_of(lost, left)
            try:
                found = self._define(fit)
                break
            except BaseException as error:
                yield from error_replies(error)
                failed = failed_definitions(error, fit) if isinstance(error, EngineError) else []
                if not failed:
                    return
            lost |= {name_of(tree) for tree in failed}
            left = [tree for tree in left if tree not in failed]
        yield from found
        for tree, used in unfit:
            yield TextReply(f"{name_of(tree)} is not defined: it uses {used}, which does not compile", "warning")

    def _define(self, trees: Sequence[Tree]) -> list[Reply]:
        """A name that stood for a variable stands for its definition now.  Raises CompileError."""
        replies = self.definitions.define(trees, self.variables)
        for reply in replies:
            self.variables.pop(reply.name, None)
        functions = [function for reply in replies for function in self.definitions.functions(reply.name)]
        return [*replies, *(each for function in functions for each in caution_replies(function))]

    def define_all(self, text: str, filename: str) -> None:
        """Add the definitions of a text and run nothing.  Raises ParseError, CompileError."""
        entries = [entry for entry in split_entries(text) if entry.is_definition]
        self.definitions.define([tree for entry in entries for tree in _parse(entry, filename)])

    def _run_statements(self, statements: Sequence[Tree]) -> Iterator[Reply]:
        if not statements:
            return
        shown = self._name_alone(statements)
        if shown is not None:
            yield shown
            return
        entry = self._compile(statements)
        entry.function.inlines = False  # it runs once, while the plans of what it calls serve other entries
        yield from caution_replies(entry.function)
        results = entry.split(self.run(entry.function, self.arguments(entry)))
        for name in entry.deleted:
            self.variables.pop(name, None)
        for name, value, type in results:
            if name != LAST or (type is not NONE and not _is_no_value(type)):
                self.variables[name] = SessionVariable(value, type)
        self._narrow(statements, entry)
        if entry.lost:
            yield TextReply(
                f"{', '.join(entry.lost)} may be without a value at the end, so the session does not keep it", "warning"
            )
        if results and results[-1][0] == LAST and not _is_no_value(results[-1][2]):
            _, value, type = results[-1]
            name = name_of_number(ExprStmt(statements[-1]).expression, entry.function.graph, value)
            yield ValueReply(value, str(type), name, name=LAST) if name else self.show(value, type)

    def _name_alone(self, statements: Sequence[Tree]) -> Reply | None:
        """The reply to the name of a function, class or module standing alone; None for anything else."""
        only = statements[0]
        if len(statements) > 1 or only.kind != ExprStmt.kind or ExprStmt(only).expression.kind != Var.kind:
            return None
        name = Var(ExprStmt(only).expression).name
        if name in self.variables:
            value = self.variables[name].value
            return ModuleReply(name, module_node(name, value)) if _is_module(value) else None
        signature = self.definitions.signature(name)
        return None if signature is None else SchemaReply(name, (signature,))

    def _narrow(self, statements: Sequence[Tree], entry: EntryFunction) -> None:
        """After `assert x is not None` x is no longer optional, as it would not be for the rest of a function."""
        if any(statement.kind != "assert" for statement in statements):
            return
        for name in entry.parameters:
            variable = self.variables[name]
            if isinstance(variable.type, OptionalType) and variable.value is not None:
                variable.type = variable.type.element

    # -- expressions

    def compile_expression(self, text: str) -> tuple[Function, list[Any]]:
        """A function that computes the expression, and its arguments.  Raises CompileError, UsageError."""
        entry = self._compile(self._expression(text))
        return entry.function, self.arguments(entry)

    def evaluate(self, text: str, filename: str = "<expression>") -> tuple[Any, Type]:
        """The value of an expression and its type.  Raises CompileError, ExecutionError, UsageError."""
        entry = self._compile(self._expression(text, filename))
        value = self.run(entry.function, self.arguments(entry))
        return value, entry.results[-1][1]

    def _expression(self, text: str, filename: str = "<expression>") -> list[Tree]:
        if not text.strip():
            raise UsageError("an expression is wanted")
        trees = parse_statements(Source(text, filename), extended=True)
        if len(trees) != 1 or trees[0].kind != ExprStmt.kind:
            raise UsageError(f"'{text}' is not an expression")
        return trees

    def _compile(self, statements: Sequence[Tree]) -> EntryFunction:
        types = {name: variable.type for name, variable in self.variables.items()}
        return compile_entry(statements, types, lambda annotations: self.resolver(annotations, types), LAST)

    def resolver(self, annotations: Mapping[str, Type], variables: Iterable[str]) -> PromptResolver:
        """The resolver of names at the prompt where these variables are seen."""
        definitions = self.definitions
        return PromptResolver(definitions.unit, definitions.broken, definitions.outside, annotations, variables)

    def arguments(self, entry: EntryFunction) -> list[Any]:
        """The values of the entry's parameters."""
        return [self.variables[name].value for name in entry.parameters]

    def run(self, function: Function, arguments: Sequence[Any]) -> Any:
        """Run a function on values.  Raises ExecutionError."""
        try:
            return run_function(function, arguments)
        except ExecutionError:
            self.failed = function, [*arguments]
            raise

    def show(self, value: Any, type: Type) -> Reply:
        """The reply that shows a value."""
        if _is_module(value):
            return ModuleReply(short_name(value.type), module_node(short_name(value.type), value))
        facts = tensor_facts(value) if isinstance(value, Tensor) else ""
        return ValueReply(value, str(type), value_text(value, type), facts, LAST)

    # -- names

    def bind(self, name: str, value: Any, type: Type) -> None:
        """Give a value a name."""
        self.variables[name] = SessionVariable(value, type)

    def lookup(self, name: str) -> Any:
        """The variable's value, what lies in it (`m.encoder`), or the function.  Raises UsageError.

        A method is none of these: it is nothing without its module.
        """
        base, *rest = name.split(".")
        if base in self.variables:
            return self._inside(name, self.variables[base].value, rest)
        if self._function(name) is not None:
            return self.target(name)
        raise self._unknown(name)

    def _inside(self, name: str, value: Any, path: Sequence[str]) -> Any:
        for at, part in enumerate(path):
            type = value.type if isinstance(value, Object) else None
            if type is None or type.attribute(part) is None:
                owner = name.rsplit(".", len(path) - at)[0]
                if type is not None and part in type.methods:
                    raise UsageError(
                        f"'{name}' is a method, which is nothing without its module", hints=(f"take {owner}",)
                    )
                known = [] if type is None else [each.name for each in type.attributes]
                raise UsageError(f"'{owner}' has no attribute '{part}'", hints=did_you_mean(part, known))
            value = value.get(part)
        return value

    def functions(self) -> dict[str, Function]:
        return self.definitions.unit.functions

    def reset(self) -> None:
        """Forget every name."""
        self.variables.clear()
        self.definitions = Definitions()
        self.failed = None

    def bindings(self) -> tuple[Binding, ...]:
        """Every name, oldest first."""
        rows = [
            Binding(name, _kind(v.value), _type_text(v.type), summary(v.value))
            for name, v in self.variables.items()
            if name != LAST
        ]
        return (*self.definitions.bindings(), *rows)

    def type_of_path(self, path: str) -> Type | None:
        """The static type of `x` or `m.layer.weight`; None if the session has no such name."""
        name, *rest = path.split(".")
        type = self.variables[name].type if name in self.variables else self.definitions.unit.find_type(name)
        for part in rest:
            attribute = type.attribute(part) if isinstance(type, ClassType) else None
            type = attribute.type if attribute else None
        return type

    # -- functions by name

    def is_target(self, text: str) -> bool:
        """True if the text names a function, method or module, or is an expression that compiles."""
        try:
            self.target(text)
        except Exception:
            return False
        return True

    def target(self, text: str) -> Function:
        """The function `f`, the method `m.encode`, the `forward` of module `m`, or a function of the expression.

        Raises UsageError, CompileError.
        """
        return self.named(text) or self.compile_expression(text)[0]

    def named(self, text: str) -> Function | None:
        """The same for names alone; None for an expression.  Raises UsageError."""
        found = self._named(text)
        if found is None and text.isidentifier() and text not in self.variables:
            raise self._unknown(text)
        return found

    def tree_of(self, text: str) -> Tree:
        """The syntax tree of a definition or an expression.  Raises UsageError, ParseError."""
        tree = self.definitions.tree(text)
        if tree is not None:
            return tree
        if self._named(text) is not None:
            raise UsageError(
                f"'{text}' was not typed here, so there is no tree of it", hints=(f"%code {text} shows its text",)
            )
        if text.isidentifier() and text not in self.variables:
            raise self._unknown(text)
        return ExprStmt(self._expression(text)[0]).expression

    def _function(self, name: str) -> Function | None:
        """The function that is defined here or comes from outside.  Raises CompileError, UsageError."""
        return self.functions().get(name) or outside_function(self.definitions.outside, name)

    def _named(self, text: str) -> Function | None:
        function = self._function(text) if text not in self.variables else None
        if function is not None:
            return function
        type = self.type_of_path(text)
        if isinstance(type, ClassType):
            return _method(type, "forward")
        owner = self.type_of_path(text.rpartition(".")[0])
        return _method(owner, text.rpartition(".")[2]) if isinstance(owner, ClassType) else None

    def _unknown(self, name: str) -> SessionError:
        known = [binding.name for binding in self.bindings()]
        return UsageError(
            f"nothing is called '{name}'", hints=did_you_mean(name, known) or ("%who lists what is defined",)
        )


def _parse(entry: Entry, filename: str) -> list[Tree]:
    return parse_statements(Source(entry.text, filename, entry.line), extended=True)


def _method(type: ClassType, name: str) -> Function | None:
    method = type.methods.get(name)
    return method if isinstance(method, Function) else None


def _is_no_value(type: Type) -> bool:
    """True for what operators without results give, as `backward`."""
    return isinstance(type, TupleType) and not type.elements


def _kind(value: Any) -> str:
    return "module" if _is_module(value) else "variable"


def _is_module(value: Any) -> bool:
    return isinstance(value, Object) and value.type.is_module


def _type_text(type: Type) -> str:
    return short_name(type) if isinstance(type, ClassType) else str(type)
