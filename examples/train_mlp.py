"""Train a small network to tell two spirals apart.

The file runs as it is on PyTorch too: let the import below read `import torch`.
"""

from __future__ import annotations

import argparse
import time

import engine.torch as torch

nn = torch.nn
GOAL = 0.05
"""The loss that training ends below."""


def spirals(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points of two spirals, and the number of each one's spiral."""
    label = torch.arange(count) % 2
    way = torch.rand(count)
    angle = way * 7.0 + label * torch.pi
    points = torch.stack([angle.cos(), angle.sin()], dim=1) * (way + 0.1).unsqueeze(1)
    return points + 0.01 * torch.randn(count, 2), label


def train(epochs: int = 60, count: int = 1024) -> list[float]:
    """The mean loss of every epoch."""
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(*spirals(count))
    batches = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    losses = []
    for _ in range(epochs):
        total = 0.0
        for points, labels in batches:
            optimizer.zero_grad()
            loss = loss_of(model(points), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(points)
        schedule.step()
        losses.append(total / count)
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=60)
    start = time.perf_counter()
    losses = train(parser.parse_args().epochs)
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f} in {time.perf_counter() - start:.1f} s (goal {GOAL})")


if __name__ == "__main__":
    main()
