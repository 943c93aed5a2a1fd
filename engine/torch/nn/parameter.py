"""Parameters: tensors that a module learns.

In: a tensor.  Out: the same values in the same memory as a tensor marked as a parameter.  A parameter is a `Tensor`
like any other, so that operators need not know of it; `isinstance(x, Parameter)` asks for the mark.
"""

from __future__ import annotations

from typing import Any

from engine.aten.tensor import Tensor, check_differentiable, tensor


class _Marked(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, "is_parameter", False)


class Parameter(Tensor, metaclass=_Marked):
    """`Parameter(data)`: a tensor marked as a parameter, which requires grad unless said otherwise.

    Raises OperatorError for a tensor of integers that shall require grad.
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        data = tensor([]) if data is None else data
        if requires_grad:
            check_differentiable(data.array.dtype)
        made: Any = Tensor(data.array, requires_grad, data.storage)
        made.is_parameter = True
        return made  # type: ignore[no-any-return]
