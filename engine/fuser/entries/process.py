"""This process as native entries look at it: where tensors, arrays and hooks lie, and numpy's loops.

In: the running Python.  Out: its `Layout`, found out once; the inner loops of numpy's functions.  Raises AbiError where
something is not as native code expects.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from engine.aten.kernels.pointwise import FUNCTIONS
from engine.aten.values.hooks import HOOKS
from engine.aten.values.parameter import Parameter
from engine.aten.values.promotion import DEFAULTS, Defaults
from engine.aten.values.storage import Storage
from engine.aten.values.tensor import Tensor
from engine.fuser import cpython_abi
from engine.fuser.cpython_abi import AbiError
from engine.fuser.entries import samples
from engine.fuser.expression import Unsupported
from engine.fuser.lower import RowFunction
from engine.fuser.writing import Layout

_found: Layout | AbiError | None = None


def layout() -> Layout:
    """The layout of this process for entries, found once; raises AbiError."""
    global _found
    if _found is None:
        try:
            _found = _looked_up()
        except AbiError as error:
            _found = error
    if isinstance(_found, AbiError):
        raise _found
    return _found


def _looked_up() -> Layout:
    known = cpython_abi.known()
    offset, retain = cpython_abi.slot_offset, cpython_abi.retain
    slots = {name: offset(Tensor, name) for name in ("array", "_requires_grad", "_storage")}
    return Layout(
        functions=known.functions, array_new=known.array_new, tensor=retain(Tensor),
        parameter=retain(Parameter), slots=slots,
        fresh=_fresh_slots(slots["array"]), array=retain(np.ndarray), floating=retain(float), whole=retain(int),
        list=retain(list), none=retain(None), false=retain(False), true=retain(True), zero=retain(0),
        hooks=retain(HOOKS),
        hook_slots={name: offset(type(HOOKS), name) for name in ("trace", "rebased", "devices")},
        defaults=retain(DEFAULTS), floating_slot=offset(Defaults, "floating"), storage_type=retain(Storage),
        version_slot=offset(Storage, "version"),
        dtypes={kind: retain(np.dtype(name)) for kind, name in samples.DTYPES.items()},
        products=cpython_abi.products(),
    )  # fmt: skip


def _fresh_slots(array: int) -> dict[int, int]:
    """Slot values of a tensor without history, except its array; raises AbiError unless they are constant."""
    constants = {id(None), id(False), id(0)}
    tensor = samples.fresh_tensor()
    found: dict[int, int] = {}
    for name in Tensor.__slots__:
        if name in ("__dict__", "__weakref__"):
            continue
        offset = cpython_abi.slot_offset(Tensor, name)
        value = cpython_abi.slot_value(tensor, offset)
        if offset == array or value == 0:
            continue
        if value not in constants:
            raise AbiError(f"new tensors hold no constant in {name}")
        found[offset] = value
    if vars(tensor):
        raise AbiError("new tensors have attributes of their own")
    return found


# ------------------------------------------------------------------ numpy's loops


@cache
def row_function(name: str, kind: str) -> RowFunction:
    """The inner loop of the function that `engine.aten.kernels.pointwise` calls by this name."""
    ufunc = FUNCTIONS.get(name) if name not in _UFUNCS else _UFUNCS[name]
    if not isinstance(ufunc, np.ufunc):
        raise Unsupported(f"{name} is no function of numpy")
    try:
        return RowFunction(*cpython_abi.inner_loop(ufunc, _LETTERS[kind]))
    except AbiError as error:
        raise Unsupported(str(error)) from error


_UFUNCS: Final = {"fmod": np.fmod, "ufunc_floor_divide": np.floor_divide}
_LETTERS: Final = {"f32": "f", "f64": "d"}
