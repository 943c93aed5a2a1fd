"""Python modules as TorchScript: their types, and their methods.

In: an instance of `torch.nn.Module` (known by its class's `_torchscript_module`) or something compiled.  Out: its
`ConcreteModule`.  Modules of one class whose attributes, constants, hooks and submodules have the same types share
one; a further type of the same name gets a mangled one.  Methods are compiled when first needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

from engine.aten.values.ivalue import Object
from engine.frontend.compilation.compile import declare, signature_of
from engine.frontend.names.resolve import ChainedResolver, TextResolver
from engine.frontend.python.ignored_functions import PythonFunction
from engine.frontend.python.modifiers import IGNORED, modifier_of
from engine.frontend.python.module_description import (
    Description,
    Misfit,
    check_initialized,
    describe,
    methods_to_compile,
)
from engine.frontend.python.module_hooks import compile_hooks, declare_hooks
from engine.frontend.python.overloads import overloads_of, refuse_missing_implementation, renamed, with_signature
from engine.frontend.python.resolver import PythonResolver, PythonUnit, annotations_of, names_of
from engine.frontend.python.trees import tree_from_function
from engine.frontend.sugared.classes import FunctionValue
from engine.frontend.sugared.modules import ConcreteModule, ModuleValue
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import MethodValue
from engine.frontend.syntax.parser import parse_expression, parse_methods, parse_program
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Decl, Def, Param
from engine.ir.unit import DEFINING, Function
from engine.lang.errors import CompileError
from engine.lang.literals import string_literal
from engine.lang.records import dataclass
from engine.lang.source import Source, SourceRange
from engine.lang.types import ClassType, InterfaceType

_OF_ALL_MODULES: Final = ("engine.torch.nn.modules.module", "engine.torch.nn.modules.state")
_LENGTH: Final = "def __len__(self) -> int:\n    return {}\n"
_CONTAINS: Final = "def __contains__(self, key: str) -> bool:\n    return {}\n"


@dataclass(slots=True)
class _Named:
    """The name that a type was given; the next one like it has it again, once the type is gone."""

    name: str
    type: ref[ClassType]


class PythonModules:
    """The modules that were compiled of one Python program."""

    def __init__(self, python: PythonUnit, misfit: Misfit) -> None:
        self.python, self._misfit = python, misfit
        self._known: WeakKeyDictionary[type, dict[int, list[_Named]]] = WeakKeyDictionary()
        self._newest: WeakKeyDictionary[type, ref[ClassType]] = WeakKeyDictionary()

    def begin_anew(self) -> None:
        """Make new types for all modules from now on."""
        with DEFINING:
            self.python.begin_anew()
            self._known.clear()
            self._newest.clear()

    def concrete(self, module: Any) -> ConcreteModule:
        """The module's type, made if there is none like it yet.  Raises CompileError."""
        inner = getattr(module, "_ivalue", None)
        if isinstance(inner, Object):
            return self.of_type(inner.type)
        check_initialized(module)
        with DEFINING, self.python.attempt():
            children = {name: self._child(module, name, each) for name, each in _children(module)}
            types = {name: child.type for name, child in children.items()}
            description = describe(module, self.python, types, self._misfit)
            alike = self._known.setdefault(type(module), {}).setdefault(description.digest(), [])
            for each in alike:
                if (known := self._concrete_of(each)) is not None and known.description == description:
                    return known
            again = next((each for each in alike if self.python.unit.find_type(each.name) is None), None)
            concrete = self._make(type(module), description, children, None if again is None else again.name)
            if again is None:
                alike.append(_Named(concrete.type.qualname, ref(concrete.type)))
            else:
                again.type = ref(concrete.type)
        return concrete

    def _concrete_of(self, known: _Named) -> ConcreteModule | None:
        """None for a type that is gone, or was removed again, since what it was compiled with failed."""
        type = known.type()
        found = None if type is None or self.python.unit.find_type(known.name) is not type else type.concrete
        return found if isinstance(found, ConcreteModule) else None

    def of_type(self, type: ClassType) -> ConcreteModule:
        """The concrete module of a type: one that was made here, or any other, as archives have them."""
        return type.concrete if isinstance(type.concrete, ConcreteModule) else ConcreteModule(type)

    def newest(self, cls: type) -> ClassType | None:
        """The type of the module of the class whose type was made last."""
        found = self._newest.get(cls)
        return None if found is None else found()

    @contextmanager
    def apart(self) -> Iterator[None]:
        """The types of modules that are made in the block are not shared with others."""
        before, self._known = self._known, WeakKeyDictionary()
        try:
            yield
        finally:
            self._known = before

    def forget(self, cls: type) -> None:
        """Compile later modules of the class anew: what their methods use has changed."""
        self._known.pop(cls, None)

    def method(self, type: ClassType, name: str) -> Function | None:
        """The method, compiled now if only the Python class has it; None if no program can call one of that name.

        Raises CompileError.
        """
        cls = type.python_class
        member = None if cls is None else inspect.getattr_static(cls, name, None)
        if name not in type.methods and inspect.isfunction(member) and not _stays_in_python(member):
            with DEFINING, self.python.attempt():
                if name not in type.methods:
                    self._declare(self.of_type(type), name, member)
                self.compile(self.of_type(type))
        found = type.methods.get(name)
        return found if isinstance(found, Function) else None

    def compile(self, concrete: ConcreteModule, interface: InterfaceType | None = None) -> None:
        """Compile every method that is declared, and those that the interface wants.  Raises CompileError."""
        cls = concrete.type.python_class
        for name in interface.methods if interface is not None and cls is not None else ():
            if name not in concrete.type.methods and inspect.isfunction(getattr(cls, name, None)):
                self._declare(concrete, name, getattr(cls, name))
        for callee in list(concrete.type.methods.values()):
            assert isinstance(callee, Function)
            callee.ensure_defined()
        if concrete.compile_hooks is not None:
            concrete.compile_hooks()

    def define(self, concrete: ConcreteModule, text: str) -> None:
        """Add methods given as text.  Raises CompileError."""
        cls, unit = concrete.type.python_class, self.python.unit
        names = PythonResolver(self.python, {} if cls is None else names_of(cls))
        resolver = ChainedResolver(TextResolver(unit), names)
        declare(
            unit, parse_methods(Source(text)), resolver, concrete.type.qualname, concrete.type, self._self(concrete)
        )

    def export(self, module: Any, made: ClassType) -> None:
        """Declare the methods that the module's class exports in a type that was made without them, by a trace, and
        the attributes that they may use.  Raises CompileError."""
        cls = type(module)
        names = [name for name in methods_to_compile(cls) if name != "forward"]
        if not names:
            return
        children = {a.name: a.type for a in made.attributes if isinstance(a.type, ClassType) and a.type.is_module}
        description = describe(module, self.python, children, self._misfit)
        for name, attribute, kind in description.attributes:
            if made.attribute(name) is None:
                made.add_attribute(name, attribute, kind)
        concretes = {name: self.of_type(child) for name, child in children.items()}
        concrete = self._concrete_for(made, cls, description, concretes)
        own = dict(description.own_methods)
        for name in names:
            self._declare(concrete, name, own.get(name) or getattr(cls, name))

    # -- making types

    def _child(self, module: Any, name: str, child: Any) -> _Child:
        """The type of a submodule: the interface that it is annotated with, or its own."""
        annotated = self._annotated_interface(type(module), name)
        concrete = self.concrete(child)
        return _Child(annotated or concrete.type, concrete)

    def _annotated_interface(self, cls: type, name: str) -> InterfaceType | None:
        annotated = annotations_of(cls).get(name)
        if annotated is None:
            return None
        try:
            found = PythonResolver(self.python, names_of(annotated.owner)).annotation(annotated.hint)
        except CompileError:
            return None
        return found if isinstance(found, InterfaceType) else None

    def _make(
        self, cls: type, description: Description, children: Mapping[str, _Child], name: str | None
    ) -> ConcreteModule:
        type = ClassType(name or self.python.free_name(cls), is_module=True, python_class=cls)
        self.python.unit.add_type(type.qualname, type)
        for name, attribute, kind in description.attributes:
            type.add_attribute(name, attribute, kind)
        for name, child in children.items():
            type.add_attribute(name, child.type)
        concretes = {n: c.concrete for n, c in children.items() if isinstance(c.type, ClassType)}
        concrete = self._concrete_for(type, cls, description, concretes)
        self._newest[cls] = ref(type)
        self._declare_methods(concrete, cls, description)
        return concrete

    def _concrete_for(
        self, type: ClassType, cls: type, description: Description, concretes: dict[str, ConcreteModule]
    ) -> ConcreteModule:
        """The concrete module of a type whose attributes are declared, with the constants of the description."""
        type.constants.update((name, value) for name, value, _ in description.constants)
        type.unresolved.update(description.unresolved)
        kind = getattr(cls, "_container_kind", "")
        concrete = ConcreteModule(type, kind, concretes, description=description, parts=description.parts)
        functions = dict(description.functions)
        concrete.lookup = partial(self._lookup, cls, functions, dict(description.own_methods))
        type.concrete = concrete
        return concrete

    def _declare_methods(self, concrete: ConcreteModule, cls: type, description: Description) -> None:
        """`forward`, what is exported, properties, hooks, and what containers are asked for."""
        own = dict(description.own_methods)
        for name, functions in _properties(cls):
            made = [
                self._method(concrete, renamed(tree_from_function(function), f"__{name}_{role}"), function)
                for function, role in zip(functions, ("getter", "setter"), strict=False)
            ]
            concrete.type.properties[name] = (made[0], made[1] if len(made) > 1 else None)
        overloaded = [name for name, member in inspect.getmembers(cls, inspect.isfunction) if overloads_of(member)]
        for name in dict.fromkeys([*overloaded, *description.methods]):
            self._declare(concrete, name, own.get(name) or getattr(cls, name))
        for text in description.texts:
            self.define(concrete, text)
        hooks = declare_hooks(concrete.type, description.pre_hooks, description.hooks, partial(self._hook, concrete))
        concrete.compile_hooks = partial(compile_hooks, concrete.type, hooks) if hooks else None
        if description.length is not None:
            self._declare_text(concrete, _LENGTH.format(description.length))
        if concrete.container == "dict":
            names = list(description.parts or (name for name, _ in description.children))
            listed = ", ".join(map(string_literal, names))
            self._declare_text(concrete, _CONTAINS.format(f"key in [{listed}]" if names else "False"))

    def _declare_text(self, concrete: ConcreteModule, text: str) -> None:
        trees = parse_program(Source(text, "<container>", is_generated=True))
        if any(Def(tree).name in concrete.type.methods for tree in trees):  # the class has its own
            return
        declare(self.python.unit, trees, TextResolver(self.python.unit), concrete.type.qualname, concrete.type)

    def _declare(self, concrete: ConcreteModule, name: str, function: Callable[..., Any]) -> None:
        """Declare a method, or one for each of its signatures."""
        refuse_missing_implementation(function)
        tree, signatures = tree_from_function(function), overloads_of(function)
        if Def(tree).name != name:
            tree = renamed(tree, name)
        if name == "__setstate__":
            if "__getstate__" not in concrete.type.methods:
                raise CompileError(
                    f"class '{concrete.type.name}' exports __setstate__ and has no __getstate__ that is exported",
                    Def(tree).range,
                    hints=("write def __getstate__(self), marked @torch.jit.export, that returns what it takes",),
                )
            tree = self._with_type_of_state(concrete, tree)
        for index, signature in enumerate(signatures):
            copy = with_signature(tree, tree_from_function(signature), f"{name}__{index}")
            self._method(concrete, copy, function)
        if signatures:
            self.python.unit.on_undo(partial(concrete.overloads.pop, name, None))
            concrete.overloads[name] = tuple(f"{name}__{index}" for index in range(len(signatures)))
        else:
            self._method(concrete, tree, function)

    def _with_type_of_state(self, concrete: ConcreteModule, tree: Tree) -> Tree:
        """`__setstate__`: where its parameter is not annotated, it takes what `__getstate__` returns."""
        view, saves = Def(tree), concrete.type.methods.get("__getstate__")
        params = view.decl.params
        if saves is None or len(params) != 2 or params[1].annotation is not None:
            return tree
        state = params[1]
        assert isinstance(saves, Function)
        saves.ensure_defined()
        annotation = parse_expression(Source(saves.schema.returns[0].type.annotation_str, "<state>"))
        typed = Param.make(state.range, Tree("ident", (state.name,), state.range), annotation, None, False)
        return renamed(tree, view.name, Decl.make(view.decl.range, [params[0].tree, typed], view.decl.returns))

    def _method(self, concrete: ConcreteModule, tree: Tree, function: Callable[..., Any]) -> Function:
        """One function whose first parameter is the module."""
        resolver, type = PythonResolver(self.python, names_of(function)), concrete.type
        (made,) = declare(self.python.unit, [tree], resolver, type.qualname, type, self._self(concrete))
        made.doc = inspect.getdoc(function) or ""
        return made

    def _hook(self, concrete: ConcreteModule, tree: Tree, function: Callable[..., Any]) -> Function:
        """A function like a method, signed before it is compiled.  No method may take its name, which stays free."""
        made = self._method(concrete, tree, function)
        self.python.unit.remove_function(made.qualname)
        concrete.type.methods.pop(made.name)
        resolver = PythonResolver(self.python, names_of(function))
        made.sign(signature_of(self.python.unit, tree, resolver, concrete.type))
        return made

    def _self(self, concrete: ConcreteModule) -> Callable[..., SugaredValue]:
        return lambda value: ModuleValue(value, concrete)

    # -- attributes that only the Python class has

    def _lookup(
        self,
        cls: type,
        functions: Mapping[str, Any],
        own_methods: Mapping[str, Any],
        owner: ModuleValue,
        b: Builder,
        name: str,
        range: SourceRange,
    ) -> SugaredValue | None:
        """A function in an attribute, a static method, one that stays in Python, or a method compiled only now."""
        if name in functions:
            return self._function_attribute(cls, functions[name], owner, b, name, range)
        member = own_methods.get(name) or inspect.getattr_static(cls, name, None)
        member = member.__func__ if isinstance(member, classmethod) else member
        if isinstance(member, staticmethod):
            return PythonResolver(self.python, names_of(member.__func__)).sugared(b, member.__func__, range)
        if not inspect.isfunction(member):
            return None
        if modifier_of(member) in IGNORED:
            return PythonFunction(member, PythonResolver(self.python, names_of(member)), owner.value)
        if _stays_in_python(member):
            raise CompileError(f"'{name}' of a module is for Python alone; TorchScript cannot compile it", range)
        self._declare(owner.concrete, name, member)
        if name in owner.concrete.overloads:
            return owner.find(b, name, range)
        return MethodValue(owner.value, name)

    def _function_attribute(
        self, cls: type, function: Any, owner: ModuleValue, b: Builder, name: str, range: SourceRange
    ) -> SugaredValue:
        try:
            found = PythonResolver(self.python, names_of(cls)).sugared(b, function, range)
            for each in found.functions if isinstance(found, FunctionValue) else ():
                each.ensure_defined()
        except CompileError as error:
            raise CompileError(
                f"Module '{owner.type.name}' has no attribute '{name}' (This function exists as an attribute on the "
                "Python module, but we failed to compile it to a TorchScript function. \nThe error stack is "
                f"reproduced here:\n{error})",
                range,
            ) from None
        return found


def _stays_in_python(member: Callable[..., Any]) -> bool:
    """True for methods that are marked so, and for those that all modules have."""
    return modifier_of(member) in IGNORED or member.__module__ in _OF_ALL_MODULES


class _Child:
    """A submodule's type as its owner sees it, and its own."""

    __slots__ = ("concrete", "type")

    def __init__(self, type: ClassType | InterfaceType, concrete: ConcreteModule) -> None:
        self.type, self.concrete = type, concrete


def _children(module: Any) -> Iterator[tuple[str, Any]]:
    ignored = getattr(module, "__jit_ignored_attributes__", ())
    return ((n, child) for n, child in module._modules.items() if child is not None and n not in ignored)


def _properties(cls: type) -> Iterator[tuple[str, list[Callable[..., Any]]]]:
    """The getter, and the setter if there is one, of every property that is to be compiled."""
    skipped = getattr(cls, "__jit_unused_properties__", ())
    for name, member in inspect.getmembers(cls, lambda member: isinstance(member, property)):
        if name not in skipped and modifier_of(member.fget) not in IGNORED:
            has_setter = member.fset is not None and modifier_of(member.fset) not in IGNORED
            yield name, [member.fget, member.fset] if has_setter else [member.fget]
