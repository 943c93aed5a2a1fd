"""A translator of number sequences: a packed GRU encodes, a GRU with attention decodes, sometimes by its own words."""

from __future__ import annotations

from typing import Any

import engine.torch as torch

nn, F = torch.nn, torch.nn.functional
WORDS, WIDTH, START = 12, 10, 1


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.gru = nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, sources: Any, lengths: Any) -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(sources), lengths, batch_first=True, enforce_sorted=False
        )
        states, last = self.gru(packed)
        return nn.utils.rnn.pad_packed_sequence(states, batch_first=True)[0], last


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.gru = nn.Embedding(WORDS, WIDTH), nn.GRUCell(2 * WIDTH, WIDTH)
        self.query, self.words = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WORDS)

    def forward(self, word: Any, hidden: Any, states: Any, mask: Any) -> Any:
        scores = torch.bmm(states, self.query(hidden).unsqueeze(2)).squeeze(2)
        weights = F.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
        context = torch.bmm(weights.unsqueeze(1), states).squeeze(1)
        hidden = self.gru(torch.cat((self.embedding(word), context), 1), hidden)
        return F.log_softmax(self.words(hidden), dim=1), hidden, weights


def main() -> dict[str, Any]:
    torch.manual_seed(5)
    encoder, decoder = Encoder(), Decoder()
    sentences = [torch.tensor(s) for s in ([3, 4, 5, 6], [7, 8], [9, 10, 11])]
    lengths = torch.tensor([len(s) for s in sentences])
    sources = nn.utils.rnn.pad_sequence(sentences, batch_first=True)
    targets = nn.utils.rnn.pad_sequence([s.flip(0) for s in sentences], batch_first=True)
    mask = torch.arange(sources.size(1))[None, :] < lengths[:, None]
    parameters = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.03)
    losses, weights = [], torch.empty(0)
    for epoch in range(10):
        states, last = encoder(sources, lengths)
        hidden, word, loss = last.squeeze(0), torch.full((3,), START), torch.zeros(())
        for step in range(targets.size(1)):
            scores, hidden, weights = decoder(word, hidden, states, mask)
            loss = loss + F.nll_loss(scores, targets[:, step], ignore_index=0)
            word = targets[:, step] if epoch % 2 else scores.argmax(1)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "norm": norm.item(), "weights": weights.tolist(), "masked": mask.tolist()}
