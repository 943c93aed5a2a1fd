"""Gradients against finite differences.

In: a function of tensors.  Out: True, or an error that shows the two tables of derivatives that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.aten.autograd.engine import grad
from engine.aten.dispatch.compose import run
from engine.aten.dispatch.grad_mode import enable_grad, no_grad
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import COMPLEX, Array
from engine.lang.errors import OperatorError, OperatorValueError


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:  # fmt: skip
    """True if the gradients of `func` at `inputs` equal central differences of step `eps`.

    Inputs that require grad should be float64.  Raises OperatorError where they differ (or returns False).
    """
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    checked = [i for i, value in enumerate(given) if isinstance(value, Tensor) and value.requires_grad]
    if not checked:
        raise OperatorValueError("gradcheck expects at least one input tensor to require gradient")
    with enable_grad():
        outputs = _differentiable(func(*given))
    for i in checked:
        numerical = _numerical(func, given, i, eps)
        for j, output in enumerate(outputs):
            analytical = _analytical(output, given[i])
            if not np.allclose(analytical, numerical[j], rtol, atol, equal_nan=True):
                if not raise_exception:
                    return False
                raise OperatorError(
                    f"Jacobian mismatch for output {j} with respect to input {i},\nnumerical:{numerical[j]}\n"
                    f"analytical:{analytical}"
                )
    return True


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Sequence[Tensor] | None = None, *, eps: float = 1e-6,
    atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
) -> bool:  # fmt: skip
    """The same for the gradients' gradients; `grad_outputs` are random if not given."""
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if grad_outputs is None:
        source = np.random.default_rng(0)
        arrays = [output.array for output in _differentiable(func(*given))]
        grad_outputs = [Tensor(np.asarray(source.standard_normal(a.shape), a.dtype), True) for a in arrays]
    count = len(given)

    def gradients(*values: Any) -> tuple[Tensor, ...]:
        again = values[:count]
        wanted = [v for v in again if isinstance(v, Tensor) and v.requires_grad]
        found = grad(_differentiable(func(*again)), wanted, values[count:], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None and g.requires_grad)

    return gradcheck(gradients, [*given, *grad_outputs], eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)


def _differentiable(outputs: Any) -> list[Tensor]:
    """The outputs that have gradients; complex ones as pairs of real numbers."""
    listed = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    found = [output for output in listed if isinstance(output, Tensor) and output.requires_grad]
    return [run("view_as_real", output) if output.array.dtype in COMPLEX else output for output in found]


def _analytical(output: Tensor, wanted: Tensor) -> Array:
    """Rows: elements of the output; columns: elements of the input."""
    table = np.zeros((output.array.size, wanted.array.size), output.array.dtype)
    for i in range(output.array.size):
        start = np.zeros(output.array.shape, output.array.dtype)
        start.reshape(-1)[i] = 1
        (found,) = grad(output, wanted, Tensor(start), retain_graph=True, allow_unused=True)
        if found is not None:
            table[i] = found.array.reshape(-1)
    return table


def _numerical(func: Callable[..., Any], given: list[Any], place: int, eps: float) -> list[Array]:
    """A table for each differentiable output."""
    columns: list[list[Array]] = []
    for i in range(given[place].array.size):
        above, below = (_shifted(func, given, place, i, step) for step in (eps, -eps))
        columns.append([(a - b) / (2 * eps) for a, b in zip(above, below, strict=True)])
    return [np.stack(parts, axis=-1) for parts in zip(*columns, strict=True)]


def _shifted(func: Callable[..., Any], given: list[Any], place: int, element: int, step: float) -> list[Array]:
    """The outputs, flat, with one element of one input moved."""
    moved = np.array(given[place].array)
    moved.reshape(-1)[element] += step
    arguments = [Tensor(np.array(v.array), v.requires_grad) if isinstance(v, Tensor) else v for v in given]
    arguments[place] = Tensor(moved, True)
    with enable_grad():
        outputs = _differentiable(func(*arguments))
    with no_grad():
        return [np.array(output.array).reshape(-1) for output in outputs]
