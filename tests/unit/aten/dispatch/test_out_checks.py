"""What may be written into `out`, and what is computed for it."""

from __future__ import annotations

import numpy as np
import pytest

from engine.aten.dispatch import calls
from engine.aten.dispatch.table import find
from engine.aten.values.tensor import Tensor, tensor
from engine.lang.errors import OperatorError


def run(name: str, *args: object) -> Tensor:
    entry = find(f"aten::{name}")
    assert entry is not None
    result: Tensor = entry.run(*args)
    return result


@pytest.mark.parametrize(
    ("name", "arguments", "given", "words"),
    [
        ("add.out", (tensor([1.5]), tensor([1.0]), 1), np.int64, "result type Float can't be cast to the desired"),
        ("flip.out", (tensor([1.5]), [0]), np.float64, "Expected out tensor to have dtype float, but got double"),
        ("floor.out", (tensor([1.5]),), np.float64, "Found dtype Double but expected Float"),
        ("amax.out", (tensor([1.5]), [0], False), np.float64, "Expected the dtype for input and out to match"),
        ("any.all_out", (tensor([True]),), np.float32, "any only supports bool tensor for result, got: Float"),
        ("signbit.out", (tensor([1.0]),), np.uint8, "signbit does not support non-boolean outputs"),
        ("cat.out", ([tensor([1.5])], 0), np.int64, "input types can't be cast to the desired output type Long"),
        (
            "mm.out",
            (tensor([[1.5]]), tensor([[1.5]])),
            np.float64,
            "Expected out tensor to have dtype float, but got d",
        ),
        ("dot.out", (tensor([1.5]), tensor([1.5])), np.float64, "result dtype Double does not match input dtype Float"),
        (
            "im2col.out",
            (tensor(np.ones((1, 1, 2, 2), np.float32)), [1, 1], [1, 1], [0, 0], [1, 1]),
            np.float64,
            "expected scalar type Float but found Double",
        ),
        ("take.out", (tensor([1.5]), tensor([0])), np.float64, "self.dtype = Float and out.dtype = Double"),
        ("float_power.Tensor_Scalar_out", (tensor([1.5]), 2), np.float32, "has dtype Float but the operation's result"),
    ],
)
def test_dtypes_that_an_out_form_refuses(name: str, arguments: tuple[object, ...], given: type, words: str) -> None:
    with pytest.raises(OperatorError, match=words):
        run(name, *arguments, Tensor(np.zeros(1, given)))


def test_sums_are_taken_in_the_dtype_of_out() -> None:
    target = Tensor(np.zeros(0, np.float64))
    run("sum.IntList_out", tensor(np.ones((2, 3), np.int64)), [0], False, None, target)
    assert target.array.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(OperatorError, match="Expected out tensor to have dtype long int, but got double"):
        run("sum.IntList_out", tensor([1, 2]), [0], False, 4, Tensor(np.zeros((), np.float64)))


def test_a_resized_out_has_the_layout_of_the_result() -> None:
    turned = tensor(np.arange(6.0).reshape(2, 3)).transpose(0, 1)
    target = Tensor(np.zeros(0, np.float64))
    run("neg.out", turned, target)
    assert list(target.stride()) == [1, 3]


@pytest.mark.parametrize("name", ["gather", "take", "index_select", "masked_select"])
def test_what_picks_elements_may_not_write_where_it_reads(name: str) -> None:
    memory = tensor(np.arange(6.0))
    index = tensor([True] * 6) if name == "masked_select" else tensor([0, 1, 2, 3, 4, 5])
    dims = (0,) if name in ("gather", "index_select") else ()
    with pytest.raises(OperatorError, match="refer to a single memory location"):
        calls.call(name, (memory[:], *dims, index), {"out": memory[:]})


@pytest.mark.parametrize("name", ["add", "mul", "div", "floor_divide"])
def test_python_programs_may_give_a_number_and_an_out_of_another_dtype(name: str) -> None:
    target = Tensor(np.zeros(0, np.float64))
    assert calls.call_function(name, (tensor([4.0, 6.0]), 2), {"out": target}) is target
    assert target.array.dtype == np.float64
    assert target.shape == (2,)
    with pytest.raises(OperatorError, match="can't be cast to the desired output type Long"):
        calls.call_function(name, (tensor([4.0]), 2), {"out": tensor([1])})


def test_python_programs_give_a_tuple_for_several_results() -> None:
    values, places = Tensor(np.zeros(0, np.float32)), Tensor(np.zeros(0, np.int64))
    result = calls.call_function("max", (tensor([[1.0, 3.0, 2.0]]), 1), {"out": (values, places)})
    assert (values.array.tolist(), places.array.tolist()) == ([3.0], [1])
    assert result[0] is values
    with pytest.raises(OperatorError, match="Expected out tensor to have dtype float, but got long int"):
        calls.call_function("sort", (tensor([2.0, 1.0]),), {"out": (tensor([1]), places)})
    with pytest.raises(TypeError, match="combination of arguments"):
        calls.call_function("sort", (tensor([2.0, 1.0]),), {"out": (values,)})


@pytest.mark.parametrize(
    ("written", "row"),
    [("fill_", [7.0, 7.0, 7.0]), ("masked_fill_", [0.0, 7.0, 7.0]), ("index_fill_", [7.0, 7.0, 7.0]),
     ("tril_", [0.0, 0.0, 0.0])],
)  # fmt: skip
def test_what_does_not_mind_writes_elements_of_the_same_memory(written: str, row: list[float]) -> None:
    rows = tensor([0.0, 1.0, 2.0]).expand([2, 3])
    more = {"fill_": (7,), "masked_fill_": (tensor([False, True, True]), 7), "index_fill_": (0, tensor([0]), 7),
            "tril_": ()}  # fmt: skip
    calls.call(written, (rows, *more[written]), {})
    assert rows.array.tolist() == [row, row]
    with pytest.raises(OperatorError, match="more than one element of the written-to tensor"):
        calls.call("add_", (rows, 1), {})
