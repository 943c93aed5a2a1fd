"""Sugared values for values of the graph, and for operators and methods.

In: a `Value`, and attributes, subscripts or loops of it.  Out: for `x.name` the property, method or attribute that
the value's type has; for `x[i]`, iteration and unpacking the operators that do it.  The rules for
attributes are the tables below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.aten.dispatch import table
from engine.frontend.diagnostics.hints import (
    attribute_hints,
    conversion_hints,
    iteration_hints,
    narrowing_hints,
    source_text,
    unpacking_hints,
)
from engine.frontend.matching.convert import EMPTY_LIST, convert, unpack_tuple
from engine.frontend.matching.schema_match import Actual, Call
from engine.frontend.matching.type_variables import evaluate, match_variables
from engine.frontend.sugared.custom_methods import custom_class
from engine.frontend.sugared.sugared_value import Builder, SugaredIterable, SugaredValue, schema_of
from engine.ir.constants import constant_value
from engine.ir.graph import Value
from engine.lang.custom_classes import is_custom, is_foreign, note_unknown
from engine.lang.errors import CompileError, MissingOperatorError, did_you_mean
from engine.lang.scalars import DTYPE_ALIASES, DTYPE_BY_NAME
from engine.lang.schema import FunctionSchema
from engine.lang.source import SourceRange
from engine.lang.types import (
    ANY_TUPLE,
    DEVICE,
    INT,
    STR,
    TENSOR,
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    InterfaceType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
)  # fmt: skip

_TENSOR_PROPERTIES: Final = {
    **dict.fromkeys((
        "dtype", "device", "grad", "data", "shape", "is_cuda", "is_cpu", "is_xla", "is_xpu", "is_sparse",
        "is_sparse_csr", "is_mkldnn", "is_mps", "is_quantized", "is_vulkan", "is_ipu", "is_meta", "is_nested",
        "requires_grad", "layout", "T", "H", "ndim", "name", "itemsize", "nbytes",
    ), "prim"),
    **dict.fromkeys(("is_leaf", "mT", "mH", "real", "imag", "retains_grad"), "aten"),
}  # fmt: skip
_OTHER_NAMES: Final = (
    *DTYPE_BY_NAME, *DTYPE_ALIASES, "nn", "functional", "jit", "linalg", "special", "fft", "inf", "nan", "pi",
)  # fmt: skip
"""Names of the torch namespace that are no operators."""
_DEVICE_PROPERTIES: Final = {"type": "prim", "index": "prim"}
_CASTS: Final = {
    **{name: DTYPE_BY_NAME[name] for name in ("bfloat16",)},
    **{name: DTYPE_ALIASES[name] for name in ("float", "double", "half", "int", "long", "short", "cfloat", "cdouble")},
    "byte": DTYPE_BY_NAME["uint8"], "char": DTYPE_BY_NAME["int8"],
}  # fmt: skip


class SimpleValue(SugaredValue):
    """A value of the graph."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    @property
    def type(self) -> Type:
        return self.value.type

    def describe(self) -> str:
        return f"value of type '{self.type.annotation_str}'"

    def as_value(self, b: Builder, range: SourceRange) -> Value:
        return self.value

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        return attribute_of(b, self.value, name, range)

    def set_attr(self, b: Builder, name: str, value: Value, range: SourceRange) -> None:
        refuse_frozen(self.type, name, range)
        set_attribute(b, self.value, name, value, range)

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        type = self.type
        if isinstance(type, ClassType) and "__call__" in type.methods:
            return self.attr(b, "__call__", range).call(b, args, kwargs, range)
        if isinstance(type, (ClassType, InterfaceType)) and type.is_module and "forward" in type.methods:
            return self.attr(b, "forward", range).call(b, args, kwargs, range)
        return super().call(b, args, kwargs, range)

    def as_tuple(self, b: Builder, size: int | None, range: SourceRange) -> list[SugaredValue]:
        if isinstance(self.type, TupleType):
            return [SimpleValue(value) for value in unpack_tuple(b.graph, self.value)]
        if not isinstance(self.type, ListType):
            text = f"{self.type.annotation_str} cannot be used as a tuple"
            if self.type is ANY_TUPLE:
                text = "Provided tuple is not fully defined/refined including its element types, please provide a "
                text += "value of type such as Tuple[int, int]"
            raise CompileError(text, range, hints=unpacking_hints(self.type, source_text(range, "x")))
        if size is None:
            text = "cannot statically infer the expected size of a list in this context"
            raise CompileError(text, range, hints=("take its elements by index: x[0], x[1:]",))
        outputs = b.node("prim::ListUnpack", [self.value], [self.type.element] * size, range).outputs
        return [SimpleValue(value) for value in outputs]

    def iterate(self, b: Builder, range: SourceRange) -> SugaredIterable:
        if isinstance(self.type, (ListType, TensorType)) or self.type is STR:
            return ValueIterable(self.value)
        if isinstance(self.type, DictType):
            return ValueIterable(b.insert("aten::keys", [self.value], range))
        if isinstance(self.type, TupleType):
            return SugaredTuple([SimpleValue(value) for value in unpack_tuple(b.graph, self.value)])
        text = f"'{self.type.annotation_str}' object is not iterable"
        raise CompileError(text, range, hints=iteration_hints(self.type, range))

    def item(self, b: Builder, index: Value, hint: Type | None, range: SourceRange) -> SugaredValue:
        if isinstance(hint, InterfaceType) and _all_offer(self.type, hint):
            # As archives write it: the annotation is the interface of all modules in the list or dict.
            return SimpleValue(b.value("prim::ModuleContainerIndex", [self.value, index], hint, range))
        return SimpleValue(item_of(b, self.value, index, range))


def _all_offer(type: Type, interface: InterfaceType) -> bool:
    """True for a module whose submodules all implement the interface."""
    if not isinstance(type, ClassType) or not type.is_module:
        return False
    inner = [each.type for each in type.attributes if isinstance(each.type, (ClassType, InterfaceType))]
    return all(each.is_subtype_of(interface) for each in inner)


class ValueIterable(SugaredIterable):
    """A list, string or tensor."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def as_value(self, b: Builder, range: SourceRange) -> Value:
        return self.value

    def length(self, b: Builder, range: SourceRange) -> Value:
        return b.insert("aten::len", [self.value], range)

    def element(self, b: Builder, index: Value, range: SourceRange) -> SugaredValue:
        value = self.value
        if value.node.kind == EMPTY_LIST:
            value = b.value("prim::ListConstruct", [], value.type, range)
        return SimpleValue(item_of(b, value, index, range))


class SugaredTuple(SugaredIterable):
    """Several sugared values together, such as the modules of a list."""

    __slots__ = ("parts",)
    kind = "tuple"

    def __init__(self, parts: Sequence[SugaredValue]) -> None:
        self.parts = list(parts)

    @property
    def static_length(self) -> int:  # type: ignore[override]
        return len(self.parts)

    def as_value(self, b: Builder, range: SourceRange) -> Value:
        return b.tuple([part.as_value(b, range) for part in self.parts])

    def as_tuple(self, b: Builder, size: int | None, range: SourceRange) -> list[SugaredValue]:
        return self.parts

    def length(self, b: Builder, range: SourceRange) -> Value:
        return b.constant(len(self.parts), range)

    def static_element(self, b: Builder, index: int, range: SourceRange) -> SugaredValue:
        return self.parts[index]

    def item(self, b: Builder, index: Value, hint: Type | None, range: SourceRange) -> SugaredValue:
        from_constant = static_index(index, len(self.parts), range)
        if from_constant is None:
            raise CompileError(
                "Expected an integer literal as the index of a tuple or module list",
                range,
                hints=("write the number, or loop over it",),
            )
        return self.parts[from_constant]


class BuiltinFunction(SugaredValue):
    """An operator, to be called; bound to a value it is a method.

    With `leads` the value is the first argument, whatever the schema calls it: `x.det()` is `linalg_det(Tensor A)`.
    """

    __slots__ = ("leads", "name", "self_value")
    kind = "builtin"

    def __init__(self, name: str, self_value: Value | None = None, *, leads: bool = False) -> None:
        self.name, self.self_value, self.leads = name, self_value, leads

    def as_value(self, b: Builder, range: SourceRange) -> Value:
        raise CompileError("builtin cannot be used as a value", range, hints=self._hints(range))

    def attr(self, b: Builder, name: str, range: SourceRange) -> SugaredValue:
        raise CompileError("attribute lookup is not defined on builtin", range, hints=self._hints(range))

    def _hints(self, range: SourceRange) -> tuple[str, ...]:
        """Call the operator; if there is none of that name, other names of the torch namespace that are like it."""
        last = self.name.rpartition("::")[2]
        if table.overloads(self.name):
            return (f"'{last}' is an operator, to be called",)
        known = (name.rpartition("::")[2] for name in table.names())
        return did_you_mean(last, [*_OTHER_NAMES, *(name for name in known if name[:2] != "__")])

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        if self.leads and self.self_value is not None:
            args = [Actual(self.self_value, range), *args]
            return SimpleValue(b.call_operator(self.name, Call(args, kwargs, None, range)))
        bound = None if self.self_value is None else Actual(self.self_value, range, "self")
        return SimpleValue(b.call_operator(self.name, Call(args, kwargs, bound, range)))


class DeviceClass(BuiltinFunction):
    """`torch.device`, which takes its only argument as `type`, too."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("aten::device")

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        if not args and [each.name for each in kwargs] == ["type"]:
            args, kwargs = [kwargs[0]._replace(name="")], ()
        return super().call(b, args, kwargs, range)


class MethodValue(SugaredValue):
    """A method of an object (its type is a class or an interface)."""

    __slots__ = ("name", "value")
    kind = "method"

    def __init__(self, value: Value, name: str) -> None:
        self.value, self.name = value, name

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        type = self.value.type
        assert isinstance(type, (ClassType, InterfaceType))
        schema = _method_schema(type, self.name, range)
        call = Call([Actual(self.value, range, "self"), *args], kwargs, None, range)
        return SimpleValue(b.call_method(self.name, schema, call))


class UnknownMethod(MethodValue):
    """A method of a class that only an archive knows: the call is kept, and its result counts as a tensor.

    Running the call raises an error that names the class.
    """

    __slots__ = ()

    def as_value(self, b: Builder, range: SourceRange) -> Value:
        note_unknown(self.value.type, self.name)
        return super().as_value(b, range)

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        if kwargs:
            text = f"the method '{self.name}' of '{self.value.type}' is not known here, and takes no keywords"
            raise MissingOperatorError(text, range)
        note_unknown(self.value.type, self.name)
        node = b.node("prim::CallMethod", [self.value, *(actual.value for actual in args)], [TENSOR], range)
        return UnknownResult(node.set_attr("name", self.name).output)


class UnknownResult(SimpleValue):
    """The result of a call of an unknown method: a tensor, or several if it is unpacked at once."""

    __slots__ = ()

    def as_tuple(self, b: Builder, size: int | None, range: SourceRange) -> list[SugaredValue]:
        if size is None or self.value.uses:
            return super().as_tuple(b, size, range)
        node = self.value.node
        node.erase_output(0)
        return [SimpleValue(node.add_output(TENSOR)) for _ in (None,) * size]


def _method_schema(type: ClassType | InterfaceType, name: str, range: SourceRange) -> FunctionSchema:
    if isinstance(type, ClassType):
        return schema_of(type.methods[name], range)
    schema: FunctionSchema = type.methods[name]
    return schema


class TensorCast(SugaredValue):
    """`x.float()` and the like: `x.to(dtype)` under a name of its own."""

    __slots__ = ("dtype", "value")
    kind = "builtin"

    def __init__(self, value: Value, dtype: int) -> None:
        self.value, self.dtype = value, dtype

    def call(self, b: Builder, args: Sequence[Actual], kwargs: Sequence[Actual], range: SourceRange) -> SugaredValue:
        if args or kwargs:
            raise CompileError(
                "expected no arguments in this conversion of a tensor's dtype", range, hints=("write x.to(dtype, ...)",)
            )
        return SimpleValue(b.insert("aten::to", [], range, self=self.value, dtype=b.constant(self.dtype, range)))


class SpecialForm(SugaredValue):
    """A form that is written like a call and compiles its arguments in its own way, like `isinstance`."""

    __slots__ = ("form", "value")
    kind = "special form"

    def __init__(self, form: str, value: Value | None = None) -> None:
        self.form, self.value = form, value

    def describe(self) -> str:
        return self.form


# -- attributes


def attribute_of(b: Builder, value: Value, name: str, range: SourceRange) -> SugaredValue:
    """The sugared value of `value.name`.  Raises CompileError, with a suggestion, if the type has no such attribute."""
    type = value.type
    found = None
    if isinstance(type, TensorType):
        found = _tensor_attribute(b, value, name, range)
    elif type is DEVICE and name in _DEVICE_PROPERTIES:
        found = SimpleValue(b.insert(f"prim::{name}", [value], range))
    elif isinstance(type, TupleType) and name in type.fields:
        index = type.fields.index(name)
        found = SimpleValue(b.value("prim::TupleIndex", [value, b.constant(index)], type.elements[index], range))
    elif isinstance(type, (ClassType, InterfaceType)):
        found = _class_attribute(b, value, type, name, range)
    elif isinstance(type, AwaitType):
        return attribute_of(b, b.insert("prim::awaitable_wait", [value], range), name, range)
    elif isinstance(type, EnumType) and name in ("name", "value"):
        wanted = STR if name == "name" else type.value_type
        found = SimpleValue(b.value(f"prim::Enum{name.title()}", [value], wanted, range))
    found = found or _method_operator(value, "to" if name == "type" else name)
    if found is not None:
        return found
    raise _no_attribute(value, name, range)


def _tensor_attribute(b: Builder, value: Value, name: str, range: SourceRange) -> SugaredValue | None:
    if name in _TENSOR_PROPERTIES:
        return SimpleValue(b.insert(f"{_TENSOR_PROPERTIES[name]}::{name}", [value], range))
    if name in _CASTS:
        return TensorCast(value, _CASTS[name].number)
    if name == "tolist":
        return SpecialForm("tolist", value)
    if name == "__getitem__":
        return SpecialForm("index", value)
    return None


def _class_attribute(
    b: Builder, value: Value, type: ClassType | InterfaceType, name: str, range: SourceRange
) -> SugaredValue | None:
    if isinstance(type, ClassType) and is_custom(type):
        custom_class(type.qualname)
    if name in type.methods:
        return MethodValue(value, name)
    if isinstance(type, InterfaceType):
        return None
    if is_custom(type):
        return UnknownMethod(value, name) if is_foreign(type) else None
    attribute = type.attribute(name)
    if attribute is not None:
        node = b.node("prim::GetAttr", [value], [attribute.type], range).set_attr("name", name)
        return SimpleValue(node.output.set_debug_name(f"_{name}" if name.isdigit() else name))
    if name in type.properties:
        getter = type.properties[name][0]
        return MethodValue(value, getter.name).call(b, (), (), range)
    if name in type.constants:
        return SimpleValue(b.constant(type.constants[name], range))
    return None


def _method_operator(value: Value, name: str) -> BuiltinFunction | None:
    """The operator `aten::name` as a method, if an overload's `self` takes such a value.

    Overloads that are written in TorchScript are no methods.
    """
    operator = f"aten::{name}"
    aliased = not table.overloads(operator) and table.first_name(operator) != operator
    bound = BuiltinFunction(table.first_name(operator) if aliased else operator, value, leads=aliased)
    for schema in (entry.schema for entry in table.overloads(bound.name)):
        index = 0 if aliased else schema.index_of("self")
        if index is None or not schema.arguments:
            continue
        formal, variables = schema.arguments[index].type, dict[str, Type]()
        if match_variables(formal, value.type, variables) is not None:
            continue
        concrete = evaluate(formal, variables)
        if concrete is not None and value.type.is_subtype_of(concrete):
            return bound
    return None


def _no_attribute(value: Value, name: str, range: SourceRange) -> CompileError:
    type = value.type
    text = f"'{type.annotation_str}' object has no attribute or method '{name}'."
    if isinstance(type, ClassType) and name in type.unresolved:
        text += f" ({type.unresolved[name]})"
    owner = range.text.rpartition(".")[0]
    return CompileError(text, range, hints=attribute_hints(type, name, _known_attributes(type), owner or "the value"))


def _known_attributes(type: Type) -> list[str]:
    if isinstance(type, ClassType):
        return [*(a.name for a in type.attributes), *type.methods, *type.properties, *type.constants]
    if isinstance(type, (InterfaceType,)):
        return list(type.methods)
    if isinstance(type, TupleType):
        return list(type.fields)
    if isinstance(type, OptionalType):
        return _known_attributes(type.element)
    wanted = {TensorType: "Tensor", ListType: "t[]", DictType: "Dict("}.get(type.__class__, str(type))
    entries = (entry.text for entry in table.entries() if entry.text.startswith("aten::"))
    methods = [text[6:].partition("(") for text in entries if text.partition("(")[2].startswith(wanted)]
    names = {name.partition(".")[0] for name, _, _ in methods}
    return sorted(names | set(_TENSOR_PROPERTIES)) if isinstance(type, TensorType) else sorted(names)


def set_attribute(b: Builder, value: Value, name: str, new: Value, range: SourceRange) -> None:
    """`value.name = new`."""
    type = value.type
    if not isinstance(type, ClassType):
        raise CompileError(
            f"Tried to set an attribute: {name} on a non-class: {type.annotation_str}",
            range,
            hints=("only objects of classes have attributes that can be set",),
        )
    if name in type.properties and type.properties[name][1] is not None:
        setter = type.properties[name][1]
        assert setter is not None
        MethodValue(value, setter.name).call(b, [Actual(new, range)], (), range)
        return
    attribute = type.attribute(name)
    if attribute is None and b.initializes is type:
        if b.graph.insert_point.block is not b.graph.block:
            raise CompileError(
                "First assignment cannot be in a control-flow block. Initialize the field at the top level first",
                range,
                hints=(f"assign self.{name} before the if, loop or with",),
            )
        declare_attribute(type, name, new.type, range)
        attribute = type.attribute(name)
    if attribute is None:
        raise CompileError(
            f"Tried to set nonexistent attribute: {name}. Did you forget to initialize it in __init__()?",
            range,
            hints=did_you_mean(name, [attribute.name for attribute in type.attributes]),
        )
    new = convert(b.graph, new, attribute.type, conversions=False)
    if not new.type.is_subtype_of(attribute.type):
        raise CompileError(
            f"Wrong type for attribute assignment. Expected {attribute.type.annotation_str} but got "
            f"{new.type.annotation_str}",
            range,
            hints=conversion_hints(new.type, attribute.type, None),
        )
    b.node("prim::SetAttr", [value, new], (), range).set_attr("name", name)


def declare_attribute(owner: ClassType, name: str, type: Type, range: SourceRange) -> None:
    """Add an attribute to a class.  Raises CompileError for one that would hold an object of the class itself."""
    if _holds(type, owner):
        raise CompileError(
            f"Assignment to attribute '{name}' cannot be of a type that contains class '{owner.qualname}'. Classes "
            "that recursively contain instances of themselves are not yet supported",
            range,
            hints=("keep the objects in a list beside, and here an index into it",),
        )
    owner.add_attribute(name, type)


def _holds(type: Type, wanted: ClassType) -> bool:
    seen, todo = {type}, [type]
    while todo:
        parts = {part for part in todo.pop().contained() if part not in seen}
        seen |= parts
        todo += parts
    return wanted in seen


def refuse_frozen(type: Type, name: str, range: SourceRange) -> None:
    """Raises CompileError if the attribute is a field of a frozen dataclass."""
    if isinstance(type, ClassType) and type.is_frozen and type.attribute(name) is not None:
        raise CompileError(
            f"cannot assign to field '{name}': dataclass '{type.name}' is frozen",
            range,
            hints=(f"make another one: {type.name}(...)",),
        )


# -- items


def item_of(b: Builder, value: Value, index: Value, range: SourceRange) -> Value:
    """`value[index]` for one index that is a value."""
    type = value.type
    if isinstance(type, TensorType):
        return b.insert("aten::select", [value, b.constant(0, range), index], range)
    if isinstance(type, (ListType, DictType)) or type is STR:
        return b.insert("aten::__getitem__", [value, index], range)
    if isinstance(type, TupleType):
        return tuple_item(b, value, index, range)
    if isinstance(type, ClassType) and "__getitem__" in type.methods:
        return MethodValue(value, "__getitem__").call(b, [Actual(index, range)], (), range).as_value(b, range)
    hints = narrowing_hints(type, source_text(range).partition("[")[0])
    raise CompileError(f"'{type.annotation_str}' object is not subscriptable", range, hints=hints)


def tuple_item(b: Builder, value: Value, index: Value, range: SourceRange) -> Value:
    """An element of a tuple; the index must be known unless all elements share a type."""
    type = value.type
    assert isinstance(type, TupleType)
    known = constant_value(index)
    if index.type is not INT:
        raise CompileError("tuple index must be an integer", range)
    if not isinstance(known, int):
        if not type.elements or any(element != type.elements[0] for element in type.elements):
            raise CompileError(
                f"Cannot index into a {type.annotation_str} with a non-integer literal because we cannot resolve the "
                "output type",
                range,
                hints=("the elements differ in type: write the number, or unpack the tuple into names",),
            )
        return b.value("prim::TupleIndex", [value, index], type.elements[0], range)
    position = static_index(index, len(type.elements), range)
    assert position is not None
    return b.value("prim::TupleIndex", [value, index], type.elements[position], range)


def static_index(index: Value, length: int, range: SourceRange) -> int | None:
    """The position of a constant index, counted from 0; None if it is no constant."""
    known = constant_value(index)
    if not isinstance(known, int):
        return None
    if not -length <= known < length:
        raise CompileError(f"Tuple index out of range. Tuple is length {length} and index is {known}", range)
    return known % length
