"""`torch.nn.utils.clip_grad`: gradient clipping.  In: parameters with gradients.  Out: the gradients, changed."""

from __future__ import annotations

from collections.abc import Iterable

from engine.aten.autograd import no_grad
from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor, tensor
from engine.lang.errors import OperatorError

Parameters = Tensor | Iterable[Tensor]


def clip_grad_norm_(
    parameters: Parameters, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Scale all gradients so that their norm as one vector is at most `max_norm`; returns the norm before.

    Raises OperatorError for a norm that is not finite, if `error_if_nonfinite`.
    """
    gradients = _gradients(parameters)
    with no_grad():
        total = get_total_norm(gradients, norm_type)
        if error_if_nonfinite and not bool(call("isfinite", (total,), {})):
            raise OperatorError(
                f"The total norm of order {norm_type} for gradients is non-finite, so it cannot be clipped."
            )
        factor = call("clamp", ((total + 1e-6).reciprocal() * max_norm,), {"max": 1.0})
        for gradient in gradients:
            gradient.mul_(factor)
    return total


clip_grad_norm = clip_grad_norm_


def clip_grad_value_(parameters: Parameters, clip_value: float) -> None:
    """Clamp every element of the gradients to `[-clip_value, clip_value]`."""
    with no_grad():
        for gradient in _gradients(parameters):
            gradient.clamp_(-float(clip_value), float(clip_value))


def get_total_norm(tensors: Iterable[Tensor], norm_type: float = 2.0) -> Tensor:
    """The norm of all tensors as one vector."""
    norms = [call("linalg_vector_norm", (each, norm_type), {}) for each in tensors]
    if not norms:
        return tensor(0.0)
    total: Tensor = call("linalg_vector_norm", (call("stack", (norms,), {}), norm_type), {})
    return total


def _gradients(parameters: Parameters) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else parameters
    return [each.grad for each in given if each.grad is not None]
