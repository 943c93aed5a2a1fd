"""Backward passes on request: refusals, hooks, contexts, functions that write, derivatives of whole functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as torch
from engine.aten.autograd import (
    Function,
    detect_anomaly,
    functional,
    grad,
    no_grad,
    set_detect_anomaly,
)  # fmt: skip
from engine.aten.dispatch.calls import call
from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError


def tensor(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def leaf(*values: float) -> Tensor:
    return torch.tensor(list(values), dtype=torch.float64, requires_grad=True)


def gradient(result: Tensor, of: Tensor) -> list[float]:
    (found,) = grad(result.sum(), of, retain_graph=True)
    assert found is not None
    listed: list[float] = found.tolist()
    return listed


# ------------------------------------------------------------------ more refusals, hooks and contexts


def test_writes_to_data_are_not_noticed() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y.sin()
    y.data.zero_()
    assert gradient(z, x) == [1.0, 1.0]
    z = y.sin()
    y.detach().zero_()
    with pytest.raises(OperatorError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize("is_leaf", [True, False])
def test_views_made_without_recording_are_not_written_to_with_it(is_leaf: bool) -> None:
    x = leaf(1.0, 2.0) if is_leaf else leaf(1.0, 2.0) * 1
    with no_grad():
        view = x.view(2)
        view.add_(1)
    with pytest.raises(OperatorError, match="A view was created in no_grad mode"):
        view.mul_(2)


def test_views_of_what_needs_no_gradient_may_be_written_to() -> None:
    with no_grad():
        view = tensor([1.0, 2.0]).view(2)
    assert view.mul_(2).tolist() == [2.0, 4.0]


def test_parts_of_complex_numbers_are_written_to() -> None:
    z = Tensor(np.array([1 + 2j, 3 - 1j]), True)
    w = z * 1
    w.real.mul_(3)
    (w.real * w.imag).sum().backward()
    assert z.grad is not None
    assert z.grad.tolist() == [6 + 3j, -3 + 9j]


def test_gradients_in_batches() -> None:
    x = leaf(1.0, 2.0)
    (found,) = grad(x * x, x, tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), is_grads_batched=True)
    assert found is not None
    assert found.tolist() == [[2.0, 0.0], [0.0, 4.0], [2.0, 4.0]]


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"inputs": []}, OperatorError, "cannot be empty"),
        ({"materialize_grads": True, "allow_unused": False}, ValueError, "Expected allow_unused to be True"),
    ],
)
def test_requests_that_make_no_sense(arguments: dict[str, Any], kind: type[Exception], message: str) -> None:
    x = leaf(1.0)
    with pytest.raises(kind, match=message):
        grad((x * 2).sum(), **{"inputs": [x], **arguments})


def test_hooks_before_a_node_change_what_goes_in() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    handle = y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 2,))
    assert gradient(y, x) == [4.0, 4.0]
    handle.remove()
    assert gradient(x * 2, x) == [2.0, 2.0]


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [(3, TypeError, "hook returned 'int'"), (tensor([1.0]), RuntimeError, "has changed the size of value")],
)
def test_hooks_that_give_no_gradient(answer: Any, kind: type[Exception], message: str) -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(lambda _: answer)
    with pytest.raises(kind, match=message):
        x.sum().backward()


def test_a_tensor_is_not_its_own_gradient() -> None:
    x = leaf(1.0)
    with pytest.raises(OperatorError, match="as its own grad"):
        x.grad = x


class Tripled(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 3


def test_functions_may_write_to_views() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    Tripled.apply(y[:2])
    assert gradient(y, x) == [3.0, 3.0, 1.0]
    assert type(Tripled.apply(x * 1).grad_fn).__name__ == "TripledBackward"


class Shown(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view(-1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 10


class Same(Shown):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x


@pytest.mark.parametrize("function", [Shown, Same])
def test_views_that_functions_return_are_not_written_to(function: type[Function]) -> None:
    x = leaf(1.0, 2.0)
    y = function.apply(x * 1)
    assert gradient(y, x) == [10.0, 10.0]
    with pytest.raises(OperatorError, match="created inside a custom Function"):
        y.mul_(2)


def test_nan_is_refused_on_request() -> None:
    x = leaf(0.0)
    with set_detect_anomaly(True), pytest.raises(OperatorError, match="'SqrtBackward0' returned nan values in its 0th"):
        (x.sqrt() * 0).sum().backward()
    with detect_anomaly():
        assert gradient(x * 2, x) == [2.0]
    (x.sqrt() * 0).sum().backward()


@pytest.mark.parametrize("dtype", sorted(xp.INEXACT, key=str), ids=str)
def test_nan_of_any_dtype_is_refused_on_request(dtype: xp.NumpyDtype) -> None:
    x = Tensor(np.zeros(2, dtype), requires_grad=True)
    y = x.sqrt() * 0
    with detect_anomaly(), pytest.raises(OperatorError, match="'SqrtBackward0' returned nan values in its 0th"):
        grad(y, [x], [Tensor(np.ones(2, dtype))])


def test_in_place_forms_of_operators_made_of_others_have_gradients() -> None:
    x = leaf(0.5, 2.0)
    y = x * 1
    y.float_power_(2)
    assert gradient(y, x) == [1.0, 4.0]


def test_lengths_of_nothing_have_gradients_of_nothing() -> None:
    x = leaf(0.0, 0.0)
    assert gradient(call("cosine_similarity", (x, x, 0), {}), x) == [0.0, 0.0]
    assert gradient(call("norm", (x,), {}), x) == [0.0, 0.0]


# ------------------------------------------------------------------ derivatives of whole functions


def test_tables_of_derivatives() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0)
    assert functional.jacobian(lambda x: x * x, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    by_x, by_y = functional.jacobian(lambda x, y: (x * y).sum(), (x, y))
    assert (by_x.tolist(), by_y.tolist()) == ([3.0, 3.0], [3.0])
    assert functional.hessian(lambda x: (x * x * x).sum(), x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    nested = functional.hessian(lambda x, y: (x * y * y).sum(), (x, y))
    assert [[part.tolist() for part in row] for row in nested] == [
        [[[0.0, 0.0], [0.0, 0.0]], [[6.0], [6.0]]], [[[6.0, 6.0]], [[6.0]]]
    ]  # fmt: skip


def test_products_with_tables_of_derivatives() -> None:
    x, v = leaf(1.0, 2.0), tensor([1.0, 10.0])
    for product in (functional.vjp, functional.jvp):
        result, found = product(lambda x: x * x, x, v)
        assert (result.tolist(), found.tolist()) == ([1.0, 4.0], [2.0, 40.0])
    result, found = functional.vhp(lambda x: (x * x * x).sum(), x, v)
    assert (result.tolist(), found.tolist()) == (9.0, [6.0, 120.0])
    assert functional.jvp(lambda x: x * 0 + 1, x, v)[1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda x: functional.vjp(lambda x: x * x, x), "The vector v can only be None"),
        (lambda x: functional.vjp(lambda x: x * x, x, tensor([1.0])), "v has invalid size"),
        (lambda x: functional.hessian(lambda x: x * x, x), "should contain a single element"),
        (lambda x: functional.jacobian(lambda x: tensor([1.0]), x, strict=True), "does not depend on its inputs"),
    ],
)
def test_tables_that_there_are_not(ask: Any, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        ask(leaf(1.0, 2.0))
