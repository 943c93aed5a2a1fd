"""Operators made of operators: how a `python` body calls others.

In: an operator's name and all its arguments.  Out: its result, with everything (gradients, traces) that a call brings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from engine.aten.dispatch import table
from engine.aten.dispatch.grad_mode import MODE
from engine.aten.dispatch.op import Op
from engine.aten.values import xp
from engine.aten.values.promotion import check_cast, wide
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError

NONE, MEAN, SUM = 0, 1, 2
"""The numbers of the ways to reduce a loss."""


def run(name: str, *args: Any) -> Any:
    """Call the overload of that qualified name, without `aten::`."""
    op = _found.get(name)
    return (_find(name) if op is None else op).impl(*args)


_found: Final[dict[str, Op]] = {}


def _find(name: str) -> Op:
    entry = table.find(f"aten::{name}")
    assert entry is not None, f"aten::{name} is not in the table"
    _found[name] = entry
    return entry


class LateOperator:
    """An overload by its qualified name; `op` is looked up in the table at the first call of `op.impl`."""

    __slots__ = ("op",)

    def __init__(self, name: str) -> None:
        self.op: Any = _Unfound(self, name)


class _Unfound:
    """Stands for the operator until then."""

    __slots__ = ("late", "name")

    def __init__(self, late: LateOperator, name: str) -> None:
        self.late, self.name = late, name

    def impl(self, *args: Any) -> Any:
        self.late.op = entry = _find(self.name)
        return entry.impl(*args)


def without_gradient(function: str, **given: Tensor | None) -> None:
    """Raise OperatorError if gradients are wanted for one of these arguments, for which the function has none."""
    for name, value in given.items():
        if value is not None and value.requires_grad and MODE.enabled:
            raise OperatorError(
                f"The function '{function}' is not differentiable with respect to argument '{name}'. "
                "This input cannot have requires_grad True.",
                hints=(f"detach it: {name}.detach()",),
            )


def where(condition: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
    """Elements of x where the condition holds, else of y."""
    kinds = {(True, True): "self", (True, False): "ScalarOther", (False, True): "ScalarSelf", (False, False): "Scalar"}
    chosen: Tensor = run(f"where.{kinds[isinstance(x, Tensor), isinstance(y, Tensor)]}", condition, x, y)
    return chosen


def widened(x: Tensor) -> Tensor:
    """The tensor in the dtype to compute in: half types in float32."""
    d = wide(x.array.dtype)
    return x if d is x.array.dtype else cast(x, d)


def cast(x: Tensor, d: xp.NumpyDtype) -> Tensor:
    converted: Tensor = x if x.array.dtype == d else run("to.dtype", x, xp.FROM_NUMPY[d].number, False, False, None)
    return converted


def written_as(result: Tensor, target: Tensor) -> Tensor:
    """The result in the dtype of the tensor in whose place PyTorch writes it.  Raises OperatorError if that has no
    place for it."""
    check_cast(result.array.dtype, target.array.dtype)
    return cast(result, target.array.dtype)


def same_type(x: Tensor, other: Tensor | None) -> None:
    """Raise OperatorError if there is another tensor and its dtype is another."""
    if other is not None and other.array.dtype != x.array.dtype:
        names = xp.ir_name(x.array.dtype), xp.ir_name(other.array.dtype)
        raise OperatorError(f"expected scalar type {names[0]} but found {names[1]}")


def reduced(loss: Tensor, reduction: int) -> Tensor:
    """The loss itself, its mean or its sum."""
    if reduction == NONE:
        return loss
    result: Tensor = run("mean" if reduction == MEAN else "sum", loss, None)
    return result


def mean_over(x: Tensor, dims: Sequence[int]) -> Tensor:
    """The mean over some dimensions, which stay with size 1."""
    result: Tensor = run("mean.dim", x, list(dims), True, None)
    return result


def sum_over(x: Tensor, dims: Sequence[int], keep: bool = True) -> Tensor:
    result: Tensor = run("sum.dim_IntList", x, list(dims), keep, None)
    return result
