"""Results that lie in C order whatever the layout of the operands."""

from collections.abc import Callable
from typing import Any

import pytest

import engine.torch as torch
from engine.aten.dispatch import table

TURNED = torch.arange(24.0).reshape(4, 3, 2).permute(2, 1, 0)


def test_rows_with_a_layout_have_kernels() -> None:
    rows = [each for each in table.entries() if each.layout]
    assert {each.layout for each in rows} == {"contiguous", "channels last"}
    assert all(each.kernel is not None for each in rows)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(0), lambda x: x.mean(1), lambda x: x.std(1), lambda x: x.amax(0), lambda x: x.norm(dim=1),
        lambda x: x.cumsum(0), lambda x: x.cummax(1).values, lambda x: x.max(2).values, lambda x: x.logsumexp(2),
        lambda x: x.masked_fill(x > 2, 0.0), lambda x: x.roll(1, 0), lambda x: torch.cat([x, x]),
    ],
)  # fmt: skip
def test_results_can_be_viewed_as_a_row(call: Callable[[Any], Any]) -> None:
    found = call(TURNED)
    assert found.is_contiguous()
    assert torch.equal(found, call(TURNED.contiguous()))
    assert found.view(-1).shape == (found.numel(),)


def test_the_first_operand_that_is_turned_decides() -> None:
    assert (TURNED + TURNED.contiguous()).stride() == TURNED.stride()
    assert (TURNED.contiguous() + TURNED).is_contiguous()


def test_images_stay_channels_last() -> None:
    images = torch.arange(48.0).reshape(2, 2, 3, 4).to(memory_format=torch.channels_last)
    assert torch.cat([images, images], 1).is_contiguous(memory_format=torch.channels_last)
    assert torch.cat([images.transpose(2, 3), images.transpose(2, 3)]).is_contiguous()
