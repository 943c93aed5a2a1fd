"""TorchScript's types.

In: names and element types.  Out: values that print in both spellings (`str(t)` is what graphs print,
`t.annotation_str` what Python source prints), compare by structure (classes by identity), and answer
`is_subtype_of`.  `unify` finds the least type that two branches share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any, ClassVar, Final, Protocol

from engine.lang import scalars
from engine.lang.records import dataclass


class Type:
    """Any type.  Immutable; the concrete kinds below are final."""

    __slots__ = ()

    @property
    def annotation_str(self) -> str:
        """The type as a Python annotation writes it."""
        return str(self)

    def contained(self) -> tuple[Type, ...]:
        """The types that this one is built from."""
        return ()

    def is_subtype_of(self, other: Type) -> bool:
        """True if a value of this type can be used wherever one of `other` is expected."""
        return is_subtype(self, other)


@dataclass(frozen=True, slots=True)
class SimpleType(Type):
    """A type without parts, known by its name."""

    name: str
    annotation: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def annotation_str(self) -> str:
        return self.annotation or self.name


@dataclass(frozen=True, slots=True)
class TensorType(Type):
    """A tensor, with its static facts; `sizes` and `strides` hold None for unknown numbers.

    `symbols` are the sizes with negative numbers for those that are unknown, equal ones for sizes that are known to be
    equal; None where nobody has asked for them.  `is_inferred` marks the type of a parameter without annotation.
    Neither tells types apart.
    """

    dtype: scalars.dtype | None = None
    sizes: tuple[int | None, ...] | None = None
    strides: tuple[int | None, ...] | None = None
    requires_grad: bool | None = None
    device: scalars.device | None = None
    symbols: tuple[int, ...] | None = field(default=None, compare=False, repr=False)
    is_inferred: bool = field(default=False, compare=False, repr=False)

    def __str__(self) -> str:
        if self == TENSOR:
            return "Tensor"
        inside = [] if self.sizes is None else [_dim(size) for size in self.sizes]
        if self.strides:
            inside.append(f"strides=[{', '.join(map(_dim, self.strides))}]")
        if self.requires_grad is not None:
            inside.append(f"requires_grad={int(self.requires_grad)}")
        if self.device is not None:
            inside.append(f"device={self.device}")
        name = (self.dtype.ir_name if self.dtype else "") + ("" if self.dtype and self.sizes is not None else "Tensor")
        return f"{name}({', '.join(inside)})" if inside or self.sizes is not None else name

    @property
    def annotation_str(self) -> str:
        return "Tensor"


@dataclass(frozen=True, slots=True)
class ListType(Type):
    element: Type

    def __str__(self) -> str:
        return f"{self.element}[]"

    @property
    def annotation_str(self) -> str:
        return f"List[{self.element.annotation_str}]"

    def contained(self) -> tuple[Type, ...]:
        return (self.element,)


@dataclass(frozen=True, slots=True)
class DictType(Type):
    key: Type
    value: Type

    def __str__(self) -> str:
        return f"Dict({self.key}, {self.value})"

    @property
    def annotation_str(self) -> str:
        return f"Dict[{self.key.annotation_str}, {self.value.annotation_str}]"

    def contained(self) -> tuple[Type, ...]:
        return (self.key, self.value)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class TupleType(Type):
    """A tuple; with `name` and `fields` a NamedTuple, whose `defaults` are those of its last fields.

    `size` counts its parts and theirs, since tuples of one tuple twice, again and again, get big from little text.
    `python_class` is the class that a NamedTuple was made of, where it was made of one.
    """

    elements: tuple[Type, ...]
    name: str | None = None
    fields: tuple[str, ...] = ()
    defaults: tuple[Any, ...] = field(default=(), compare=False)
    python_class: Any = field(default=None, compare=False, repr=False)
    size: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", 1 + sum(map(_size, self.elements)))

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        if not self.fields:
            return f"({', '.join(map(str, self.elements))})"
        parts = [f"{name} : {type}" for name, type in zip(self.fields, self.elements, strict=True)]
        return f"NamedTuple({', '.join(parts)})"

    @property
    def annotation_str(self) -> str:
        if self.name is not None:
            return self.name
        return f"Tuple[{', '.join(e.annotation_str for e in self.elements) or '()'}]"

    def contained(self) -> tuple[Type, ...]:
        return self.elements


@dataclass(frozen=True, slots=True)
class OptionalType(Type):
    """A value or None.  `as_union`: one around a Union that was written, and prints, as `Union(int, NoneType, str)`."""

    element: Type
    as_union: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        if self.as_union:
            return f"Union({', '.join(map(str, in_union_order(members_of(self))))})"
        return f"{self.element}?"

    @property
    def annotation_str(self) -> str:
        if self.as_union:
            return f"Union[{', '.join(m.annotation_str for m in in_union_order(members_of(self)))}]"
        return f"Optional[{self.element.annotation_str}]"

    def contained(self) -> tuple[Type, ...]:
        return (self.element,)


@dataclass(frozen=True, slots=True)
class UnionType(Type):
    """One of several types, none a subtype of another; made by `union_of`."""

    members: tuple[Type, ...]

    def __str__(self) -> str:
        return f"Union({', '.join(map(str, self.members))})"

    @property
    def annotation_str(self) -> str:
        return f"Union[{', '.join(m.annotation_str for m in self.members)}]"

    def contained(self) -> tuple[Type, ...]:
        return self.members

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnionType) and set(self.members) == set(other.members)

    def __hash__(self) -> int:
        return hash(frozenset(self.members))


@dataclass(frozen=True, slots=True)
class LaterType(Type):
    """A value that is computed elsewhere or later: a future of it, or an await."""

    element: Type
    WORD: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.WORD}({self.element})"

    @property
    def annotation_str(self) -> str:
        return f"{self.WORD}[{self.element.annotation_str}]"

    def contained(self) -> tuple[Type, ...]:
        return (self.element,)


class FutureType(LaterType):
    __slots__ = ()
    WORD = "Future"


class AwaitType(LaterType):
    __slots__ = ()
    WORD = "Await"


@dataclass(frozen=True, slots=True)
class VarType(Type):
    """A type variable of a schema, like the `t` of `t[]`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, weakref_slot=True)
class EnumType(Type):
    """A Python Enum; `members` are (name, value) in order, `python_class` the class where it was made of one."""

    qualname: str
    value_type: Type
    members: tuple[tuple[str, Any], ...] = field(compare=False)
    python_class: Any = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"Enum<{self.qualname}>"

    @property
    def annotation_str(self) -> str:
        return self.qualname


class Callee(Protocol):
    """A method as its class knows it: name and schema, also as callers need it (its body is a graph, of a higher
    layer)."""

    @property
    def name(self) -> str: ...
    @property
    def schema(self) -> Any: ...
    @property
    def called_schema(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class ClassAttribute:
    """A slot of a class; `kind` is "attribute", "parameter" or "buffer"."""

    name: str
    type: Type
    kind: str = "attribute"


@dataclass(eq=False, slots=True, weakref_slot=True)
class ClassType(Type):
    """A script class or a module's type: slots, constants and methods.  Compared by identity.

    `methods` maps names to functions of the compilation unit of the class.  `python_class` is the class that it was
    made of, where it was made of one, and `concrete` what is known of a module from there.
    """

    qualname: str
    is_module: bool = False
    attributes: list[ClassAttribute] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    methods: dict[str, Callee] = field(default_factory=dict)
    static_methods: dict[str, Callee] = field(default_factory=dict)
    properties: dict[str, tuple[Callee, Callee | None]] = field(default_factory=dict)
    forward_hooks: list[Callee] = field(default_factory=list)
    forward_pre_hooks: list[Callee] = field(default_factory=list)
    unresolved: dict[str, str] = field(default_factory=dict)
    """Attribute that exists in Python and cannot be compiled -> the reason."""
    is_frozen: bool = False
    """True if only `__init__`, and what it calls, may set attributes."""
    python_class: Any = field(default=None, repr=False)
    concrete: Any = field(default=None, repr=False)
    _places: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.qualname

    @property
    def name(self) -> str:
        return self.qualname.rsplit(".", 1)[-1]

    def contained(self) -> tuple[Type, ...]:
        return tuple(a.type for a in self.attributes)

    def slot(self, name: str) -> int | None:
        """Index of the attribute, or None."""
        for index in range(len(self._places), len(self.attributes)):  # an archive may have a hundred thousand
            self._places.setdefault(self.attributes[index].name, index)
        return self._places.get(name)

    def attribute(self, name: str) -> ClassAttribute | None:
        return None if (slot := self.slot(name)) is None else self.attributes[slot]

    def add_attribute(self, name: str, type: Type, kind: str = "attribute") -> int:
        """Append a slot; its index.  The name must be new."""
        assert self.slot(name) is None, f"{self.qualname} has {name} already"
        self.attributes.append(ClassAttribute(name, type, kind))
        return len(self.attributes) - 1


@dataclass(eq=False, slots=True, weakref_slot=True)
class InterfaceType(Type):
    """An interface: names and schemas of methods that a class must have."""

    qualname: str
    methods: dict[str, Any] = field(default_factory=dict)
    is_module: bool = False

    def __str__(self) -> str:
        return f"InterfaceType<{self.qualname.rpartition('.')[2]}>"

    @property
    def annotation_str(self) -> str:
        return self.qualname


@dataclass(frozen=True, slots=True)
class FunctionType(Type):
    """The type of one function; graphs print it as `Function`."""

    function: Callee

    def __str__(self) -> str:
        return "Function"


TENSOR: Final = TensorType()
INFERRED_TENSOR: Final = TensorType(is_inferred=True)
"""The type of a parameter without annotation."""
INT: Final = SimpleType("int")
FLOAT: Final = SimpleType("float")
COMPLEX: Final = SimpleType("complex")
BOOL: Final = SimpleType("bool")
STR: Final = SimpleType("str")
NONE: Final = SimpleType("NoneType")
NUMBER: Final = SimpleType("Scalar", "number")
DEVICE: Final = SimpleType("Device")
GENERATOR: Final = SimpleType("Generator")
STREAM: Final = SimpleType("Stream")
STORAGE: Final = SimpleType("Storage")
CAPSULE: Final = SimpleType("Capsule")
ANY: Final = SimpleType("Any")
ANY_LIST: Final = SimpleType("list")
ANY_TUPLE: Final = SimpleType("tuple")
ANY_ENUM: Final = SimpleType("AnyEnumType")
ANY_CLASS: Final = SimpleType("AnyClassType")
NUMBERS: Final = (INT, FLOAT, COMPLEX)


def union_of(members: Iterable[Type]) -> Type:
    """The union of the types, flattened: of one it is that one, with None and one other it is an Optional.

    All three types of numbers are `Scalar`.
    """
    flat: list[Type] = []
    for member in _flatten(members):
        if not any(member.is_subtype_of(known) for known in flat):
            flat = [known for known in flat if not known.is_subtype_of(member)] + [member]
    if {*NUMBERS} <= {*flat}:
        flat = [NUMBER, *(known for known in flat if known not in NUMBERS)]
    if len(flat) == 1:
        return flat[0]
    flat = in_union_order(flat)
    if NONE not in flat:
        return UnionType(tuple(flat))
    rest = [m for m in flat if m != NONE]
    return OptionalType(rest[0]) if len(rest) == 1 else OptionalType(UnionType(tuple(rest)), as_union=True)


def in_union_order(members: Iterable[Type]) -> list[Type]:
    """The alternatives of a Union in the order in which it shows them."""
    return sorted(members, key=lambda member: (_union_rank(member), str(member)))


def _union_rank(member: Type) -> int:
    """The place of a member in its Union: by kind, in the original's order."""
    if isinstance(member, SimpleType):
        return _UNION_ORDER.index(member.name) if member.name in _UNION_ORDER else len(_UNION_ORDER)
    kind = type(member).__name__
    return _UNION_ORDER.index(kind) if kind in _UNION_ORDER else len(_UNION_ORDER) + 1


_UNION_ORDER: Final = (
    "EnumType", "TensorType", "Storage", "TupleType", "ListType", "DictType", "Scalar", "float", "complex",
    "FutureType", "AwaitType", "int", "NoneType", "str", "Generator", "bool",
)  # fmt: skip


def members_of(type: Type) -> tuple[Type, ...]:
    """The alternatives of a Union or Optional, None last; of any other type that type alone."""
    if isinstance(type, OptionalType):
        return (*members_of(type.element), NONE)
    return type.members if isinstance(type, UnionType) else (type,)


def unwrap_optional(type: Type) -> Type:
    """T for Optional[T]; any other type itself."""
    return type.element if isinstance(type, OptionalType) else type


def is_subtype(sub: Type, sup: Type) -> bool:
    """Structural subtyping: lists and dicts are invariant, tuples covariant, classes nominal."""
    if sub is sup or sup is ANY or sub == sup:
        return True
    if isinstance(sub, (UnionType, OptionalType)):
        return all(is_subtype(m, sup) for m in members_of(sub))
    if isinstance(sup, (UnionType, OptionalType)):
        return any(is_subtype(sub, m) for m in members_of(sup))
    if isinstance(sub, TensorType) and isinstance(sup, TensorType):
        return _tensor_subtype(sub, sup)
    if isinstance(sub, TupleType):
        return sup is ANY_TUPLE or (isinstance(sup, TupleType) and _tuple_subtype(sub, sup))
    if isinstance(sub, ListType):
        return sup is ANY_LIST or (isinstance(sup, ListType) and _same_elements(sub.element, sup.element))
    if isinstance(sub, LaterType):
        return sub.__class__ is sup.__class__ and is_subtype(sub.element, sup.contained()[0])
    if isinstance(sub, EnumType):
        return sup is ANY_ENUM
    if isinstance(sub, (ClassType, InterfaceType)):
        return sup is ANY_CLASS or (isinstance(sup, InterfaceType) and implements(sub, sup))
    return sup is NUMBER and sub in NUMBERS


def implements(sub: ClassType | InterfaceType, interface: InterfaceType) -> bool:
    """True if the class has every method of the interface, with a compatible schema.  Nothing is compiled."""
    return interface_gap(sub, interface) is None


def is_inferred(type: Type) -> bool:
    """True for the type of a parameter without annotation."""
    return isinstance(type, TensorType) and type.is_inferred


def interface_gap(sub: ClassType | InterfaceType, interface: InterfaceType) -> str | None:
    """The methods of the interface that the class lacks, in words; None if it implements it."""
    shown, wanted_name = sub.annotation_str, interface.annotation_str
    if interface.is_module and not sub.is_module:
        return f"only a ScriptModule class can be subtype of module interface '{wanted_name}', and '{shown}' is none"
    for name, wanted in interface.methods.items():
        offered: Any = sub.methods.get(name)
        schema = getattr(offered, "signature", None) or getattr(offered, "schema", offered)
        if schema is None:
            return f"Class '{shown}' does not have method '{name}' but '{wanted_name}' does"
        if (gap := schema.gap_to_method(wanted)) is not None:
            described = f"it has {schema}, not {wanted}"
            return f"Class '{shown}' is not compatible with interface '{wanted_name}': {described} ({gap})"
    return None


def unify(a: Type, b: Type, *, default_to_union: bool = False) -> Type | None:
    """The least common supertype, or None if there is none (a Union instead, with `default_to_union`)."""
    if a.is_subtype_of(b):
        return b
    if b.is_subtype_of(a):
        return a
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return TENSOR
    if a is NONE:
        return OptionalType(b)
    if b is NONE:
        return OptionalType(a)
    unified = _unify_parts(a, b, default_to_union)
    if unified is None and default_to_union:
        return union_of([a, b])
    return unified


def _size(type: Type) -> int:
    """The number of types it is built from; a class counts as one."""
    if isinstance(type, TupleType):
        return type.size
    return 1 if isinstance(type, ClassType) else 1 + sum(map(_size, type.contained()))


def walk(type: Type) -> Iterator[Type]:
    """The type and every type inside it, each once (not into the attributes of classes)."""
    waiting, seen = [type], dict[int, Type]()
    while waiting:
        if id(each := waiting.pop()) not in seen:
            seen[id(each)] = each
            yield each
            waiting += () if isinstance(each, ClassType) else reversed(each.contained())


def _unify_parts(a: Type, b: Type, default_to_union: bool) -> Type | None:
    if isinstance(a, OptionalType) or isinstance(b, OptionalType):
        inner = unify(unwrap_optional(a), unwrap_optional(b))
        return None if inner is None else OptionalType(inner)
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.elements) == len(b.elements):
        pairs = zip(a.elements, b.elements, strict=True)
        parts = [unify(x, y, default_to_union=default_to_union) for x, y in pairs]
        known = tuple(p for p in parts if p is not None)
        return TupleType(known) if len(known) == len(parts) else None
    if isinstance(a, LaterType) and isinstance(b, LaterType) and a.__class__ is b.__class__:
        element = unify(a.element, b.element)
        return None if element is None else a.__class__(element)
    if isinstance(a, ListType) and isinstance(b, ListType) and _both_tensors(a.element, b.element):
        return ListType(TENSOR)
    if isinstance(a, DictType) and isinstance(b, DictType) and a.key == b.key and _both_tensors(a.value, b.value):
        return DictType(a.key, TENSOR)
    return None


def _flatten(members: Iterable[Type]) -> Iterator[Type]:
    for member in members:
        yield from members_of(member)


def _both_tensors(a: Type, b: Type) -> bool:
    return isinstance(a, TensorType) and isinstance(b, TensorType)


def _same_elements(a: Type, b: Type) -> bool:
    return a == b or (_both_tensors(a, b) and is_subtype(a, b))


def _tensor_subtype(sub: TensorType, sup: TensorType) -> bool:
    facts = ("dtype", "sizes", "strides", "requires_grad", "device")
    return all(getattr(sup, f) is None or getattr(sup, f) == getattr(sub, f) for f in facts)


def _tuple_subtype(sub: TupleType, sup: TupleType) -> bool:
    if len(sub.elements) != len(sup.elements):
        return False
    if sup.name is not None and (sub.name != sup.name or sub.fields != sup.fields):
        return False
    return all(is_subtype(a, b) for a, b in zip(sub.elements, sup.elements, strict=True))


def _dim(size: int | None) -> str:
    return "*" if size is None else str(size)
