"""`torch.jit.types`: the types of values in graphs as Python sees them.

In: types of the engine.  Out: objects with the original's names (`kind()`, `sizes()`, `with_sizes(..)`,
`isSubtypeOf(..)`), one class for each kind; `IntType.get()`, `ListType(IntType.get())` make them.  They compare as
the types they show, and calling one gives itself, so that `value.type` and `value.type()` both are the type.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from engine.aten.values.tensor import Tensor
from engine.ir.constants import tensor_type_of
from engine.lang import scalars, types
from engine.lang.errors import ArgumentError

Text = str
_SYMBOLS: Final = itertools.count(2)


def new_symbol() -> int:
    """A new negative number that stands for an unknown size."""
    return -next(_SYMBOLS)


def with_symbols(type: types.TensorType, symbols: Sequence[int] | None = None) -> types.TensorType:
    """The type with these numbers for its sizes, negative ones for unknown ones; by default new ones unless it has some
    that fit."""
    if type.sizes is None:
        return replace(type, symbols=None)
    if symbols is None:
        has_some = type.symbols is not None and len(type.symbols) == len(type.sizes)
        before = type.symbols if has_some and type.symbols is not None else (None,) * len(type.sizes)
        pairs = zip(type.sizes, before, strict=True)
        symbols = [size if size is not None else old if old and old < 0 else new_symbol() for size, old in pairs]
    return replace(type, symbols=tuple(symbols))


class Type:
    """The base of all types under PyTorch's names."""

    __slots__ = ("_ir",)

    def __init__(self, ir: types.Type) -> None:
        self._ir = ir

    def __call__(self) -> Type:
        return self

    def kind(self) -> Text:
        return type(self).__name__

    @property
    def annotation_str(self) -> Text:
        """The type as Python annotations write it."""
        return self._ir.annotation_str

    def str(self) -> Text:
        """The type as graphs write it."""
        return str(self._ir)

    def isSubtypeOf(self, other: Type) -> bool:
        return self._ir.is_subtype_of(other._ir)

    def containedTypes(self) -> list[Type]:
        return [wrap(part) for part in self._ir.contained()]

    def is_interface_type(self) -> bool:
        return isinstance(self._ir, types.InterfaceType)

    def __getattr__(self, name: Text) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._ir, name)

    def __eq__(self, other: object) -> bool:
        return self._ir == (other._ir if isinstance(other, Type) else other)

    def __hash__(self) -> int:
        return hash(self._ir)

    def __str__(self) -> Text:
        return self._ir.annotation_str

    __repr__ = __str__


class TensorType(Type):
    """A tensor type, with the dtype, device, sizes and strides as far as they are known."""

    __slots__ = ()
    _ir: types.TensorType

    @staticmethod
    def get() -> TensorType:
        """The tensor type without any further facts."""
        return TensorType(types.TENSOR)

    getInferred = get

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorType:
        """The type with the dtype, device, sizes and strides of the tensor."""
        return TensorType(tensor_type_of(tensor))

    def dim(self) -> int | None:
        return None if self._ir.sizes is None else len(self._ir.sizes)

    def sizes(self) -> list[int] | None:
        """The sizes, or None unless all are known."""
        return _all_known(self._ir.sizes)

    def strides(self) -> list[int] | None:
        """The strides, or None unless all are known."""
        return _all_known(self._ir.strides)

    def varyingSizes(self) -> list[int | None] | None:
        """The sizes with None for unknown ones; None if their number is unknown."""
        return None if self._ir.sizes is None else list(self._ir.sizes)

    def symbolic_sizes(self) -> list[int] | None:
        """The sizes with a negative symbol for each unknown one, the same for those that are known to be equal."""
        self._ir = with_symbols(self._ir)
        return None if self._ir.symbols is None else list(self._ir.symbols)

    def dtype(self) -> scalars.dtype | None:
        return self._ir.dtype

    def scalarType(self) -> Any:
        """The name of the dtype, `Float`."""
        return self._ir.dtype.ir_name if self._ir.dtype else None

    def device(self) -> scalars.device | None:
        return self._ir.device

    def requires_grad(self) -> bool:
        """True unless the tensor is known not to require gradients."""
        return self._ir.requires_grad is not False

    def undefined(self) -> bool:
        return False

    def with_sizes(self, sizes: Sequence[int | None] | None) -> TensorType:
        """The type with these sizes; None stands for an unknown one, a negative number for the unknown one that has it
        as its symbol."""
        if sizes is None:
            return self._with(sizes=None, strides=None, symbols=None)
        symbols = tuple(new_symbol() if size is None else size for size in sizes)
        known = tuple(None if size < 0 else size for size in symbols)
        return self._with(sizes=known, strides=None, symbols=symbols)

    def with_device(self, device: scalars.device | None) -> TensorType:
        return self._with(device=scalars.device(device) if isinstance(device, str) else device)

    def with_dtype(self, dtype: scalars.dtype | None) -> TensorType:
        return self._with(dtype=dtype)

    def contiguous(self) -> TensorType:
        """The type with the strides of a contiguous tensor."""
        sizes = self.sizes()
        if sizes is None:
            return self
        strides = [1]
        for size in reversed(sizes[1:]):
            strides.insert(0, strides[0] * max(size, 1))
        return self._with(strides=tuple(strides[: len(sizes)]))

    def _with(self, **facts: Any) -> TensorType:
        return TensorType(replace(self._ir, **facts))


def _all_known(numbers: tuple[int | None, ...] | None) -> list[int] | None:
    known = [] if numbers is None else [n for n in numbers if n is not None and n >= 0]
    return None if numbers is None or len(known) < len(numbers) else known


class ListType(Type):
    __slots__ = ()
    _ir: types.ListType

    def __init__(self, element: Type | types.Type | None) -> None:
        """Wrap a list type, or make the list type of an element type."""
        if element is None:
            raise ArgumentError("Can not create ListType with None type", hints=("TensorType.get() is a type",))
        inner = ir_type(element)
        is_own = isinstance(element, types.ListType)
        super().__init__(inner if is_own else types.ListType(inner))

    @staticmethod
    def ofInts() -> ListType:
        return ListType(IntType.get())

    @staticmethod
    def ofTensors() -> ListType:
        return ListType(TensorType.get())

    @staticmethod
    def ofFloats() -> ListType:
        return ListType(FloatType.get())

    @staticmethod
    def ofBools() -> ListType:
        return ListType(BoolType.get())

    def getElementType(self) -> Type:
        return wrap(self._ir.element)


class DictType(Type):
    __slots__ = ()
    _ir: types.DictType

    def __init__(self, key: Type | types.Type, value: Type | types.Type | None = None) -> None:
        super().__init__(ir_type(key) if value is None else types.DictType(ir_type(key), ir_type(value)))

    def getKeyType(self) -> Type:
        return wrap(self._ir.key)

    def getValueType(self) -> Type:
        return wrap(self._ir.value)


class TupleType(Type):
    __slots__ = ()
    _ir: types.TupleType

    def __init__(self, elements: Sequence[Type | types.Type] | types.Type) -> None:
        own = isinstance(elements, types.Type)
        super().__init__(elements if own else types.TupleType(tuple(map(ir_type, elements))))  # type: ignore[arg-type]

    def elements(self) -> list[Type]:
        return [wrap(each) for each in self._ir.elements]


class OptionalType(Type):
    __slots__ = ()
    _ir: types.OptionalType

    def __init__(self, element: Type | types.Type) -> None:
        own = isinstance(element, types.OptionalType)
        super().__init__(ir_type(element) if own else types.OptionalType(ir_type(element)))

    @staticmethod
    def ofTensor() -> OptionalType:
        return OptionalType(TensorType.get())

    def getElementType(self) -> Type:
        return wrap(self._ir.element)


class FutureType(Type):
    __slots__ = ()
    _ir: types.FutureType

    def __init__(self, element: Type | types.Type) -> None:
        own = isinstance(element, types.FutureType)
        super().__init__(ir_type(element) if own else types.FutureType(ir_type(element)))

    def getElementType(self) -> Type:
        return wrap(self._ir.element)


class AwaitType(Type):
    __slots__ = ()
    _ir: types.AwaitType

    def __init__(self, element: Type | types.Type) -> None:
        own = isinstance(element, types.AwaitType)
        super().__init__(ir_type(element) if own else types.AwaitType(ir_type(element)))

    def getElementType(self) -> Type:
        return wrap(self._ir.element)


class UnionType(Type):
    __slots__ = ()

    def __init__(self, members: Sequence[Type | types.Type] | types.Type) -> None:
        own = isinstance(members, types.Type)
        super().__init__(members if own else types.union_of(map(ir_type, members)))  # type: ignore[arg-type]


class ClassType(Type):
    __slots__ = ()
    _ir: types.ClassType

    def name(self) -> Any:
        return self._ir.name

    def qualified_name(self) -> Any:
        return self._ir.qualname


class InterfaceType(Type):
    __slots__ = ()


class EnumType(Type):
    __slots__ = ()


class FunctionType(Type):
    __slots__ = ()


class VarType(Type):
    __slots__ = ()


class _Simple(Type):
    """A type without parameters, which has one instance."""

    __slots__ = ()
    _ONLY: ClassVar[types.Type]

    @classmethod
    def get(cls) -> Any:
        return cls(cls._ONLY)


def _simple(name: str, only: types.Type) -> type[_Simple]:
    return type(name, (_Simple,), {"__slots__": (), "_ONLY": only, "__module__": __name__, "__doc__": f"`{only}`."})


IntType: Final = _simple("IntType", types.INT)
FloatType: Final = _simple("FloatType", types.FLOAT)
ComplexType: Final = _simple("ComplexType", types.COMPLEX)
BoolType: Final = _simple("BoolType", types.BOOL)
StringType: Final = _simple("StringType", types.STR)
NoneType: Final = _simple("NoneType", types.NONE)
NumberType: Final = _simple("NumberType", types.NUMBER)
DeviceObjType: Final = _simple("DeviceObjType", types.DEVICE)
GeneratorType: Final = _simple("GeneratorType", types.GENERATOR)
StreamObjType: Final = _simple("StreamObjType", types.STREAM)
StorageType: Final = _simple("StorageType", types.STORAGE)
CapsuleType: Final = _simple("CapsuleType", types.CAPSULE)
AnyType: Final = _simple("AnyType", types.ANY)
AnyListType: Final = _simple("AnyListType", types.ANY_LIST)
AnyTupleType: Final = _simple("AnyTupleType", types.ANY_TUPLE)
AnyEnumType: Final = _simple("AnyEnumType", types.ANY_ENUM)
AnyClassType: Final = _simple("AnyClassType", types.ANY_CLASS)

_SIMPLE: Final = {cls._ONLY: cls for cls in _Simple.__subclasses__()}
_COMPOUND: Final[dict[type[types.Type], type[Any]]] = {
    types.TensorType: TensorType, types.ListType: ListType, types.DictType: DictType, types.TupleType: TupleType,
    types.OptionalType: OptionalType, types.UnionType: UnionType, types.FutureType: FutureType,
    types.AwaitType: AwaitType,
    types.ClassType: ClassType, types.InterfaceType: InterfaceType, types.EnumType: EnumType,
    types.FunctionType: FunctionType, types.VarType: VarType,
}  # fmt: skip


def wrap(type_: types.Type) -> Type:
    """The type under PyTorch's names."""
    if isinstance(type_, types.SimpleType):
        return _SIMPLE.get(type_, Type)(type_)
    wrapped: Type = _COMPOUND.get(type(type_), Type)(type_)
    return wrapped


def ir_type(given: Any) -> types.Type:
    """The engine's type of a type of either kind.  Raises ArgumentError for anything else."""
    if isinstance(given, Type):
        return given._ir
    if isinstance(given, types.Type):
        return given
    raise ArgumentError(f"a type is wanted, not {type(given).__name__}", hints=("TensorType.get() is one",))
