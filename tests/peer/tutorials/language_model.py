"""A transformer that predicts the next word, trained on batches of a made-up text, with a warm-up of the rate."""

from __future__ import annotations

import math
from typing import Any

import engine.torch as torch

nn = torch.nn
WORDS, WIDTH, LENGTH = 20, 16, 6


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        places = torch.arange(LENGTH).unsqueeze(1)
        factors = torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000.0) / WIDTH))
        table = torch.zeros(LENGTH, 1, WIDTH)
        table[:, 0, 0::2] = torch.sin(places * factors)
        table[:, 0, 1::2] = torch.cos(places * factors)
        self.register_buffer("table", table)

    def forward(self, x: Any) -> Any:
        return x + self.table[: x.size(0)]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(WORDS, WIDTH), Positions()
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 32, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.words = nn.Linear(WIDTH, WORDS)
        self.words.weight.data.uniform_(-0.1, 0.1)
        self.words.bias.data.zero_()

    def forward(self, x: Any) -> Any:
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(0))
        return self.words(self.encoder(self.positions(self.embedding(x) * math.sqrt(WIDTH)), mask))


def main() -> dict[str, Any]:
    torch.manual_seed(7)
    model, criterion = Model(), nn.CrossEntropyLoss(label_smoothing=0.1)
    text = torch.randint(0, WORDS, (LENGTH * 4 + 1,)).repeat(2)
    columns = text[: LENGTH * 8].view(-1, 8).t().contiguous()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3))
    losses = []
    for step in range(8):
        batch = columns[:LENGTH] if step % 2 else columns[1 : LENGTH + 1]
        scores = model(batch[:-1])
        loss = criterion(scores.view(-1, WORDS), batch[1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        again = model(columns[:3]).softmax(-1).amax(-1)
    return {
        "losses": losses,
        "rates": schedule.get_last_lr(),
        "sure": again.tolist(),
        "names": list(model.state_dict()),
    }
