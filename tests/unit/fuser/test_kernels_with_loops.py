"""Operators give the same whether loops run as machine code or kernels take their steps over arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.stepwise import language as written
from engine.aten.stepwise.language import COMPILER
from engine.fuser.backend import tiering

F = torch.nn.functional


def numbers(*shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).normal(0, 3, shape).round(2).astype(np.float32))


def places(below: int, *shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).integers(0, below, shape))


def missing(*shape: int) -> Any:
    x = numbers(*shape).numpy()
    x.reshape(-1)[::13] = np.nan
    return torch.from_numpy(x)


def with_gradients(function: Callable[..., Any], *tensors: Any) -> tuple[Any, ...]:
    """The result, and the gradients of its weighted sum."""
    leaves = [t.clone().requires_grad_(True) for t in tensors]
    result = function(*leaves)
    result.backward(torch.from_numpy(np.linspace(-1, 1, result.numel()).reshape(result.shape).astype(np.float32)))
    return (result.detach(), *(leaf.grad for leaf in leaves))


def _sampled(mode: str, padding: str, align: bool) -> Callable[[], Any]:
    def call(x: Any, grid: Any) -> Any:
        return F.grid_sample(x, grid / 3, mode=mode, padding_mode=padding, align_corners=align)

    return lambda: (*with_gradients(call, numbers(2, 3, 7, 6), numbers(2, 5, 4, 2)),
                    call(numbers(2, 3, 7, 6), numbers(2, 5, 4, 2)))  # fmt: skip


def _depthwise(kernel: tuple[int, int], **options: Any) -> Callable[[], Any]:
    return lambda: with_gradients(
        lambda x, w: F.conv2d(x, w, groups=4, **options), numbers(2, 4, 11, 12), numbers(4, 1, *kernel)
    )


def _along(name: str, axis: int, x: Any) -> Callable[[], Any]:
    return lambda: getattr(x, name)(axis)


def _bags(mode: str) -> Callable[[], Any]:
    return lambda: with_gradients(
        lambda w: F.embedding_bag(places(6, 9), w, torch.tensor([0, 4, 4]), mode=mode), numbers(6, 5)
    )


CALLS: dict[str, Callable[[], Any]] = {
    **{f"{name} of {d}, {axis}": _along(name, axis, numbers(6, 9, 5).to(d))
       for name in ("cumsum", "cumprod") for d in (torch.float32, torch.float64, torch.int64, torch.uint8)
       for axis in (1, 2)},
    **{f"{name}, {axis}": _along(name, axis, missing(6, 9, 5))
       for name in ("cummax", "cummin") for axis in (0, 1, 2)},
    "median": lambda: missing(6, 9, 5).median(1), "median of ties": lambda: places(4, 6, 9).median(1),
    "kthvalue": lambda: missing(6, 9, 5).kthvalue(3, 1), "kthvalue of ties": lambda: places(4, 6, 9).kthvalue(5, 1),
    "gather": lambda: numbers(4, 6, 5).gather(1, places(6, 4, 9, 5)),
    "scatter_add": lambda: numbers(4, 6, 5).scatter_add(1, places(6, 4, 9, 5), numbers(4, 9, 5, seed=1)),
    "scatter_add of halves": lambda: numbers(6, 5).half().scatter_add(0, places(6, 9, 5), numbers(9, 5).half()),
    "index_add": lambda: numbers(4, 6, 5).index_add(1, places(6, 9), numbers(4, 9, 5, seed=1), alpha=0.5),
    "index_put": lambda: numbers(6, 5).index_put((places(6, 9) - 6,), numbers(9, 5), accumulate=True),
    "embedding": lambda: with_gradients(lambda w: F.embedding(places(6, 4, 3), w), numbers(6, 5)),
    **{f"embedding_bag {mode}": _bags(mode) for mode in ("sum", "mean", "max")},
    "embedding_bag with weights": lambda: with_gradients(
        lambda w, s: F.embedding_bag(places(6, 3, 4), w, mode="sum", per_sample_weights=s),
        numbers(6, 5), numbers(3, 4)),
    "randperm": lambda: (torch.manual_seed(5), torch.randperm(100), torch.rand(3))[1:],
    **{f"grid_sample {mode} {padding} {align}": _sampled(mode, padding, align)
       for mode in ("bilinear", "nearest", "bicubic") for padding in ("zeros", "border") for align in (True, False)},
    "grid_sample of volumes": lambda: with_gradients(
        lambda x, grid: F.grid_sample(x, grid / 3, align_corners=False),
        numbers(2, 2, 4, 5, 6), numbers(2, 3, 3, 3, 3)),
    "depthwise": _depthwise((3, 3), padding=1), "depthwise, stride 2": _depthwise((3, 3), stride=2, padding=1),
    "depthwise, stride 3": _depthwise((2, 5), stride=3),
    "depthwise, dilated": _depthwise((3, 2), dilation=2, padding=2),
    "group_norm": lambda: with_gradients(
        lambda x, w, b: F.group_norm(x, 2, w, b), numbers(3, 4, 5), numbers(4), numbers(4, seed=1)),
    "group_norm without weights": lambda: with_gradients(lambda x: F.group_norm(x, 2), numbers(3, 4, 5, 2)),
    "layer_norm": lambda: with_gradients(
        lambda x, w, b: F.layer_norm(x, [9], w, b), numbers(6, 9), numbers(9), numbers(9, seed=1)),
    "whole numbers, mm": lambda: places(99, 5, 6) @ places(99, 6, 7),
    "whole numbers, bmm": lambda: places(99, 2, 5, 6).to(torch.int32) @ places(99, 2, 6, 7).to(torch.int32),
    "prod": lambda: (numbers(6, 9).prod(1), numbers(6, 9).prod(1, True)),
    "cdist": lambda: torch.cdist(numbers(2, 6, 5), numbers(2, 7, 5, seed=1)),
    "cdist of p 1": lambda: torch.cdist(numbers(6, 5), numbers(7, 5, seed=1), p=1.0),
    "to halves": lambda: (numbers(9, 9).half(), numbers(9, 9).bfloat16()),
    "to halves and back": lambda: (numbers(9, 9).half().float(), numbers(9, 9).bfloat16().float()),
    "linear of halves": lambda: F.linear(numbers(5, 6).half(), numbers(7, 6).half(), numbers(7).half()),
}  # fmt: skip


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Any]:
    """Calls a function while there is no machine code for loops; else it comes at once, for little work as well."""
    tiering.wait()
    monkeypatch.setattr(tiering, "mode", lambda: "eager")
    monkeypatch.setattr(written, "LEAST", 1)

    def call(function: Callable[[], Any]) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(COMPILER, "request", None)
            return function()

    return call


@pytest.mark.parametrize("name", CALLS)
def test_the_results_are_the_same(name: str, without: Any) -> None:
    found, wanted = CALLS[name](), without(CALLS[name])
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for a, b in pairs:
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.double().numpy(), b.double().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("call", [
    lambda: numbers(4, 6).gather(1, places(9, 4, 6) + 3), lambda: numbers(4, 6).gather(1, places(9, 4, 6) - 9),
    lambda: numbers(4, 6).scatter_add(1, places(9, 4, 6) + 3, numbers(4, 6)),
    lambda: torch.ops.aten._corner_sums(numbers(1, 2, 6), places(9, 1, 1, 5) + 3, numbers(1, 1, 5)),
    lambda: torch.ops.aten._corners_back(numbers(1, 2, 5), places(9, 1, 1, 5) + 3, numbers(1, 1, 5), 6),
    lambda: torch.ops.aten._corner_products(numbers(1, 2, 5), numbers(1, 2, 6), places(9, 1, 1, 5) + 3),
    lambda: torch.ops.aten._group_norm(numbers(2, 4, 3), 2, numbers(3), None, 1e-5),
    lambda: torch.ops.aten._group_norm(numbers(2, 4, 3), 3, None, None, 1e-5),
    lambda: torch.ops.aten._group_norm_backward(numbers(2, 4), numbers(2, 4, 3), None, 2, 1e-5),
])  # fmt: skip
def test_places_and_shapes_that_do_not_fit_are_refused(call: Callable[[], Any], without: Any) -> None:
    with pytest.raises((RuntimeError, IndexError)):
        call()


def test_memory_of_another_array_is_never_read_for_gradients_that_do_not_fit(without: Any) -> None:
    geometry = ([1, 1], [1, 1], [1, 1], False, [0, 0], 4, [True, True, False])
    with pytest.raises(RuntimeError):
        torch.ops.aten.convolution_backward(
            numbers(1, 4, 5, 5), numbers(2, 4, 5, 5), numbers(4, 1, 3, 3), None, *geometry
        )
