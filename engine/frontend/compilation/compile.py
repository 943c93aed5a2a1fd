"""From definitions to functions.

In: text, or trees, and a resolver for the names they do not define.  Out: functions of a compilation unit,
each compiled when it is first needed: tree, raw graph, SSA form, early exits removed, cleaned up.

    unit = compile_source("def f(x):\\n    return x + x")
    print(unit.functions["f"].graph)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.frontend.compilation.class_definitions import define_type
from engine.frontend.compilation.function_schema import read_signature
from engine.frontend.names.resolve import Resolver, TextResolver, qualified, type_value
from engine.frontend.names.type_annotations import TypeReader
from engine.frontend.standard_library import library
from engine.frontend.standard_library.written_operators import OperatorDefinition, sources
from engine.frontend.sugared.classes import ChosenByFlag, FunctionValue
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.syntax.parser import parse_program
from engine.frontend.syntax.tree import Tree, variables
from engine.frontend.syntax.views import ClassDef, Def
from engine.ir.graph import Value
from engine.ir.unit import DEFINING, CompilationUnit, Function
from engine.lang.deferred import deferred
from engine.lang.errors import CompileError, EngineError, FollowUpError, ParseError, together
from engine.lang.interpreter_settings import collecting_rarely, deep_recursion
from engine.lang.records import dataclass
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.source import Source, SourceRange
from engine.lang.types import ClassType, Type

if TYPE_CHECKING:
    from engine.frontend import emit
    from engine.frontend.diagnostics import cautions
    from engine.frontend.emit import body
else:
    emit = deferred("engine.frontend.emit")
    cautions = deferred("engine.frontend.diagnostics.cautions")
    body = deferred("engine.frontend.emit.body")

MakeSelf = Callable[[Value], SugaredValue]
"""First argument of a method -> the sugared value that `self` stands for."""


def compile_source(
    text: str,
    resolver: Resolver | None = None,
    unit: CompilationUnit | None = None,
    filename: str = "<string>",
    *,
    classes: bool = True,
    strict: bool = True,
) -> CompilationUnit:
    """Compile every definition of the text, classes only if these are allowed.

    Text of the engine, which is not `strict`, may call every operator as a function of `torch`.

    Raises CompileError for its mistakes; the unit is then unchanged.
    """
    unit = unit if unit is not None else CompilationUnit()
    trees = parse_program(Source(text, filename))
    for tree in trees:
        if tree.kind == "class_def" and not classes:
            raise ParseError(
                "expected def but found 'class' here",
                SourceRange(tree.range.source, tree.range.start, tree.range.start + len("class")),
                hints=("write the class in Python, and compile it with torch.jit.script",),
            )
    define(unit, trees, resolver or TextResolver(unit, strict=strict))
    return unit


@dataclass(eq=False, slots=True)
class Attempt:
    """Definitions that are compiled together: their errors so far, and what failed, so that each is reported once."""

    errors: list[EngineError] = field(default_factory=list)
    functions: set[Function] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Keep the CompileError of the block; it is raised when all definitions were compiled."""
        try:
            yield
        except CompileError as error:
            self.errors.append(error)

    def misses(self, tree: Tree) -> bool:
        """True if the definition uses a class that failed, so that its own errors mean nothing."""
        return bool(self.classes) and not self.classes.isdisjoint(variables(tree))


def define_class(
    unit: CompilationUnit,
    tree: Tree,
    resolver: Resolver,
    prefix: str = "",
    attempt: Attempt | None = None,
    resolvers: Mapping[str, Resolver] | None = None,
) -> Type:
    """Add the class to the unit under `prefix.name`; `__init__` is compiled now, other methods when they are needed.

    `resolvers` has the names that methods see that stand elsewhere.  Raises CompileError; the class is not in the unit
    then.
    """
    view, elsewhere = ClassDef(tree), resolvers or {}
    qualname = qualified(prefix, view.name)

    def declare_methods(trees: Iterable[Tree], type: ClassType) -> list[Function]:
        made: list[Function] = []
        for each in trees:
            made += declare(unit, [each], elsewhere.get(Def(each).name, resolver), qualname, type, attempt=attempt)
        return made

    try:
        with DEFINING, unit.attempt():
            type = define_type(unit, qualname, view, lambda: _emitter(unit, resolver), declare_methods)
            init = unit.find_function(qualified(qualname, "__init__"))
            if init is not None:
                init.ensure_defined()
    except CompileError:
        if attempt is not None:
            attempt.classes.add(view.name)
        raise
    return type


def define(
    unit: CompilationUnit,
    trees: Sequence[Tree],
    resolver: Resolver,
    prefix: str = "",
    self_type: ClassType | None = None,
) -> list[Function]:
    """Add the functions (methods, with `self_type`) and classes to the unit under `prefix.name`, and compile them.

    Raises CompileError: the first, with every other independent one; the unit is then unchanged.
    """
    with DEFINING, unit.attempt(), collecting_rarely():
        known, attempt = set(unit.functions), Attempt()
        for tree in trees:
            if tree.kind == "class_def" and not attempt.misses(tree):
                with attempt.collecting():
                    define_class(unit, tree, resolver, prefix, attempt)
        wanted = [tree for tree in trees if tree.kind == "def" and not attempt.misses(tree)]
        added: list[Function] = []
        with attempt.collecting():
            added = declare(unit, wanted, resolver, prefix, self_type, attempt=attempt)
        for function in [function for name, function in unit.functions.items() if name not in known]:
            with attempt.collecting():
                function.ensure_defined()
        if attempt.errors:
            raise together(attempt.errors)
    return added


def declare(
    unit: CompilationUnit,
    trees: Sequence[Tree],
    resolver: Resolver,
    prefix: str = "",
    self_type: ClassType | None = None,
    make_self: MakeSelf | None = None,
    attempt: Attempt | None = None,
) -> list[Function]:
    """Add functions to the unit as `define` does, each compiled only when it is first needed.

    With `make_self`, `self` is no variable but the sugared value that it makes of the first argument.
    """
    added: list[Function] = []
    make = partial(
        _create, unit=unit, resolver=resolver, self_type=self_type, make_self=make_self, attempt=attempt
    )  # fmt: skip
    with DEFINING, unit.attempt():
        for tree in trees:
            name = qualified(prefix, Def(tree).name)
            try:
                function = unit.add_function(Function(name, partial(make, tree=tree), doc=Def(tree).docstring))
            except CompileError as error:
                error.range = tree.child(0).range
                raise
            added.append(function)
            if self_type is not None:
                unit.on_undo(partial(self_type.methods.pop, function.name, None))
                self_type.methods[function.name] = function
    return added


def _create(
    function: Function,
    *,
    unit: CompilationUnit,
    tree: Tree,
    resolver: Resolver,
    self_type: ClassType | None,
    make_self: MakeSelf | None,
    attempt: Attempt | None,
) -> None:
    """Compile one function, with a higher recursion limit, since trees are walked recursively."""
    if attempt is not None and function in attempt.functions:
        raise FollowUpError(f"'{function.name}' does not compile", tree.range)
    try:
        with deep_recursion():
            _compile(function, unit, Def(tree), resolver, self_type, make_self, remembers=attempt is not None)
    except CompileError as error:
        error.within(function.name)
        if attempt is not None:
            attempt.functions.add(function)
        raise
    except RecursionError:
        raise CompileError(
            "functions that need each other to be compiled form too long a chain",
            tree.range,
            hints=("define the functions in an order in which each calls earlier ones",),
        ) from None


def _compile(
    function: Function,
    unit: CompilationUnit,
    view: Def,
    resolver: Resolver,
    self_type: ClassType | None,
    make_self: MakeSelf | None,
    *,
    remembers: bool,
) -> None:
    schema = read_signature(view, function.name, self_type, TypeReader(resolver), lambda: _emitter(unit, resolver))
    e = _emitter(unit, resolver)
    e.recovery.remembers = remembers
    e.initializes = self_type if function.name == "__init__" else None
    for index, (param, argument) in enumerate(zip(view.decl.params, schema.arguments, strict=True)):
        value = e.graph.add_input(argument.name, argument.type)
        if index == 0 and make_self is not None:
            e.environment.define_sugared(argument.name, make_self(value))
        else:
            e.store(argument.name, value, argument.type, param.range)
    e.declared = schema.returns[0].type if schema.returns else None
    body.compile_body(e, view.body)
    found = cautions.cautions(view.tree, e.graph)
    returns = (Argument("", body.finish(e, view.range)),)
    function.cautions = (*found, *e.lost_writes)
    function.define(FunctionSchema(schema.name, "", schema.arguments, returns), e.graph)


def signature_of(
    unit: CompilationUnit, tree: Tree, resolver: Resolver, self_type: Type | None = None
) -> FunctionSchema:
    """The schema that a definition declares; nothing of its body is compiled.  Raises CompileError."""
    view = Def(tree)
    return read_signature(view, view.name, self_type, TypeReader(resolver), lambda: _emitter(unit, resolver))


def _emitter(unit: CompilationUnit, resolver: Resolver) -> emit.Emitter:
    return emit.Emitter(unit, written_overloads, library_value, resolver=resolver, rules=emit.RULES)


# -- operators that are written in TorchScript

_written_unit: Final = CompilationUnit()
_written: Final[dict[str, list[Function]]] = {}


def written_overloads(name: str) -> Sequence[Function]:
    """Overloads of the operator that are written in TorchScript, their bodies compiled when first needed."""
    if name not in _written and name in sources():
        with DEFINING, _written_unit.attempt():
            if name not in _written:
                _written[name] = [_declare_written(name, index, each) for index, each in enumerate(sources()[name])]
    return _written.get(name, ())


def _declare_written(name: str, index: int, written: OperatorDefinition) -> Function:
    (tree,) = parse_program(Source(written.text, "<builtin>", written.line))
    prefix = f"{name.replace('::', '.')}.{index}"
    resolver = TextResolver(_written_unit, prefix)
    (function,) = declare(_written_unit, [tree], resolver, prefix)
    types = TypeReader(resolver)
    function.declare(read_signature(Def(tree), function.name, None, types, lambda: _emitter(_written_unit, resolver)))
    return function


# -- functions and classes of the torch namespace that are written in TorchScript

_library_unit: Final = CompilationUnit()


def library_value(path: str) -> SugaredValue | None:
    """The sugared value for `torch.nn.functional.relu` and the like; None if the standard library has no such name."""
    choice = library.DISPATCHES.get(path)
    if choice is not None:
        when_true, when_false = library_value(choice.when_true), library_value(choice.when_false)
        assert when_true is not None
        assert when_false is not None
        return ChosenByFlag(choice.argument, choice.position, when_true, when_false)
    functions = []
    for index, definition in enumerate(library.find(path)):
        found = _library_definition(definition, path.rpartition(".")[2], index)
        if not isinstance(found, Function):
            return type_value(found)
        functions.append(found)
    return FunctionValue(*functions) if functions else None


def is_library(function: Function) -> bool:
    """True for a function of the torch namespace, or an operator, that is written in TorchScript."""
    return any(unit.find_function(function.qualname) is function for unit in (_library_unit, _written_unit))


def _library_definition(definition: library.Definition, name: str, index: int) -> Function | Type:
    """The function or class, compiled at its first use; overloads after the first have a scope of their own."""
    scope = qualified(definition.scope, f"overload_{index}") if index else definition.scope
    qualname = qualified(scope, name)
    with DEFINING:
        known = _library_unit.find_function(qualname) or _library_unit.find_type(qualname)
        if known is not None:
            return known
        filename = f"<{definition.scope.removeprefix('__torch__.')}>"
        (tree,) = parse_program(Source(definition.text, filename, definition.line))
        if tree.kind == "class_def":
            return define_class(_library_unit, tree, _LibraryResolver(definition.scope), scope)
        return declare(_library_unit, [tree], _LibraryResolver(definition.scope), scope)[0]


class _LibraryResolver(TextResolver):
    """Names in the standard library: those of any text, and the other definitions of its scope."""

    def __init__(self, scope: str) -> None:
        super().__init__(_library_unit, scope)

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        own = library_value(f"{self.prefix.removeprefix('__torch__.')}.{name}")
        return own or super().resolve_value(b, name, range)
