"""Python's operators on tensors are traced under the names that PyTorch 2.13 gives them.

The table was recorded there.  Some differ from the operators that run: augmented ones of bits have names of their own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

import engine.torch as torch

INTS = torch.tensor([5, 6, 7])
FLOATS = torch.tensor([1.5, 2.5, 3.5])

_TABLE = """
+  add              add              add
-  sub              sub              rsub
*  mul              mul              mul
/  div              div              reciprocal mul
// floor_divide     floor_divide     floor_divide
%  remainder        remainder        remainder
** pow              pow              pow
@  matmul           refused          refused
&  __and__          __and__          bitwise_and
|  __or__           __or__           bitwise_or
^  __xor__          __xor__          bitwise_xor
<< __lshift__       __lshift__       bitwise_left_shift
>> __rshift__       __rshift__       bitwise_right_shift
+=  add_            add_             -
-=  sub_            sub_             -
*=  mul_            mul_             -
/=  div_            div_             -
//= floor_divide_   floor_divide_    -
%=  remainder_      remainder_       -
**= pow_            pow_             -
@=  matmul          refused          -
&=  __iand__        __iand__         -
|=  __ior__         __ior__          -
^=  __ixor__        __ixor__         -
<<= __ilshift__     __ilshift__      -
>>= __irshift__     __irshift__      -
== eq               eq               eq
!= ne               ne               ne
<  lt               lt               gt
<= le               le               ge
>  gt               gt               lt
>= ge               ge               le
"""
"""Operator; the names for `x op y`, for `x op 2` and for `2 op x`."""
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift, "+=": operator.iadd, "-=": operator.isub,
    "*=": operator.imul, "/=": operator.itruediv, "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow,
    "@=": operator.imatmul, "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor, "<<=": operator.ilshift,
    ">>=": operator.irshift, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
CASES = [
    (row[0], form, " ".join(row[3:]) if form == "reflected" else row[place])
    for row in (line.split() for line in _TABLE.strip().splitlines())
    for place, form in enumerate(("tensor", "number", "reflected"), 1)
    if row[place] != "-"
]


def names(symbol: str, form: str, x: Any) -> str:
    """The operators of a trace of it, in order."""
    apply, writes = FUNCTIONS[symbol], symbol not in ("==", "!=", "<=", ">=") and symbol.endswith("=")

    def program(x: Any, y: Any) -> Any:
        left = x.clone() if writes else x
        return apply(2, x) if form == "reflected" else apply(left, y if form == "tensor" else 2)

    try:
        made = torch.jit.trace(program, (x, x.clone()), check_trace=False)
    except (TypeError, RuntimeError):
        return "refused"
    again = program(x, x.clone())
    assert torch.equal(made(x, x.clone()), again) and made(x, x.clone()).dtype == again.dtype
    kinds = (node.kind() for node in made.graph.nodes())
    return " ".join(kind.removeprefix("aten::") for kind in kinds if kind not in ("prim::Constant", "aten::clone"))


@pytest.mark.parametrize(("symbol", "form", "wanted"), CASES)
def test_operators_have_the_names_of_pytorch(symbol: str, form: str, wanted: str) -> None:
    x = FLOATS if symbol == "/=" else INTS  # a quotient is no int
    assert names(symbol, form, x) == wanted


@pytest.mark.parametrize("symbol", ["&=", "|=", "^=", "<<=", ">>="])
def test_augmented_operators_of_bits_survive_an_archive(symbol: str, tmp_path: Any) -> None:
    apply = FUNCTIONS[symbol]
    made = torch.jit.trace(lambda x: apply(x.clone(), 2), INTS, check_trace=False)
    made.save(str(tmp_path / "bits.pt"))
    assert torch.equal(torch.jit.load(str(tmp_path / "bits.pt"))(INTS), apply(INTS.clone(), 2))
