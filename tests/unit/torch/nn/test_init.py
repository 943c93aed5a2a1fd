"""First values of parameters."""

from __future__ import annotations

import pytest

import engine.torch as torch

init = torch.nn.init


def test_orthogonal_rows_or_columns() -> None:
    for shape in ((3, 5), (5, 3), (4, 2, 3)):
        flat = init.orthogonal_(torch.empty(*shape), gain=2).reshape(shape[0], -1)
        product = flat @ flat.t() if shape[0] <= flat.shape[1] else flat.t() @ flat
        torch.testing.assert_close(product, 4 * torch.eye(len(product)), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="2 or more"):
        init.orthogonal_(torch.empty(3))


def test_truncated_normal_numbers_stay_inside() -> None:
    values = init.trunc_normal_(torch.empty(1000), std=2.0, a=-1.0, b=3.0)
    assert -1.0 <= values.min().item() < -0.9
    assert 2.5 < values.max().item() <= 3.0


def test_dirac_kernels_hand_channels_on() -> None:
    x = torch.randn(1, 2, 5)
    weight = init.dirac_(torch.empty(4, 2, 3), groups=2)
    result = torch.nn.functional.conv1d(x, weight, padding=1)
    assert result.tolist() == torch.cat([x, x], 1).tolist()


def test_sparse_columns_have_zeros() -> None:
    assert (init.sparse_(torch.empty(10, 3), 0.25) == 0).sum(0).tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    "name",
    [
        "uniform_", "normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_",
        "trunc_normal_", "orthogonal_",
    ],
)  # fmt: skip
def test_numbers_come_from_a_generator_that_is_given(name: str) -> None:
    fill = getattr(init, name)
    one, other = (fill(torch.empty(3, 3), generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert one.tolist() == other.tolist() != fill(torch.empty(3, 3)).tolist()
