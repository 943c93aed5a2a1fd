"""Descriptors: what stubs read of this process and of an operator, in words of 64 bits.

In: this process (`stubs.process`), a form of an operator, and the addresses of row functions.  Out: a builtin function
of Python which calls a stub; raises AbiError where the process is not what stubs are written for.
"""

from __future__ import annotations

import itertools
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from engine.aten.autograd.node import Saved, numbers
from engine.aten.autograd.record import OperatorNode
from engine.aten.dispatch.grad_mode import MODE
from engine.aten.values.hooks import HOOKS
from engine.aten.values.parameter import Parameter
from engine.aten.values.promotion import DEFAULTS, promote_types, raised
from engine.aten.values.size import Size
from engine.aten.values.storage import Storage
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import FROM_NUMPY
from engine.fuser.backend import cpython_abi
from engine.fuser.ir.kernel import FLOATS
from engine.fuser.library.forms import Form
from engine.fuser.library.words import ARGUMENTS, COMPLEX, DESCRIPTOR, EMPTY, KIND, OPERANDS, PROCESS, SIZES, TYPES
from engine.fuser.stubs import process as of_process
from engine.lang.records import dataclass

_OBJECTS: Final[dict[str, Any]] = {
    "NDARRAY": np.ndarray, "TENSOR": Tensor, "PARAMETER": Parameter, "HOOKS": HOOKS, "MODE": MODE,
    "ENABLED": "enabled", "NONE": None, "FALSE": False, "TRUE": True, "ZERO": 0, "FLOAT": float, "INT": int,
    "COMPLEX": complex,
    "LIST": list, "TUPLE": tuple, "SIZE": Size, "STORAGE": Storage, "MEMORY": "memory", "SHAPENAME": "shape",
    "VIEWKIND": "_view_kind", "MANYVIEWS": "many", "MINUSONE": -1, "NODE": OperatorNode, "SAVED": Saved,
    "SEQUENCES": numbers, "DEFAULTS": DEFAULTS,
}  # fmt: skip
_SLOTS: Final = {
    "ARRAY": "array", "GRAD": "_requires_grad", "OWNSTORAGE": "_storage", "BASE": "_base", "VERSION": "version",
    "OWNER": "owner", "TRACE": "trace", "PYTHONONLY": "python_only", "REBASED": "rebased", "PAUSED": "paused",
    "GRADFN": "_grad_fn", "OUTPUTNR": "output_nr", "SEEN": "_seen", "GRADHOOK": "grad", "RECORDEDHOOK": "recorded",
    "NODEPLAN": "plan", "NODEKEPT": "kept", "NODESOURCES": "sources", "NODEOUTPUTS": "outputs",
    "NODESEQUENCE": "sequence", "SAVEDHELD": "saved.held", "SAVEDSTORAGE": "saved.storage",
    "SAVEDVERSION": "saved.version", "SAVEDOUTPUT": "saved.output", "FLOATING": "floating",
}  # fmt: skip
"""Slots of tensors, storages, hooks and nodes."""
DTYPES: Final[dict[str, np.dtype[Any]]] = {
    **of_process.DTYPES, "c64": np.dtype(np.complex64), "c128": np.dtype(np.complex128),
}  # fmt: skip
"""The dtypes of arrays by the types of elements."""
Words = np.ndarray[Any, np.dtype[np.int64]]
WORD: Final = 8


@dataclass(frozen=True, slots=True)
class Recorded:
    """The histories of calls of a form: a row, which lives as long as the process, by which of the arguments through
    which gradients flow require grad."""

    row: Words
    flows: Sequence[int]


@cache
def process_words() -> Words:
    """The words of this process; the functions of the library that it names are put there when it is loaded."""
    found = of_process.process()
    words = np.zeros(PROCESS["ALL"], np.int64)
    for name, value in _OBJECTS.items():
        words[PROCESS[name]] = cpython_abi.retain(sys.intern(value) if isinstance(value, str) else value)
    for name, slot in _SLOTS.items():
        words[PROCESS[name]] = found.slots[slot] // WORD
    words[PROCESS["NEWARRAY"]] = found.functions[of_process.NEW_ARRAY]
    words[PROCESS["SETBASE"]] = found.functions[of_process.SET_BASE]
    words[PROCESS["FREEING"]] = cpython_abi.freeing_handler()
    words[PROCESS["FRESH"]] = len(found.fresh)
    for i, (offset, name) in enumerate(found.fresh.items()):
        words[PROCESS["FRESHPLACES"] + i] = offset // WORD
        words[PROCESS["FRESHVALUES"] + i] = words[PROCESS[_CONSTANTS[name]]]
    for i, type in enumerate(TYPES):
        words[PROCESS["DTYPES"] + i] = cpython_abi.retain(DTYPES[type])
        named = FROM_NUMPY[DTYPES[type]]
        words[PROCESS["DTYPEOBJECTS"] + i] = cpython_abi.retain(named)
        words[PROCESS["DTYPECODES"] + i] = cpython_abi.retain(named.number)
        words[PROCESS["SIZES"] + i] = SIZES[type]
        words[PROCESS["ISFLOAT"] + i] = type in (*FLOATS, *COMPLEX)
    dtypes = [DTYPES[type] for type in TYPES]
    places = {d: i for i, d in enumerate(dtypes)}
    for i, (one, other) in enumerate(itertools.product(dtypes, dtypes)):
        words[PROCESS["PROMOTED"] + i] = places[promote_types(one, other)]
        words[PROCESS["RAISED"] + i] = places.get(raised(one, other), -1)
    for i, slot in enumerate(EMPTY):
        words[PROCESS["EMPTY"] + i] = found.slots[slot] // WORD
    cpython_abi.retain(words)  # descriptors have their address, whoever holds those
    return words


_CONSTANTS: Final = {"None": "NONE", "False": "FALSE", "zero": "ZERO"}


def descriptor(
    form: Form,
    address: Callable[[str], int],
    recorded: Recorded | None,
    *,
    target: int = -1,
    is_hooked: bool,
    is_bare: bool = False,
    pair: Sequence[Words] = (),
) -> Words:
    """The words of a form, whose row functions have these addresses.

    `recorded`: how its calls are recorded (`histories`), where stubs record them.
    `target`: the argument that is written to.  `pair`: the words of the operators that give the two results, which then
    live as long as the process.
    """
    assert len(form.given) <= ARGUMENTS and form.operands <= OPERANDS, f"no stub takes so many arguments: {form}"
    words, entries = np.zeros(DESCRIPTOR["ALL"], np.int64), form.entries
    for name, value in {
        "PROCESS": process_words().ctypes.data, "FEWEST": form.fewest, "MOST": len(form.given),
        "GIVENCOUNT": len(form.given),
        "COUNT": form.operands, "ISHOOKED": is_hooked, "ISBARE": is_bare, "TARGET": target,
        "WORK": max((each.work for each in entries.values()), default=form.work), "ASKS": len(form.asked),
    }.items():  # fmt: skip
        words[DESCRIPTOR[name]] = value
    for i, k in enumerate(form.asked):
        words[DESCRIPTOR["ASKED"] + i] = k
    for i, each in enumerate(form.given):
        words[DESCRIPTOR["KINDS"] + i] = KIND[each.kind]
        words[DESCRIPTOR["GIVEN"] + i] = _given(each.kind, each.value)
    words[DESCRIPTOR["FIXEDAXIS"]] = form.axis
    words[DESCRIPTOR["ISSTACKED"]] = form.is_stacked
    words[DESCRIPTOR["ISREDUCED"]] = sum(each << r for r, each in enumerate(form.is_reduced))
    words[DESCRIPTOR["MAYCOPY"]], words[DESCRIPTOR["FIXEDRANK"]] = form.may_copy, form.rank
    words[DESCRIPTOR["ISMIXING"]] = form.is_mixing
    for name, other in zip(("FIRST", "SECOND"), pair, strict=False):
        cpython_abi.retain(other)
        words[DESCRIPTOR[name]] = other.ctypes.data
    words[DESCRIPTOR["FUNCTION"]] = address(form.function) if form.function else 0
    results = [TYPES.index(each) if each else -1 for each in form.results]
    words[DESCRIPTOR["RESULTTYPES"] :][: len(results)] = results
    words[DESCRIPTOR["RESULTCOUNT"]] = len(form.results) or len(form.is_reduced)
    words[DESCRIPTOR["GIVESFIRST"]] = bool(form.first_of)
    if recorded is not None:
        words[DESCRIPTOR["HISTORIES"]] = recorded.row.ctypes.data
        words[DESCRIPTOR["FLOWCOUNT"]] = len(recorded.flows)
        words[DESCRIPTOR["FLOWS"] :][: len(recorded.flows)] = recorded.flows
    for key, entry in entries.items():
        shape, _, type = key.rpartition(" ")
        words[DESCRIPTOR[shape or "ROWS"] + TYPES.index(type)] = address(entry.symbol)
        words[DESCRIPTOR["RESULTS"] + TYPES.index(type)] = TYPES.index(entry.result)
    return words


def of_method(words: Words, most: int, *, is_spread: bool = False) -> Words:
    """The same for calls from Python, which name dtypes, that give so many arguments at most; `is_spread`: the ints of
    a list may be given one by one."""
    found = words.copy()
    found[DESCRIPTOR["MOST"]], found[DESCRIPTOR["ISSPREAD"]] = most, is_spread
    kinds = found[DESCRIPTOR["KINDS"] :][:ARGUMENTS]
    kinds[kinds == KIND["NUMBERED"]] = KIND["NAMED"]
    return found


def _given(kind: str, value: Any) -> int:
    """The address of the object that an argument has to be, or the bits of the number."""
    if kind == "EQUAL" or (kind == "REALS" and value is not None):
        (bits,) = struct.unpack("<q", struct.pack("<d", value))
        return int(bits)
    if kind in ("RANKED", "STEPPED", "TURNED", "INDEX", "BOUND", "BLOCKS", "CHANGED"):
        return int(value)
    if kind == "KEEPS":
        return int(value or 0)
    if kind in ("WORDS", "OPTIONS"):
        listed = [cpython_abi.retain(sys.intern(each)) for each in value] if kind == "OPTIONS" else value
        words = np.array([len(value), *listed], np.int64)
        cpython_abi.retain(words)
        return int(words.ctypes.data)
    if kind == "SAME":
        return cpython_abi.retain(sys.intern(value) if isinstance(value, str) else value)
    return 0


_DOC: Final = "Compiled ahead of time, for calls of one form."


def builtin(name: str, stub: int, words: Words, following: Callable[..., Any]) -> Callable[..., Any]:
    """The builtin that calls a stub with these words, and `following` where they do not fit the arguments."""
    return cpython_abi.holding_builtin(name, stub, _DOC, (following, words))
