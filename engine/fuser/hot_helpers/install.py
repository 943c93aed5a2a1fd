"""Machine code for hot helpers, and for methods and attributes that only ask for a tensor's shape, dtype or device.

In: `engine.aten.values.hot_helpers`, whose steps are counted at first.  Out: after some thousands of them, builtins
in their place, compiled in the thread that compiles operators.  Before they are used they have to do what Python's
definitions do, on samples; where the process is not as native code expects, all stays as it is, and `refused()`
says why.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Final

import numpy as np

import engine.aten.autograd  # noqa: F401  (defines some of the steps)
from engine.aten.autograd.node import Saved, next_number
from engine.aten.autograd.record import OperatorNode
from engine.aten.python import binding
from engine.aten.values import hot_helpers as steps
from engine.aten.values.size import Size
from engine.aten.values.storage import Storage
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import TO_NUMPY
from engine.fuser import cpython_abi, machine, tiering
from engine.fuser.cpython_abi import AbiError, slot_offset
from engine.fuser.entries import native, process
from engine.fuser.hot_helpers import text as llvm_text
from engine.fuser.hot_helpers.helpers import ARRAY_BASE, TUPLE_ITEMS, Places
from engine.fuser.hot_helpers.questions import GETTERS, METHODS
from engine.fuser.hot_helpers.text import ENTRIES
from engine.lang.scalars import CPU

PATIENCE: Final = 20
"""So many times as many steps as calls of an operator make it worth compiling."""
_TENSOR: Final = ("array", "_storage", "_seen", "_requires_grad", "_grad_fn", "output_nr", "_base")
_NODE: Final = (
    "outputs", "sequence", "plan", "sources", "kept", "_edges", "tensor_hooks", "retained", "hooks", "prehooks",
)  # fmt: skip
_SAVED: Final = ("held", "version", "output", "storage")
_state: Final[dict[str, str]] = {}
"""Why there is no machine code, or the text of what there is."""


_compiled: Final[dict[str, Callable[..., Any]]] = {}
"""The builtins by the names of steps."""


def refused() -> str | None:
    """Why Python's definitions stay."""
    return _state.get("refused")


def text() -> str | None:
    """LLVM's text, once it is compiled."""
    return _state.get("text")


def watch() -> None:
    """Count steps, and have them compiled after enough of them."""
    if native.SETTINGS.enabled:
        left = itertools.repeat(None, max(native.SETTINGS.threshold * PATIENCE, 1))
        for name in ENTRIES:
            steps.take(name, _counting(steps.DEFINITIONS[name], left))


def _counting(step: Callable[..., Any], left: itertools.repeat[None]) -> Callable[..., Any]:
    """The helper, which asks for machine code when no calls are left."""
    once = itertools.repeat(None, 1)

    def counting(*args: Any) -> Any:
        for _ in left:
            return step(*args)
        for _ in once:
            _enough()
        return step(*args)

    return counting


def _enough() -> None:
    for name in ENTRIES:
        steps.give_back(name)
    if native.SETTINGS.threshold == 0:
        install()
    else:
        tiering.in_background(install)


def install() -> None:
    """Compile and compare, unless that was done, and put in place."""
    if not native.may_compile() or refused() is not None:
        return
    try:
        if not _compiled:
            _compile()
    except (AbiError, machine.MachineError) as error:
        _state["refused"] = str(error)
    for name, step in _compiled.items():
        steps.take(name, step)


def _compile() -> None:
    at, places = process.layout(), _places()
    replaced = {name: _present(name) for name in METHODS} | {f"get.{name}": _property(name) for name in GETTERS}
    fallbacks = {**steps.DEFINITIONS, **replaced}
    made = llvm_text.module_text(at, places, {name: cpython_abi.retain(f) for name, f in fallbacks.items()})
    code = machine.compiled(made, llvm_text.exported())
    found = {name: cpython_abi.builtin(name, code[f"entry.{name}"], steps.DEFINITIONS[name].__doc__ or "")
             for name in ENTRIES}  # fmt: skip
    members = {name: cpython_abi.method(Tensor, name, code[f"method.{name}"], "") for name in METHODS}
    members |= {name: cpython_abi.getter(Tensor, name, code[f"get.{name}"], "") for name in GETTERS}
    _check(found, members, replaced)
    _compiled.update(found)
    for name, member in members.items():
        if _is_untouched(name, replaced):
            binding.take(name, member)
    _state["text"] = made


def _present(name: str) -> Callable[..., Any]:
    """A method of tensors, which is looked up when first asked for."""
    method = binding.member(name)
    if not isinstance(method, FunctionType):
        raise AbiError(f"Tensor.{name} is no function of Python")
    return method


def _property(name: str) -> Callable[..., Any]:
    found = binding.member(name)
    if not isinstance(found, property) or not isinstance(found.fget, FunctionType):
        raise AbiError(f"Tensor.{name} is no property of Python")
    return found.fget


def _is_untouched(name: str, replaced: Mapping[str, Callable[..., Any]]) -> bool:
    """True if Python's member is still there."""
    present: Any = vars(Tensor).get(name)
    if name in GETTERS:
        return isinstance(present, property) and present.fget is replaced[f"get.{name}"]
    return present is replaced[name]


# ------------------------------------------------------------------ where things are


def _places() -> Places:
    owner = np.zeros((2, 3))
    part, again = owner[1:], owner[1:][:, 1:]
    if [_base(a) for a in (owner, part, again)] != [0, id(owner), id(owner)]:
        raise AbiError("arrays do not keep whose memory they show where they should")
    if tuple.__basicsize__ != TUPLE_ITEMS or ctypes.c_void_p.from_address(id((7,)) + TUPLE_ITEMS).value != id(7):
        raise AbiError("tuples do not keep their items where they should")
    retain = cpython_abi.retain
    return Places(
        tensor={name: slot_offset(Tensor, name) for name in _TENSOR},
        storage={name: slot_offset(Storage, name) for name in ("owner", "version")},
        node_type=retain(OperatorNode), node={name: _offset(OperatorNode, name) for name in _NODE},
        saved_type=retain(Saved), saved={name: slot_offset(Saved, name) for name in _SAVED},
        size_type=retain(Size), numbers=retain(_numbers()), minus_one=retain(-1),
        tuple_type=retain(tuple), set_base=cpython_abi.array_function(_SET_BASE),
        device=retain(CPU), dtypes={d.name: (retain(n), retain(d), n.itemsize) for d, n in TO_NUMPY.items()},
    )  # fmt: skip


_SET_BASE: Final = 282
"""The place of `PyArray_SetBaseObject` in numpy's table."""


def _numbers() -> Any:
    """The iterator of which `next_number` is a method."""
    method: Any = next_number
    return method.__self__


def _base(array: Any) -> int:
    return ctypes.c_void_p.from_address(id(array) + ARRAY_BASE).value or 0


def _offset(kind: type, name: str) -> int:
    """The slot of a class, or of that which it derives from."""
    return slot_offset(next(each for each in kind.__mro__ if name in vars(each)), name)


# ------------------------------------------------------------------ comparing


def _check(
    found: Mapping[str, Callable[..., Any]], members: Mapping[str, Any], replaced: Mapping[str, Callable[..., Any]]
) -> None:
    """Raises AbiError where machine code does something else than Python."""
    for name, step in found.items():
        if [_seen(step, name, i) for i in range(3)] != [_seen(steps.DEFINITIONS[name], name, i) for i in range(3)]:
            raise AbiError(f"{name} does something else than Python's definition")
    tensors = [Tensor(np.zeros(shape, np.float32)) for shape in ((), (2, 0, 3), (70000,), (2, 3))]
    tensors += [Tensor(np.zeros((2, 3), d).T) for d in TO_NUMPY.values()]
    for tensor in tensors:
        for name, member in members.items():
            is_getter = name in GETTERS
            answer = member.__get__(tensor, Tensor) if is_getter else member.__get__(tensor, Tensor)()
            expected = replaced[f"get.{name}" if is_getter else name](tensor)
            is_same = answer is expected if isinstance(expected, Tensor) and expected is tensor else True
            if type(answer) is not type(expected) or not is_same:
                raise AbiError(f"Tensor.{name} gives something else than Python's member")
            if not isinstance(expected, Tensor) and (answer != expected or hash(answer) != hash(expected)):
                raise AbiError(f"Tensor.{name} gives something else than Python's member")


def _seen(step: Callable[..., Any], name: str, sample: int) -> Any:
    """The effect of a helper on a sample, as plain values: its result, and its arguments afterwards."""
    tensor = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3).copy())
    for _ in range(sample):
        tensor.bump_version()
    shown = tensor.array if sample == 1 else tensor.array[:1]
    given: dict[str, tuple[Any, ...]] = {
        "fresh": (shown,), "wrapped": (shown, tensor._storage), "view": (shown, tensor),
        "attach": (tensor, None, (1,), (2,)), "as_strided": (shown, (2, 1, 2)[sample:], (4, 0, 8)[sample:]),
    }  # fmt: skip
    made = step(*given.get(name, (tensor,)))
    return _facts(made, tensor, shown), _facts(tensor, tensor, shown)


def _facts(value: Any, tensor: Tensor, shown: Any) -> Any:
    if isinstance(value, (tuple, int, type(None), np.dtype)):
        return value
    if isinstance(value, np.ndarray) and value is not tensor.array and value is not shown:
        return value.shape, value.strides, value.tolist(), value.dtype, str(value.flags), np.shares_memory(value, shown)
    if isinstance(value, (np.ndarray, Storage)):
        return value is tensor.array, value is shown, value is tensor._storage, getattr(value, "version", None)
    names = {Tensor: _TENSOR, OperatorNode: _NODE, Saved: _SAVED}[type(value)]
    kept = {name: getattr(value, name, None) for name in names if name not in ("sequence", "_base")}
    facts = {name: _facts(each, tensor, shown) for name, each in kept.items()}
    return type(value), facts, getattr(value, "_base", None) is tensor, getattr(value, "sequence", 0) >= 0


watch()
