"""This process as compiled code looks at it: objects and functions of Python and numpy, and where tensors keep what.

In: the running Python.  Out: its `Process`, found out once, and `SYMBOLS`, by which native code names the objects and
functions: nothing in the code is an address, so that it may be kept on disk.  Raises AbiError where something is not as
native code expects.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from engine.aten.autograd.node import Node, Saved
from engine.aten.autograd.record import OperatorNode
from engine.aten.dispatch.grad_mode import MODE
from engine.aten.dispatch.wrapping import fresh
from engine.aten.values.hooks import HOOKS
from engine.aten.values.parameter import Parameter
from engine.aten.values.promotion import DEFAULTS
from engine.aten.values.storage import Storage
from engine.aten.values.tensor import Tensor
from engine.fuser.backend import cpython_abi
from engine.fuser.backend.cpython_abi import AbiError
from engine.fuser.backend.symbols import SYMBOLS
from engine.fuser.ir.numeric_functions import NUMPY
from engine.lang.records import dataclass

DTYPES: Final[dict[str, np.dtype[Any]]] = {name: np.dtype(of) for name, of in NUMPY.items()}
"""The dtypes of arrays by the types of elements of kernels."""
_OBJECTS: Final[dict[str, Any]] = {
    "None": None, "False": False, "True": True, "zero": 0, "float": float, "int": int, "list": list, "dict": dict,
    "ndarray": np.ndarray, "Tensor": Tensor, "Parameter": Parameter, "HOOKS": HOOKS, "MODE": MODE, "enabled": "enabled",
    **{f"dtype.{name}": of for name, of in DTYPES.items()},
}  # fmt: skip
_FUNCTIONS: Final = (
    "PyObject_Vectorcall", "PyObject_GetAttr", "PyType_GenericAlloc", "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLongLong", "PyFloat_FromDouble", "PyErr_Clear", "PyErr_Occurred", "PyTuple_New", "PyTuple_SetItem",
    "PyTuple_GetItem", "PyTuple_Size", "PyList_Size", "PyList_GetItem",
    "PyIter_Next", "PySet_Size",
    "PyEval_SaveThread", "PyEval_RestoreThread", "Py_IncRef", "Py_DecRef",
)  # fmt: skip
_SLOTS: Final[dict[type, str]] = {
    Tensor: "array _requires_grad _storage _base _grad_fn _seen output_nr", Storage: "owner version",
    type(HOOKS): "trace python_only rebased grad recorded paused",
    type(DEFAULTS): "floating",
    Node: "_edges sources outputs sequence tensor_hooks retained hooks prehooks", OperatorNode: "plan kept",
}  # fmt: skip
"""Slots of these types, all of different names."""
_SAVED_SLOTS: Final = "held output storage version"
"""Those of `Saved`, which go by `saved.held` and so on."""
NEW_ARRAY, SET_BASE = "PyArray_NewFromDescr", "PyArray_SetBaseObject"


def symbol(name: str) -> str:
    """The symbol of an object, by its name in this module."""
    return f"tsrepl.py.{name}"


@dataclass(frozen=True, slots=True)
class Process:
    """`slots`: offsets of slots of tensors, hooks, storages and nodes.  `fresh`: the objects in the slots of a new
    tensor, by offset."""

    functions: Mapping[str, int]
    slots: Mapping[str, int]
    fresh: Mapping[int, str]

    @property
    def layout(self) -> str:
        """The part that is in native code: offsets, no addresses."""
        return f"{sorted(self.slots.items())} {sorted(self.fresh.items())}"


_found: Process | AbiError | None = None


def process() -> Process:
    """This process, looked at once; raises AbiError."""
    global _found
    if _found is None:
        try:
            _found = _looked_at()
        except AbiError as error:
            _found = error
    if isinstance(_found, AbiError):
        raise _found
    return _found


def _looked_at() -> Process:
    known, offset = cpython_abi.known(), cpython_abi.slot_offset
    for each in _OBJECTS.values():
        cpython_abi.retain(each)
    slots = {name: offset(kind, name) for kind, names in _SLOTS.items() for name in names.split()}
    slots |= {f"saved.{name}": offset(Saved, name) for name in _SAVED_SLOTS.split()}
    functions = {name: known.functions[name] for name in _FUNCTIONS}
    functions |= {NEW_ARRAY: known.array_new, SET_BASE: known.array_base}
    return Process(functions, slots, _fresh_slots(slots["array"]))


def _fresh_slots(array: int) -> dict[int, str]:
    """The objects in the slots of a tensor without history; raises AbiError unless they are constants."""
    constants = {id(_OBJECTS[name]): name for name in ("None", "False", "zero")}
    tensor = fresh(np.zeros(3, np.float32))
    offsets = [cpython_abi.slot_offset(Tensor, each) for each in Tensor.__slots__ if not each.startswith("__")]
    values = {offset: cpython_abi.slot_value(tensor, offset) for offset in offsets if offset != array}
    held = {offset: value for offset, value in values.items() if value}
    if vars(tensor) or not {*held.values()} <= constants.keys():
        raise AbiError("new tensors hold no constants")
    return {offset: constants[value] for offset, value in held.items()}


def _function_address(name: str) -> int:
    return process().functions[name]


def _object_address(value: object) -> int:
    return id(value)


SYMBOLS.update({name: partial(_function_address, name) for name in (*_FUNCTIONS, NEW_ARRAY)})
SYMBOLS.update({symbol(name): partial(_object_address, value) for name, value in _OBJECTS.items()})
