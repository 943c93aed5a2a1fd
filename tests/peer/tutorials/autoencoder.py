"""A variational autoencoder: pictures through a few random numbers and back, with a loader and distributions."""

from __future__ import annotations

from typing import Any

import engine.torch as torch

nn, F = torch.nn, torch.nn.functional


class Pictures(torch.utils.data.Dataset):
    def __init__(self, count: int) -> None:
        self.values = torch.rand(count, 1, 6, 6).round()

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, number: int) -> Any:
        return {"picture": self.values[number], "number": number}


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inward = nn.Sequential(nn.Flatten(), nn.Linear(36, 24), nn.SiLU())
        self.mean, self.spread = nn.Linear(24, 3), nn.Linear(24, 3)
        self.outward = nn.Sequential(nn.Linear(3, 24), nn.SiLU(), nn.Linear(24, 36), nn.Unflatten(1, (1, 6, 6)))

    def forward(self, x: Any) -> Any:
        inner = self.inward(x)
        code = torch.distributions.Normal(self.mean(inner), F.softplus(self.spread(inner)))
        return self.outward(code.rsample()), code


def main() -> dict[str, Any]:
    torch.manual_seed(11)
    model, pictures = Autoencoder(), Pictures(20)
    train, held = torch.utils.data.random_split(pictures, [16, 4])
    loader = torch.utils.data.DataLoader(train, batch_size=8, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    simple = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
    losses, order = [], []
    for _ in range(6):
        total = 0.0
        for batch in loader:
            order.append(batch["number"].tolist())
            shown, code = model(batch["picture"])
            likely = torch.distributions.Independent(torch.distributions.Bernoulli(logits=shown), 3)
            away = torch.distributions.kl_divergence(code, simple).sum(-1)
            loss = (away - likely.log_prob(batch["picture"])).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total)
    return {"losses": losses, "order": order[:2], "held": sorted(held.indices), "spread": code.stddev.mean().item()}
