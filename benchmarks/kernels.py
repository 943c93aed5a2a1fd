"""Kernels at sizes where the work matters: convolutions, pooling, normalization, activations, recurrent layers, ...

    python benchmarks/kernels.py [PART OF A NAME]

Out: for each the milliseconds of one call with the engine and, where it is installed, with PyTorch, and how many times
as long the engine takes; rows that end in "backward" are a forward and a backward pass.  With few cores that others use
as well, OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 makes the figures steadier.  Takes two minutes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
from beside import TORCH, Call, summary, table

import engine.torch as engine_torch
from engine.fuser.backend import tiering

Build = Callable[[Any, Callable[..., Any]], Call]
"""Of a library and a maker of random tensors."""


def _module(make: Callable[[Any], Any], *shape: int) -> Build:
    def build(torch: Any, randn: Callable[..., Any]) -> Call:
        module, x = make(torch.nn).eval().requires_grad_(False), randn(*shape)
        return lambda: module(x)

    return build


def _training(make: Callable[[Any], Any], *shape: int) -> Build:
    def build(torch: Any, randn: Callable[..., Any]) -> Call:
        module, x = make(torch.nn), randn(*shape).requires_grad_(True)

        def step() -> None:
            result = module(x)
            (result[0] if isinstance(result, tuple) else result).sum().backward()

        return step

    return build


def _call(call: Callable[..., Any], *shapes: tuple[int, ...]) -> Build:
    def build(torch: Any, randn: Callable[..., Any]) -> Call:
        tensors = [randn(*shape) for shape in shapes]
        return lambda: call(torch, *tensors)

    return build


def _backward(call: Callable[..., Any], *shapes: tuple[int, ...]) -> Build:
    def build(torch: Any, randn: Callable[..., Any]) -> Call:
        tensors = [randn(*shape).requires_grad_(True) for shape in shapes]
        return lambda: call(torch, *tensors).sum().backward()

    return build


def _indexed(call: Callable[..., Any], below: int, index: tuple[int, ...], *shapes: tuple[int, ...]) -> Build:
    """With whole numbers below a limit as the first tensor."""

    def build(torch: Any, randn: Callable[..., Any]) -> Call:
        places = torch.from_numpy(np.random.default_rng(0).integers(0, below, index))
        tensors = [randn(*shape) for shape in shapes]
        return lambda: call(torch, places, *tensors)

    return build


def _half(call: Callable[..., Any], kind: str, *shapes: tuple[int, ...]) -> Build:
    def build(torch: Any, randn: Callable[..., Any]) -> Call:
        tensors = [randn(*shape).to(getattr(torch, kind)) for shape in shapes]
        return lambda: call(torch, *tensors)

    return build


def _embedding(torch: Any, randn: Callable[..., Any]) -> Call:
    table, index = randn(10000, 256), torch.from_numpy(np.random.default_rng(0).integers(0, 10000, (64, 128)))
    return lambda: torch.nn.functional.embedding(index, table)


def _gather(torch: Any, randn: Callable[..., Any]) -> Call:
    x, index = randn(1000, 512), torch.from_numpy(np.random.default_rng(0).integers(0, 1000, (1000, 512)))
    return lambda: x.gather(0, index)


def _scatter_add(torch: Any, randn: Callable[..., Any]) -> Call:
    x, index = randn(1000, 512), torch.from_numpy(np.random.default_rng(0).integers(0, 1000, (1000, 512)))
    return lambda: x.scatter_add(0, index, x)


def _attention(torch: Any, randn: Callable[..., Any]) -> Call:
    q, k, v = (randn(8, 8, 128, 64) for _ in range(3))
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)


def _cross_entropy(torch: Any, randn: Callable[..., Any]) -> Call:
    x, target = randn(512, 1000), torch.from_numpy(np.random.default_rng(0).integers(0, 1000, 512))
    return lambda: torch.nn.functional.cross_entropy(x, target)


def _stft(torch: Any, randn: Callable[..., Any]) -> Call:
    x, window = randn(4, 16000), torch.hann_window(400)
    return lambda: torch.stft(x, 400, 160, 400, window, return_complex=True)


def _ctc(torch: Any, randn: Callable[..., Any]) -> Call:
    source = np.random.default_rng(0)
    x, labels = randn(50, 16, 20).log_softmax(2), torch.from_numpy(source.integers(1, 20, (16, 30)))
    lengths = torch.from_numpy(np.full(16, 50)), torch.from_numpy(source.integers(10, 30, 16))
    return lambda: torch.nn.functional.ctc_loss(x, labels, *lengths)


def _masked_attention(torch: Any, randn: Callable[..., Any]) -> Call:
    q, k, v = (randn(8, 8, 128, 64) for _ in range(3))
    mask = torch.ones(128, 128).tril() > 0
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _scatter_reduce(torch: Any, randn: Callable[..., Any]) -> Call:
    x, index = randn(1000, 512), torch.from_numpy(np.random.default_rng(0).integers(0, 1000, (1000, 512)))
    return lambda: x.scatter_reduce(0, index, x, "amax")


def _embedding_backward(torch: Any, randn: Callable[..., Any]) -> Call:
    table = randn(10000, 128).requires_grad_(True)
    index = torch.from_numpy(np.random.default_rng(0).integers(0, 10000, (32, 128)))
    return lambda: torch.nn.functional.embedding(index, table).sum().backward()


def _cross_entropy_backward(torch: Any, randn: Callable[..., Any]) -> Call:
    x = randn(512, 1000).requires_grad_(True)
    target = torch.from_numpy(np.random.default_rng(0).integers(0, 1000, 512))
    return lambda: torch.nn.functional.cross_entropy(x, target).backward()


def _masked(call: Callable[..., Any]) -> Build:
    """With a tensor and a mask of half of its elements."""

    def build(torch: Any, randn: Callable[..., Any]) -> Call:
        x = randn(512, 512)
        mask = x > 0
        return lambda: call(torch, x, mask)

    return build


def _step(make: Callable[..., Any]) -> Build:
    """A step of an optimizer of eight matrices."""

    def build(torch: Any, randn: Callable[..., Any]) -> Call:
        weights = [torch.nn.Parameter(randn(256, 256)) for _ in range(8)]
        for each in weights:
            each.grad = randn(256, 256)
        step: Call = make(torch.optim, weights).step
        return step

    return build


def _definite(call: Callable[..., Any]) -> Build:
    """With eight positive definite matrices."""

    def build(torch: Any, randn: Callable[..., Any]) -> Call:
        x = randn(8, 64, 64)
        matrices = x @ x.transpose(1, 2) + torch.eye(64)
        return lambda: call(torch, matrices)

    return build


ROWS: Final[dict[str, Build]] = {
    "conv2d 3x3, 64 at 56": _module(lambda nn: nn.Conv2d(64, 64, 3, padding=1), 1, 64, 56, 56),
    "conv2d 3x3, batch of 8": _module(lambda nn: nn.Conv2d(64, 64, 3, padding=1), 8, 64, 28, 28),
    "conv2d 1x1, 256 -> 64": _module(lambda nn: nn.Conv2d(256, 64, 1), 1, 256, 56, 56),
    "conv2d 3x3 stride 2": _module(lambda nn: nn.Conv2d(64, 128, 3, 2, 1), 1, 64, 56, 56),
    "conv2d 3x3 dilation 2": _module(lambda nn: nn.Conv2d(64, 64, 3, padding=2, dilation=2), 1, 64, 56, 56),
    "conv2d 3x3 depthwise": _module(lambda nn: nn.Conv2d(128, 128, 3, padding=1, groups=128), 1, 128, 56, 56),
    "conv2d 3x3 depthwise stride 2": _module(lambda nn: nn.Conv2d(128, 128, 3, 2, 1, groups=128), 1, 128, 56, 56),
    "conv2d 3x3, 32 groups": _module(lambda nn: nn.Conv2d(128, 128, 3, padding=1, groups=32), 1, 128, 28, 28),
    "conv1d 5": _module(lambda nn: nn.Conv1d(64, 128, 5, padding=2), 8, 64, 500),
    "conv3d 3x3x3": _module(lambda nn: nn.Conv3d(16, 32, 3, padding=1), 1, 16, 16, 28, 28),
    "conv_transpose2d 4x4 stride 2": _module(lambda nn: nn.ConvTranspose2d(64, 32, 4, 2, 1), 1, 64, 28, 28),
    "conv2d 3x3 backward": _training(lambda nn: nn.Conv2d(32, 64, 3, padding=1), 8, 32, 28, 28),
    "conv2d depthwise backward": _training(lambda nn: nn.Conv2d(64, 64, 3, padding=1, groups=64), 4, 64, 28, 28),
    "linear 512 -> 512": _module(lambda nn: nn.Linear(512, 512), 256, 512),
    "linear backward": _training(lambda nn: nn.Linear(512, 512), 256, 512),
    "batch_norm eval": _module(lambda nn: nn.BatchNorm2d(64), 4, 64, 56, 56),
    "batch_norm backward": _training(lambda nn: nn.BatchNorm2d(64), 4, 64, 28, 28),
    "layer_norm": _module(lambda nn: nn.LayerNorm(512), 32, 128, 512),
    "layer_norm backward": _training(lambda nn: nn.LayerNorm(512), 16, 64, 512),
    "group_norm": _module(lambda nn: nn.GroupNorm(8, 64), 4, 64, 56, 56),
    "max_pool2d 2x2": _module(lambda nn: nn.MaxPool2d(2), 4, 64, 56, 56),
    "max_pool2d 3x3 stride 2": _module(lambda nn: nn.MaxPool2d(3, 2, 1), 1, 64, 112, 112),
    "max_pool2d backward": _training(lambda nn: nn.MaxPool2d(2), 4, 64, 28, 28),
    "avg_pool2d 2x2": _module(lambda nn: nn.AvgPool2d(2), 4, 64, 56, 56),
    "adaptive_avg_pool2d to 1": _module(lambda nn: nn.AdaptiveAvgPool2d(1), 8, 512, 7, 7),
    "adaptive_avg_pool2d to 7": _module(lambda nn: nn.AdaptiveAvgPool2d(7), 1, 256, 28, 28),
    "upsample nearest": _module(lambda nn: nn.Upsample(scale_factor=2), 1, 64, 56, 56),
    "upsample bilinear": _module(lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"), 1, 64, 56, 56),
    "relu": _call(lambda t, x: x.relu(), (1024, 1024)),
    "sigmoid": _call(lambda t, x: x.sigmoid(), (1024, 1024)),
    "tanh": _call(lambda t, x: x.tanh(), (1024, 1024)),
    "gelu": _call(lambda t, x: t.nn.functional.gelu(x), (1024, 1024)),
    "silu": _call(lambda t, x: t.nn.functional.silu(x), (1024, 1024)),
    "exp": _call(lambda t, x: x.exp(), (1024, 1024)),
    "erf": _call(lambda t, x: x.erf(), (1024, 1024)),
    "add": _call(lambda t, x, y: x + y, (1024, 1024), (1024, 1024)),
    "add_": _call(lambda t, x, y: y.copy_(x).add_(x), (1024, 1024), (1024, 1024)),
    "sum": _call(lambda t, x: x.sum(), (1024, 1024)),
    "sum over dim 0": _call(lambda t, x: x.sum(0), (1024, 1024)),
    "max over dim 1": _call(lambda t, x: x.max(1), (1024, 1024)),
    "softmax": _call(lambda t, x: x.softmax(-1), (1024, 1024)),
    "log_softmax": _call(lambda t, x: x.log_softmax(-1), (1024, 1024)),
    "cross_entropy": _cross_entropy,
    "var": _call(lambda t, x: x.var(1), (1024, 1024)),
    "cumsum": _call(lambda t, x: x.cumsum(1), (1024, 1024)),
    "sort": _call(lambda t, x: x.sort(1), (256, 1024)),
    "topk": _call(lambda t, x: x.topk(10), (256, 1024)),
    "where": _call(lambda t, x, y: t.where(x > 0, x, y), (1024, 1024), (1024, 1024)),
    "cat": _call(lambda t, x, y: t.cat([x, y], 1), (1024, 512), (1024, 512)),
    "stack": _call(lambda t, x, y: t.stack([x, y]), (1024, 512), (1024, 512)),
    "transposed copy": _call(lambda t, x: x.t().contiguous(), (1024, 1024)),
    "embedding": _embedding,
    "gather": _gather,
    "scatter_add": _scatter_add,
    "bmm": _call(lambda t, x, y: t.bmm(x, y), (32, 128, 64), (32, 64, 128)),
    "scaled_dot_product_attention": _attention,
    "lstm": _module(lambda nn: nn.LSTM(128, 128), 50, 16, 128),
    "gru": _module(lambda nn: nn.GRU(128, 128), 50, 16, 128),
    "lstm backward": _training(lambda nn: nn.LSTM(64, 64), 25, 16, 64),
    "gru backward": _training(lambda nn: nn.GRU(64, 64), 25, 16, 64),
    "rnn backward": _training(lambda nn: nn.RNN(64, 64), 25, 16, 64),
    "group_norm backward": _training(lambda nn: nn.GroupNorm(8, 64), 4, 64, 28, 28),
    "conv_transpose2d backward": _training(lambda nn: nn.ConvTranspose2d(64, 32, 4, 2, 1), 2, 64, 16, 16),
    "grid_sample": _call(lambda t, x, g: t.nn.functional.grid_sample(x, g, align_corners=False),
                         (1, 16, 64, 64), (1, 64, 64, 2)),
    "grid_sample backward": _backward(lambda t, x, g: t.nn.functional.grid_sample(x, g, align_corners=False),
                                      (1, 16, 64, 64), (1, 64, 64, 2)),
    "reflection padding": _call(lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"), (4, 64, 56, 56)),
    "embedding_bag": _indexed(lambda t, i, w: t.nn.functional.embedding_bag(i, w), 10000, (64, 32), (10000, 128)),
    "index_add": _indexed(lambda t, i, x, y: x.index_add(0, i, y), 1000, (2000,), (1000, 128), (2000, 128)),
    "index_put accumulate": _indexed(lambda t, i, x, y: x.index_put((i,), y, accumulate=True),
                                     1000, (2000,), (1000, 128), (2000, 128)),
    "leaky_relu": _call(lambda t, x: t.nn.functional.leaky_relu(x, 0.1), (1024, 1024)),
    "hardswish": _call(lambda t, x: t.nn.functional.hardswish(x), (1024, 1024)),
    "elu": _call(lambda t, x: t.nn.functional.elu(x), (1024, 1024)),
    "prelu": _call(lambda t, x, w: t.nn.functional.prelu(x, w), (4, 64, 56, 56), (64,)),
    "smooth_l1_loss": _call(lambda t, x, y: t.nn.functional.smooth_l1_loss(x, y), (1024, 1024), (1024, 1024)),
    "pow 3": _call(lambda t, x: x.pow(3), (1024, 1024)),
    "lerp": _call(lambda t, x, y: x.lerp(y, 0.3), (1024, 1024), (1024, 1024)),
    "prod": _call(lambda t, x: x.prod(1), (1024, 1024)),
    "norm of rows": _call(lambda t, x: x.norm(dim=1), (1024, 1024)),
    "cummax": _call(lambda t, x: x.cummax(1), (256, 1024)),
    "median": _call(lambda t, x: x.median(1), (256, 1024)),
    "kthvalue": _call(lambda t, x: x.kthvalue(5, 1), (256, 1024)),
    "cdist": _call(lambda t, x, y: t.cdist(x, y), (500, 64), (600, 64)),
    "cdist of p 1": _call(lambda t, x, y: t.cdist(x, y, p=1.0), (200, 64), (200, 64)),
    "einsum of heads": _call(lambda t, x, y: t.einsum("bqhd,bkhd->bhqk", x, y), (8, 64, 8, 32), (8, 64, 8, 32)),
    "bilinear": _call(lambda t, x, y, w: t.nn.functional.bilinear(x, y, w), (256, 32), (256, 32), (16, 32, 32)),
    "randperm": _call(lambda t: t.randperm(100000)),
    "float16 add": _half(lambda t, x, y: x + y, "float16", (1024, 1024), (1024, 1024)),
    "float16 linear": _half(lambda t, x, w: t.nn.functional.linear(x, w), "float16", (256, 512), (512, 512)),
    "bfloat16 add": _half(lambda t, x, y: x + y, "bfloat16", (1024, 1024), (1024, 1024)),
    "bfloat16 gelu": _half(lambda t, x: t.nn.functional.gelu(x), "bfloat16", (512, 512)),
    "bfloat16 layer_norm": _half(lambda t, x: t.nn.functional.layer_norm(x, [512]), "bfloat16", (512, 512)),
    "whole numbers, matmul": _indexed(lambda t, i: i @ i, 10, (128, 128)),
    "stft": _stft,
    "rfft": _call(lambda t, x: t.fft.rfft(x), (64, 1024)),
    "pixel_shuffle": _call(lambda t, x: t.nn.functional.pixel_shuffle(x, 2), (4, 64, 56, 56)),
    "scatter_reduce": _scatter_reduce,
    "embedding backward": _embedding_backward,
    "cross_entropy backward": _cross_entropy_backward,
    "ctc_loss": _ctc,
    "attention with a mask": _masked_attention,
    "attention backward": _backward(
        lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        *[(4, 4, 128, 32)] * 3),
    "lstm in both directions": _module(lambda nn: nn.LSTM(64, 64, 2, bidirectional=True), 50, 16, 64),
    "gru in both directions": _module(lambda nn: nn.GRU(64, 64, 2, bidirectional=True), 50, 16, 64),
    "adaptive_max_pool2d": _module(lambda nn: nn.AdaptiveMaxPool2d(7), 1, 256, 28, 28),
    "instance_norm": _module(lambda nn: nn.InstanceNorm2d(64), 4, 64, 56, 56),
    "rms_norm": _call(lambda t, x: t.nn.functional.rms_norm(x, [512]), (512, 512)),
    "conv1d depthwise": _module(lambda nn: nn.Conv1d(128, 128, 31, padding=15, groups=128), 4, 128, 200),
    "conv2d 16x16 patches": _module(lambda nn: nn.Conv2d(3, 192, 16, 16), 1, 3, 224, 224),
    "unique": _indexed(lambda t, i: t.unique(i), 1000, (512, 512)),
    "nonzero": _masked(lambda t, x, mask: mask.nonzero()),
    "masked_select": _masked(lambda t, x, mask: x.masked_select(mask)),
    "masked_fill": _masked(lambda t, x, mask: x.masked_fill(mask, 0.0)),
    "index with places": _indexed(lambda t, i, x: x[i], 1000, (2000,), (1000, 128)),
    "einsum of an outer product": _call(lambda t, x, y: t.einsum("bi,bj->bij", x, y), (64, 64), (64, 64)),
    "baddbmm": _call(lambda t, b, x, y: t.baddbmm(b, x, y), *[(16, 64, 64)] * 3),
    "cdist backward": _backward(lambda t, x, y: t.cdist(x, y), (100, 64), (120, 64)),
    "linalg.inv": _definite(lambda t, x: t.linalg.inv(x)),
    "linalg.cholesky": _definite(lambda t, x: t.linalg.cholesky(x)),
    "linalg.svd": _call(lambda t, x: t.linalg.svd(x), (8, 64, 64)),
    "bicubic": _call(lambda t, x: t.nn.functional.interpolate(x, scale_factor=2, mode="bicubic"), (1, 16, 56, 56)),
    "bilinear resizing backward": _backward(
        lambda t, x: t.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"), (1, 32, 28, 28)),
    "constant padding": _call(lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1)), (4, 64, 56, 56)),
    "unfold": _call(lambda t, x: t.nn.functional.unfold(x, 3, padding=1), (2, 32, 28, 28)),
    "relu backward": _backward(lambda t, x: x.relu(), (512, 512)),
    "gelu backward": _backward(lambda t, x: t.nn.functional.gelu(x), (512, 512)),
    "silu backward": _backward(lambda t, x: t.nn.functional.silu(x), (512, 512)),
    "softmax backward": _backward(lambda t, x: x.softmax(-1) * x, (512, 512)),
    "binary cross entropy": _call(
        lambda t, x, y: t.nn.functional.binary_cross_entropy_with_logits(x, y), (512, 512), (512, 512)),
    "mish": _call(lambda t, x: t.nn.functional.mish(x), (512, 512)),
    "sign": _call(lambda t, x: x.sign(), (512, 512)),
    "nan_to_num": _call(lambda t, x: x.nan_to_num(), (512, 512)),
    "erfinv": _call(lambda t, x: (x * 0.1).erfinv(), (256, 256)),
    "lgamma": _call(lambda t, x: x.lgamma(), (256, 256)),
    "to float16": _call(lambda t, x: x.half(), (512, 512)),
    "dropout": _call(lambda t, x: t.nn.functional.dropout(x, 0.5), (512, 512)),
    "randn": _call(lambda t: t.randn(512, 512)),
    "multinomial": _call(lambda t, x: t.multinomial(x.softmax(-1), 5), (64, 1000)),
    "channels last": _call(lambda t, x: x.permute(0, 2, 3, 1).contiguous(), (4, 64, 56, 56)),
    "step of Adam": _step(lambda optim, weights: optim.Adam(weights)),
    "step of SGD": _step(lambda optim, weights: optim.SGD(weights, 0.1, momentum=0.9)),
    "transformer layer": _module(lambda nn: nn.TransformerEncoderLayer(128, 4, 256, batch_first=True), 8, 64, 128),
}  # fmt: skip


def _sides(build: Build) -> Mapping[str, Call | None]:
    def of(torch: Any) -> Call:
        source = np.random.default_rng(0)
        return build(torch, lambda *shape: torch.from_numpy(source.standard_normal(shape).astype(np.float32)))

    return {"engine": _warm(of(engine_torch)), "torch": None if TORCH is None else of(TORCH)}


def _warm(call: Call) -> Call:
    """The call, once there is machine code for what it does."""
    for _ in range(2):
        begin, count = time.perf_counter(), 0
        while (passed := time.perf_counter() - begin) < 0.1 or (count < 100 and passed < 0.5):
            call()
            count += 1
        tiering.wait()
    return call


def rows(wanted: str) -> Iterator[tuple[str, Mapping[str, Call | None]]]:
    return ((name, _sides(build)) for name, build in ROWS.items() if wanted in name)


def main(wanted: str) -> None:
    results = table("ms per call", rows(wanted), unit=1e-3, seconds=0.3)
    print(summary(results, "torch", 3.0))


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
