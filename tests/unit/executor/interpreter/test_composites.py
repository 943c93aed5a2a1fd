"""Operators written in TorchScript."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.aten.dispatch.compile import compile_op
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import tensor
from engine.executor.interpreter import composites
from engine.fuser.backend import kernel_cache
from engine.lang.errors import OperatorError


def made(text: str, body: str) -> Op:
    return Op(text, composite=body, compiler=compile_op)


def test_a_composite_runs_its_expression() -> None:
    op = made("aten::twice_plus(Tensor self, Scalar other, *, int times=2) -> Tensor", "self * times + other")
    assert op.run(tensor([1.0, 2.0]), 0.5, 2).tolist() == [2.5, 4.5]


def test_operators_of_numbers() -> None:
    assert made("aten::thrice(int a) -> int", "a * 3").run(2) == 6


def test_texts_of_one_name_are_told_apart() -> None:
    texts = [made("aten::some(int a) -> int", text) for text in ("a + 1", "a + 2")]
    assert [op.run(1) for op in texts] == [2, 3]


def test_several_results_come_as_a_tuple() -> None:
    assert made("aten::both(int a, int b) -> (int, int)", "(b, a)").run(1, 2) == (2, 1)


def test_statements_may_use_what_texts_share() -> None:
    op = made(
        "aten::loss(Tensor self, int reduction) -> Tensor",
        """
        if reduction == 0:
            return self
        return reduced(widened(self), reduction)
    """,
    )
    assert op.run(tensor([1.0, 3.0]), 1).item() == 2.0


@pytest.mark.parametrize("count", [1, 4])
def test_errors_are_those_of_the_operator(count: int) -> None:
    op = made("aten::product(Tensor self, Tensor other) -> Tensor", "(self + 1).mm(other)")
    wrong = made(
        "aten::positive_part(Tensor self) -> Tensor",
        """
        if bool((self < 0).any()):
            raise ValueError("there are negative numbers")
        return self.sqrt()
    """,
    )
    for _ in range(count):
        with pytest.raises(OperatorError, match="mat1 and mat2 shapes cannot be multiplied") as caught:
            op.run(tensor([[1.0, 2.0]]), tensor([[1.0, 2.0]]))
        assert str(caught.value).count("aten::") == 1
        assert "in aten::product(float32[1, 2], float32[1, 2])" in str(caught.value)
        with pytest.raises(OperatorError, match="there are negative numbers"):
            wrong.run(tensor([1.0, -2.0]))


def test_what_was_compiled_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path))
    text = "aten::four_times(Tensor self) -> Tensor"
    first = composites.composite_function(made(text, "self * 4"))
    assert [kernel_cache.kind_of(each.key) for each in kernel_cache.entries()].count("operator") == 1
    monkeypatch.setattr(composites, "composites", None)
    again = composites.composite_function(made(text, "self * 4"))
    assert str(again.graph) == str(first.graph)
    assert again.schema.arguments[0].name == "self"
