"""Kernels that take another way where nobody records: they give what the operators they stand for give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.torch.nn import functional

SOURCE = np.random.default_rng(0)


def random(*shape: int, kind: Any = np.float32) -> Any:
    return torch.from_numpy(SOURCE.standard_normal(shape).astype(kind))


@pytest.mark.parametrize("exponent", [2, 3, 0.5, -0.5, -1, -2, 3.0])
def test_powers(exponent: float) -> None:
    x = random(50).abs() + 0.1
    assert torch.allclose(x.pow(exponent), torch.from_numpy(x.numpy() ** np.float32(exponent)), rtol=1e-6)


@pytest.mark.parametrize("shapes", [((30, 5), (7, 5)), ((2, 1, 30, 5), (3, 40, 5)), ((30, 0), (40, 0))])
def test_distances_by_a_product(shapes: tuple[tuple[int, ...], ...]) -> None:
    x, y = (random(*shape, kind=np.float64) for shape in shapes)
    one_by_one = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    assert torch.allclose(torch.cdist(x, y), one_by_one)
    assert torch.cdist(x, y).shape == one_by_one.shape


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_sampling_grids(mode: str, padding: str) -> None:
    x, grid = random(2, 3, 7, 5), random(2, 4, 6, 2)
    plain = functional.grid_sample(x, grid, mode, padding, False)
    recorded = functional.grid_sample(x.requires_grad_(True), grid, mode, padding, False)
    assert torch.equal(plain, recorded.detach())


@pytest.mark.parametrize("shape", [(4, 8), (300, 512), (3, 5), (2, 6000)])
@pytest.mark.parametrize("is_affine", [True, False])
def test_gradients_of_normalized_rows(shape: tuple[int, ...], is_affine: bool) -> None:
    x = random(*shape, kind=np.float64).requires_grad_(True)
    affine = [random(shape[1], kind=np.float64).requires_grad_(True) for _ in range(2)] if is_affine else []
    direction = random(*shape, kind=np.float64)

    def gradients(create_graph: bool) -> Any:
        result = functional.layer_norm(x, [shape[1]], *affine)
        return torch.autograd.grad(result, [x, *affine], direction, create_graph=create_graph)

    for quick, made_of_others in zip(gradients(False), gradients(True), strict=True):
        assert torch.allclose(quick, made_of_others.detach(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_halves_in_pieces(kind: Any) -> None:
    x, y = random(200, 300).to(kind), random(200, 300).to(kind)
    assert torch.equal(x + y, (x.float() + y.float()).to(kind))
    assert torch.equal(x.mul(1.5), (x.float() * 1.5).to(kind))
    assert torch.equal(x.t() + y.t(), (x + y).t())


def test_long_products() -> None:
    x = random(300, 96).abs() + 0.5
    assert torch.allclose(x.prod(1), torch.from_numpy(x.numpy().astype(np.float64).prod(1).astype(np.float32)))


def test_bags_of_one_length_are_those_of_any() -> None:
    table, index = random(9, 4), torch.tensor([1, 2, 3, 4, 5, 6])
    even = functional.embedding_bag(index, table, torch.tensor([0, 3]), mode="sum")
    assert torch.allclose(even, torch.stack([table[1:4].sum(0), table[4:7].sum(0)]))
