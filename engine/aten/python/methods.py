"""Methods that tensors have in Python only, beside those of the operator table.

In: nothing.  Out: `Tensor` with them (importing this module binds them).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from engine.aten.devices import kept_memory, pinned
from engine.aten.dispatch.calls import call, call_method
from engine.aten.dispatch.compose import run
from engine.aten.python import binding
from engine.aten.values import interchange, libraries, xp
from engine.aten.values.hooks import HOOKS, NOT_TRACED
from engine.aten.values.meta import MetaArray
from engine.aten.values.quantizer import is_quantized, quantizer_of
from engine.aten.values.size import Size, new_size
from engine.aten.values.storage import Storage, TypedStorage, address, storage_of, typed
from engine.aten.values.tensor import Tensor, sizes_of, tensor, wrapped
from engine.lang import scalars
from engine.lang.errors import OperatorError

_CASTS: Final = {**scalars.DTYPE_ALIASES, "bool": scalars.bool_, "bfloat16": scalars.bfloat16,
                 "char": scalars.int8, "byte": scalars.uint8}  # fmt: skip
LEGACY_TYPES: Final = {f"{d.ir_name}Tensor": d for d in scalars.DTYPES if not d.is_complex}
"""`FloatTensor` and the like -> dtype."""


def _cast(d: scalars.dtype) -> Callable[..., Any]:
    def cast(self: Tensor, memory_format: int | None = None) -> Any:
        if HOOKS.trace is not None:
            return call_method("to", (self, d), {})
        return run("to.dtype", self, d.number, False, False, None)

    return cast


def _type(self: Tensor, dtype: scalars.dtype | str | None = None, non_blocking: bool = False) -> Any:
    """The tensor as that dtype; without one, the old name of the tensor's type."""
    if dtype is None:
        return f"torch.{self.dtype.ir_name}Tensor"
    if isinstance(dtype, str):
        name = dtype.removeprefix("torch.")
        if name not in LEGACY_TYPES:
            raise ValueError(f"invalid type: '{dtype}'")
        return call_method("to", (self, LEGACY_TYPES[name]), {})
    return call_method("to", (self, getattr(dtype, "dtype", dtype)), {})


def _data_ptr(self: Tensor) -> int:
    return address(self.array)


def _untyped_storage(self: Tensor) -> Storage:
    return self.memory


def _storage(self: Tensor) -> TypedStorage:
    return typed(self.memory)


def _set(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`set_` also takes a storage: the tensor then shows that memory."""
    source = args[0] if args else kwargs.get("source")
    if not isinstance(source, (Storage, TypedStorage)):
        shown: Tensor = call_method("set_", (self, *args), kwargs)
        return shown
    storage = source.untyped() if isinstance(source, TypedStorage) else source
    whole = Tensor(storage.flat().view(self.array.dtype), storage=storage)
    given = dict(zip(("storage_offset", "size", "stride"), args[1:], strict=False)) | kwargs
    given.pop("source", None)
    return _set(self, whole, given.get("storage_offset", 0), given.get("size", whole.shape), given.get("stride", ()))


def _cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """The tensor on a GPU.  Raises OperatorAssertionError where there is none."""
    place = scalars.device("cuda", device) if isinstance(device, int) else scalars.device(device or "cuda")
    moved: Tensor = call_method("to", (self, place), {})
    return moved


def _get_device(self: Tensor) -> int:
    """The number of the tensor's device, -1 on the CPU."""
    index = self.device.index
    return -1 if index is None else index


def _apply(self: Tensor, function: Callable[[Any], Any]) -> Tensor:
    """Replace every element by what the function makes of it."""
    flat = [function(value) for value in self.array.ravel().tolist()]
    copied: Tensor = call("copy_", (self, tensor(np.array(flat).reshape(self.array.shape))), {})
    return copied


def _same(self: Tensor, *_: Any) -> Tensor:
    return self


def _reversed(self: Tensor) -> Tensor:
    turned: Tensor = call("flip", (self, [0]), {}) if self.ndim else self
    return turned


def _contains(self: Tensor, element: Any) -> bool:
    """Raises OperatorError for what no element can be equal to."""
    if not isinstance(element, (Tensor, np.generic, int, float, complex)):
        raise OperatorError(f"a tensor holds numbers, but you asked for a {type(element).__name__}")
    return bool((self == element).any())


def _format(self: Tensor, spec: str) -> str:
    """A number formats as a number.  Raises TypeError for a format given to several."""
    if self.ndim == 0 and not getattr(self, "is_parameter", False):
        return format(self.item(), spec)
    return object.__format__(self, spec)


def _refuse_history(self: Tensor, what: str) -> None:
    if not self.is_leaf:
        raise OperatorError(
            f"Only Tensors created explicitly by the user (graph leaves) support {what} at the moment.",
            hints=("x.detach() has the same values without their history",),
        )


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """Views of one memory stay views of one memory.  Raises OperatorError for results of recorded computations."""
    _refuse_history(self, "the deepcopy protocol")
    if id(self) not in memo:
        old = self.memory
        storage = memo.get(id(old)) or storage_of(xp.copy_layout(old.owner))
        memo[id(old)] = storage
        array = storage.show(old.byte_offset_of(self.array), self.array)
        memo[id(self)] = _like(self, Tensor(array, storage=storage))
        if self.grad is not None:
            memo[id(self)].grad = _deepcopy(self.grad, memo)
    made: Tensor = memo[id(self)]
    return made


def vars_of(self: Tensor) -> dict[str, Any]:
    """Attributes that programs have set on the tensor."""
    return {name: value for name, value in vars(self).items() if name not in _OWN}


def _like(self: Tensor, made: Tensor) -> Tensor:
    """A tensor just made, of the class of another and with what hangs on that."""
    made.__class__ = self.__class__
    return _with_facts(made, self.requires_grad, vars_of(self))


def _with_facts(made: Tensor, requires_grad: bool, more: dict[str, Any]) -> Tensor:
    made._requires_grad = requires_grad
    vars(made).update(more)
    return made


def _copy(self: Tensor) -> Tensor:
    """`copy.copy`: another tensor in the same memory."""
    _refuse_history(self, "copying")
    return _like(self, Tensor(self.array, storage=self.memory))


def _reduce(self: Tensor, _: Any) -> tuple[Any, ...]:
    """Tensors are pickled with their whole memory, so that views of one memory stay so."""
    _refuse_history(self, "being pickled")
    like = np.empty(0, self.array.dtype), self.array.shape, self.array.strides
    offset = self.memory.byte_offset_of(self.array)
    return _restored, (self.memory, offset, like, self.requires_grad, vars_of(self), type(self))


def _restored(
    storage: Storage, offset: int, like: Any, requires_grad: bool, more: dict[str, Any], kind: type[Tensor] = Tensor
) -> Tensor:  # fmt: skip
    sample, shape, strides = like
    array = libraries.show(shape, sample.dtype, storage.bytes(), offset, strides)
    made = Tensor(array, storage=storage)
    made.__class__ = kind
    return _with_facts(made, requires_grad, more)


def _new(self: Tensor, *args: Any) -> Tensor:
    """A tensor of the same dtype: of these sizes, values as they come, or of the data."""
    sizes = sizes_of(args or (0,))
    made = tensor(args[0] if sizes is None else np.zeros(sizes, self.array.dtype), self.dtype, self.device)
    if HOOKS.tracer is not None:
        HOOKS.tracer.constant(made, "legacy constructor")
    return made


def _new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    place = self.device if device is None else device
    if isinstance(data, Tensor):
        given = (data.detach(), scalars.device(str(place)), self.dtype if dtype is None else dtype, False, True)
        copy: Tensor = call("to", given, {}).detach()
        copy.requires_grad = requires_grad
        return copy
    made = tensor(data, self.dtype if dtype is None else dtype, place, requires_grad)
    if HOOKS.tracer is not None:
        HOOKS.tracer.constant(made, "new_tensor")
    return made


def _map(self: Tensor, other: Tensor, function: Callable[[Any, Any], Any]) -> Tensor:
    """Replace every element by what the function makes of it and of the other tensor's."""
    pairs = np.broadcast_arrays(*map(libraries.on_host, (self.array, other.array)))
    flat = [function(one, two) for one, two in zip(*(each.ravel().tolist() for each in pairs), strict=True)]
    copied: Tensor = call("copy_", (self, tensor(np.array(flat).reshape(self.array.shape))), {})
    return copied


def _unsupported(what: str, hint: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OperatorError(f"{what} are not supported", hints=(hint,))

    return refuse


def _dim_order(self: Tensor) -> tuple[int, ...]:
    """The dimensions from the one with the largest step to the one with the smallest."""
    return tuple(sorted(range(self.ndim), key=lambda d: -self.array.strides[d]))


def _operator_property(name: str) -> property:
    return property(lambda self: call_method(name, (self,), {}))


def _hermitian(self: Tensor) -> Tensor:
    if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("H", self)) is not NOT_TRACED:
        return cast(Tensor, traced)
    if self.ndim not in (0, 2):
        raise OperatorError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor.")
    return self.mH if self.ndim else self


def _elements(self: Tensor) -> Any:
    if HOOKS.tracer is not None and (traced := HOOKS.tracer.member("nelement", self)) is not NOT_TRACED:
        return traced
    return self.array.size


def _dimensions(self: Tensor) -> int:
    return self.array.ndim


def _no(self: Tensor) -> bool:
    return False


# ------------------------------------------------------------------ what is asked most


def _size(self: Tensor, dim: Any = None) -> Any:
    """`aten::size`, of all dimensions and of one that is there without the choice of an overload."""
    if dim is None and HOOKS.trace is None:
        return new_size(Size, self.array.shape)
    if type(dim) is int and HOOKS.trace is None:
        try:
            return self.array.shape[dim]
        except IndexError:
            pass
    return call_method("size", (self,) if dim is None else (self, dim), {})


def _contiguous(self: Tensor, *, memory_format: Any = 0) -> Any:
    """`aten::contiguous`, which gives back a tensor that is so already."""
    if memory_format == 0 and HOOKS.trace is None and self.array.flags.c_contiguous:
        return self
    return call_method("contiguous", (self,), {"memory_format": memory_format})


def _detach(self: Tensor) -> Tensor:
    """`aten::detach`, which no other overload has to be told from."""
    if HOOKS.trace is None and not HOOKS.devices:
        storage = self._storage
        return wrapped(self.array, self.memory if storage is None else storage)
    detached: Tensor = call_method("detach", (self,), {})
    return detached


_OWN: Final = frozenset({
    "array", "output_nr", "_requires_grad", "_grad", "_grad_fn", "_hooks", "_storage", "_base", "_seen", "_view_kind",
    "_backward_hooks",
})  # fmt: skip
_SPARSE: Final = "to_sparse to_sparse_csr to_sparse_csc to_sparse_coo to_sparse_bsr to_sparse_bsc sparse_mask"
_DENSE: Final = "tensors are dense here: keep indices and values as two tensors, and use index_add or scatter_add"


def _qscheme(self: Tensor) -> scalars.qscheme:
    """The quantization scheme of the tensor.  Raises OperatorError for one that is not quantized."""
    return scalars.QSCHEME_BY_NUMBER[quantizer_of(self.array).scheme]


_METHODS: Final[dict[str, Any]] = {
    **{name: _cast(d) for name, d in _CASTS.items()},
    "type": _type, "data_ptr": _data_ptr, "untyped_storage": _untyped_storage, "storage": _storage, "set_": _set,
    "const_data_ptr": _data_ptr, "cuda": _cuda,
    "numpy": interchange.numpy, "__array__": interchange.array_of,
    "__array_priority__": 1000, "__array_wrap__": interchange.wrapped,
    "__cuda_array_interface__": property(interchange.cuda_array_interface),
    "__dlpack__": interchange.dlpack, "__dlpack_device__": interchange.dlpack_device, "__copy__": _copy,
    "new": _new, "new_tensor": _new_tensor, "map_": _map, "dim_order": _dim_order,
    "is_pinned": pinned.is_pinned, "is_shared": _no, "is_distributed": _no, "is_coalesced": _no,
    "get_device": _get_device, "size": _size, "contiguous": _contiguous, "detach": _detach, "apply_": _apply,
    "nelement": _elements, "ndimension": _dimensions, "share_memory_": _same, "pin_memory": pinned.pin_memory,
    "record_stream": kept_memory.record_stream,
    "__reversed__": _reversed, "__contains__": _contains, "__format__": _format, "__deepcopy__": _deepcopy,
    "__reduce_ex__": _reduce, **dict.fromkeys(_SPARSE.split(), _unsupported("sparse tensors", _DENSE)),
    "layout": property(lambda self: scalars.LAYOUT_BY_NAME["strided"]), "name": property(lambda self: None),
    "grad_dtype": property(lambda self: self.dtype),
    "H": property(_hermitian),
    "real": _operator_property("real"), "imag": _operator_property("imag"),
    **dict.fromkeys(
        "is_sparse is_sparse_csr is_mkldnn is_mps is_xpu is_nested is_ipu is_xla is_vulkan "
        "is_maia is_mtia volatile".split(), property(lambda self: False)
    ),
    "is_cpu": property(lambda self: libraries.library_of(self.array) is None),
    "is_meta": property(lambda self: type(self.array) is MetaArray),
    "is_quantized": property(lambda self: is_quantized(self.array)), "qscheme": _qscheme,
}  # fmt: skip

Tensor.__module__ = "engine.torch"  # where programs find it
binding.bind(_METHODS)
