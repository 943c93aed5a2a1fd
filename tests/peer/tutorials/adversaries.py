"""Two networks against each other: one makes small pictures from noise, the other tells them from real ones."""

from __future__ import annotations

from typing import Any

import engine.torch as torch

nn = torch.nn


def prepare(module: Any) -> None:
    name = type(module).__name__
    if "Conv" in name:
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif "BatchNorm" in name:
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)


def main() -> dict[str, Any]:
    torch.manual_seed(13)
    maker = nn.Sequential(
        nn.ConvTranspose2d(5, 8, 4, 1, 0, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
        nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh(),
    ).apply(prepare)  # fmt: skip
    judge = nn.Sequential(
        nn.Conv2d(1, 6, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(6, 1, 4, 1, 0), nn.Sigmoid()
    ).apply(prepare)
    criterion = nn.BCELoss()
    optimizers = [torch.optim.Adam(n.parameters(), lr=0.002, betas=(0.5, 0.999)) for n in (maker, judge)]
    real = torch.sign(torch.randn(6, 1, 8, 8))
    losses, made = [], torch.empty(0)
    for _ in range(5):
        optimizers[1].zero_grad()
        real_loss = criterion(judge(real).view(-1), torch.full((6,), 0.9))
        real_loss.backward()
        made = maker(torch.randn(6, 5, 1, 1))
        made_loss = criterion(judge(made.detach()).view(-1), torch.zeros(6))
        made_loss.backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        fooled = criterion(judge(made).view(-1), torch.ones(6))
        fooled.backward()
        optimizers[0].step()
        losses.append((real_loss + made_loss).item())
    return {"losses": losses, "fooled": fooled.item(), "made": made[0, 0, :2].tolist(), "text": repr(judge)}
