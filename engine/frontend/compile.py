"""From definitions to functions.

In: text, or trees, and a resolver for the names they do not define.  Out: functions of a compilation unit,
each compiled when it is first needed: tree, raw graph, SSA form, early exits removed, cleaned up.

    unit = compile_source("def f(x):\\n    return x + x")
    print(unit.functions["f"].graph)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from engine.frontend import library
from engine.frontend.builder import Builder
from engine.frontend.cautions import cautions
from engine.frontend.class_definitions import define_type
from engine.frontend.classes import ChosenByFlag, FunctionValue
from engine.frontend.emit import RULES, Emitter
from engine.frontend.function_schema import read_signature
from engine.frontend.lower import finish
from engine.frontend.parser import parse_program
from engine.frontend.resolve import Resolver, TextResolver, qualified, type_value
from engine.frontend.sugar import SugaredValue
from engine.frontend.tree import Tree
from engine.frontend.views import ClassDef, Def
from engine.frontend.written_operators import sources
from engine.ir.graph import Value
from engine.ir.unit import CompilationUnit, Function
from engine.lang.errors import CompileError
from engine.lang.recursion import deep_recursion
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.source import Source, SourceRange
from engine.lang.types import ClassType, Type

MakeSelf = Callable[[Value], SugaredValue]
"""What `self` stands for in the methods of a class."""


def compile_source(
    text: str, resolver: Resolver | None = None, unit: CompilationUnit | None = None, filename: str = "<string>"
) -> CompilationUnit:
    """Compile every definition of the text.  Raises CompileError at the first mistake; the unit is as before then."""
    unit = unit if unit is not None else CompilationUnit()
    trees = parse_program(Source(text, filename))
    define(unit, trees, resolver or TextResolver(unit))
    return unit


def define_class(unit: CompilationUnit, tree: Tree, resolver: Resolver, prefix: str = "") -> Type:
    """Add the class to the unit under `prefix.name`; `__init__` is compiled now, other methods when they are needed.

    Raises CompileError; the class is not in the unit then.
    """
    view = ClassDef(tree)
    qualname = qualified(prefix, view.name)

    def declare_methods(trees: Iterable[Tree], type: ClassType) -> list[Function]:
        return declare(unit, list(trees), resolver, qualname, type)

    functions, types = set(unit.functions), set(unit.types)
    try:
        type = define_type(unit, qualname, view, lambda: _emitter(unit, resolver), declare_methods)
        init = unit.find_function(qualified(qualname, "__init__"))
        if init is not None:
            init.ensure_defined()
    except CompileError:
        _restore(unit, functions, types, None)
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

    Raises CompileError; the unit is as before then.
    """
    functions, types = set(unit.functions), set(unit.types)
    try:
        for tree in trees:
            if tree.kind == "class_def":
                define_class(unit, tree, resolver, prefix)
        added = declare(unit, [tree for tree in trees if tree.kind == "def"], resolver, prefix, self_type)
        for function in [function for name, function in unit.functions.items() if name not in functions]:
            function.ensure_defined()
    except CompileError:
        _restore(unit, functions, types, self_type)
        raise
    return added


def _restore(unit: CompilationUnit, functions: set[str], types: set[str], self_type: ClassType | None) -> None:
    """Forget what is not among those names."""
    for name in set(unit.types) - types:
        del unit.types[name]
    for name in set(unit.functions) - functions:
        if self_type is not None:
            self_type.methods.pop(unit.functions[name].name, None)
        unit.remove_function(name)


def declare(
    unit: CompilationUnit,
    trees: Sequence[Tree],
    resolver: Resolver,
    prefix: str = "",
    self_type: ClassType | None = None,
    make_self: MakeSelf | None = None,
) -> list[Function]:
    """The same, but each function is compiled only when it is first needed.

    With `make_self`, `self` is no variable but what that makes of the first argument.
    """
    added: list[Function] = []
    try:
        for tree in trees:
            creator = partial(
                _create, unit=unit, tree=tree, resolver=resolver, self_type=self_type, make_self=make_self
            )
            function = unit.add_function(Function(qualified(prefix, Def(tree).name), creator))
            added.append(function)
            if self_type is not None:
                self_type.methods[function.name] = function
    except CompileError:
        for function in added:
            unit.remove_function(function.qualname)
        raise
    return added


def _create(
    function: Function,
    *,
    unit: CompilationUnit,
    tree: Tree,
    resolver: Resolver,
    self_type: ClassType | None,
    make_self: MakeSelf | None,
) -> None:
    """Compile one function; trees are walked recursively, so they need room."""
    try:
        with deep_recursion():
            _compile(function, unit, Def(tree), resolver, self_type, make_self)
    except RecursionError:
        raise CompileError("functions that need each other to be compiled form too long a chain", tree.range) from None


def _compile(
    function: Function,
    unit: CompilationUnit,
    view: Def,
    resolver: Resolver,
    self_type: ClassType | None,
    make_self: MakeSelf | None,
) -> None:
    schema = read_signature(view, function.name, self_type, lambda: _emitter(unit, resolver))
    e = _emitter(unit, resolver)
    e.initializes = self_type if function.name == "__init__" else None
    for index, (param, argument) in enumerate(zip(view.decl.params, schema.arguments, strict=True)):
        value = e.graph.add_input(argument.name, argument.type)
        if index == 0 and make_self is not None:
            e.environment.define_sugared(argument.name, make_self(value))
        else:
            e.store(argument.name, value, argument.type, param.range)
    e.declared = schema.returns[0].type if schema.returns else None
    e.statements(view.body)
    function.cautions = cautions(view.tree, e.graph)
    returns = (Argument("", finish(e, view.range)),)
    function.define(FunctionSchema(schema.name, "", schema.arguments, returns), e.graph)


def signature_of(
    unit: CompilationUnit, tree: Tree, resolver: Resolver, self_type: Type | None = None
) -> FunctionSchema:
    """The schema that a definition declares; nothing of its body is compiled.  Raises CompileError."""
    view = Def(tree)
    return read_signature(view, view.name, self_type, lambda: _emitter(unit, resolver))


def _emitter(unit: CompilationUnit, resolver: Resolver) -> Emitter:
    return Emitter(unit, written_overloads, library_value, resolver=resolver, rules=RULES)


# -- operators that are written in TorchScript

_written_unit: Final = CompilationUnit()
_written: Final[dict[str, list[Function]]] = {}


def written_overloads(name: str) -> Sequence[Function]:
    """Overloads of the operator that are written in TorchScript, their bodies compiled when first needed."""
    if name not in _written:
        _written[name] = [_declare_written(name, index, text) for index, text in enumerate(sources().get(name, ()))]
    return _written[name]


def _declare_written(name: str, index: int, text: str) -> Function:
    (tree,) = parse_program(Source(text, "<builtin>"))
    prefix = f"{name.replace('::', '.')}.{index}"
    resolver = TextResolver(_written_unit, prefix)
    (function,) = declare(_written_unit, [tree], resolver, prefix)
    function.declare(read_signature(Def(tree), function.name, None, lambda: _emitter(_written_unit, resolver)))
    return function


# -- functions and classes of the torch namespace that are written in TorchScript

_library_unit: Final = CompilationUnit()


def library_value(path: str) -> SugaredValue | None:
    """What `torch.nn.functional.relu` and the like stand for; None where no library text defines the name."""
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
    """Is it a function of the torch namespace, or an operator, that is written in TorchScript?"""
    return any(unit.find_function(function.qualname) is function for unit in (_library_unit, _written_unit))


def _library_definition(definition: library.Definition, name: str, index: int) -> Function | Type:
    """The function or class, compiled at its first use; overloads after the first have a scope of their own."""
    scope = qualified(definition.scope, f"overload_{index}") if index else definition.scope
    known = _library_unit.find_function(qualified(scope, name)) or _library_unit.find_type(qualified(scope, name))
    if known is not None:
        return known
    filename = f"<{definition.scope.removeprefix('__torch__.')}>"
    (tree,) = parse_program(Source(definition.text, filename, definition.line))
    if tree.kind == "class_def":
        return define_class(_library_unit, tree, _LibraryResolver(definition.scope), scope)
    return declare(_library_unit, [tree], _LibraryResolver(definition.scope), scope)[0]


class _LibraryResolver(TextResolver):
    """Names in library code: those of any text, and the other definitions of its scope."""

    def __init__(self, scope: str) -> None:
        super().__init__(_library_unit, scope)

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        own = library_value(f"{self.prefix.removeprefix('__torch__.')}.{name}")
        return own or super().resolve_value(b, name, range)
