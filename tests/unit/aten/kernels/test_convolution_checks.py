"""Each mistake in a convolution has words of its own."""

import pytest

import engine.torch as torch
from engine.lang.errors import OperatorDtypeError, OperatorError


def call(name, x, w, *args, dtypes=("float32", "float32")):
    d = [getattr(torch, each) for each in dtypes]
    return getattr(torch.ops.aten, name)(torch.ones(x, dtype=d[0]), torch.ones(w, dtype=d[1]), *args)


@pytest.mark.parametrize(
    ("name", "x", "w", "args", "words"),
    [
        ("conv1d", (1, 1, 4), (1, 2), (), "weight should have at least three dimensions"),
        ("conv2d", (2, 2), (2, 2, 2, 2), (), "Expected 3D (unbatched) or 4D (batched) input to conv2d"),
        ("conv1d", (2, 2, 4), (2, 2, 2), (None, [1], [0], [1], 3), "expected weight to be at least 3 at dimension 0"),
        ("conv1d", (2, 2, 4), (4, 2, 2), (None, [1], [0], [1], 3), "divisible by 3 at dimension 0"),
        ("conv2d", (2, 2, 4, 4), (2, 2, 2, 2), (None, [1, 1, 1]), "list of 2 values to match the convolution"),
        ("conv2d", (2, 2, 4, 4), (2, 2, 2, 2), (None, [1], [0], [-1]), "dilation should be greater than zero"),
        ("conv2d", (2, 2, 4, 4), (2, 3, 2, 2), (), "expected input[2, 2, 4, 4] to have 3 channels"),
        ("conv2d", (1, 1, 4, 3), (1, 2, 2), (None, [1], "same"), "for 3-dimensional weight[1, 2, 2]"),
        ("conv2d", (1, 1, 4, 3), (1, 1, 2, 2), (None, [1, 1, 1], "same"), "stride cannot broadcast to 2 dimensions"),
        ("conv_transpose1d", (2, 3, 4), (4, 2, 3), (), "Given transposed=1, weight of size [4, 2, 3], expected input"),
        ("conv_transpose2d", (2, 2), (4, 2, 3, 3), (), "input to conv_transpose2d"),
        ("conv_transpose1d", (2, 4, 4), (4, 2, 3), (None, [1], [0], [1]), "output_padding_width: 1 stride_height: 1"),
        ("conv_transpose1d", (2, 4, 4), (4, 2, 3), (None, [1], [0], [-1]), "negative output_padding"),
    ],
)
def test_shapes_and_numbers(name, x, w, args, words):
    with pytest.raises(OperatorError) as refused:
        call(name, x, w, *args)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("dtypes", "words"),
    [
        (("float32", "float64"), "expected scalar type Float but found Double"),
        (("float16", "bfloat16"), "Input type (torch.HalfTensor) and weight type (CPUBFloat16Type)"),
        (("complex64", "float32"), "Input type (CPUComplexFloatType) and weight type (torch.FloatTensor)"),
    ],
)
def test_dtypes(dtypes, words):
    with pytest.raises(OperatorError) as refused:
        call("conv2d", (1, 2, 4, 4), (2, 2, 2, 2), dtypes=dtypes)
    assert words in str(refused.value)


def test_bools_have_no_code():
    with pytest.raises(OperatorDtypeError, match="\"slow_conv2d_cpu\" not implemented for 'Bool'"):
        call("conv2d", (1, 2, 4, 4), (2, 2, 2, 2), dtypes=("bool", "bool"))


@pytest.mark.parametrize(("n", "padding"), [(1, "same"), (2, "valid"), (3, "same")])
def test_padding_by_name_for_any_number_of_dimensions(n, padding):
    x, w = torch.arange(5.0**n).reshape(1, 1, *[5] * n), torch.arange(3.0**n).reshape(1, 1, *[3] * n)
    found = torch.ops.aten._convolution_mode(x, w, None, [1] * n, padding, [1] * n, 1)
    assert torch.equal(found, getattr(torch.nn.functional, f"conv{n}d")(x, w, padding=padding))


def test_sequences_are_never_nested():
    x, mask = torch.ones(2, 3, 4), torch.ones(2, 3, dtype=torch.bool)
    assert torch.ops.aten._nested_tensor_from_mask_left_aligned(x, mask) is False
    with pytest.raises(OperatorError, match="nested tensors are not supported"):
        torch.ops.aten._nested_tensor_from_mask(x, mask)
    with pytest.raises(OperatorError, match="nested tensors"):
        torch.ops.aten.to_padded_tensor(x, 0.0)
