"""The refusals of operators before their kernels run: dtypes without code, and arguments that do not fit.

In: an operator, whose row says what it `refuses` and which `check` it makes.  Out: its `Guard`.  A shape that does not
fit is found before a dtype that does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.kernels.refusals import Refusal
from engine.aten.kernels.rules import shapes_message
from engine.aten.values import xp
from engine.aten.values.libraries import ARRAYS
from engine.aten.values.promotion import DEFAULTS, result_type
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError
from engine.lang.schema import Argument
from engine.lang.types import NUMBER, TensorType

Guard = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Puts a function over the operator's arguments behind the refusals of the operator."""


def guard_of(op: Op) -> Guard:
    """The refusals of the operator; nothing changes where there are none."""
    rows, check = op.refuses, op.check
    if not (rows or check) or not any(isinstance(a.type, TensorType) for a in op.schema.arguments):
        return lambda function: function
    places = [i for i, a in enumerate(op.schema.arguments) if _is_operand(a)]
    dtypes = frozenset(d for row in rows for d in row.dtypes)
    first = places[0]

    taken: set[tuple[Any, ...]] = set()
    """Kinds of operands that no row refuses."""
    is_looking = check is not None or any(row.common for row in rows)

    def guard(function: Callable[..., Any]) -> Callable[..., Any]:
        def glancing(*args: Any) -> Any:
            return looking(*args) if _array(args[first]).dtype in dtypes else function(*args)

        def looking(*args: Any) -> Any:
            if check is not None:
                check(*map(_array, args))
            operands = [_array(args[i]) for i in places]
            kinds = (DEFAULTS.floating, *map(_kind, operands))
            if kinds not in taken:
                found = [(row, result_type(operands) if row.common else operands[0].dtype) for row in rows]
                refusing = [(row, d) for row, d in found if d in row.dtypes]
                for row, d in refusing:
                    if row.empty or operands[0].size:
                        _refuse(row, d, operands)
                if not refusing:
                    taken.add(kinds)
            return function(*args)

        return looking if is_looking else glancing

    return guard


def _kind(value: Any) -> Any:
    """The facts that the common dtype depends on."""
    return (value.dtype, value.ndim > 0) if isinstance(value, np.ndarray) or type(value) in ARRAYS else type(value)


def _is_operand(a: Argument) -> bool:
    if isinstance(a.type, TensorType):
        return not (a.is_write and a.kwarg_only)
    return a.type is NUMBER and not a.kwarg_only and a.name not in ("alpha", "weight")


def _refuse(row: Refusal, d: xp.NumpyDtype, operands: list[Any]) -> None:
    message = shapes_message([o.shape for o in operands if isinstance(o, np.ndarray)]) if row.common else None
    raise OperatorError(message) if message else row.error(d)


def _array(value: Any) -> Any:
    return value.array if isinstance(value, Tensor) else value
