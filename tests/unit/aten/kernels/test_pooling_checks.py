"""Each mistake in pooling has words of its own."""

import pytest

import engine.torch as torch
from engine.lang.errors import OperatorError


def pool(name, shape, *args):
    return getattr(torch.ops.aten, name)(torch.ones(shape), *args)


@pytest.mark.parametrize(
    ("shape", "args", "words"),
    [
        ((), ([1],), "Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:[]"),
        ((1, 10, 0), ([1],), "but got:[1, 10, 0]"),
        ((2, 3, 5), ([1, 1],), "kernel_size must be an int, list of ints or tuple of ints of size 1 but got size 2"),
        ((2, 3, 5), ([2], [1, 1]), "stride must be None, an int, list of ints, or tuple of ints of size 1"),
        ((2, 3, 5), ([0],), "kernel_size must be greater than zero, but got 0"),
        ((2, 3, 5), ([2], [-1]), "stride must be greater than zero, but got -1"),
        ((2, 3, 5), ([2], [1], [-1]), "padding must be non-negative, but got -1"),
        ((2, 3, 5), ([2], [1], [2]), "padding should be at most half of kernel size, but got padding=2"),
        ((2, 3, 5), ([2], [1], [0], [0]), "dilation must be greater than zero, but got 0"),
        ((2, 2, 2), ([5], [1]), "Invalid computed output size: -2"),
    ],
)
def test_one_dimension(shape, args, words):
    with pytest.raises(OperatorError) as refused:
        pool("max_pool1d", shape, *args)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("name", "shape", "size", "words"),
    [
        ("adaptive_avg_pool1d", (2,), [1], "Expected 2 to 3 dimensions, but got 1-dimensional tensor"),
        ("adaptive_avg_pool1d", (2, 3, 4), [], "'output_size' should contain one int (got 0)"),
        ("adaptive_avg_pool1d", (2, 3, 4), [-1], "adaptive_avg_pool2d: elements of output_size must be"),
        ("adaptive_avg_pool2d", (2, 3), [1, 1], "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got [2, 3]"),
        ("adaptive_avg_pool2d", (1, 1, 0, 2), [1, 1], "input has sizes [1, 1, 0, 2] with dimension 2 being empty"),
        ("adaptive_avg_pool3d", (1, 1, 1, 1, 1), [-1, 0, 2], "but received {-1, 0,2}"),
        ("adaptive_avg_pool3d", (1, 1, 1, 1, 1), [], "adaptive_avg_pool3d: output_size must be 3"),
        ("adaptive_max_pool1d", (1, 1, 1), [-1], "negative dimension -1: [1, 1, 1, -1]"),
        ("adaptive_max_pool2d", (1, 2, 3, 4), [], "internal error: output_size.size() must be 2"),
        ("adaptive_max_pool2d", (2, 0, 3, 4), [1, 1], "with dimension 1 being empty"),
        ("adaptive_max_pool3d", (1, 1, 1, 1, 1), [-1, 0, 2], "negative dimension -1: [1, 1, -1, 0, 2]"),
    ],
)
def test_adaptive(name, shape, size, words):
    with pytest.raises(OperatorError) as refused:
        pool(name, shape, size)
    assert words in str(refused.value)


def test_three_dimensions_name_their_code():
    with pytest.raises(OperatorError, match="non-batch dimension 0 has length zero"):
        pool("max_pool3d", (2, 1, 0, 1, 2), [1, 1, 1])


def test_a_batch_may_be_empty():
    assert pool("adaptive_avg_pool2d", (0, 3, 4, 4), [2, 2]).shape == (0, 3, 2, 2)
    assert pool("max_pool1d", (0, 2, 3), [1]).shape == (0, 2, 3)


def test_scripted_pools_ask_for_a_size_of_as_many_dimensions():
    source = "def f(x, size: List[int]):\n    return torch.nn.functional.adaptive_avg_pool2d(x, size)\n"
    with pytest.raises(Exception, match="AssertionError"):
        torch.jit.CompilationUnit(source).f(torch.ones(2, 2), [2, 2])
