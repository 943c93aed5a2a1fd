"""Errors of operators as users see them.

In: the operator, its arguments, and what its kernel or numpy raised.  Out: an `OperatorError` whose
hint names the call with its dtypes and shapes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.aten.dispatch.op import Op
from engine.aten.kernels.rules import shapes_message
from engine.aten.values import xp
from engine.aten.values.promotion import result_type
from engine.aten.values.tensor import Tensor
from engine.lang.errors import (
    EngineError,
    OperatorDtypeError,
    OperatorError,
    OperatorIndexError,
    OperatorTypeError,
    OperatorValueError,
)

REFUSALS: Final = (
    EngineError, ValueError, TypeError, IndexError, ArithmeticError, MemoryError, np.linalg.LinAlgError,
)  # fmt: skip
"""Errors that kernels may raise; any other is a bug of the engine and passes through."""


_TOO_MANY: Final = ("array is too big", "Maximum allowed dimension", "Maximum allowed size", "too large to convert")
"""Words of numpy's errors for sizes beyond the address space."""


def refusal(op: Op, args: tuple[Any, ...], error: Exception) -> EngineError:
    """The error to raise for `error`, with the call as a hint."""
    call = f"in {op.qualified_name}({', '.join(describe(a) for a in args)})"
    if isinstance(error, EngineError):
        if not any(hint.startswith("in aten::") for hint in error.hints):
            error.hints = (*error.hints, call)
        return error
    message = _broadcast_message(args) if "broadcast" in str(error) else None
    if isinstance(error, MemoryError):
        return OperatorError(f"DefaultCPUAllocator: can't allocate memory: {error}", hints=(call,))
    if any(words in str(error) for words in _TOO_MANY):
        return OperatorError(f"Storage size calculation overflowed: {error}", hints=(call,))
    if message is not None:
        return OperatorError(message, hints=(call,))
    if "not supported for the input types" in str(error):
        return _no_code(op, args, call)
    return _class_for(error)(f"{op.name.removeprefix('aten::')}: {error}", hints=(call,))


def describe(value: Any) -> str:
    """A value in a message: tensors as `float32[2, 3]`."""
    if isinstance(value, Tensor):
        where = f" on {value.device}" if value.is_cuda else ""
        return f"{value.array.dtype.name}{list(value.array.shape)}{where}"
    if isinstance(value, (list, tuple)) and len(value) > 8:
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(describe, value))}]"
    return repr(value)


def _no_code(op: Op, args: tuple[Any, ...], call: str) -> OperatorDtypeError:
    """numpy has no function for the dtypes: the refusal of the common one."""
    d = result_type([a.array if isinstance(a, Tensor) else a for a in args if isinstance(a, (Tensor, int, float))])
    name = op.name.removeprefix("aten::").rstrip("_")
    return OperatorDtypeError(f"\"{name}_cpu\" not implemented for '{xp.ir_name(d)}'", hints=(call,))


def _broadcast_message(args: tuple[Any, ...]) -> str | None:
    return shapes_message([a.array.shape for a in args if isinstance(a, Tensor)])


def _class_for(error: Exception) -> type[OperatorError]:
    if isinstance(error, IndexError):
        return OperatorIndexError
    if isinstance(error, TypeError):
        return OperatorTypeError
    return OperatorValueError if isinstance(error, ValueError) else OperatorError
