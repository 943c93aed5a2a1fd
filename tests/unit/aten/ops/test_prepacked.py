"""`prepacked::`: a layer is its operator with a clamp behind, in every mode, with gradients; bad states are refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.prepacked import CONV2D, CONV_TRANSPOSE2D, LINEAR, prepacked
from engine.lang.errors import OperatorError

LIMITS = ((None, None), (0, None), (0.0, 6.0), (None, -0.1), (-0.25, 0.25), (0, 0))


def numbers(*shape: int) -> Any:
    return torch.sin(torch.arange(float(np.prod(shape))) * 1.3).reshape(shape)


def linears() -> Iterator[tuple[Any, str, str, tuple[Any, ...]]]:
    """Input, layer, operator, and what both take behind the weight."""
    for shape, bias in itertools.product(((4,), (3, 4), (2, 3, 4), (0, 4)), (None, numbers(5))):
        yield numbers(*shape), "linear", "linear", (numbers(5, 4), bias)


def convolutions() -> Iterator[tuple[Any, str, str, tuple[Any, ...]]]:
    ways = (([1, 1], [0, 0], [1, 1], 1), ([2, 1], [1, 0], [1, 2], 2), ([1, 3], [2, 2], [2, 1], 4))
    for (stride, padding, dilation, groups), bias in itertools.product(ways, (None, numbers(8))):
        rest = (numbers(8, 4 // groups, 3, 2), bias, stride, padding, dilation, groups)
        yield numbers(2, 4, 7, 6), "conv2d", "conv2d", rest
    for (stride, padding, dilation, groups), bias in itertools.product(ways, (None, numbers(2 * 4))):
        weight, own = numbers(4, 8 // groups, 3, 2), [stride[0] - 1, stride[1] - 1]
        rest = (weight, bias, stride, padding, own, groups, dilation)
        yield numbers(1, 4, 5, 6), "conv2d_transpose", "conv_transpose2d", rest


def packed(layer: str, rest: tuple[Any, ...], limits: tuple[Any, Any]) -> Any:
    if layer == "conv2d_transpose":
        *others, groups, dilation = rest
        rest = (*others, dilation, groups)
    return getattr(torch.ops.prepacked, f"{layer}_clamp_prepack")(*rest, *limits)


SPECIAL = [float("nan"), -0.0, 0.0, -1.0, 1e-45, float("inf"), -float("inf"), 6.0, 6.5, -0.1, 0.25]


def test_limits_are_those_of_clamp_to_the_last_bit(mode: str) -> None:
    x = torch.tensor(SPECIAL).reshape(-1, 1)
    for low, high in (*LIMITS[1:], (-float("inf"), 0.0), (0.0, float("inf")), (-0.0, None), (1e-45, 6)):
        held = packed("linear", (torch.ones(1, 1), None), (low, high))
        for _ in range(2):
            wanted = torch.nn.functional.linear(x, torch.ones(1, 1)).clamp(low, high)
            found = torch.ops.prepacked.linear_clamp_run(x, held)
            assert found.numpy().tobytes() == wanted.numpy().tobytes(), (low, high)


CASES = [(*case, limits) for case in (*linears(), *convolutions()) for limits in LIMITS]


def test_a_layer_is_its_operator_and_a_clamp(mode: str) -> None:
    for x, layer, name, rest, (low, high) in CASES:
        held = packed(layer, rest, (low, high))
        run = getattr(torch.ops.prepacked, f"{layer}_clamp_run")
        for _ in range(2):
            wanted = getattr(torch.nn.functional, name)(x, *rest)
            if low is not None or high is not None:
                wanted = wanted.clamp(low, high)
            found = run(x, held)
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_gradients_are_those_of_the_operators() -> None:
    for x, layer, name, rest, (low, high) in CASES:
        if (low, high) == (0, 0):
            continue  # every element lies on the limit
        mine, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        getattr(torch.ops.prepacked, f"{layer}_clamp_run")(mine, packed(layer, rest, (low, high))).sum().backward()
        wanted = getattr(torch.nn.functional, name)(theirs, *rest)
        (wanted if low is None and high is None else wanted.clamp(low, high)).sum().backward()
        np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), rtol=1e-5, atol=1e-6)


W, B, I4 = numbers(5, 4), numbers(5), numbers(4, 4, 2, 2)
ONES, ZEROS = [1, 1], [0, 0]
REFUSED = [
    (LINEAR, (numbers(4), None, None, None), "2 dimensions"),
    (LINEAR, (W.double(), None, None, None), "float32"),
    (LINEAR, (W, numbers(4), None, None), "vector of 5"),
    (LINEAR, (W, B.double(), None, None), "vector of 5"),
    (LINEAR, (W, B, 2, 1), "clamped to the range"),
    (LINEAR, (W, B, float("nan"), None), "clamped to the range"),
    (LINEAR, (W, B, None, 1j), "clamped to the range"),
    (CONV2D, (W, B, ONES, ZEROS, ONES, 1, None, None), "4 dimensions"),
    (CONV2D, (I4, numbers(3), ONES, ZEROS, ONES, 1, None, None), "vector of 4"),
    (CONV2D, (I4, None, [1, 1, 1], ZEROS, ONES, 1, None, None), "stride"),
    (CONV2D, (I4, None, [], ZEROS, ONES, 1, None, None), "stride"),
    (CONV2D, (I4, None, [0, 1], ZEROS, ONES, 1, None, None), "stride"),
    (CONV2D, (I4, None, ONES, [-1, 0], ONES, 1, None, None), "padding"),
    (CONV2D, (I4, None, ONES, ZEROS, [0, 0], 1, None, None), "dilation"),
    (CONV2D, (I4, None, ONES, ZEROS, ONES, 3, None, None), "3 groups"),
    (CONV2D, (I4, None, ONES, ZEROS, ONES, 0, None, None), "0 groups"),
    (CONV_TRANSPOSE2D, (I4, numbers(4), ONES, ZEROS, ZEROS, ONES, 2, None, None), "vector of 8"),
    (CONV_TRANSPOSE2D, (I4, None, ONES, ZEROS, [-1, 0], ONES, 1, None, None), "output_padding"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "state", "reason"), REFUSED, ids=str)
def test_states_that_make_no_layer(kind: Any, state: Any, reason: str) -> None:
    with pytest.raises(OperatorError, match=reason):
        prepacked(kind, state)


def test_sizes_of_layers() -> None:
    held = packed("conv2d", (I4, None, [2, 1], [1, 0], [1, 1], 1), (None, None))
    assert torch.ops.prepacked.unpack_prepacked_sizes_conv2d(held) == (
        [4, 4, 2, 2], None, [2, 1], [1, 0], [1, 1], 1,
    )  # fmt: skip
    held = packed("linear", (W, B), (0, 1))
    assert torch.ops.prepacked.unpack_prepacked_sizes_linear(held) == ([5, 4], [5])
    with pytest.raises(RuntimeError, match="a prepacked layer is wanted"):
        torch.ops.prepacked.unpack_prepacked_sizes_linear(3)
