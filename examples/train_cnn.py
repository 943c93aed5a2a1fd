"""Train a small convolutional network to name the shape in a noisy picture.

The file runs as it is on PyTorch too: let the import below read `import torch`.
"""

from __future__ import annotations

import argparse
import time

import engine.torch as torch

nn, F = torch.nn, torch.nn.functional
GOAL = 0.1
"""The loss that training ends below."""
SIZE = 16


class Net(nn.Module):
    """Two convolutions, each with a pool, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 8, kernel_size=3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 16, kernel_size=3, padding=1)
        self.drop = nn.Dropout(0.1)
        self.last = nn.Linear(16 * (SIZE // 4) ** 2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        x = F.max_pool2d(F.relu(self.second(x)), 2)
        return self.last(self.drop(x.flatten(1)))


def pictures(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A horizontal bar, a vertical bar, or a square in each picture, and which it is."""
    images = 0.3 * torch.randn(count, 1, SIZE, SIZE)
    labels = torch.randint(0, 3, (count,))
    corners = torch.randint(0, SIZE - 7, (count, 2))
    for image, label, (row, column) in zip(images, labels.tolist(), corners.tolist(), strict=True):
        height, width = [(2, 7), (7, 2), (5, 5)][label]
        image[0, row : row + height, column : column + width] += 1.0
    return images, labels


def train(steps: int = 120, batch: int = 32) -> list[float]:
    """The loss of every step."""
    torch.manual_seed(0)
    model = Net()
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    losses = []
    for _ in range(steps):
        images, labels = pictures(batch)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=120)
    start = time.perf_counter()
    losses = train(parser.parse_args().steps)
    mean = sum(losses[-10:]) / len(losses[-10:])
    print(f"loss {losses[0]:.4f} -> {mean:.4f} in {time.perf_counter() - start:.1f} s (goal {GOAL})")


if __name__ == "__main__":
    main()
