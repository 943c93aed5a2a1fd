"""Operators on Python values whose arguments a recorded line cannot hold: tensors, devices, objects, odd strings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch import table
from engine.aten.values.tensor import tensor
from engine.lang.errors import OperatorError
from engine.lang.scalars import device


def run(name: str, *args: Any) -> Any:
    entry = table.find(name)
    assert entry is not None
    return entry.run(*args)


def test_texts_print_back_from_their_schemas() -> None:
    families = ("lists", "strings", "dicts", "scalars", "conversion", "attributes", "control")
    ours = [e for e in table.entries() if getattr(e.python, "__module__", "").rpartition(".")[2] in families]
    assert len(ours) > 200
    assert [e.text for e in ours if str(e.schema) != e.text] == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [("device", device("cpu")), ("dtype", 5), ("itemsize", 2), ("nbytes", 12), ("layout", 0), ("is_cuda", False),
     ("is_cpu", True), ("is_meta", False), ("requires_grad", False), ("is_quantized", False), ("name", None)],
)  # fmt: skip
def test_attributes(name: str, expected: Any) -> None:
    assert run(f"prim::{name}", tensor(np.zeros((2, 3), np.float16))) == expected


def test_requires_grad_needs_a_float() -> None:
    with pytest.raises(OperatorError, match="Only Tensors of floating point and complex dtype can require gradients"):
        run("aten::requires_grad_", tensor(1), True)
    assert run("aten::requires_grad_", tensor(1.0), True).requires_grad


@pytest.mark.parametrize(("value", "dtype"), [(1, "int64"), (1.5, "float64"), (1j, "complex128")])
def test_numbers_become_tensors(value: Any, dtype: str) -> None:
    made = run("prim::NumToTensor.Scalar", value)
    assert (made.dtype.name, made.item()) == (dtype, value)


def test_tolist_checks_the_annotation() -> None:
    matrix = tensor([[1, 2], [3, 4]])
    assert run("prim::tolist", matrix, 2, 0) == [[1, 2], [3, 4]]
    with pytest.raises(OperatorError, match="dimension must match"):
        run("prim::tolist", matrix, 1, 0)
    with pytest.raises(OperatorError, match="element type must match"):
        run("prim::tolist", matrix, 2, 1)


def test_strings_that_come_apart_go_together_again() -> None:
    first, second = (run("aten::__getitem__.str", "é", i) for i in (0, 1))
    assert run("aten::len.str", first) == 1
    assert run("aten::add.str", first, second) == "é"
    assert run("aten::list", "aé") == ["a", first, second]
    assert run("aten::join", "", [first, second]) == "é"


@pytest.mark.parametrize(
    ("name", "args"),
    [("aten::replace", ("abc", "", "x", -1)), ("aten::count", ("abc", "", 0, -1)), ("aten::split.str", ("a", "", -1)),
     ("aten::rsplit", ("a", "", -1)), ("aten::remainder.int", (1, 0)), ("aten::__getitem__.str", ("a", 1)),
     ("aten::mul.left_t", ([1], -1)), ("aten::_unwrap_optional", (None,)), ("aten::device", ("nowhere",))],
)  # fmt: skip
def test_refusals(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(OperatorError):
        run(name, *args)


def test_sorting() -> None:
    assert run("aten::sorted.any", [(2, "a"), (1, "b"), (1, "a")]) == [(1, "a"), (1, "b"), (2, "a")]
    assert [t.item() for t in run("aten::sorted.Tensor", [tensor(2.0), tensor(1.0)])] == [1.0, 2.0]
    with pytest.raises(OperatorError, match=r"can be sorted, got list of Dict\[str, int\]"):
        run("aten::sorted.any", [{"a": 1}])


def test_searching_tensors() -> None:
    values = [tensor(1), tensor(2)]
    assert run("aten::index.list_Tensor", values, tensor(2)) == 1
    assert run("aten::count.Tensor", values, tensor(3)) == 0
    run("aten::remove.Tensor", values, tensor(1))
    assert [v.item() for v in values] == [2]


def test_is_compares_numbers_by_value() -> None:
    same = "aten::__is__"
    assert run(same, 300000, int("300000"))
    assert not run(same, 1, 1.0)
    assert not run(same, True, 1)
    assert not run(same, [1], [1])
    assert not run(same, float("nan"), float("nan"))
    assert run(same, None, None)


def test_warnings() -> None:
    with pytest.warns(UserWarning, match="careful"):
        run("aten::warn", "careful", 2)


def test_lists_change_in_place() -> None:
    values = [1, 2]
    assert run("aten::append.t", values, 3) is values
    assert run("aten::add_.t", values, [4]) is values
    assert run("aten::mul_.t", values, 2) is values
    assert values == [1, 2, 3, 4, 1, 2, 3, 4]


def test_the_remainder_of_a_tiny_float_is_rounded_as_in_pytorch() -> None:
    """Python gives the tiny number itself; PyTorch 2.13 gives 0.0."""
    remainder = table.find("aten::remainder.float")
    assert remainder is not None
    assert remainder.run(2.1895041839177528e-281, 2.5) == 0.0
