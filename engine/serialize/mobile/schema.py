"""The schema of PyTorch's mobile flatbuffers: the forms of their tables, as the public format has them.

In: nothing.  Out: `FORMS`, and the meaning of instruction numbers.  Most parts are values: the table `Module` lists
all of them in `ivalues`, and other tables name them by their numbers there, of which 0 is None.
"""

from __future__ import annotations

import struct
from typing import Final

from engine.serialize.mobile.flatbuffer import Forms, Struct, table_form

ROOT_TABLE: Final = "Module"
OLDEST: Final = 9
"""Bytecode before this version was never written as a flatbuffer."""
_VALUE_KINDS: Final = (
    "Int", "Bool", "Double", "ComplexDouble", "TensorMetadata", "String", "List", "Tuple", "Dict", "Object", "IntList",
    "DoubleList", "BoolList", "Device", "EnumValue", "Function",
)  # fmt: skip
_UNIONS: Final = {"IValueUnion": _VALUE_KINDS}
_TABLES: Final = {
    "QuantizedSchema": "qscheme:byte scale:double zero_point:int scales:TensorMetadata zero_points:TensorMetadata "
                       "axis:int",
    "TensorMetadata": "storage_location_index:uint scalar_type:byte storage_offset:int sizes:[int] strides:[int] "
                      "requires_grad:bool quantized_schema:QuantizedSchema",
    "String": "data:string",
    "Device": "str:string",
    "List": "items:[uint] annotation_str:string",
    "IntList": "items:[long]",
    "DoubleList": "items:[double]",
    "BoolList": "items:[bool]",
    "Tuple": "items:[uint]",
    "Dict": "keys:[uint] values:[uint] annotation_str:string",
    "ObjectType": "type_name:string type:ubyte attr_names:[string]",
    "Object": "type_index:uint state:uint attrs:[uint] setstate_func:uint",
    "EnumValue": "type_name:string value:uint",
    "Operator": "name:string overload_name:string num_args_serialized:int=-1",
    "Arg": "name:string type:string default_value:uint",
    "Schema": "arguments:[Arg] returns:[Arg]",
    "DebugInfo": "debug_handle:[long]",
    "Function": "qn:string instructions:[Instruction] operators:[Operator] constants:[uint] type_annotations:[string] "
                "register_size:int schema:Schema debug_info:DebugInfo class_type:uint",
    "StorageData": "data:[ubyte]",
    "IValue": "val:IValueUnion",
    "ExtraFile": "name:string content:[ubyte]",
    "Module": "bytecode_version:uint extra_files:[ExtraFile] methods:[uint] state_obj:uint ivalues:[IValue] "
              "storage_data_size:int storage_data:[StorageData] object_types:[ObjectType] jit_sources:[ExtraFile] "
              "jit_constants:[uint] operator_version:uint mobile_ivalue_size:uint",
}  # fmt: skip
"""Fields in their order.  The content of an extra file is a text in the format, and any bytes in truth."""

FORMS: Final = Forms(
    {name: table_form(text, _UNIONS) for name, text in _TABLES.items()},
    {
        "Int": Struct(struct.Struct("<q"), 8), "Bool": Struct(struct.Struct("<?"), 1),
        "Double": Struct(struct.Struct("<d"), 8), "ComplexDouble": Struct(struct.Struct("<2d"), 8),
        "Instruction": Struct(struct.Struct("<bxHi"), 4),
    },
    _UNIONS,
)  # fmt: skip

CLASS_WITH_FIELDS: Final = 1
CUSTOM_CLASS: Final = 2
CLASS_WITH_SETSTATE: Final = 3
"""The ways to make objects of a type: from their attributes, by C++ code, by a method of their own."""

OPCODES: Final = (
    "OP OPN LOAD MOVE STOREN STORE DROP DROPR LOADC JF JMP LOOP RET WAIT CALL GUARD TYPECHECK FAIL_GUARD PROFILE_OP "
    "TAIL_CALL INTERFACE_CALL GET_ATTR SET_ATTR LIST_UNPACK TUPLE_CONSTRUCT NAMED_TUPLE_CONSTRUCT LIST_CONSTRUCT "
    "DICT_CONSTRUCT CREATE_OBJECT ISINSTANCE TUPLE_SLICE TUPLE_INDEX RAISE_EXCEPTION DICT_INDEX UNCHECKED_CAST __IS__ "
    "UN_INITIALIZED __ISNOT__ FORMAT DEVICE DTYPE DIM __NOT__ TO_LIST NUM_TO_TENSOR IS_CUDA FORK WARN ENTER EXIT "
    "AWAITABLE"
).split()  # fmt: skip
"""The instructions, by their numbers."""
OPERATORS: Final = {
    "RAISE_EXCEPTION": ("prim::RaiseException", 2), "WARN": ("aten::warn", 2), "DICT_INDEX": ("aten::__getitem__", 2),
    "__IS__": ("aten::__is__", 2), "__ISNOT__": ("aten::__isnot__", 2), "__NOT__": ("aten::__not__", 1),
    "DIM": ("aten::dim", 1), "DEVICE": ("prim::device", 1), "DTYPE": ("prim::dtype", 1),
    "IS_CUDA": ("prim::is_cuda", 1), "NUM_TO_TENSOR": ("prim::NumToTensor", 1),
}  # fmt: skip
"""Instructions that are operators, with so many arguments."""
