"""A small residual network: its last layer is replaced and trained alone, and the best weights are kept."""

from __future__ import annotations

import copy
from typing import Any

import engine.torch as torch

nn = torch.nn


class Block(nn.Module):
    def __init__(self, width: int, step: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width * step, 3, step, 1, bias=False), nn.BatchNorm2d(width * step), nn.ReLU(inplace=True),
            nn.Conv2d(width * step, width * step, 3, 1, 1, bias=False), nn.BatchNorm2d(width * step),
        )  # fmt: skip
        self.skip = nn.Identity() if step == 1 else nn.Conv2d(width, width * step, 1, step, bias=False)

    def forward(self, x: Any) -> Any:
        out = self.body(x)
        out += self.skip(x)
        return torch.relu(out)


class Network(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, 1, 1), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.ModuleList([Block(4), Block(4, 2)])
        self.pool, self.head = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(8, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(torch.flatten(self.pool(x), 1))


def main() -> dict[str, Any]:
    torch.manual_seed(3)
    network = Network(10)
    for parameter in network.parameters():
        parameter.requires_grad = False
    network.head = nn.Linear(network.head.in_features, 2)
    images, labels = torch.randn(8, 3, 12, 12), torch.randint(0, 2, (8,))
    optimizer = torch.optim.SGD((p for p in network.parameters() if p.requires_grad), lr=0.3, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
    losses, best, kept = [], float("inf"), copy.deepcopy(network.state_dict())
    for _ in range(6):
        for phase in ("train", "val"):
            network.train(phase == "train")
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                loss = nn.functional.cross_entropy(network(images), labels)
            if phase == "train":
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
            elif loss.item() < best:
                best, kept = loss.item(), copy.deepcopy(network.state_dict())
    return {
        "losses": losses, "rate": schedule.get_last_lr(), "keys": str(network.load_state_dict(kept)), "best": best,
        "seen": int(network.blocks[0].body[1].num_batches_tracked), "text": repr(network), "names": list(kept),
    }  # fmt: skip
