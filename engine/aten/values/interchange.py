"""Tensors and other libraries' arrays in the same memory: numpy's protocols, DLPack, buffers.

In: tensors, arrays, whatever exports DLPack or a buffer.  Out: the same values, not copied unless that is asked for.
"""

from __future__ import annotations

import ctypes
import warnings
from typing import Any, Final, cast

import numpy as np

from engine.aten.values import libraries, xp
from engine.aten.values import tensor as tensors
from engine.aten.values.hooks import HOOKS, NOT_TRACED
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.lang import scalars
from engine.lang.errors import OperatorError, OperatorTypeError, OperatorValueError

_CPU, _CUDA = 1, 2
"""The kinds of device by DLPack's numbers."""


def from_numpy(array: Any) -> Tensor:
    """A tensor in the memory of `array`.

    Raises OperatorTypeError when it is no array or tensors have no such dtype, OperatorValueError for memory that
    tensors cannot describe.  Memory that may not be written to gives a tensor with a warning: writes are refused.
    """
    if not isinstance(array, np.ndarray):
        raise OperatorTypeError(f"expected np.ndarray (got {type(array).__name__})")
    if not array.dtype.isnative:
        raise OperatorValueError(
            "given numpy array has byte order different from the native byte order",
            hints=("array.astype(array.dtype.newbyteorder('=')) has the native one",),
        )
    made = tensors.from_numpy(array.view())
    if not array.flags.writeable:
        warnings.warn(
            "the numpy array may not be written to, and neither may the tensor in its memory; copy it to write",
            UserWarning,
            stacklevel=3,
        )
    return made


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory that another library exports.  Raises BufferError, TypeError, OperatorError."""
    place = None if device is None else libraries.checked(scalars.device(str(device)))
    if isinstance(ext_tensor, Tensor):
        shown: Tensor = ext_tensor.detach()
        if place is not None and place != shown.device:
            shown = shown.to(place)
        return shown.clone() if copy else shown
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Exported(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise OperatorTypeError(f"{type(ext_tensor).__name__} does not export DLPack: it has no __dlpack__")
    kind = ext_tensor.__dlpack_device__()[0] if hasattr(ext_tensor, "__dlpack_device__") else _CPU
    if kind == _CUDA:
        return Tensor(libraries.moved(libraries.library("cuda").namespace.from_dlpack(ext_tensor), place))
    array = np.from_dlpack(ext_tensor)
    if array.dtype == np.uint8 and getattr(ext_tensor, "dtype", None) == np.bool_:
        array = array.view(np.bool_)
    return from_numpy(array.copy() if copy else array)


class _Exported:
    """Wrapper of a bare DLPack capsule in an object with `__dlpack__`, as libraries require."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device in the capsule's description of the tensor, which begins with the address of its memory."""
        for name, start in _DESCRIPTIONS.items():
            if _IS_VALID(self._capsule, name):
                device = (ctypes.c_int32 * 2).from_address(_POINTER_OF(self._capsule, name) + start + 8)
                return device[0], device[1]
        return _CPU, 0


_DESCRIPTIONS: Final = {b"dltensor": 0, b"dltensor_versioned": 32}
"""The names of capsules that nobody has taken yet, and where the tensor's description begins in them."""
_IS_VALID: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_POINTER_OF: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def to_dlpack(tensor: Tensor) -> Any:
    """The tensor as a DLPack capsule; see `Tensor.__dlpack__`."""
    return dlpack(tensor)


def dlpack(
    self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """The memory as a DLPack capsule.  Raises BufferError if the tensor cannot be exported."""
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_cuda:
        return self.array.__dlpack__(stream=stream)
    if stream not in (None, -1):
        raise BufferError("a tensor on the CPU has no stream")
    options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    given: Any = {name: value for name, value in options.items() if value is not None}
    if not self.array.flags.writeable and max_version is None:
        raise BufferError("the tensor's memory may not be written to, which this version of DLPack cannot say")
    return self.array.__dlpack__(**given)


def cuda_array_interface(self: Tensor) -> Any:
    """The tensor's `__cuda_array_interface__`.  Raises AttributeError on the CPU."""
    if not self.is_cuda:
        raise AttributeError("a tensor on the CPU has no __cuda_array_interface__: its memory is not on a GPU")
    if self.requires_grad:
        raise OperatorError("Can't get __cuda_array_interface__ of a tensor that requires grad, use x.detach()")
    array: Any = self.array
    return array.__cuda_array_interface__


def dlpack_device(self: Tensor) -> tuple[int, int]:
    """The kind of device (1 is the CPU, 2 a GPU) and its number."""
    place = self.device
    return (_CPU, 0) if place.type == "cpu" else (_CUDA, place.index or 0)


def frombuffer(
    buffer: Any, *, dtype: scalars.dtype, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A flat tensor in the memory of a buffer (bytes, bytearray, array …).  Raises ValueError when it does not fit."""
    view = memoryview(buffer)
    size, each = view.nbytes - offset, xp.numpy_dtype(dtype).itemsize
    if view.nbytes == 0 or size <= 0 or (count < 0 and size % each) or count * each > size:
        raise OperatorValueError(
            f"a buffer of {view.nbytes} bytes, read from byte {offset}, does not hold "
            f"{'whole' if count < 0 else count} elements of {each} bytes"
        )
    made = from_numpy(np.frombuffer(buffer, xp.numpy_dtype(dtype), count, offset))
    made.requires_grad = requires_grad
    return made


def numpy(self: Tensor, *, force: bool = False) -> Array:
    """The values as an array that shares the memory, but not the shape, which may be changed apart.

    `force` takes a copy on the CPU where that is needed.  Raises OperatorError for a tensor that requires grad.
    """
    if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("numpy", self, force=force)) is not NOT_TRACED:
        return cast(Array, traced)
    if force:
        return numpy(self.detach().cpu())
    if self.array.dtype.names is not None:
        raise OperatorTypeError(f"Got unsupported ScalarType {self.dtype.ir_name}", hints=("x.dequantize().numpy()",))
    if self.requires_grad:
        raise OperatorError(
            "Can't call numpy() on Tensor that requires grad.", hints=("use tensor.detach().numpy() instead",)
        )
    if libraries.library_of(self.array) is not None:
        raise OperatorTypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    return self.array.view()


def array_of(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Array:
    """numpy's `asarray` of a tensor.  Raises ValueError when copying is forbidden and needed."""
    if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("__array__", self, dtype, copy)) is not NOT_TRACED:
        return cast(Array, traced)
    array = numpy(self)
    if dtype is None or array.dtype == dtype:
        return array.copy() if copy else array
    if copy is False:
        raise OperatorValueError(f"a tensor of {self.dtype} cannot become an array of {np.dtype(dtype)} without a copy")
    return array.astype(dtype)


def wrapped(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """`__array_wrap__`: a result of numpy's functions as a tensor."""
    result = libraries.as_array(array)
    return Tensor(result) if result.dtype in xp.FROM_NUMPY else array
