"""Constructors that are made of annotated settings."""

from __future__ import annotations

import inspect

import pytest

import engine.torch as torch

nn = torch.nn


def test_settings_make_the_constructor() -> None:
    assert repr(nn.Hardtanh(-2.0, inplace=True)) == "Hardtanh(min_val=-2.0, max_val=1.0, inplace=True)"
    assert nn.Threshold(value=20.0, threshold=0.1).value == 20.0
    with pytest.raises(TypeError, match=r"ELU\(alpha=1.0, inplace=False\): got an unexpected keyword argument 'beta'"):
        nn.ELU(beta=2.0)
    with pytest.raises(TypeError, match="missing a required argument: 'value'"):
        nn.Threshold(0.1)

    class Named(nn.LeakyReLU):
        """Annotations of a program's own class are no settings."""

        label: str

        def __init__(self, label: str) -> None:
            super().__init__(0.5)
            self.label = label

    assert Named("x")(torch.tensor([-2.0])).tolist() == [-1.0]


def test_the_constructor_says_what_it_takes() -> None:
    assert str(inspect.signature(nn.LeakyReLU)) == "(negative_slope=0.01, inplace=False)"
    assert list(inspect.signature(nn.MultiMarginLoss.__init__).parameters)[:3] == ["self", "p", "margin"]


def test_tensors_among_the_settings_are_buffers() -> None:
    loss = nn.BCEWithLogitsLoss(pos_weight=torch.ones(2))
    assert dict(loss.named_buffers()).keys() == {"pos_weight"}
    assert loss.weight is None
    graph = str(torch.jit.script(loss).graph)
    assert "%pos_weight : Tensor = prim::GetAttr" in graph
    assert "%weight : NoneType = prim::GetAttr" in graph


@pytest.mark.parametrize(
    ("flags", "reduction"),
    [({}, "mean"), ({"size_average": True}, "mean"), ({"size_average": False}, "sum"), ({"reduce": False}, "none"),
     ({"size_average": False, "reduce": False, "reduction": "mean"}, "none")],
)  # fmt: skip
def test_older_flags_say_what_a_loss_reduces_to(flags: dict[str, bool], reduction: str) -> None:
    loss = nn.NLLLoss(torch.ones(3), ignore_index=1, **flags)
    assert (loss.reduction, loss.ignore_index, loss.__constants__) == (reduction, 1, ("ignore_index", "reduction"))


def test_kernels_stand_side_by_side_without_a_stride() -> None:
    assert (nn.MaxPool2d(3).stride, nn.AvgPool1d(3).stride, nn.MaxPool2d(3, 1).stride) == (3, (3,), 1)
