"""Parameters: tensors that a module learns; buffers: tensors that it keeps.

In: a tensor.  Out: the same values in the same memory as a tensor with a mark.  A parameter is a `Tensor` like any
other, so that operators need not know of it; `isinstance(x, Parameter)` asks for the mark.
"""

from __future__ import annotations

from typing import Any

from engine.aten.tensor import Tensor, TensorType, check_differentiable, tensor


class _Marked(TensorType):
    """Instances are the tensors with the class's mark."""

    mark: str

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, cls.mark, False)


class Parameter(Tensor, metaclass=_Marked):
    """`Parameter(data)`: a tensor marked as a parameter, which requires grad unless said otherwise.

    Raises OperatorError for a tensor of integers that shall require grad.
    """

    mark = "is_parameter"

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        data = tensor([]) if data is None else data
        if requires_grad:
            check_differentiable(data.array.dtype)
        made: Any = Tensor(data.array, requires_grad, data.memory)
        made.is_parameter = True
        return made  # type: ignore[no-any-return]


class Buffer(Tensor, metaclass=_Marked):
    """`Buffer(data)`: a tensor that becomes a buffer of the module it is assigned to."""

    mark = "is_buffer"

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        data = tensor([]) if data is None else data
        made: Any = Tensor(data.array, data.requires_grad, data.memory)
        made.is_buffer, made.persistent = True, persistent
        return made  # type: ignore[no-any-return]


class UninitializedParameter(Tensor, metaclass=_Marked):
    """A parameter whose shape is not known yet."""

    mark = "is_uninitialized_parameter"

    def __new__(cls, like: Tensor | None = None, requires_grad: bool = True) -> UninitializedParameter:
        made: Any = Parameter(tensor([]) if like is None else like.detach().new_empty([0]), requires_grad)
        made.is_uninitialized_parameter = True
        return made  # type: ignore[no-any-return]


class UninitializedBuffer(Tensor, metaclass=_Marked):
    """A buffer whose shape is not known yet."""

    mark = "is_uninitialized_buffer"

    def __new__(cls, like: Tensor | None = None) -> UninitializedBuffer:
        made: Any = tensor([]) if like is None else like.detach().new_empty([0])
        made.is_uninitialized_buffer = True
        return made  # type: ignore[no-any-return]


def is_lazy(value: Any) -> bool:
    """Is the tensor one whose shape is not known yet?"""
    return isinstance(value, (UninitializedParameter, UninitializedBuffer))


def materialize(own: Tensor, values: Tensor) -> None:
    """Let a tensor whose shape was not known have these values."""
    for mark in ("is_uninitialized_parameter", "is_uninitialized_buffer"):
        vars(own).pop(mark, None)
    own.array, own._storage = values.array, None
