"""What a compiled entry does around its kernel: hooks, results, writes, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine.aten.dispatch.op import Op
from engine.aten.dispatch.table import find
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor, tensor
from engine.lang.errors import OperatorError

X = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def run(name: str, *args: Any) -> Any:
    entry = find(name)
    assert entry is not None
    return entry.run(*args)


@pytest.fixture
def seen() -> Iterator[list[str]]:
    """Names of the operators that a hook was asked about."""
    before = HOOKS.grad, HOOKS.trace
    names: list[str] = []

    def hook(op: Op, args: tuple[Any, ...], body: Any) -> Any:
        names.append(op.qualified_name)
        return body(*args)

    HOOKS.grad = HOOKS.trace = hook
    yield names
    HOOKS.grad, HOOKS.trace = before


def test_the_trace_hook_sees_every_operator_on_tensors(seen: list[str]) -> None:
    HOOKS.grad = None
    run("aten::mm", X, X.t())
    run("aten::zeros", [2], None, None, None, None)
    assert seen == ["aten::t", "aten::mm", "aten::zeros"]


def test_the_grad_hook_sees_tensors_that_require_grad(seen: list[str]) -> None:
    HOOKS.trace = None
    leaf = tensor([1.0], requires_grad=True)
    run("aten::exp", tensor([1.0]))
    run("aten::mul.Tensor", tensor([1.0]), leaf)
    run("aten::cat", [tensor([1.0]), leaf], 0)
    assert seen == ["aten::mul.Tensor", "aten::cat"]


def test_results_of_zero_dim_operators_are_tensors() -> None:
    total = run("aten::add.Tensor", tensor(1.0), tensor(2.0), 1)
    assert isinstance(total.array, np.ndarray)
    assert total.shape == ()


def test_several_results_come_as_a_tuple() -> None:
    values, places = run("aten::max.dim", X, 1, False)
    assert (values.tolist(), places.tolist()) == ([3.0, 6.0], [2, 2])


def test_out_takes_the_shape_of_the_result() -> None:
    out = tensor([0.0])
    assert run("aten::add.out", X, X, 1, out) is out
    assert out.tolist() == [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]
    with pytest.raises(OperatorError, match="result type Float can't be cast"):
        run("aten::add.out", X, X, 1, tensor([0]))


def test_several_out_arguments() -> None:
    values, places = tensor([0.0]), tensor([0])
    assert run("aten::max.dim_max", X, 0, False, values, places) == (values, places)
    assert places.tolist() == [1, 1, 1]


def test_in_place_refuses_what_does_not_fit() -> None:
    row = tensor([1.0, 2.0, 3.0])
    with pytest.raises(OperatorError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]") as e:
        run("aten::add_.Tensor", row, X, 1)
    assert "in aten::add_.Tensor(float32[3], float32[2, 3], 1)" in str(e.value)
    with pytest.raises(OperatorError, match="single memory location"):
        run("aten::add_.Scalar", tensor([1.0]).expand(3), 1, 1)


def test_a_view_that_is_the_tensor_itself_stays_it() -> None:
    assert run("aten::contiguous", X, 0) is X
    assert run("aten::contiguous", X.t(), 0) is not X


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("aten::add.Tensor", (X, tensor([1.0, 2.0]), 1),
         "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1"),
        ("aten::mm", (X, X), "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
        ("aten::softmax.int", (X, 2, None), "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
        ("aten::floor_divide.Scalar", (tensor([1]), 0), "ZeroDivisionError"),
        ("aten::view", (X, [4]), "shape '[4]' is invalid for input of size 6"),
        ("aten::softmax.int", (tensor([1]), 0, None), "not implemented for 'Long'"),
    ],
)  # fmt: skip
def test_refusals_say_what_and_where(name: str, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(OperatorError) as refusal:
        run(name, *args)
    assert message in refusal.value.message
    assert any(hint.startswith(f"in {name}(") for hint in refusal.value.hints)


def test_numpy_does_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    assert run("aten::div.Scalar", tensor([1.0, 0.0]), 0).tolist()[0] == float("inf")
    run("aten::log", tensor([-1.0, 0.0]))
    assert not recwarn.list


def test_floating_point_state_is_restored() -> None:
    with np.errstate(divide="raise"):
        run("aten::log", Tensor(np.zeros(1)))
        with pytest.raises(FloatingPointError):
            np.log(np.zeros(1))


def test_an_input_that_shows_part_of_what_is_written_is_refused() -> None:
    whole = tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(OperatorError, match="refer to a single memory location"):
        whole.sub_(whole[0])
    assert whole.sub_(whole).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a_copy_within_one_memory_goes_in_order() -> None:
    rows = tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    rows[:, 1:] = rows[:, :-1]
    assert rows.tolist() == [[0.0, 0.0, 0.0], [3.0, 3.0, 3.0]]
