"""Operators that are written in TorchScript.

In: an operator's name.  Out: source of further overloads of it, compiled when first needed and inlined
where they are called.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

_SCALAR_FIRST: Final = """
def mul(a : {scalar}, b : Tensor) -> Tensor:
    return b * a
def add(a : {scalar}, b : Tensor) -> Tensor:
    return b + a
def ne(a : {scalar}, b : Tensor) -> Tensor:
    return b != a
def eq(a : {scalar}, b : Tensor) -> Tensor:
    return b == a
def sub(a : {scalar}, b : Tensor) -> Tensor:
    return torch.neg(b) + a
def div(a : {scalar}, b : Tensor) -> Tensor:
    return torch.reciprocal(b) * a
"""
_ORDERED: Final = """
def lt(a : {scalar}, b : Tensor) -> Tensor:
    return b > a
def le(a : {scalar}, b : Tensor) -> Tensor:
    return b >= a
def gt(a : {scalar}, b : Tensor) -> Tensor:
    return b < a
def ge(a : {scalar}, b : Tensor) -> Tensor:
    return b <= a
"""
_NTUPLE: Final = """
def {name}(x : BroadcastingList{length}[{scalar}]) -> List[{scalar}]:
    return x
"""
_FLOOR_DIVIDE: Final = """
def floordiv(self : Tensor, other : {other}) -> Tensor:
    return torch.floor_divide(self, other)
"""
_PROPERTIES: Final = """
def ndim(a : Tensor) -> int:
    return a.dim()
def T(a : Tensor) -> Tensor:
    return a.numpy_T()
def H(a : Tensor) -> Tensor:
    return a.matrix_H()
def shape(a : Tensor) -> List[int]:
    return a.size()
"""
_STRINGS: Final = """
def __contains__(self: str, key: str) -> bool:
    return self.find(key, 0, len(self)) != -1
"""
_ASSERT: Final = """
def _assert(condition : bool, message : str):
    assert condition, message
"""
_NTUPLE_NAMES: Final = {"_single": 1, "_pair": 2, "_triple": 3, "_quadruple": 4}


class OperatorDefinition(NamedTuple):
    """A definition, and the line that it begins at, which errors name as PyTorch's do."""

    text: str
    line: int


@cache
def sources() -> dict[str, list[OperatorDefinition]]:
    """Operator -> the definitions of its further overloads, in the order they are tried."""
    found: dict[str, list[OperatorDefinition]] = {}
    for namespace, text in _texts():
        line = 2
        for definition in text.strip().split("\ndef "):
            definition = "def " + definition.removeprefix("def ") + "\n"
            name = definition[4 : definition.index("(")].strip()
            found.setdefault(f"{namespace}::{name}", []).append(OperatorDefinition(definition, line))
            line += definition.count("\n")
    return found


def _texts() -> list[tuple[str, str]]:
    scalars = ("float", "int", "complex", "number")
    texts = [("aten", _SCALAR_FIRST.format(scalar=scalar)) for scalar in scalars]
    texts += [("aten", _ORDERED.format(scalar=scalar)) for scalar in ("float", "int", "number")]
    for name, length in _NTUPLE_NAMES.items():
        for scalar in ("float", "int"):
            texts.append(("aten", _NTUPLE.format(name=name, length=length, scalar=scalar)))
    texts += [("aten", _FLOOR_DIVIDE.format(other=other)) for other in ("number", "Tensor")]
    return [*texts, ("prim", _PROPERTIES), ("aten", _STRINGS), ("aten", _ASSERT)]
