"""Layers: shapes, a few values, text.  The texts are PyTorch's."""

from collections.abc import Callable
from typing import Any

import pytest

import engine as torch
from engine import nn

IMAGE = (1, 4, 8, 8)
LAYERS: list[tuple[Callable[[], Any], tuple[int, ...], tuple[int, ...], str]] = [
    (lambda: nn.Linear(3, 2, bias=False), (5, 3), (5, 2), "Linear(in_features=3, out_features=2, bias=False)"),
    (nn.Identity, (2, 3), (2, 3), "Identity()"),
    (lambda: nn.ReLU(inplace=True), (3,), (3,), "ReLU(inplace=True)"),
    (nn.SiLU, (3,), (3,), "SiLU()"),
    (nn.Hardswish, (3,), (3,), "Hardswish()"),
    (lambda: nn.ELU(0.3), (3,), (3,), "ELU(alpha=0.3)"),
    (nn.LeakyReLU, (3,), (3,), "LeakyReLU(negative_slope=0.01)"),
    (nn.Hardtanh, (3,), (3,), "Hardtanh(min_val=-1.0, max_val=1.0)"),
    (nn.Sigmoid, (3,), (3,), "Sigmoid()"),
    (nn.Tanh, (3,), (3,), "Tanh()"),
    (nn.GELU, (3,), (3,), "GELU(approximate='none')"),
    (nn.Softplus, (3,), (3,), "Softplus(beta=1.0, threshold=20.0)"),
    (lambda: nn.Softmax(1), (2, 3), (2, 3), "Softmax(dim=1)"),
    (lambda: nn.LogSoftmax(-1), (2, 3), (2, 3), "LogSoftmax(dim=-1)"),
    (lambda: nn.Dropout(0.3), (2, 3), (2, 3), "Dropout(p=0.3, inplace=False)"),
    (lambda: nn.LayerNorm(4), (2, 4), (2, 4), "LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)"),
    (nn.Flatten, IMAGE, (1, 256), "Flatten(start_dim=1, end_dim=-1)"),
    (lambda: nn.Conv1d(2, 3, 3), (1, 2, 5), (1, 3, 3), "Conv1d(2, 3, kernel_size=(3,), stride=(1,))"),
    (
        lambda: nn.Conv2d(4, 2, 3, stride=2, padding=1, groups=2, bias=False, dilation=2, padding_mode="reflect"),
        IMAGE,
        (1, 2, 3, 3),
        "Conv2d(4, 2, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), dilation=(2, 2), groups=2, bias=False, "
        "padding_mode=reflect)",
    ),
    (
        lambda: nn.BatchNorm2d(4, affine=False),
        IMAGE,
        IMAGE,
        "BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=True)",
    ),
    (
        lambda: nn.MaxPool2d(2),
        IMAGE,
        (1, 4, 4, 4),
        "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
    ),
    (lambda: nn.AvgPool2d(2), IMAGE, (1, 4, 4, 4), "AvgPool2d(kernel_size=2, stride=2, padding=0)"),
    (lambda: nn.AdaptiveAvgPool2d((2, 1)), IMAGE, (1, 4, 2, 1), "AdaptiveAvgPool2d(output_size=(2, 1))"),
]


@pytest.mark.parametrize(("make", "given", "expected", "text"), LAYERS, ids=[text for *_, text in LAYERS])
def test_shapes_and_text(make: Callable[[], Any], given: tuple[int, ...], expected: tuple[int, ...], text: str) -> None:
    layer = make()
    assert repr(layer) == text
    x = torch.rand(list(given))
    assert layer.eval()(x.clone()).shape == expected
    compiled = torch.script(layer)
    # A kernel may come between the two calls, and its last digit may be another.
    torch.testing.assert_close(compiled(x.clone()), layer(x.clone()))


def test_batch_norm_measures_while_it_trains() -> None:
    norm = nn.BatchNorm1d(2, momentum=None)
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    assert norm(x).tolist()[1] == pytest.approx([1.0, 1.0], abs=1e-4)
    assert norm.num_batches_tracked.item() == 1
    assert norm.running_mean.tolist() == [2.0, 4.0]
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        norm(torch.ones(2))


def test_embedding_looks_rows_up() -> None:
    table = nn.Embedding(4, 2, padding_idx=-1)
    assert repr(table) == "Embedding(4, 2, padding_idx=3)"
    assert table(torch.tensor([3, 0])).tolist() == [[0.0, 0.0], table.weight[0].tolist()]


@pytest.mark.parametrize("make", [
    lambda: nn.Dropout(2.0), lambda: nn.Conv2d(3, 2, 1, groups=2),
    lambda: nn.Conv2d(1, 1, 1, padding_mode="odd"),
])  # fmt: skip
def test_impossible_sizes_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        make()


def test_the_padding_row_of_an_embedding_is_one_of_its_rows() -> None:
    with pytest.raises(AssertionError, match="within num_embeddings"):
        nn.Embedding(2, 2, padding_idx=2)
