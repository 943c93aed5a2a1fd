"""Archives of more than 1,000 nodes, made for the tests: a residual network, a dense one, a transformer encoder.

In: a folder.  Out: archives with the author's file beside them, of the structure of ResNet-50, DenseNet-121 and an
encoder of sixteen layers, with few channels, so that a call takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import engine.torch as torch
from engine.torch import Tensor, nn


class Bottleneck(nn.Module):
    def __init__(self, inside: int, channels: int, stride: int) -> None:
        super().__init__()
        outside = 4 * channels
        self.conv1 = nn.Conv2d(inside, channels, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, outside, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU()
        self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride=stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        h = self.relu(self.bn1(self.conv1(x)))
        h = self.relu(self.bn2(self.conv2(h)))
        h = self.bn3(self.conv3(h))
        return self.relu(h + self.shortcut(x))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU())
        blocks, inside = [], 4
        for channels, count in ((2, 3), (4, 4), (4, 7), (8, 3)):
            for at in range(count):
                blocks.append(Bottleneck(inside, channels, 2 if at == 0 and inside > 8 else 1))
                inside = 4 * channels
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(inside, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = self.blocks(self.stem(x))
        pooled = h.mean([2, 3])
        return self.fc(pooled)


class DenseLayer(nn.Module):
    def __init__(self, inside: int, growth: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inside)
        self.conv1 = nn.Conv2d(inside, 2 * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(2 * growth)
        self.conv2 = nn.Conv2d(2 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h = self.conv1(torch.relu(self.norm1(x)))
        new = self.conv2(torch.relu(self.norm2(h)))
        return torch.cat([x, new], 1)


class Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        layers: list[nn.Module] = []
        inside = 4
        for count in (6, 12, 24, 16):
            for _ in range(count):
                layers.append(DenseLayer(inside, 2))
                inside += 2
            layers += [nn.Conv2d(inside, 4, 1), nn.AvgPool2d(1)]
            inside = 4
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(inside, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.features(self.stem(x)))
        return self.classifier(h.mean([2, 3]))


class Attention(nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, size)
        self.out = nn.Linear(size, size)

    def split(self, x: Tensor) -> Tensor:
        batch, length, size = x.shape
        return x.view(batch, length, self.heads, size // self.heads).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        weights = torch.softmax(q @ k.transpose(2, 3) / (float(q.size(3)) ** 0.5), -1)
        return self.out((weights @ v).transpose(1, 2).reshape(x.shape))


class EncoderLayer(nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(size, heads)
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)

    def forward(self, x: Tensor) -> Tensor:
        h = x + self.attention(self.norm1(x))
        return h + self.down(torch.relu(self.up(self.norm2(h))))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[EncoderLayer(16, 4) for _ in range(16)])
        self.norm = nn.LayerNorm(16)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.layers(x))


class Sample(NamedTuple):
    """A model to be archived; `input` is an expression that it can be called with, `part` the path of a module."""

    make: Callable[[], nn.Module]
    input: str
    part: str
    is_traced: bool = False


SAMPLES: Final[Mapping[str, Sample]] = {
    "residual": Sample(Residual, "torch.ones(1, 3, 8, 8)", "blocks.0", is_traced=True),
    "dense": Sample(Dense, "torch.ones(1, 3, 8, 8)", "features.0"),
    "encoder": Sample(Encoder, "torch.ones(1, 5, 16)", "layers.0"),
}


def save(name: str, folder: Path) -> Path:
    """Write the archive of that name; its path."""
    sample = SAMPLES[name]
    torch.manual_seed(0)
    model = sample.make().eval()
    example = eval(sample.input, {"torch": torch})
    compiled = torch.jit.trace(model, (example,)) if sample.is_traced else torch.jit.script(model)
    path = folder / f"{name}.pt"
    compiled.save(str(path))
    return path
