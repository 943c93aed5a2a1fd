"""How results lie in memory: in C order whatever the layout of the operands, or as that of pointwise operators."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import engine.torch as torch
from engine.aten.dispatch import table

TURNED = torch.arange(24.0).reshape(4, 3, 2).permute(2, 1, 0)


def test_layouts_are_of_rows_with_a_body() -> None:
    rows = [each for each in table.entries() if each.layout]
    assert {each.layout.partition(":")[0] for each in rows} == {"contiguous", "channels last", "operands"}
    assert all(each.kernel or each.scalar or each.python or each.functional for each in rows)


def test_operands_that_a_layout_names_are_tensors_of_the_schema() -> None:
    for row in table.entries():
        named = [name.strip() for name in row.layout.partition(":")[2].split(",") if name.strip()]
        assert all(row.schema.index_of(name) is not None for name in named), row.qualified_name


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


def _layouts(*sizes: int) -> list[Any]:
    """Tensors that broadcast to these sizes: in order, turned, repeated along a dimension, with gaps, ones of it."""
    plain = torch.rand(*sizes)
    turned = torch.rand(*sizes[::-1]).permute(*range(len(sizes))[::-1])
    rows, columns = plain[:1], plain[..., :1]
    gaps = torch.rand(2 * sizes[-1], *sizes[-2::-1])[::2].permute(*range(len(sizes))[::-1])
    return [plain, turned, rows.expand(*sizes), columns.expand(*sizes), gaps, rows, columns]


UNARY = "angle erfinv i0 isreal lgamma digamma logit nan_to_num sinc exp relu".split()
BINARY = (
    "copysign fmax fmin heaviside hypot logaddexp logaddexp2 nextafter isclose clamp_min clamp_max clamp xlogy "
    "igamma igammac complex polar atan2 mul"
).split()
INTEGRAL = "gcd lcm bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift".split()


def _of_one(name: str, x: Any, y: Any) -> Any:
    return getattr(torch, name)(x)


POINTWISE: dict[str, Callable[[Any, Any], Any]] = {
    **{name: partial(_of_one, name) for name in UNARY},
    **{name: getattr(torch, name) for name in (*BINARY, *INTEGRAL)},
    "div, rounded": lambda x, y: torch.div(x, y + 1, rounding_mode="floor"),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "where": lambda x, y: torch.where(x > 0.5, x, y),
    "clamp, both limits": lambda x, y: torch.clamp(x, y, y),
    "zeta": torch.special.zeta,
    "xlog1py": torch.special.xlog1py,
    "bessel_j0": lambda x, y: torch.special.bessel_j0(x),
    "round": lambda x, y: torch.round(x, decimals=1),
    "flip": lambda x, y: x.flip(0),
    "sort": lambda x, y: x.sort(0).indices,
    "clone": lambda x, y: x.clone(),
    "like": lambda x, y: torch.zeros_like(x),
    "random": lambda x, y: torch.rand_like(x),
}  # fmt: skip
OF_ONE = {*UNARY, "bessel_j0", "round", "flip", "sort", "clone", "like", "random"}


@pytest.mark.parametrize("name", POINTWISE)
@pytest.mark.parametrize("sizes", [(3, 4), (2, 3, 4, 5)], ids=str)
def test_pointwise_operators_lay_their_results_alike(name: str, sizes: tuple[int, ...]) -> None:
    """As the sum of the same operands: a row has a kernel or an expression for reasons of its own."""
    for x in _layouts(*sizes):
        for y in _layouts(*sizes):
            if name in INTEGRAL:
                x, y = ((9 * each).long() for each in (x, y))
            wanted = x * 2 if name in OF_ONE else x + y if name != "where" else torch.addcmul((x > 0.5).float(), x, y)
            found = POINTWISE[name](x, y)
            assert found.shape == wanted.shape
            assert _steps(found) == _steps(wanted), (x.stride(), y.stride())


def _steps(x: Any) -> list[int]:
    return [0 if n == 1 else step for n, step in zip(x.shape, x.stride(), strict=True)]
