"""`torch.nn.parameter`: parameters, which a module learns, and buffers, which it only stores.

In: a tensor.  Out: the same values in the same memory.  Parameters are instances of their own class; buffers are
tensors with a mark, for which `isinstance(x, Buffer)` tests.  A package of one file, so that layers which use it do not
import `torch.nn` itself.
"""

from __future__ import annotations

from typing import Any, Self

from engine.aten.values.parameter import Parameter as Parameter
from engine.aten.values.parameter import as_parameter
from engine.aten.values.tensor import Tensor, TensorType, tensor


class _Marked(TensorType):
    """Metaclass of tensor classes whose instances are the tensors with the class's mark."""

    mark: str

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, cls.mark, False)


class Buffer(Tensor, metaclass=_Marked):
    """`Buffer(data)`: a tensor that becomes a buffer of the module it is assigned to."""

    mark = "is_buffer"

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        data = tensor([]) if data is None else data
        made: Any = Tensor(data.array, data.requires_grad, data.memory)
        made.is_buffer, made.persistent = True, persistent
        return made  # type: ignore[no-any-return]


class UninitializedParameter(Parameter):
    """A parameter of unknown shape."""

    def __new__(cls, like: Tensor | None = None, requires_grad: bool = True) -> Self:
        return super().__new__(cls, tensor([]) if like is None else like.detach().new_empty([0]), requires_grad)


class UninitializedBuffer(Tensor, metaclass=_Marked):
    """A buffer of unknown shape."""

    mark = "is_uninitialized_buffer"

    def __new__(cls, like: Tensor | None = None) -> UninitializedBuffer:
        made: Any = tensor([]) if like is None else like.detach().new_empty([0])
        made.is_uninitialized_buffer = True
        return made  # type: ignore[no-any-return]


def is_lazy(value: Any) -> bool:
    """True if the value is an uninitialized parameter or buffer."""
    return isinstance(value, (UninitializedParameter, UninitializedBuffer))


def materialize(own: Tensor, values: Tensor) -> None:
    """Give an uninitialized parameter or buffer its shape and values."""
    if type(own) is UninitializedParameter:
        as_parameter(own)
    vars(own).pop("is_uninitialized_buffer", None)
    own.array, own._storage = values.array, None
