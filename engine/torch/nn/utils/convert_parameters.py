"""`torch.nn.utils.convert_parameters`: parameters as one vector.

In: parameters.  Out: a vector of all their elements, and back.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    vector: Tensor = call("cat", ([each.reshape(-1) for each in parameters],), {})
    return vector


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make each parameter a view of its part of the vector."""
    at = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[at : at + count].view(parameter.shape).data
        at += count
