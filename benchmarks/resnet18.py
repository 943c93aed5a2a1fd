"""A forward pass shaped like ResNet-18's: 1 x 3 x 224 x 224, in eval mode, nothing recorded.

    python benchmarks/resnet18.py

Out: milliseconds of the whole pass and of each kind of layer at the sizes it has there, with the engine and, where it
is installed, with PyTorch on the same weights; then how many times as long the engine takes, and how far the results
are apart.  At most 3 times as long as PyTorch is what we want.  Takes about half a minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from beside import TORCH, Call, table

import engine.torch as engine_torch

STAGES: Final = ((1, 1), (2, 2), (4, 2), (8, 2))
"""Channels, in widths, and stride of each pair of blocks."""


def resnet18(torch: Any, width: int = 64, classes: int = 1000) -> Any:
    """The network, written for either library; `width` is the number of channels at the beginning."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, before: int, channels: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(channels)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(channels)
            self.downsample = None
            if stride != 1 or before != channels:
                self.downsample = nn.Sequential(
                    nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
                )

        def forward(self, x: Any) -> Any:
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            y += x if self.downsample is None else self.downsample(x)
            return self.relu(y)

    blocks: list[Any] = []
    before = width
    for widths, stride in STAGES:
        channels = widths * width
        blocks += [Block(before, channels, stride), Block(channels, channels, 1)]
        before = channels
    return nn.Sequential(
        nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
        *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes),
    ).eval()  # fmt: skip


def with_values(torch: Any, model: Any) -> Any:
    """The model with weights that do not depend on the library."""
    source = np.random.default_rng(0)
    values = {}
    for name, tensor in model.state_dict().items():
        shape = tuple(tensor.shape)
        if len(shape) < 1:
            continue
        if "running_var" in name or (len(shape) == 1 and "weight" in name):
            array = source.uniform(0.5, 1.5, shape)
        else:
            array = source.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))
        values[name] = torch.from_numpy(array.astype(np.float32))
    model.load_state_dict(values, strict=False)
    return model


def passes() -> dict[str, Call | None]:
    image = np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)

    def of(torch: Any) -> Call:
        model, x = with_values(torch, resnet18(torch)), torch.from_numpy(image)

        def forward() -> Any:
            with torch.no_grad():
                return model(x)

        return forward

    return {"engine": of(engine_torch), "torch": None if TORCH is None else of(TORCH)}


def _layer(shape: tuple[int, ...], make: Any) -> dict[str, Call | None]:
    values = np.random.default_rng(2).standard_normal(shape).astype(np.float32)

    def of(torch: Any) -> Call:
        layer, x = make(torch.nn).eval().requires_grad_(False), torch.from_numpy(values)
        return lambda: layer(x)

    return {"engine": of(engine_torch), "torch": None if TORCH is None else of(TORCH)}


def rows() -> Iterator[tuple[str, Mapping[str, Call | None]]]:
    yield "whole pass", passes()
    yield "conv 7x7 stride 2, 3 -> 64", _layer((1, 3, 224, 224), lambda nn: nn.Conv2d(3, 64, 7, 2, 3, bias=False))
    for c, size in ((64, 56), (128, 28), (256, 14), (512, 7)):
        yield (
            f"conv 3x3, {c} at {size}",
            _layer((1, c, size, size), lambda nn, c=c: nn.Conv2d(c, c, 3, 1, 1, bias=False)),
        )
    yield "conv 3x3 stride 2, 64 -> 128", _layer((1, 64, 56, 56), lambda nn: nn.Conv2d(64, 128, 3, 2, 1, bias=False))
    yield "conv 1x1 stride 2, 64 -> 128", _layer((1, 64, 56, 56), lambda nn: nn.Conv2d(64, 128, 1, 2, bias=False))
    yield "batch_norm, 64 at 112", _layer((1, 64, 112, 112), lambda nn: nn.BatchNorm2d(64))
    yield "batch_norm, 256 at 14", _layer((1, 256, 14, 14), lambda nn: nn.BatchNorm2d(256))
    yield "relu, 64 at 112", _layer((1, 64, 112, 112), lambda nn: nn.ReLU())
    yield "max_pool 3x3 stride 2", _layer((1, 64, 112, 112), lambda nn: nn.MaxPool2d(3, 2, 1))
    yield "adaptive_avg_pool to 1", _layer((1, 512, 7, 7), lambda nn: nn.AdaptiveAvgPool2d(1))


def main() -> None:
    table("ms per call", rows(), unit=1e-3, seconds=1.5)
    both = [call for call in passes().values() if call is not None]
    if len(both) == 2:
        ours, theirs = (np.asarray(call()) for call in both)
        print(f"the results differ by at most {np.abs(ours - theirs).max() / np.abs(theirs).max():.1e} of the greatest")


if __name__ == "__main__":
    main()
