"""Methods that tensors have in Python only, beside those of the operator table.

In: nothing.  Out: `Tensor` with them bound (importing this module does it).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from engine.aten.calls import call, call_method
from engine.aten.storage import Storage, address
from engine.aten.tensor import Tensor, copy_layout, tensor
from engine.lang import scalars
from engine.lang.errors import OperatorError

_CASTS: Final = {**scalars.DTYPE_ALIASES, "bool": scalars.bool_, "bfloat16": scalars.bfloat16,
                 "char": scalars.int8, "byte": scalars.uint8}  # fmt: skip
LEGACY_TYPES: Final = {f"{d.ir_name}Tensor": d for d in scalars.DTYPES if not d.is_complex}
"""`FloatTensor` and the like -> dtype."""


def _cast(d: scalars.dtype) -> Callable[..., Any]:
    return lambda self, memory_format=None: call_method("to", (self, d), {})


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


def _storage(self: Tensor) -> Storage:
    return self.storage


def _cuda(self: Tensor, *_: Any, **__: Any) -> Tensor:
    raise OperatorError("Tensors cannot be moved to a GPU here", hints=("torch.cuda.is_available() is False",))


def _apply(self: Tensor, function: Callable[[Any], Any]) -> Tensor:
    """Replace every element by what the function makes of it."""
    flat = [function(value) for value in self.array.ravel().tolist()]
    copied: Tensor = call("copy_", (self, tensor(np.array(flat).reshape(self.array.shape))), {})
    return copied


def _same(self: Tensor, *_: Any) -> Tensor:
    return self


def _reversed(self: Tensor) -> Tensor:
    turned: Tensor = call("flip", (self, list(range(self.ndim))), {})
    return turned


def _contains(self: Tensor, element: Any) -> bool:
    return bool((self == element).any())


def _format(self: Tensor, spec: str) -> str:
    return format(self.item(), spec) if self.ndim == 0 and spec else repr(self)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """Raises OperatorError for the results of recorded computations."""
    if not self.is_leaf:
        raise OperatorError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.",
            hints=("use x.detach().clone()",),
        )
    if id(self) not in memo:
        copy = Tensor(copy_layout(self.array), self.requires_grad)
        if getattr(self, "is_parameter", False):
            copy.is_parameter = True  # type: ignore[attr-defined]
        memo[id(self)] = copy
    made: Tensor = memo[id(self)]
    return made


def _reduce(self: Tensor, _: Any) -> tuple[Any, ...]:
    return _restored, (self.array, self.requires_grad, getattr(self, "is_parameter", False))


def _restored(array: Any, requires_grad: bool, is_parameter: bool) -> Tensor:
    made = Tensor(array, requires_grad)
    if is_parameter:
        made.is_parameter = True  # type: ignore[attr-defined]
    return made


def _operator_property(name: str) -> property:
    return property(lambda self: call_method(name, (self,), {}))


def _hermitian(self: Tensor) -> Tensor:
    if self.ndim not in (0, 2):
        raise OperatorError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor.")
    return self.mH if self.ndim else self


def _elements(self: Tensor) -> int:
    return self.array.size


def _dimensions(self: Tensor) -> int:
    return self.array.ndim


_METHODS: Final[dict[str, Any]] = {
    **{name: _cast(d) for name, d in _CASTS.items()},
    "type": _type, "data_ptr": _data_ptr, "untyped_storage": _storage, "cuda": _cuda, "apply_": _apply,
    "nelement": _elements, "ndimension": _dimensions, "share_memory_": _same, "pin_memory": _same,
    "__reversed__": _reversed, "__contains__": _contains, "__format__": _format, "__deepcopy__": _deepcopy,
    "__reduce_ex__": _reduce,
    "layout": property(lambda self: scalars.STRIDED), "name": property(lambda self: None),
    "names": property(lambda self: (None,) * self.ndim), "H": property(_hermitian),
    "real": _operator_property("real"), "imag": _operator_property("imag"),
    **dict.fromkeys(
        "is_sparse is_quantized is_meta is_mkldnn is_mps is_xpu is_nested".split(), property(lambda self: False)
    ),
    "is_cpu": property(lambda self: True),
}  # fmt: skip

for _name, _value in _METHODS.items():
    setattr(Tensor, _name, _value)
