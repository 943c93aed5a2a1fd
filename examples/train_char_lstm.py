"""Train an LSTM to write a text letter by letter, save it, and let it write.

The file runs as it is on PyTorch too: let the import below read `import torch`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import engine.torch as torch

nn = torch.nn
GOAL = 0.2
"""The loss that training ends below."""
TEXT = "the quick brown fox jumps over the lazy dog and then the lazy dog sleeps while the quick brown fox runs. " * 20
LETTERS = sorted(set(TEXT))


class Writer(nn.Module):
    """Letters to vectors, an LSTM over them, and a score for each letter that may follow."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 16)
        self.lstm = nn.LSTM(16, width, batch_first=True)
        self.scores = nn.Linear(width, len(LETTERS))

    def forward(self, letters, state=None):
        output, state = self.lstm(self.embedding(letters), state)
        return self.scores(output), state


def train(steps: int = 120, batch: int = 16, length: int = 32) -> tuple[Writer, list[float]]:
    """The model, and the loss of every step."""
    torch.manual_seed(0)
    text = torch.tensor([LETTERS.index(letter) for letter in TEXT])
    model = Writer()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    losses = []
    for _ in range(steps):
        starts = torch.randint(0, len(text) - length - 1, (batch,)).tolist()
        letters = torch.stack([text[at : at + length + 1] for at in starts])
        scores, _ = model(letters[:, :-1])
        loss = loss_of(scores.reshape(-1, len(LETTERS)), letters[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return model, losses


@torch.no_grad()
def write(model: Writer, begin: str, count: int) -> str:
    """The text, continued by the most likely letters."""
    state, written = None, begin
    letters = torch.tensor([[LETTERS.index(letter) for letter in begin]])
    for _ in range(count):
        scores, state = model(letters, state)
        letters = scores[:, -1:].argmax(dim=-1)
        written += LETTERS[letters.item()]
    return written


def reloaded(model: Writer) -> Writer:
    """A new model with the weights of this one, by way of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "writer.pt")
        torch.save(model.state_dict(), path)
        copy = Writer()
        copy.load_state_dict(torch.load(path))
    return copy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=120)
    start = time.perf_counter()
    model, losses = train(parser.parse_args().steps)
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f} in {time.perf_counter() - start:.1f} s (goal {GOAL})")
    print(write(reloaded(model), "the quick", 60))


if __name__ == "__main__":
    main()
