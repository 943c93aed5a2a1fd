"""Conversion of operators' results to what Python programs get: sizes, named tuples.

In: an operator.  Out: a function from its result to the Python value: a `Size` for sizes, a tuple for a list of
tensors, a named tuple where the schema names several results, a dtype for a dtype's number.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Size
from engine.lang.scalars import DTYPE_BY_NUMBER
from engine.lang.schema import FunctionSchema
from engine.lang.types import TENSOR, ListType

_BY_NAME: Final[dict[str, Callable[[Any], Any]]] = {
    "aten::size": Size, "aten::stride": tuple, "aten::chunk": tuple, "aten::tensor_split": tuple,
}  # fmt: skip


@cache
def python_result(op: Op) -> Callable[[Any], Any] | None:
    """The conversion, or None where there is nothing to convert."""
    returns = op.schema.returns
    if not returns or any(argument.is_write for argument in op.schema.arguments):
        return None
    if len(returns) > 1:
        return _named(op.schema) if op.name.startswith("aten::") and all(each.name for each in returns) else None
    if returns[0].declared == "ScalarType":
        return DTYPE_BY_NUMBER.__getitem__
    if returns[0].type == ListType(TENSOR):
        return tuple
    many = isinstance(returns[0].type, ListType)
    return _BY_NAME.get(op.name) if many else None


def _named(schema: FunctionSchema) -> Callable[[Any], Any]:
    names = [each.name for each in schema.returns]
    kind: Any = namedtuple(schema.name.removeprefix("aten::"), names)  # type: ignore[misc]
    kind.__module__ = "torch.return_types"
    kind.__repr__ = _text  # type: ignore[method-assign]
    make: Callable[[Any], Any] = kind._make
    return make


def _text(result: Any) -> str:
    """The parts of a result, one a line."""
    parts = ",\n".join(f"{name}={part!r}" for name, part in zip(result._fields, result, strict=True))
    return f"torch.return_types.{type(result).__name__}(\n{parts})"
