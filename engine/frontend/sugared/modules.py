"""Sugared values for modules.

In: `self` of a module's method, its attributes and calls.  Out: attributes, submodules and methods (compiled if only
the Python class has them), calls with their hooks; loops over containers are unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Final

from engine.frontend.matching.convert import unpack_tuple
from engine.frontend.matching.schema_match import Actual, Call, match_schemas
from engine.frontend.sugared.classes import FunctionValue
from engine.frontend.sugared.iterables import IterableTree
from engine.frontend.sugared.sugared_value import Builder, SugaredIterable, SugaredValue, schema_of
from engine.frontend.sugared.values import SimpleValue, SugaredTuple, set_attribute
from engine.ir.constants import constant_value
from engine.ir.graph import Value
from engine.ir.unit import Function
from engine.lang.errors import CompileError, did_you_mean
from engine.lang.records import dataclass
from engine.lang.source import SourceRange
from engine.lang.types import NONE, ClassType, InterfaceType, TupleType, Type, interface_gap

Lookup = Callable[["ModuleValue", Builder, str, SourceRange], SugaredValue | None]
LISTS: Final = ("list", "parameter_list")
DICTS: Final = ("dict", "parameter_dict")


@dataclass(eq=False, slots=True)
class ConcreteModule:
    """The type of a module, with the facts that its Python class adds.

    `container` is "list", "dict", "parameter_list" or "parameter_dict" for containers; `overloads` maps a method to the
    names that its overloads are compiled under; `lookup` finds attributes that only the Python class has.  Modules
    of the class with an equal `description` share the type.  `compile_hooks` checks and compiles its hooks, behind its
    methods.
    """

    type: ClassType
    container: str = ""
    children: dict[str, ConcreteModule] = field(default_factory=dict)
    overloads: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lookup: Lookup | None = None
    description: object = None
    compile_hooks: Callable[[], None] | None = None
    parts: tuple[str, ...] = ()
    """The names of what a container of modules holds, in order, where None may be among it."""

    def child(self, name: str, type: ClassType) -> ConcreteModule:
        return self.children.get(name) or ConcreteModule(type)


class ModuleValue(SugaredValue):
    """A module."""

    __slots__ = ("concrete", "value")
    kind = "module"

    def __init__(self, value: Value, concrete: ConcreteModule) -> None:
        self.value, self.concrete = value, concrete

    @property
    def type(self) -> ClassType:
        return self.concrete.type

    def as_value(self, b: Builder, range: SourceRange) -> Value:
        return self.value

    # -- attributes

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        found = self.find(b, name, range)
        if found is not None:
            return found
        reason = self.type.unresolved.get(name, "")
        raise CompileError(
            f"Module '{self.type.name}' has no attribute '{name}' {reason}".rstrip(),
            range,
            hints=did_you_mean(name, self._names()) if not reason else (),
        )

    def has_attr(self, b: Builder, name: str, range: SourceRange) -> bool:
        return self.find(b, name, range) is not None

    def find(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        """The attribute, or None.  Raises CompileError for a method that cannot be compiled."""
        type = self.type
        if type.attribute(name) is not None:
            return self._attribute(b, name, range)
        if name in self.concrete.overloads:
            return OverloadedMethod(self.value, self.concrete.overloads[name])
        if name in type.constants:
            return SimpleValue(_constant(b, type.constants[name], range))
        if name in type.methods or name in type.properties:
            return SimpleValue(self.value).attr(b, name, range)
        if name in _PARTS and (name not in _OF_DICTS or self.concrete.container in DICTS):
            select, shape = _PARTS[name]
            return ContainerMethod(lambda: shape(select(self, b, range), b, range))
        return None if self.concrete.lookup is None else self.concrete.lookup(self, b, name, range)

    def set_attr(self, b: Builder, name: str, value: Value, range: SourceRange) -> None:
        set_attribute(b, self.value, name, value, range)

    def _attribute(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        found = SimpleValue(self.value).attr(b, name, range)
        assert isinstance(found, SimpleValue)
        if isinstance(found.type, ClassType) and found.type.is_module:
            return ModuleValue(found.value, self.concrete.child(name, found.type))
        return found

    def _names(self) -> list[str]:
        type = self.type
        return [*(a.name for a in type.attributes), *type.methods, *type.properties, *type.constants]

    # -- parts

    def children(self, b: Builder, range: SourceRange) -> dict[str, SugaredValue]:
        """The submodules, or the parameters of a list or dict of parameters."""
        of_parameters = self.concrete.container.startswith("parameter")
        names = [a.name for a in self.type.attributes if (a.kind == "parameter" if of_parameters else _holds_module(a))]
        return {name: self._attribute(b, name, range) for name in names}

    def held(self, b: Builder, range: SourceRange) -> dict[str, SugaredValue]:
        """The children, and None where a container holds that in the place of a module."""
        if not self.concrete.parts:
            return self.children(b, range)
        return {name: self._attribute(b, name, range) for name in self.concrete.parts}

    def parts(self, b: Builder, range: SourceRange) -> list[SugaredValue]:
        """The parts of a list, which may be sliced."""
        if self.concrete.container not in LISTS:
            raise CompileError(
                f"'{self.type.name}' module is not subscriptable by a slice",
                range,
                hints=("loop over it, or keep the part as a module list of its own",),
            )
        return list(self.held(b, range).values())

    def iterate(self, b: Builder, range: SourceRange) -> SugaredIterable:
        if not self.concrete.container:
            raise CompileError(
                "Only constant Sequential, ModuleList, ModuleDict, or ParameterList can be used as an iterable",
                range,
                hints=("keep the modules in a ModuleList",),
            )
        parts = self.held(b, range)
        return _keys(parts, b, range) if self.concrete.container in DICTS else _values(parts, b, range)

    def item(self, b: Builder, index: Value, hint: Type | None, range: SourceRange) -> SugaredValue:
        if not self.concrete.container:
            raise CompileError(f"'{self.type.name}' module is not subscriptable", range)
        known = constant_value(index)
        if self.concrete.container in LISTS and isinstance(known, int) and hint is None:
            return self._numbered(b, known, range)
        if self.concrete.container in DICTS and isinstance(known, str):
            return self._named(b, known, range)
        if isinstance(hint, InterfaceType):
            return SimpleValue(self._chosen_later(b, index, hint, range))
        raise CompileError(_NO_LITERAL[self.concrete.container in DICTS], range)

    def _numbered(self, b: Builder, index: int, range: SourceRange) -> SugaredValue:
        parts = list(self.held(b, range).values())
        if not -len(parts) <= index < len(parts):
            raise CompileError(f"Index {index} out of range of length {len(parts)}", range)
        return parts[index]

    def _named(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        parts = self.held(b, range)
        if name not in parts:
            raise CompileError(f"Key Error, {name}", range, hints=did_you_mean(name, parts))
        return parts[name]

    def _chosen_later(self, b: Builder, index: Value, hint: InterfaceType, range: SourceRange) -> Value:
        """An item whose index is not known: all of them must offer the interface."""
        for name in self.concrete.parts:
            if (attribute := self.type.attribute(name)) is not None and attribute.type is NONE:
                raise CompileError(f"Attribute {name} is None, and not of annotated type {hint.annotation_str}", range)
        for attribute in filter(_holds_module, self.type.attributes):
            assert isinstance(attribute.type, (ClassType, InterfaceType))
            if (gap := interface_gap(attribute.type, hint)) is not None:
                text = f"Attribute {attribute.name} is not of annotated type {hint.annotation_str}: {gap}"
                raise CompileError(text, range)
        return b.value("prim::ModuleContainerIndex", [self.value, index], hint, range)

    # -- calls

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        type = self.type
        if not type.forward_pre_hooks and not type.forward_hooks:
            return self.attr(b, "forward", range).call(b, args, kwargs, range)
        if kwargs:
            raise CompileError(
                "a module with hooks takes no keyword arguments",
                kwargs[0].range or range,
                hints=("give them by position",),
            )
        inputs = b.tuple([arg.value for arg in args])
        for hook in type.forward_pre_hooks:
            inputs = _as_tuple(b, self._run_hook(b, hook, [inputs], range), inputs)
        unpacked = [Actual(value, range) for value in unpack_tuple(b.graph, inputs)]
        result = self.attr(b, "forward", range).call(b, unpacked, (), range).as_value(b, range)
        for hook in type.forward_hooks:
            changed = self._run_hook(b, hook, [inputs, result], range)
            result = result if changed.type is NONE else changed
        return SimpleValue(result)

    def _run_hook(self, b: Builder, hook: object, values: Sequence[Value], range: SourceRange) -> Value:
        assert isinstance(hook, Function)
        args = [Actual(value, range) for value in (self.value, *values)]
        return FunctionValue(hook).call(b, args, (), range).as_value(b, range)


class OverloadedMethod(SugaredValue):
    """A method that is compiled once for each of its signatures."""

    __slots__ = ("names", "value")
    kind = "method"

    def __init__(self, value: Value, names: Sequence[str]) -> None:
        self.value, self.names = value, names

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        type = self.value.type
        assert isinstance(type, ClassType)
        schemas = [schema_of(type.methods[name], range) for name in self.names]
        call = Call([Actual(self.value, range, "self"), *args], kwargs, None, range)
        index, matched = match_schemas(b.graph, schemas, call)
        node = b.node("prim::CallMethod", matched.inputs, matched.return_types[:1], range)
        return SimpleValue(node.set_attr("name", self.names[index]).output)


class ContainerMethod(SugaredValue):
    """`self.layers.items` and the like: a call gives the iterable for a loop."""

    __slots__ = ("make",)
    kind = "method"

    def __init__(self, make: Callable[[], SugaredValue]) -> None:
        self.make = make

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        if args or kwargs:
            raise CompileError("the method takes no arguments here", range)
        return self.make()


Named = dict[str, SugaredValue]
"""The parts of a module that a loop goes through, by name."""


def _of_container(module: ModuleValue, b: Builder, range: SourceRange) -> Named:
    return module.held(b, range)


def _children(module: ModuleValue, b: Builder, range: SourceRange) -> Named:
    return module.children(b, range)


def _all_modules(module: ModuleValue, b: Builder, range: SourceRange, prefix: str = "") -> Named:
    """The module and all inside, under dotted names."""
    found: Named = {prefix: module}
    for name, child in module.children(b, range).items():
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(child, SimpleValue) and isinstance(child.type, InterfaceType):
            text = f"Could not compile modules() because '{path}' is an interface type"
            raise CompileError(text, range, hints=("which modules it holds is known when it runs; name those to use",))
        found |= _all_modules(child, b, range, path) if isinstance(child, ModuleValue) else {path: child}
    return found


def _buffers(module: ModuleValue, b: Builder, range: SourceRange) -> Named:
    """The module's own buffers."""
    names = [attribute.name for attribute in module.type.attributes if attribute.kind == "buffer"]
    return {name: module.attr(b, name, range) for name in names}


def _keys(parts: Named, b: Builder, range: SourceRange) -> SugaredTuple:
    return SugaredTuple([SimpleValue(b.constant(name, range)) for name in parts])


def _values(parts: Named, b: Builder, range: SourceRange) -> SugaredTuple:
    return SugaredTuple(list(parts.values()))


def _items(parts: Named, b: Builder, range: SourceRange) -> IterableTree:
    return IterableTree([_keys(parts, b, range), _values(parts, b, range)], range)


_PARTS: Final[dict[str, tuple[Callable[..., Named], Callable[..., SugaredValue]]]] = {
    "keys": (_of_container, _keys), "values": (_of_container, _values), "items": (_of_container, _items),
    "children": (_children, _values), "named_children": (_children, _items),
    "modules": (_all_modules, _values), "named_modules": (_all_modules, _items), "named_buffers": (_buffers, _items),
}  # fmt: skip
"""Method -> the function that selects parts, and the one that makes keys, values or items of them."""
_OF_DICTS: Final = ("keys", "values", "items")
_NO_LITERAL: Final = (
    "Expected integer literal for index but got a variable or non-integer. ModuleList/Sequential indexing is only "
    "supported with integer literals. For example, 'i = 4; self.layers[i](x)' will fail because i is not a literal. "
    "Enumeration is supported, e.g. 'for index, v in enumerate(self): out = v(inp)'",
    "Unable to extract string literal index. ModuleDict indexing is only supported with string literals. For example, "
    "'i = \"a\"; self.layers[i](x)' will fail because i is not a literal. Enumeration of ModuleDict is supported, e.g. "
    "'for k, v in self.items(): out = v(inp)'",
)
"""Messages for an index that is not known while compiling: for lists, for dicts."""


def _holds_module(attribute: object) -> bool:
    type = getattr(attribute, "type", None)
    return isinstance(type, (ClassType, InterfaceType)) and type.is_module


def _constant(b: Builder, value: Any, range: SourceRange) -> Value:
    """A constant; a tuple is built from the constants of its parts."""
    if isinstance(value, tuple):
        return b.tuple([_constant(b, part, range) for part in value])
    return b.constant(value, range)


def _as_tuple(b: Builder, changed: Value, before: Value) -> Value:
    """The inputs after a hook: unchanged if it returns None, in a tuple if it returns one value."""
    if changed.type is NONE:
        return before
    return changed if isinstance(changed.type, TupleType) else b.tuple([changed])
