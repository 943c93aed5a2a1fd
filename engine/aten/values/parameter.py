"""Parameters: the tensors that a module learns.  On its own, since importing `tensor` must not need it.

In: a tensor.  Out: the same values in the same memory, as a tensor that says what it is for.  Operators take these like
any tensor, and give plain ones.
"""

from __future__ import annotations

from typing import Any, Self

from engine.aten.values.tensor import Tensor, check_differentiable, tensor


class Parameter(Tensor):
    """`Parameter(data)`: a tensor that a module learns; it requires grad unless said otherwise.

    Raises OperatorError for a tensor of integers that shall require grad.
    """

    __module__ = "engine.torch.nn.parameter"  # where programs find it
    is_parameter = True

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        data = tensor([]) if data is None else data
        if requires_grad:
            check_differentiable(data.array.dtype)
        made: Self = as_parameter(Tensor(data.array, requires_grad, data.memory), cls)
        return made

    def __init__(self, *_: Any, **more: Any) -> None:
        """No-op: `__new__` initializes the parameter."""


def as_parameter(plain: Tensor, kind: Any = Parameter) -> Any:
    """The tensor itself, its class changed to that class of parameters."""
    plain.__class__ = kind
    return plain
