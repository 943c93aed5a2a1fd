"""The state of a session, and the running of entries in it.

In: program text.  Out: replies; variables with their values and static types, functions and classes in one compilation
unit.  An entry is compiled as a function: the variables it reads become typed parameters, those it sets come back as
results, and so does the value of its last expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.executor.interpreter.interpreter import run_function
from engine.frontend.compilation.entries import EntryFunction, compile_entry
from engine.frontend.syntax.name_uses import names_of
from engine.frontend.syntax.parser import parse_statements
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import ExprStmt, Var
from engine.ir.unit import Function
from engine.lang.deferred import deferred
from engine.lang.errors import CompileError, EngineError, ExecutionError, did_you_mean
from engine.lang.records import dataclass
from engine.lang.source import Source, SourceRange
from engine.lang.types import NONE, ClassType, OptionalType, TupleType, Type
from tsrepl.session.definitions import Definitions, failed_definitions, name_of, without_users_of
from tsrepl.session.entries import Entry, split_entries
from tsrepl.session.failures import SessionError, UsageError, caution_replies, error_replies
from tsrepl.session.making import with_made
from tsrepl.session.module_methods import called, path_of, plain
from tsrepl.session.modules import module_node, short_name, without_scopes
from tsrepl.session.names import STANDARD, PromptResolver
from tsrepl.session.numbered import name_of_number, names_number
from tsrepl.session.progress_kept import KEPT, KEPT_TYPE, ROUNDS, ROUNDS_TYPE, Keeping, types_kept
from tsrepl.session.replies import Binding, ErrorReply, ModuleReply, Reply, SchemaReply, TextReply, ValueReply
from tsrepl.session.values import summary, tensor_facts, value_text

if TYPE_CHECKING:
    from tsrepl.session import bridge, imports, module_classes, outside
    from tsrepl.session.bridge import Bridge
else:
    bridge = deferred("tsrepl.session.bridge")
    module_classes = deferred("tsrepl.session.module_classes")
    outside, imports = deferred("tsrepl.session.outside"), deferred("tsrepl.session.imports")

LAST = "_"
"""The variable that holds the value shown last."""


@dataclass(slots=True)
class SessionVariable:
    value: Any
    type: Type


class Dialogue(Protocol):
    """A partner that answers entries instead of the workspace for a while; `prompt` stands before them.

    `values` are those of the program that it is about, by name: expressions in commands see them.  `quit` ends it.
    """

    @property
    def prompt(self) -> str: ...

    def run(self, text: str) -> Iterator[Reply]: ...

    def values(self) -> Mapping[str, tuple[Any, Type]]: ...

    def quit(self) -> Iterator[Reply]: ...


class Stopped(Exception):
    """A statement that did not end: its error, and the replies about what it had bound until then."""

    def __init__(self, error: BaseException, kept: list[Reply]) -> None:
        super().__init__()
        self.error, self.kept = error, kept


class Compiled(NamedTuple):
    """An entry as a function, its arguments, and those of them that take what it binds on its way, and count."""

    entry: EntryFunction
    arguments: list[Any]
    kept: dict[str, Any]
    rounds: list[int]


@dataclass(slots=True)
class Workspace:
    """Variables, definitions and earlier entries.

    `history` are the entries as they were typed, `labels` what errors call them; `error` is the last error; `failed` is
    the entry that raised the last error of a running program, with its arguments.
    """

    variables: dict[str, SessionVariable] = field(default_factory=dict)
    definitions: Definitions = field(default_factory=Definitions)
    dialogue: Dialogue | None = None
    failed: tuple[Function, list[Any]] | None = None
    error: ErrorReply | None = None
    history: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    notebook: Bridge | None = None
    option: str = ""
    """The words before calls in the commands that replies suggest: `--no-grad ` where none records gradients."""
    _own_python: Bridge | None = None
    _made: dict[str, SessionVariable] = field(default_factory=dict)
    """The modules that the running statement made."""
    _expressions: dict[str, tuple[Tree, dict[str, SessionVariable]]] | None = None
    """While a command runs: its expressions that made modules, with these."""

    @property
    def partner(self) -> Dialogue | None:
        """The dialogue that answers entries; none in a notebook, whose cells are cells whatever view is open."""
        return self.dialogue if self.notebook is None else None

    # -- running text

    def remember(self, text: str, filename: str) -> None:
        """Put a text into the history, under the name that errors in it have."""
        if text.strip():
            self.history.append(text.strip("\n"))
            self.labels.append(filename or f"<entry {len(self.history)}>")

    @property
    def entry_name(self) -> str:
        """The file name for source ranges in the present entry."""
        return self.labels[-1] if self.labels else "<entry 1>"

    def run_entry(self, entry: Entry, filename: str) -> Iterator[Reply]:
        """Run one entry; whatever goes wrong is a reply."""
        try:
            entry = self._without_imports(entry, filename) if entry.is_import else entry
            if entry.text:
                yield from self._run_statements(_parse(entry, filename))
        except (GeneratorExit, SystemExit):
            raise
        except Stopped as stopped:
            yield from error_replies(stopped.error)
            yield from stopped.kept
        except BaseException as error:
            yield from error_replies(error)

    def syntax_errors(self, entries: Sequence[Entry], filename: str) -> Iterator[Reply]:
        """The syntax errors in entries that are not run."""
        for entry in entries:
            try:
                if not (entry.is_command or entry.system or entry.is_import):
                    _parse(entry, filename)
            except EngineError as error:
                yield from error_replies(error)

    def _without_imports(self, entry: Entry, filename: str) -> Entry:
        """Bind what the imports at the beginning of an entry name; the rest of it.  Raises CompileError."""
        found = imports.imports_of(entry.text, filename, entry.line)
        if found is None:
            return entry
        for name, path in found.names.items():
            self.variables.pop(name, None)
            if self.definitions.imports.get(name) != path or name in self.definitions.trees:
                self.definitions.remove(name)
                self.definitions.imports[name] = path
                self.definitions.relink([name], self.variables)
        return Entry(found.rest, entry.line + found.line - 1)

    def run_definitions(self, entries: Sequence[Entry], filename: str) -> Iterator[Reply]:
        """Define functions and classes that may use each other; what does not compile is left out, with a reply."""
        trees: list[Tree] = []
        lost: set[str] = set()
        modules = [entry for entry in entries if self._is_module_class(entry)]
        for entry in entries:
            if entry in modules:
                continue
            try:
                trees += _parse(entry, filename)
            except EngineError as error:
                lost.update(entry.defined_names())
                yield from error_replies(error)
        yield from self._define_in_part(trees, lost)
        for entry in entries:
            for name in entry.defined_names():
                if name in lost and name not in self.definitions.trees:
                    self.definitions.refused[name] = filename
        for entry in modules:
            yield from self._define_modules(entry, filename)

    def _is_module_class(self, entry: Entry) -> bool:
        """True for the definition of a class of modules, which is Python."""
        return entry.derives and module_classes.module_statement(entry, self.python.namespace) is not None

    def _define_modules(self, entry: Entry, filename: str) -> Sequence[Reply]:
        """Define a class of modules; its name stands for nothing else then."""
        try:
            self.python.give()
            cls = module_classes.define_module_class(entry, filename, self.python.namespace)
        except (Exception, KeyboardInterrupt) as error:
            return error_replies(error)
        self.variables.pop(cls.__name__, None)
        return [self.definitions.define_modules(cls.__name__, cls)]

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
        every = split_entries(text)
        for entry in every:
            if entry.is_import:
                self._without_imports(entry, filename)
        entries = [entry for entry in every if entry.is_definition]
        for entry in filter(self._is_module_class, entries):
            raise UsageError(
                f"line {entry.line} defines a class of modules, which is Python", hints=(f"%run {filename} runs it",)
            )
        self.definitions.define([tree for entry in entries for tree in _parse(entry, filename)])

    def _run_statements(self, statements: Sequence[Tree]) -> Iterator[Reply]:
        """Run one after the other, so that each sees what those before it have bound, also where it fails."""
        for statement in map(self._with_made, statements):
            shown = self._name_alone(statement) or self._call_on_module(statement)
            yield from self._run_statement(statement) if shown is None else shown

    def _with_made(self, statement: Tree) -> Tree:
        """The statement with variables for the modules that it makes, which are made now.  Raises EngineError."""
        made: dict[str, Object] = {}
        statement = with_made(statement, self._is_class, self._make, made)
        self._made = {name: SessionVariable(each, each.type) for name, each in made.items()}
        return statement

    def _is_class(self, path: str) -> bool:
        """True for the name of a class of modules; Python is asked for those alone that may be one."""
        first, _, rest = path.partition(".")
        if first in self.variables or first in self.functions() or first in self.definitions.unit.types:
            return False
        if first in self.definitions.imports:
            first, _, rest = self.definitions.spelled(path).partition(".")
        bridge = self.notebook or self._own_python
        is_known = bridge is not None and first in bridge.namespace and first != "torch"
        if not (is_known or first == "nn" or (first == "torch" and rest.startswith("nn."))):
            return False
        return module_classes.module_class(path, self.python.namespace) is not None

    def _make(self, call: SourceRange) -> Object:
        self.python.give()
        try:
            return module_classes.made_module(call, self.python.namespace)
        finally:
            self.python.take()

    @property
    def python(self) -> Bridge:
        """The names that are shared with Python: those of the notebook, or some that only this session has."""
        if self.notebook is not None:
            return self.notebook
        if self._own_python is None:
            self._own_python = bridge.Bridge(self, {"__name__": "__main__"})
        for name, path in self.definitions.imports.items():
            if name not in STANDARD:
                self._own_python.namespace.setdefault(name, imports.python_value(path))
        return self._own_python

    def _run_statement(self, statement: Tree) -> Iterator[Reply]:
        keeping, (entry, arguments, kept, rounds) = self._compile_keeping(statement)
        entry.function.inlines = False  # it runs once, while the plans of what it calls serve other entries
        shown = ExprStmt(statement).expression if statement.kind == ExprStmt.kind else None
        is_named = shown is not None and names_number(shown, entry.function.graph)
        yield from caution_replies(entry.function, shown.range if shown is not None and is_named else None)
        try:
            results = entry.split(self.run(entry.function, arguments))
        except (Exception, KeyboardInterrupt) as error:
            raise Stopped(error, self._keep(entry, kept, keeping.progress(kept, rounds))) from error
        for name in entry.deleted:
            self.variables.pop(name, None)
        self._keep(entry, {name: value for name, value in kept.items() if name not in entry.deleted})
        for name, value, type in results:
            if name != LAST or (type is not NONE and not _is_no_value(type)):
                self.variables[name] = SessionVariable(value, type)
        self._narrow(statement, entry)
        if results and results[-1][0] == LAST and not _is_no_value(results[-1][2]):
            _, value, type = results[-1]
            expression = ExprStmt(statement).expression
            named = name_of_number(expression, entry.function.graph, value)
            path = self.dotted(expression.range.text)
            yield ValueReply(value, str(type), named, name=LAST) if named else self.show(value, type, path)

    def _compile_keeping(self, statement: Tree) -> tuple[Keeping, Compiled]:
        """The statement as a function that keeps what it binds on its way, if it is a loop or a branch."""
        keeping = Keeping(statement)
        with suppress(CompileError):
            return keeping, self._compile([keeping.tree], len(keeping.loops))
        found = self._compile([statement])  # the error of the statement as it was written tells more
        names = dict.fromkeys(names_of([statement]).assigned)
        without = [*names]
        for name in names:  # a function, for one, is no value that could be stored
            tried = Keeping(statement, {*without} - {name})
            with suppress(CompileError):
                found, keeping = self._compile([tried.tree], len(tried.loops)), tried
                without.remove(name)
        return keeping, found

    def _keep(self, entry: EntryFunction, kept: Mapping[str, Any], where: str = "") -> list[Reply]:
        """Bind what a statement has bound on its way; a reply says where that was, and what is bound."""
        types = {**types_kept(entry.function, kept), **dict(entry.results)}
        for name, value in kept.items():
            self.variables[name] = SessionVariable(value, types[name])
        said = [f"stopped in {where}"] if where else []
        said += [f"{', '.join(kept)} {'keep what they' if len(kept) > 1 else 'keeps what it'} had"] if kept else []
        return [TextReply("; ".join(said))] if said else []

    def _call_on_module(self, statement: Tree) -> list[Reply] | None:
        """The replies to a call of a method that Python's modules have, `m.eval()`; None for anything else."""
        found = called(statement, self.seen())
        if found is None:
            return None
        self.bind(found.target or LAST, found.answer.value, found.answer.type)
        return [] if found.target else [found.answer.reply]

    def _name_alone(self, only: Tree) -> list[Reply] | None:
        """The reply to the name of a function, class or module standing alone; None for anything else."""
        if only.kind != ExprStmt.kind or ExprStmt(only).expression.kind != Var.kind:
            return None
        name = Var(ExprStmt(only).expression).name
        if name in self.variables:
            value = self.variables[name].value
            return [ModuleReply(name, module_node(name, value))] if _is_module(value) else None
        signature = self.definitions.signature(name)
        return None if signature is None else [SchemaReply(name, (signature,))]

    def _narrow(self, statement: Tree, entry: EntryFunction) -> None:
        """After `assert x is not None` x is no longer optional, as it would not be for the rest of a function."""
        if statement.kind != "assert":
            return
        for name in entry.parameters:
            variable = self.variables[name]
            if isinstance(variable.type, OptionalType) and variable.value is not None:
                variable.type = variable.type.element

    # -- expressions

    def suggested(self, call: str) -> str:
        """The call as a suggested command takes it."""
        return f"{self.option}{call}"

    @contextmanager
    def suggesting(self, option: str) -> Iterator[None]:
        """While the block runs, suggested commands have the option."""
        before, self.option = self.option, f"{option} "
        try:
            yield
        finally:
            self.option = before

    @contextmanager
    def command(self) -> Iterator[None]:
        """While the block runs, an expression makes its modules once, however often it is looked at."""
        before, self._expressions = self._expressions, {}
        try:
            yield
        finally:
            self._expressions = before

    def compile_expression(self, text: str) -> tuple[Function, list[Any]]:
        """A function that computes the expression, and its arguments.  Raises CompileError, UsageError."""
        entry, arguments, *_ = self._compile(self._expression(text))
        return entry.function, arguments

    def evaluate(self, text: str, filename: str = "<expression>") -> tuple[Any, Type]:
        """The value of an expression and its type.  Raises CompileError, ExecutionError, UsageError."""
        entry, arguments, *_ = self._compile(self._expression(text, filename))
        return self.run(entry.function, arguments), entry.results[-1][1]

    def _expression(self, text: str, filename: str = "<expression>") -> list[Tree]:
        if not text.strip():
            raise UsageError("an expression is wanted")
        known = self._expressions.get(text) if self._expressions is not None else None
        if known is not None:
            tree, self._made = known
            return [tree]
        trees = parse_statements(Source(text, filename), extended=True)
        if len(trees) != 1 or trees[0].kind != ExprStmt.kind:
            raise UsageError(f"'{text}' is not an expression")
        tree = self._with_made(trees[0])
        if self._made and self._expressions is not None:
            self._expressions[text] = tree, self._made
        return [tree]

    def _compile(self, statements: Sequence[Tree], loops: int = 0) -> Compiled:
        trees, found = plain(statements, self.seen())
        kept, rounds = dict[str, Any](), [0] * loops
        known = {KEPT: (kept, KEPT_TYPE), ROUNDS: (rounds, ROUNDS_TYPE), **found}
        known |= {name: (variable.value, variable.type) for name, variable in self.seen().items()}
        types = {name: type for name, (_, type) in known.items()}
        entry = compile_entry(trees, types, lambda annotations: self.resolver(annotations, types), LAST)
        return Compiled(entry, [known[name][0] for name in entry.parameters], kept, rounds)

    def seen(self) -> Mapping[str, SessionVariable]:
        """The variables that a statement sees; in a dialogue those of its program hide others."""
        if self.partner is None:
            return {**self.variables, **self._made} if self._made else self.variables
        theirs = {name: SessionVariable(value, type) for name, (value, type) in self.partner.values().items()}
        return {**self.variables, **self._made, **theirs}

    def resolver(self, annotations: Mapping[str, Type], variables: Iterable[str]) -> PromptResolver:
        """The resolver of names at the prompt where these variables are seen."""
        return PromptResolver(self.definitions, annotations, variables)

    def run(self, function: Function, arguments: Sequence[Any]) -> Any:
        """Run a function on values.  Raises ExecutionError."""
        try:
            return run_function(function, arguments)
        except ExecutionError:
            self.failed = function, [*arguments]
            raise

    def show(self, value: Any, type: Type, path: str = "") -> Reply:
        """The reply that shows a value; `path` is the expression that gave it."""
        if _is_module(value):
            name = path if self.type_of_path(path) is not None else short_name(value.type)
            return ModuleReply(name, module_node(name, value))
        facts = tensor_facts(value) if isinstance(value, Tensor) else ""
        return ValueReply(value, without_scopes(str(type)), value_text(value, type), facts, LAST)

    # -- names

    def bind(self, name: str, value: Any, type: Type) -> None:
        """Give a value a name."""
        self.variables[name] = SessionVariable(value, type)

    def lookup(self, name: str) -> Any:
        """The variable's value, what lies in it (`m.encoder`), or the function.  Raises UsageError.

        A method is none of these: it is nothing without its module.
        """
        name = self.dotted(name)
        base, *rest = name.split(".")
        known = self.seen()
        if base in known:
            return self._inside(name, known[base].value, rest)
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

    def dotted(self, path: str) -> str:
        """The path with names for numbers: `m.layers.0` for `m.layers[0]`; other texts as they are."""
        if "[" not in path:
            return path
        try:
            (tree,), _ = plain(self._expression(path), self.seen())
        except EngineError:
            return path
        return path_of(ExprStmt(tree).expression) or path

    def functions(self) -> dict[str, Function]:
        return dict(self.definitions.unit.functions)

    def reset(self) -> None:
        """Forget every name."""
        self.variables.clear()
        self.definitions = Definitions()
        self.failed = self._own_python = None
        self._made.clear()

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
        name, *rest = self.dotted(path).split(".")
        known = self.seen()
        type = known[name].type if name in known else self._type_of_class(name)
        for part in rest:
            attribute = type.attribute(part) if isinstance(type, ClassType) else None
            type = attribute.type if attribute else None
        return type

    def _type_of_class(self, name: str) -> Type | None:
        """The class that is defined here; of a class of modules, the type of the newest module."""
        found = self.definitions.outside.get(name)
        return self.definitions.unit.find_type(name) or (None if found is None else outside.newest_type(found))

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
        found = self._named(self.dotted(text))
        if found is None and text.isidentifier() and text not in self.seen():
            raise self._unknown(text)
        return found

    def method(self, path: str) -> Function | None:
        """The method `m.encode`, or the `forward` of the module `m`; None for anything else."""
        return self._named(self.dotted(path)) if path.partition(".")[0] in self.seen() else None

    def tree_of(self, text: str) -> Tree:
        """The syntax tree of a definition or an expression.  Raises UsageError, ParseError."""
        tree = self.definitions.tree(text)
        if tree is not None:
            return tree
        if self._named(self.dotted(text)) is not None:
            raise UsageError(
                f"'{text}' was not typed here, so there is no tree of it", hints=(f"%code {text} shows its text",)
            )
        if text.isidentifier() and text not in self.seen():
            raise self._unknown(text)
        return ExprStmt(self._expression(text)[0]).expression

    def _function(self, name: str) -> Function | None:
        """The function that is defined here or comes from outside.  Raises CompileError, UsageError."""
        return self.functions().get(name) or outside.outside_function(self.definitions.outside, name)

    def _named(self, text: str) -> Function | None:
        function = self._function(text) if text not in self.seen() else None
        if function is not None:
            return function
        type = self.type_of_path(text)
        if isinstance(type, ClassType):
            return _method(type, "forward")
        owner = self.type_of_path(text.rpartition(".")[0])
        return _method(owner, text.rpartition(".")[2]) if isinstance(owner, ClassType) else None

    def _unknown(self, name: str) -> SessionError:
        if self.definitions.module_class(name) is not None:
            return UsageError(f"no {name} has been made so far", hints=(f"make one: m = {name}(...)",))
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
