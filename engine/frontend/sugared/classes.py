"""Sugared values for classes, named tuples, enums, functions and exceptions.

In: `Point`, `Color.RED`, `helper`, `ValueError`.  Out: the nodes that calls and attributes of them compile to:
an object that is created and initialised, a tuple, a constant, a call, the text of an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from engine.aten.values.ivalue import EnumValue
from engine.frontend.matching.schema_match import Actual, Call, match_schema
from engine.frontend.sugared.sugared_value import Builder, SugaredIterable, SugaredValue
from engine.frontend.sugared.values import MethodValue, SimpleValue, SpecialForm, UnknownMethod, set_attribute
from engine.ir.constants import constant_value
from engine.ir.graph import Value
from engine.ir.unit import Function
from engine.lang.custom_classes import is_foreign, note_unknown
from engine.lang.errors import CompileError, did_you_mean
from engine.lang.schema import NO_DEFAULT, Argument, FunctionSchema
from engine.lang.source import SourceRange
from engine.lang.types import STR, ClassType, EnumType, TupleType


class FunctionValue(SugaredValue):
    """A TorchScript function (or several, where it is overloaded)."""

    __slots__ = ("functions",)
    kind = "function"

    def __init__(self, *functions: Function) -> None:
        self.functions = functions

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        return SimpleValue(b.call_function(self.functions, Call(args, kwargs, None, range)))


class ChosenByFlag(SugaredValue):
    """One of two functions, chosen by a bool argument that must be known while compiling."""

    __slots__ = ("argument", "position", "when_false", "when_true")
    kind = "boolean dispatch"

    def __init__(self, argument: str, position: int, when_true: SugaredValue, when_false: SugaredValue) -> None:
        self.argument, self.position, self.when_true, self.when_false = argument, position, when_true, when_false

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        given = [arg for arg in kwargs if arg.name == self.argument] or list(args[self.position : self.position + 1])
        flag = constant_value(given[0].value) if given else False
        if not isinstance(flag, bool):
            raise CompileError(
                f"{self.argument} must be True or False, known while compiling",
                given[0].range or range,
                hints=("write True or False in the call",),
            )
        return (self.when_true if flag else self.when_false).call(b, args, kwargs, range)


class ClassValue(SugaredValue):
    """A class: a call makes an object; its static methods are its attributes."""

    __slots__ = ("type",)
    kind = "class"

    def __init__(self, type: ClassType) -> None:
        self.type = type

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        if is_foreign(self.type):
            value = self.create(b, range)
            UnknownMethod(value, "__init__").call(b, args, kwargs, range)
            return SimpleValue(value)
        if "__init__" not in self.type.methods:
            raise CompileError(
                f"Class {self.type.name} does not have an __init__ function defined",
                range,
                hints=("define one: `def __init__(self): pass`",),
            )
        value = self.create(b, range)
        MethodValue(value, "__init__").call(b, args, kwargs, range)
        return SimpleValue(value)

    def create(self, b: Builder, range: SourceRange) -> Value:
        """An object whose attributes are not set yet."""
        return b.value("prim::CreateObject", [], self.type, range)

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        if name == "__new__":
            return SpecialForm("create_object")
        hooks = (*self.type.forward_pre_hooks, *self.type.forward_hooks)
        method = self.type.static_methods.get(name) or next((hook for hook in hooks if hook.name == name), None)
        if isinstance(method, Function):
            return FunctionValue(method)
        note_unknown(self.type, name)
        raise CompileError(
            f"Tried to lookup unknown attribute on class {self.type.name}: {name}",
            range,
            hints=did_you_mean(name, self.type.static_methods),
        )


class ObjectClass(SugaredValue):
    """Python's `object`, of which programs may use `object.__setattr__(self, "x", value)`, for frozen fields, too."""

    __slots__ = ()
    kind = "class"

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        if name == "__setattr__":
            return AttributeSetter()
        raise CompileError(
            f"'object.{name}' is not supported",
            range,
            hints=('of `object`, programs may use object.__setattr__(self, "x", value)',),
        )


class AttributeSetter(SugaredValue):
    """`object.__setattr__`."""

    __slots__ = ()
    kind = "function"

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        name = constant_value(args[1].value) if len(args) == 3 and not kwargs else None
        if not isinstance(name, str):
            raise CompileError(
                "object.__setattr__ takes an object, the name of an attribute as a literal, and a value", range
            )
        set_attribute(b, args[0].value, name, args[2].value, range)
        return SimpleValue(b.constant(None, range))


class NamedTupleConstructor(SugaredValue):
    """A named tuple's class."""

    __slots__ = ("schema", "type")
    kind = "named tuple class"

    def __init__(self, type: TupleType) -> None:
        self.type = type
        without = len(type.fields) - len(type.defaults)
        defaults = [NO_DEFAULT] * without + list(type.defaults)
        cls = type.python_class
        named = {name for base in getattr(cls, "__mro__", ()) for name in inspect.get_annotations(base)}
        unnamed = () if cls is None else {*type.fields} - named
        arguments = zip(type.fields, type.elements, defaults, strict=True)
        self.schema = FunctionSchema(
            (type.name or "tuple").rpartition(".")[2],
            arguments=tuple(
                Argument(name, element, default, is_inferred=name in unnamed) for name, element, default in arguments
            ),
            returns=(Argument("", type),),
        )

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        matched = match_schema(b.graph, self.schema, Call(args, kwargs, None, range))
        return SimpleValue(b.tuple(matched.inputs, self.type))


class EnumClassValue(SugaredValue):
    """An Enum: its members are its attributes, and a loop goes through them."""

    __slots__ = ("type",)
    kind = "enum class"

    def __init__(self, type: EnumType) -> None:
        self.type = type

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        names = [member for member, _ in self.type.members]
        if name not in names:
            text = f"enum '{self.type.qualname}' has no attribute '{name}'"
            raise CompileError(text, range, hints=did_you_mean(name, names))
        return SimpleValue(b.constant(EnumValue(self.type, name), range))

    def iterate(self, b: Builder, range: SourceRange) -> SugaredIterable:
        members = [EnumValue(self.type, name) for name, _ in self.type.members]
        return SimpleValue(b.constant(members, range)).iterate(b, range)


class ConstantValue(SugaredValue):
    """A Python value known while compiling, such as `math.pi`; each use makes a constant."""

    __slots__ = ("constant",)
    kind = "constant"

    def __init__(self, constant: object) -> None:
        self.constant = constant

    def as_value(self, b: Builder, range: SourceRange) -> Value:
        return b.constant(self.constant, range)

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        return SimpleValue(self.as_value(b, range)).attr(b, name, range)

    def set_attr(self, b: Builder, name: str, value: Value, range: SourceRange) -> None:
        SimpleValue(self.as_value(b, range)).set_attr(b, name, value, range)

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        return SimpleValue(self.as_value(b, range)).call(b, args, kwargs, range)

    def as_tuple(self, b: Builder, size: int | None, range: SourceRange) -> list[SugaredValue]:
        return SimpleValue(self.as_value(b, range)).as_tuple(b, size, range)

    def iterate(self, b: Builder, range: SourceRange) -> SugaredIterable:
        return SimpleValue(self.as_value(b, range)).iterate(b, range)


class ExceptionClass(SugaredValue):
    """An exception's class.  `qualname` is its name in errors; AssertionError has a prefix of the message instead."""

    __slots__ = ("name", "qualname")
    kind = "Python exception"

    def __init__(self, name: str, qualname: str | None = None) -> None:
        self.name, self.qualname = name, qualname

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        values = [arg.value for arg in args]
        if self.qualname is None:
            return ExceptionInstance(self.name_and_message(b, values, range))
        if not values:
            message = b.constant("", range)
        else:
            message = values[0] if len(values) == 1 else b.tuple(values)
        return ExceptionInstance(message, b.constant(self.qualname, range))

    def name_and_message(self, b: Builder, values: Sequence[Value], range: SourceRange) -> Value:
        message = b.constant(f"{self.name}: ", range)
        for value in values:
            text = value if value.type.is_subtype_of(STR) else b.insert("aten::str", [value], range)
            message = b.insert("aten::add", [message, text], range)
        return message


class ExceptionInstance(SugaredValue):
    """An exception with its message, to be raised."""

    __slots__ = ("message", "qualname")
    kind = "exception message"

    def __init__(self, message: Value, qualname: Value | None = None) -> None:
        self.message, self.qualname = message, qualname
