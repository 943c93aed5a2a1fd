"""The ABI of CPython and numpy for native code: offsets in memory, and functions to call.

In: this process.  Out: `Abi`, or `AbiError` that says what differs from what we know; and builtin functions made from
addresses of native code.

Nothing is taken on trust: offsets of slots are read from the types, the layout of arrays (public in numpy's headers) is
compared with what Python says of some arrays, and every function is called once.  Where a check fails nobody uses
native code.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from engine.lang.records import dataclass

VERSIONS: Final = frozenset({(3, 11), (3, 12), (3, 13), (3, 14)})
"""CPythons whose objects begin as is written here."""
ARRAY_VERSIONS: Final = {0x01000009: "numpy 1", 0x02000000: "numpy 2"}
_FLAGS: Final = {"C_CONTIGUOUS": 0x1, "F_CONTIGUOUS": 0x2, "ALIGNED": 0x100, "WRITEABLE": 0x400}
FORTRAN: Final = _FLAGS["F_CONTIGUOUS"]
ALIGNED: Final = _FLAGS["ALIGNED"]
PLAIN: Final = _FLAGS["C_CONTIGUOUS"] | ALIGNED
WRITEABLE: Final = _FLAGS["WRITEABLE"]
TYPE_OFFSET: Final = 8
FLOAT_VALUE: Final = 16
"""Where a float keeps its number."""
DATA, NDIM, DIMENSIONS, STRIDES, BASE, DTYPE, ARRAY_FLAGS = 16, 24, 32, 40, 48, 56, 64
"""Where the fields of an array are; the public structure `PyArrayObject_fields`."""
HANDLER: Final = 88
"""Where an array that owns its memory keeps the capsule of what frees it (NEP 49)."""
OWNED: Final = 0x4
"""The flag of arrays that own their memory."""
DOMAIN: Final = 389047
"""The name of numpy's memory where memory is traced (`numpy.lib.tracemalloc_domain`)."""
_MEMBER: Final = 40
"""Where a member descriptor points to the description of its slot."""
_NEW_FROM_DESCR: Final = 94
_SET_BASE: Final = 282
_FASTCALL, _KEYWORDS = 0x80, 0x02
_FUNCTIONS: Final = (
    "PyObject_Vectorcall", "PyType_GenericAlloc", "PyFloat_AsDouble", "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLongLong", "PyErr_Clear", "PyTuple_Size", "PyTuple_New", "PyTuple_SetItem", "PyIter_Next",
    "PyList_Size", "PyList_GetItem", "PyEval_SaveThread", "PyEval_RestoreThread", "Py_IncRef", "Py_DecRef",
    "PyErr_Occurred", "PyFloat_FromDouble", "PyTuple_GetItem", "PyObject_GetAttr",
    "PySet_Size",
)  # fmt: skip


class AbiError(Exception):
    """This process is not what native code is written for."""


@dataclass(frozen=True, slots=True)
class Abi:
    """Addresses of functions by name; numpy's `PyArray_NewFromDescr` and `PyArray_SetBaseObject`."""

    functions: dict[str, int]
    array_new: int
    array_base: int


def known() -> Abi:
    """The addresses and offsets of this process; raises AbiError."""
    _check_python()
    functions = {name: _address(name) for name in _FUNCTIONS}
    abi = Abi(functions, array_function(_NEW_FROM_DESCR), array_function(_SET_BASE))
    _check_arrays()
    _check_new(abi)
    return abi


def _check_python() -> None:
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in VERSIONS:
        raise AbiError(f"not a CPython of a known version: {sys.version}")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise AbiError("without the global interpreter lock objects begin otherwise")
    if sysconfig.get_config_var("Py_TRACE_REFS") or hasattr(sys, "gettotalrefcount"):
        raise AbiError("a debug build counts references elsewhere as well")
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        raise AbiError("not a little-endian machine of 64 bits")
    if _pointer(id(1.5) + TYPE_OFFSET) != id(float):
        raise AbiError("objects do not point to their types where they should")
    number = 1.5
    if ctypes.c_double.from_address(id(number) + FLOAT_VALUE).value != number:
        raise AbiError("floats do not keep their number where they should")
    pair = complex(number, -number)
    if [*(ctypes.c_double * 2).from_address(id(pair) + FLOAT_VALUE)] != [number, -number]:
        raise AbiError("complex numbers do not keep their parts where floats keep their number")


def _address(name: str) -> int:
    try:
        address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    except AttributeError as error:
        raise AbiError(f"CPython has no {name}") from error
    assert address is not None
    return address


def array_function(place: int) -> int:
    """A function out of the table that numpy gives to C programs."""
    core: Any = getattr(np, "_core", None) or np.core
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(core.multiarray._ARRAY_API, None)
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(_pointer(table))()
    if version not in ARRAY_VERSIONS:
        raise AbiError(f"numpy's table has version {version:#x}")
    if _pointer(table + 2 * 8) != id(np.ndarray):
        raise AbiError("numpy's table does not begin with the type of arrays")
    return _pointer(table + place * 8)


def _check_arrays() -> None:
    for array in (np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((4, 2, 3))[:, :, ::2], np.zeros((), np.int64)):
        at, ndim = id(array), array.ndim
        flags = ctypes.c_int.from_address(at + ARRAY_FLAGS).value
        seen = (
            _pointer(at + TYPE_OFFSET), _pointer(at + DATA), ctypes.c_int.from_address(at + NDIM).value,
            tuple((ctypes.c_ssize_t * ndim).from_address(_pointer(at + DIMENSIONS))) if ndim else (),
            tuple((ctypes.c_ssize_t * ndim).from_address(_pointer(at + STRIDES))) if ndim else (),
            _pointer(at + BASE) or id(None), _pointer(at + DTYPE),
            {name: bool(flags & bit) for name, bit in _FLAGS.items()},
        )  # fmt: skip
        data = array.__array_interface__["data"][0]
        wanted_flags = {name: bool(array.flags[name]) for name in _FLAGS}  # type: ignore[index]
        wanted = id(array.base), id(array.dtype), wanted_flags
        if seen != (id(np.ndarray), data, ndim, array.shape, array.strides, *wanted):
            raise AbiError("arrays do not lie in memory as numpy's headers say")


def _check_new(abi: Abi) -> None:
    """Make an array as native code will."""
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
        ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
    )(abi.array_new)  # fmt: skip
    d = np.dtype(np.float32)
    retain(d)  # the function takes a reference over
    shape = (ctypes.c_ssize_t * 2)(2, 3)
    made = make(np.ndarray, d, 2, ctypes.addressof(shape), None, None, 0, None)
    if type(made) is not np.ndarray or made.shape != (2, 3) or made.dtype is not d or not made.flags.owndata:
        raise AbiError("PyArray_NewFromDescr is not where it should be")
    _check_view(abi, make, made)


def _check_view(abi: Abi, make: Callable[..., Any], array: np.ndarray[Any, Any]) -> None:
    """Make a view as native code will."""
    set_base = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.py_object)(abi.array_base)
    shape, strides = (ctypes.c_ssize_t * 1)(2), (ctypes.c_ssize_t * 1)(12)
    retain(array.dtype)
    place = _pointer(id(array) + DATA)
    made = make(
        np.ndarray, array.dtype, 1, ctypes.addressof(shape), ctypes.addressof(strides), place, ALIGNED | WRITEABLE, None
    )
    retain(array)  # as above
    if set_base(made, array) != 0 or made.base is not array or made.flags.owndata or made.flags.c_contiguous:
        raise AbiError("PyArray_SetBaseObject is not where it should be")


def freeing_handler() -> int:
    """The capsule by which numpy frees arrays with C's `free`; 0 where it is not found, or the program has another."""
    array = np.empty(3)
    capsule = _pointer(id(array) + HANDLER)
    core: Any = getattr(np, "_core", None) or np.core
    if getattr(core.multiarray, "get_handler_name", str)(array) != _DEFAULT_HANDLER:
        return 0
    if capsule == 0 or _pointer(capsule + TYPE_OFFSET) != id(type(core.multiarray._ARRAY_API)):
        return 0
    found = ctypes.cast(capsule, ctypes.py_object).value
    ctypes.pythonapi.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return retain(found) if ctypes.pythonapi.PyCapsule_IsValid(found, b"mem_handler") else 0


_DEFAULT_HANDLER: Final = "default_allocator"


def _pointer(address: int) -> int:
    value = ctypes.c_void_p.from_address(address).value
    return value or 0


def retain(value: object) -> int:
    """Count one more reference for good, so that native code may hold the object's address, which is returned."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
    return id(value)


def release(value: object) -> None:
    """Take back a reference that `retain` counted."""
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(value))


def slot_offset(kind: type, name: str) -> int:
    """Where objects of a type keep what `__slots__` calls so; raises AbiError when the type does not say."""
    descriptor = vars(kind).get(name)
    if type(descriptor).__name__ != "member_descriptor":
        raise AbiError(f"{kind.__name__}.{name} is no slot")
    member = _pointer(id(descriptor) + _MEMBER)
    spelled = ctypes.c_char_p.from_address(member).value if member else None
    offset = ctypes.c_ssize_t.from_address(member + 16).value if member else 0
    if spelled != name.encode() or not 16 <= offset < kind.__basicsize__ or offset % 8:
        raise AbiError(f"{kind.__name__}.{name} is not described where it should be")
    return offset


def slot_value(value: object, offset: int) -> int:
    """The address of what is in a slot; 0 for nothing."""
    return _pointer(id(value) + offset)


# ------------------------------------------------------------------ builtins


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


@cache
def _defined(name: str, function: int, flags: int, doc: str) -> int:
    return _kept(_MethodDef(name.encode(), function, flags, doc.encode()))


def _kept(definition: ctypes.Structure) -> int:
    """The address of a definition, which is never freed: builtins may outlive this module when Python ends."""
    retain(definition)
    return ctypes.addressof(definition)


def holding_builtin(name: str, function: int, doc: str, held: object) -> Callable[..., Any]:
    """A builtin function that is given an object besides its arguments: `PyObject *(PyObject *held, PyObject **args,
    Py_ssize_t n, PyObject *names)`."""
    return _made_builtin(_defined(name, function, _FASTCALL | _KEYWORDS, doc), held)


def _made_builtin(definition: int, held: object) -> Callable[..., Any]:
    made: Callable[..., Any] = _maker()(definition, held, None, None)
    return made


@cache
def _maker() -> Callable[..., Any]:
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)
    return make(_address("PyCMethod_New"))


def method(kind: type, name: str, function: int, doc: str) -> Any:
    """A method descriptor: `PyObject *(PyObject *self, PyObject **args, Py_ssize_t n, PyObject *names)`."""
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)
    return make(_address("PyDescr_NewMethod"))(kind, _defined(name, function, _FASTCALL | _KEYWORDS, doc))
