"""The classes of types of programs, which are names of `torch` and of `torch._C`."""

from typing import Final

TYPES: Final = (
    "Type AnyType BoolType ClassType ComplexType DeviceObjType DictType EnumType FloatType FutureType AwaitType "
    "IntType InterfaceType ListType NoneType NumberType OptionalType StreamObjType StringType TensorType TupleType "
    "UnionType"
)
