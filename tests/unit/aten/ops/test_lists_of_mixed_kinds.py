"""Lists whose elements differ in type, as programs hand them to operators; strings without a separator."""

from __future__ import annotations

from typing import Any

import pytest

import engine
from engine.aten.dispatch import table
from engine.lang.errors import OperatorError


def run(expression: str, *args: Any) -> Any:
    return engine.CompilationUnit(f"def f(n: int, s: str):\n    return {expression}\n").f(2, "abc", *args)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("sorted([n, 1.5])", "Only values of same type can be compared. Found int and float"),
        ("torch.tensor([n, 1.5])", "expected Float, Complex, Int, or Bool but gotUnion(float, int)"),
        ("torch.tensor([1.5, 2.5j])", "expected Float, Complex, Int, or Bool but gotUnion(float, complex)"),
        ("torch.tensor([1j])", "expected Float, Complex, Int, or Bool but gotcomplex"),
        ("torch.as_tensor([n, 1.5])", "gotUnion(float, int)"),
        ("torch.tensor([True, n])", "Input must be of ints, floats, or bools, got Union[int, bool]"),
        ("torch.tensor(['a'])", "Input must be of ints, floats, or bools, got str"),
        ("torch.tensor([(1, 2)])", "Input must be of ints, floats, or bools, got Tuple[int, int]"),
        ("torch.tensor([[1, 2], [3]])", "Expected sequence of length 2 at dim 1 (got 1)"),
    ],
)
def test_refused(expression: str, message: str) -> None:
    with pytest.raises(RuntimeError) as error:
        run(expression)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("torch.tensor([[n, 1], [3, 4]]).tolist()", None),
        ("s.rsplit('', 1)", ["abc", ""]),
        ("s.rsplit('', 0)", ["abc"]),
        ("s.replace('', 'X', 2)", "XXabc"),
        ("s.replace('', 'X', 0)", "abc"),
    ],
)
def test_fine(expression: str, wanted: Any) -> None:
    if wanted is None:
        assert run(expression.removesuffix(".tolist()")).tolist() == [[2, 1], [3, 4]]
    else:
        assert run(expression) == wanted


def test_replacing_nothing_without_end_is_refused() -> None:
    entry = table.find("aten::replace")
    assert entry is not None
    with pytest.raises(OperatorError, match="replace of an empty string"):
        entry.run("abc", "", "X", -1)
