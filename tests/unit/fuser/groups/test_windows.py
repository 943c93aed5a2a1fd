"""Convolutions and pooling in groups: kernels, steps, borders, gaps, groups of channels, what follows."""

from __future__ import annotations

import pytest

from engine.fuser.ir.kernel import Call
from tests.unit.fuser.kernels_of_groups import binding_of, check, check_program, tensor

_CONVOLUTIONS = [
    # (images, channels, rows, columns), (channels of the result, channels, rows, columns), the rest
    ((1, 3, 9, 11), (4, 3, 3, 3), "[1, 1], [1, 1], [1, 1], 1"),
    ((2, 3, 9, 70), (7, 3, 1, 1), "[1, 1], [0, 0], [1, 1], 1"),
    ((1, 4, 31, 29), (6, 2, 3, 2), "[2, 3], [1, 2], [1, 1], 2"),
    ((2, 2, 40, 33), (5, 2, 5, 3), "[1, 2], [4, 0], [2, 3], 1"),
    ((1, 70, 6, 6), (250, 70, 3, 3), "1, 1, 1, 1"),
    ((2, 6, 12, 10), (6, 1, 3, 3), "[1, 1], [1, 1], [1, 1], 6"),
    ((2, 6, 12, 10), (12, 1, 3, 3), "[2, 1], [1, 0], [1, 1], 6"),
]


@pytest.mark.parametrize(("image", "weight", "rest"), _CONVOLUTIONS)
def test_convolutions(image: tuple[int, ...], weight: tuple[int, ...], rest: str) -> None:
    args = [tensor(*image), tensor(*weight), tensor(weight[0])]
    other = [tensor(image[0] + 1, image[1], image[2] + 3, image[3] + 2), *args[1:]]
    check(f"x, w, b: torch.conv2d(x, w, b, {rest})", *args, others=[other], tolerance=1e-3)
    check(f"x, w, b: torch.relu(torch.conv2d(x + 1, w, None, {rest})) * 2", *args, tolerance=1e-3)


@pytest.mark.parametrize(
    ("row", "weight", "rest"),
    [
        ((2, 3, 40), (4, 3, 5), "2, 1, 1, 1"),
        ((1, 6, 33), (6, 1, 15), "1, 7, 1, 6"),
        ((2, 4, 70), (8, 2, 3), "[1], [2], [2], 2"),
        ((1, 5, 30), (7, 5, 1), "1, 0, 1, 1"),
    ],
)
def test_convolutions_of_rows(row: tuple[int, ...], weight: tuple[int, ...], rest: str) -> None:
    args = [tensor(*row), tensor(*weight), tensor(weight[0])]
    other = [tensor(row[0] + 1, row[1], row[2] + 3), *args[1:]]
    check(f"x, w, b: torch.conv1d(x, w, b, {rest})", *args, others=[other], tolerance=1e-3)
    check(f"x, w, b: torch.relu(torch.conv1d(x + 1, w, None, {rest})).transpose(1, 2) * 2", *args, tolerance=1e-3)


BLOCK = """
def f(x, w1, w2, weight, bias, mean, var):
    y = torch.batch_norm(torch.conv2d(x, w1, None, 1, 1), weight, bias, mean, var, False, 0.1, 1e-5, True)
    y = torch.conv2d(torch.relu(y), w2, None, 1, 1)
    y = torch.batch_norm(y, weight, bias, mean, var, False, 0.1, 1e-5, True)
    return torch.relu(y + x)
"""


def test_a_residual_block() -> None:
    numbers = [tensor(6), tensor(6, seed=1), tensor(6, seed=2), tensor(6, seed=3).abs() + 0.5]
    weights = [tensor(6, 6, 3, 3), tensor(6, 6, 3, 3, seed=1)]
    check_program(BLOCK, tensor(2, 6, 14, 15), *weights, *numbers, tolerance=1e-2)


def test_what_follows_is_done_with_each_element() -> None:
    args = tensor(1, 3, 9, 11), tensor(4, 3, 3, 3), tensor(1, 4, 9, 11)
    kernel = binding_of("x, w, r: torch.relu(torch.conv2d(x, w, None, 1, 1) + r)", *args).kernel
    assert len([each for each in kernel.body if isinstance(each, Call)]) == 1
    assert len([each for each in kernel.body if type(each).__name__ == "Allocate"]) == 0


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (3, 1, 1), ([3, 2], [1, 2], [1, 0])])
def test_pooling(kernel: object, stride: object, padding: object) -> None:
    x, other = tensor(2, 3, 14, 17), tensor(1, 4, 20, 9)
    check(f"x: torch.max_pool2d(x * 2, {kernel}, {stride}, {padding})", x, others=[[other]])
    check(f"x: torch.nn.functional.avg_pool2d(x, {kernel}, {stride}, {padding}) + 1", x, others=[[other]])
    check("x: torch.ops.aten.adaptive_avg_pool2d(x, [1, 1])", x, others=[[other]])


def test_pooling_of_rows() -> None:
    x, other = tensor(2, 3, 17), tensor(1, 4, 40)
    check("x: torch.max_pool1d(x * 2, 3, 2, 1)", x, others=[[other]])
    check("x: torch.ops.aten.avg_pool1d(x, [3], [2], [1]) + 1", x, others=[[other]])
    check("x: torch.ops.aten.adaptive_avg_pool1d(x, [1])", x, others=[[other]])


def test_a_network() -> None:
    text = "torch.flatten(torch.max_pool2d(torch.relu(torch.conv2d(x, w)), 2), 1)"
    args = tensor(2, 3, 10, 10), tensor(4, 3, 3, 3), tensor(5, 64)
    check(f"x, w, u: torch.nn.functional.linear({text}, u)", *args, tolerance=1e-3)
