"""The array libraries: numpy for the CPU, and for each other kind of device the one that brings its arrays.

In: a device, or an array.  Out: the `Library` of it, loaded when first asked for.  A tensor's device is that of its
array, so tensors store no device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

import numpy as np

from engine.aten.values import meta
from engine.aten.values.hooks import HOOKS
from engine.lang import scalars
from engine.lang.errors import OperatorAssertionError, OperatorDtypeError, OperatorError
from engine.lang.records import dataclass


@dataclass(frozen=True, eq=False)
class Library:
    """The array library of one kind of device, and the transfers between it and the host."""

    kind: str
    """The device's type: "cuda"."""
    array: type
    namespace: Any
    """The module with the functions of numpy's names."""
    from_host: Callable[[Any], Any]
    to_host: Callable[[Any], Any]
    address: Callable[[Any], int]
    index_of: Callable[[Any], int]
    """The number of the device that an array is on; None of `meta`, which has none."""
    show: Callable[[Sequence[int], Any, Any, int, Sequence[int]], Any]
    """A view of an array's memory: shape, dtype, the array, byte offset, byte strides."""
    on: Callable[[int | None], AbstractContextManager[Any]]
    """A context in which new arrays are made on the device of that number."""
    current: Callable[[], int]
    count: Callable[[], int]
    synchronize: Callable[[], None]
    name_of: Callable[[int], str]
    memory: Callable[[], tuple[int, int]]
    """Bytes in use by arrays, and bytes held for them."""
    release: Callable[[], None]
    """Give back the memory that is held and not in use."""
    solving: Callable[[Callable[..., Any]], Callable[..., Any]]
    """A function of linear algebra adapted to take and refuse the same arguments as numpy's."""
    cuda: Any
    """The module that manages devices, streams and events, with the names of `cupy.cuda`."""
    failures: tuple[type[Exception], ...] = ()
    """Exceptions that the library raises for failures of the device and for unsupported requests."""
    has_numbers: bool = True
    """False for arrays that are a form alone: kernels run on them as they are."""


def _cuda() -> Library:
    """The library of NVIDIA GPUs.  Raises OperatorAssertionError where it is not installed, or finds no GPU."""
    try:
        import cupy
    except ImportError as error:
        raise OperatorAssertionError(
            "tensors on cuda need cupy, which is not installed",
            hints=("pip install 'tsrepl[cuda12]' or 'tsrepl[cuda13]' brings it", "use device='cpu' without a GPU"),
        ) from error
    try:
        found = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # of the driver: what it raises depends on what is missing
        raise OperatorAssertionError(f"Found no NVIDIA GPU: {error}", hints=("use device='cpu'",)) from error
    if not found:
        raise OperatorAssertionError("Found no NVIDIA GPU", hints=("use device='cpu'",))
    runtime = cupy.cuda.runtime
    return Library(
        "cuda", cupy.ndarray, cupy, cupy.asarray, cupy.asnumpy, lambda array: int(array.data.ptr),
        lambda array: int(array.device.id), lambda *form: _cupy_view(cupy, *form),
        lambda index: cupy.cuda.Device(index), runtime.getDevice, runtime.getDeviceCount,
        lambda: cupy.cuda.Device().synchronize(),
        lambda index: str(runtime.getDeviceProperties(index)["name"].decode()),
        lambda: (cupy.get_default_memory_pool().used_bytes(), cupy.get_default_memory_pool().total_bytes()),
        lambda: cupy.get_default_memory_pool().free_all_blocks(),
        lambda function: _solving(cupy, function), cupy.cuda, _failures(cupy),
    )  # fmt: skip


def _cupy_view(cupy: Any, shape: Sequence[int], d: Any, array: Any, offset: int, strides: Sequence[int]) -> Any:
    return cupy.ndarray(tuple(shape), d, array.data + offset, tuple(strides))


def _failures(cupy: Any) -> tuple[type[Exception], ...]:
    from cupy_backends.cuda.api.driver import CUDADriverError
    from cupy_backends.cuda.api.runtime import CUDARuntimeError

    return (
        cupy.cuda.memory.OutOfMemoryError, CUDARuntimeError, CUDADriverError, cupy.cuda.compiler.CompileException,
        NotImplementedError, ImportError,
    )  # fmt: skip


def _solving(cupy: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    from cupyx import errstate

    def precise(value: Any) -> Any:
        is_known = type(value) is not cupy.ndarray or value.dtype.char in "efdFD"
        return value if is_known else value.astype(np.float64)

    def solved(*args: Any, **kwargs: Any) -> Any:
        with errstate(linalg="raise"):
            return function(*map(precise, args), **kwargs)

    return solved


def _meta() -> Library:
    """The library of arrays without numbers, on the one device `meta`."""
    no_number: Any = None

    def from_host(array: Any) -> Any:
        return array if isinstance(array, meta.MetaArray) else meta.like(array)

    def to_host(array: Any) -> Any:
        raise OperatorDtypeError(meta.NO_DATA, hints=("torch.empty_like(x, device='cpu') makes a tensor of this form",))

    return Library(
        "meta", meta.MetaArray, np, from_host, to_host, lambda array: int(array.__array_interface__["data"][0]),
        lambda array: no_number, meta.show, lambda index: nullcontext(), lambda: no_number, lambda: 1, lambda: None,
        lambda index: "meta", lambda: (0, 0), lambda: None, lambda function: function, None, has_numbers=False,
    )  # fmt: skip


LOADERS: Final[dict[str, Callable[[], Library]]] = {"cuda": _cuda, "meta": _meta}
"""Device type -> the loader of its library."""
_LOADED: Final[dict[str, Library]] = {}
_BY_ARRAY: Final[dict[type, Library]] = {}
ARRAYS: Final[set[type]] = {np.ndarray}
"""Every type of array that tensors may have."""


class _DefaultDevice:
    """The default device of new tensors, and the stack of devices entered by `with`."""

    def __init__(self) -> None:
        self._chosen: ContextVar[tuple[scalars.device, ...]] = ContextVar("chosen", default=())
        self._usual: scalars.device | None = None

    def enter(self, place: scalars.device) -> None:
        """Raises OperatorError where there is no such device."""
        self._chosen.set((*self._chosen.get(), existing(place)))

    def leave(self) -> None:
        self._chosen.set(self._chosen.get()[:-1])

    def accelerator(self) -> str | None:
        """The type of the devices that a number alone stands for, if there are any."""
        return next((kind for kind in LOADERS if kind != "meta" and is_there(kind)), None)

    def choose(self, place: scalars.device | None) -> None:
        """Set the default of every thread.  Raises OperatorError where there is no such device."""
        self._usual = None if place is None else existing(place)

    def forget(self, kind: str) -> None:
        """Reset the default if its kind of device is no longer available."""
        if self._usual is not None and self._usual.type == kind:
            self._usual = None

    def now(self) -> scalars.device | None:
        """The device of new tensors; None for the CPU."""
        chosen = self._chosen.get()
        place = chosen[-1] if chosen else self._usual
        return None if place is None or place.type == "cpu" else place

    def set_aside(self) -> Any:
        """Make the CPU the default, as in compiled programs; returns the token for `restore`."""
        return self._chosen.set((scalars.CPU,))

    def restore(self, token: Any) -> None:
        self._chosen.reset(token)


DEFAULT_DEVICE: Final = _DefaultDevice()
scalars.DEFAULT_DEVICE.keeper = DEFAULT_DEVICE


def existing(place: scalars.device) -> scalars.device:
    """The device with its number.  Raises OperatorError where there is no such device."""
    if place.type != "cpu":
        library(place.type)
    checked_place = checked(place)
    assert checked_place is not None
    return checked_place


def is_there(kind: str) -> bool:
    """True if the array library for devices of this kind is available."""
    try:
        library(kind)
    except OperatorError:
        return False
    return True


def library(kind: str) -> Library:
    """The library of that type of device; raises OperatorError where there is none."""
    found = _LOADED.get(kind)
    if found is not None:
        return found
    loader = LOADERS.get(kind)
    if loader is None:
        raise OperatorError(f"there is no {kind} device to put a tensor on", hints=("use device='cpu'",))
    found = _LOADED[kind] = loader()
    _BY_ARRAY[found.array] = found
    ARRAYS.add(found.array)
    HOOKS.devices, HOOKS.several = True, HOOKS.several or found.count() > 1
    return found


def unload(kind: str) -> None:
    """Forget the library of that type of device: the next use loads it again."""
    found = _LOADED.pop(kind, None)
    if found is not None:
        del _BY_ARRAY[found.array]
        ARRAYS.discard(found.array)
    HOOKS.devices = bool(_LOADED) or HOOKS.quantized
    HOOKS.several = any(each.count() > 1 for each in _LOADED.values())
    DEFAULT_DEVICE.forget(kind)


def library_of(array: Any) -> Library | None:
    """The library of the array; None for numpy's arrays and for other values."""
    return _BY_ARRAY.get(type(array))


def is_array(value: Any) -> bool:
    """True for an array of any library."""
    return isinstance(value, np.ndarray) or type(value) in _BY_ARRAY


def as_array(value: Any) -> Any:
    """An array of any library unchanged; other values as a numpy array."""
    return value if type(value) in ARRAYS else np.asarray(value)


def on_host(value: Any) -> Any:
    """The values as an array of numpy's, copied where they are elsewhere."""
    found = _BY_ARRAY.get(type(value))
    return value if found is None else found.to_host(value)


def device_of(array: Any) -> scalars.device:
    """The array's device."""
    found = _BY_ARRAY.get(type(array))
    return scalars.CPU if found is None else _numbered(found.kind, found.index_of(array))


_numbered: Final = cache(scalars.device)
"""Devices by type and number, each made once."""


def checked(device: scalars.device | None) -> scalars.device | None:
    """The device, with its index; raises OperatorError if it does not exist."""
    if device is None or device.type == "cpu":
        return device
    if device.index is None:
        return scalars.device(device.type, library(device.type).current())
    count = library(device.type).count()
    if device.index >= count:
        raise OperatorError(
            f"CUDA error: invalid device ordinal: {device} is not among the {count} devices",
            hints=(f"write '{device.type}' for the current one",),
        )
    return device


def moved(array: Any, device: scalars.device | None) -> Any:
    """The array on that device, the current one of its type if it has no number: itself if it is there (None: wherever
    it is).  Raises OperatorError."""
    if device is None:
        return array
    here = _BY_ARRAY.get(type(array))
    if device.type == "cpu":
        return array if here is None else here.to_host(array)
    wanted, place = library(device.type), existing(device)
    if here is wanted and place.index == wanted.index_of(array):
        return array
    with wanted.on(place.index):
        return wanted.from_host(array if here is None or here is wanted else here.to_host(array))


_PLACE: Final[ContextVar[scalars.device | None]] = ContextVar("place", default=None)


def beside(arrays: Sequence[Any], function: Callable[..., Any], *args: Any) -> Any:
    """Call it with the device of these arrays as the current one, on which `zeros` allocates."""
    place = next((device_of(array) for array in arrays if library_of(array) is not None), None)
    token = _PLACE.set(place)
    try:
        if place is None or not HOOKS.several:
            return function(*args)
        with library(place.type).on(place.index):
            return function(*args)
    finally:
        _PLACE.reset(token)


def zeros(shape: Sequence[int], d: Any, takes_memory: bool = True) -> Any:
    """Zeros on the device of the gradients that are being worked on; all in one place where they take no memory."""
    made = moved(np.zeros(tuple(shape) if takes_memory else (), d), _PLACE.get())
    return made if takes_memory else show(shape, d, made, 0, (0,) * len(shape))


def as_strided(array: Any, shape: Sequence[int], strides: Sequence[int]) -> Any:
    """A view of an array of numpy's by byte strides, which nothing checks to stay inside its memory.

    numpy's function of that name does not know dtypes that numpy lacks (`complex32`).
    """
    plain = array if array.dtype.isbuiltin == 1 else array.view(f"V{array.itemsize}")
    shown = np.lib.stride_tricks.as_strided(plain, shape, strides)
    return shown if plain is array else shown.view(array.dtype)


def like(array: Any, strides: Sequence[int] | None = None) -> Any:
    """An array of that form, or with these strides, in memory of one element: not to be read but where they are 0."""
    found = _BY_ARRAY.get(type(array))
    wanted = array.strides if strides is None else strides
    if found is None:
        return as_strided(np.ones(1, array.dtype), array.shape, wanted)
    with found.on(found.index_of(array)):
        return found.show(array.shape, array.dtype, found.from_host(np.ones(1, array.dtype)), 0, wanted)


def may_share_memory(one: Any, other: Any) -> bool:
    """True if the stretches of memory that the arrays are in overlap."""
    found = library_of(one)
    if found is not library_of(other):
        return False
    return np.may_share_memory(one, other) if found is None else bool(found.namespace.may_share_memory(one, other))


def address(array: Any) -> int:
    """Address of the array's first element, on its device."""
    found = _BY_ARRAY.get(type(array))
    if found is not None:
        return found.address(array)
    location: int = array.__array_interface__["data"][0]
    return location


def show(shape: Sequence[int], d: Any, memory: Any, offset: int, strides: Sequence[int]) -> Any:
    """A view of an array's memory from that byte on."""
    found = _BY_ARRAY.get(type(memory))
    if found is not None:
        return found.show(shape, d, memory, offset, strides)
    return np.ndarray(shape, d, memory, offset, strides)


def loaded() -> list[str]:
    """The types of device that have been used."""
    return [*_LOADED]
