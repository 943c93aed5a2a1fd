"""In place of `torch.testing._internal.common_methods_invocations`: samples for the operators that tests name.

The table of all operators (`op_db`) is empty, as the project has samples of its own.
"""

from dataclasses import dataclass, field

from torch.testing import make_tensor

op_db = []

CONVOLUTIONS = (
    ((1, 3, 4, 4), (3, 3, 3, 3), True, {"stride": (2, 2), "padding": 2}),
    ((2, 4, 8, 8), (2, 2, 3, 3), True, {"stride": (3, 2), "padding": (2, 1), "groups": 2, "dilation": (4, 4)}),
    ((1, 2, 4, 3), (4, 2, 3, 4), False, {"stride": 2, "padding": 1}),
    ((1, 4, 5, 5), (1, 4, 2, 3), True, {"padding": "same", "dilation": 3}),
    ((1, 4, 5, 5), (3, 4, 3, 3), False, {}),
)
"""Sizes of the input and the weight, whether there is a bias, and the settings; the last one has none."""
POOLS = (((1, 8, 8, 8), (5, 7)), ((2, 8, 8, 8), (None, 7)), ((1, 8, 4, 3), (None, None)), ((1, 8, 4, 3), 5))
CONCATENATIONS = (
    ((1, 2), (1, 2), 0),
    ((1, 2), (1, 2), 1),
    ((2, 3), (2, 2), -1),
    ((3, 4), (2, 4), -2),
    ((0, 2), (2, 2), 0),
)


@dataclass
class SampleInput:
    """The first argument of a call, and the others."""

    input: object
    args: tuple = ()
    kwargs: dict = field(default_factory=dict)


def sample_inputs_conv2d(op, device, dtype, requires_grad, **options):
    def made(sizes):
        return make_tensor(sizes, device=device, dtype=dtype, requires_grad=requires_grad)

    for sizes, weight, has_bias, settings in CONVOLUTIONS:
        for one in (sizes, sizes[1:]):
            bias = made(weight[:1]) if has_bias else None
            yield SampleInput(made(one), (made(weight), bias), dict(settings))


def sample_inputs_adaptive_avg_pool2d(op, device, dtype, requires_grad, **options):
    for sizes, output in POOLS:
        for one in (sizes, sizes[1:]):
            yield SampleInput(make_tensor(one, device=device, dtype=dtype, requires_grad=requires_grad), (output,))


def sample_inputs_cat_concat(op, device, dtype, requires_grad, **options):
    for first, second, dim in CONCATENATIONS:
        tensors = [make_tensor(s, device=device, dtype=dtype, requires_grad=requires_grad) for s in (first, second)]
        yield SampleInput(tensors, (), {"dim": dim})
