"""Recurrent layers in programs: sequences of many lengths, signatures, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import engine.torch as torch
from engine.torch import nn
from engine.torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence

LENGTHS = torch.tensor([3, 5, 2])


class Reader(nn.Module):
    """Packs, runs, begins again where it ended, and pads."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.rnn = kind(2, 3, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x, lengths):  # type: ignore[no-untyped-def]
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        _, state = self.rnn(packed)
        output, state = self.rnn(packed, state)
        padded, counts = pad_packed_sequence(output, batch_first=True, padding_value=-1.0)
        whole, _ = self.rnn(x)
        return padded, counts, state, whole


def parts(value: Any) -> list[Any]:
    return [value] if isinstance(value, torch.Tensor) else [part for each in value for part in parts(each)]


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_packed_sequences_in_programs(kind: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    reader, x = Reader(kind), torch.randn(3, 5, 2)
    compiled = torch.jit.script(reader)
    compiled.save(tmp_path / "reader.pt")
    expected = parts(reader(x, LENGTHS))
    assert expected[1].tolist() == [3, 5, 2]
    assert float(expected[0][2, 3, 0]) == -1.0
    for program in (compiled, torch.jit.load(tmp_path / "reader.pt")):
        for mine, theirs in zip(parts(program(x, LENGTHS)), expected, strict=True):
            torch.testing.assert_close(mine, theirs)
    names = [node.attr("name") for node in compiled.graph.find_all_nodes("prim::CallMethod")]
    assert names == ["forward__1", "forward__1", "forward__0"]


def test_packed_sequences_as_arguments_and_results() -> None:
    def double(p: PackedSequence) -> PackedSequence:
        return PackedSequence(p.data * 2, p.batch_sizes, p.sorted_indices, p.unsorted_indices)

    packed = pack_sequence([torch.ones(3, 2), torch.ones(1, 2)])
    result = torch.jit.script(double)(packed)
    assert isinstance(result, tuple)
    assert result.data.tolist() == [[2.0, 2.0]] * 4
    assert result.batch_sizes.tolist() == [2, 1, 1]


def test_functions_by_their_full_names() -> None:
    def both(x, y):  # type: ignore[no-untyped-def]
        packed = torch.nn.utils.rnn.pack_sequence([x, y])
        return torch.nn.utils.rnn.pad_packed_sequence(packed, total_length=4)

    padded, lengths = torch.jit.script(both)(torch.ones(3, 2), torch.ones(2, 2))
    assert tuple(padded.shape) == (4, 2, 2)
    assert lengths.tolist() == [3, 2]


def test_lengths_in_a_list() -> None:
    x = torch.randn(3, 5, 2)
    one = pack_padded_sequence(x, [3, 5, 2], batch_first=True, enforce_sorted=False)
    other = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    assert one.data.tolist() == other.data.tolist()
    with pytest.raises(RuntimeError, match="sorted"):
        pack_padded_sequence(x, [3, 5, 2], batch_first=True)
    with pytest.raises(ValueError, match="total_length=2"):
        pad_packed_sequence(one, total_length=2)


X = torch.ones(4, 2, 2)
MISTAKES: list[tuple[Any, type[Exception], str]] = [
    (lambda: nn.GRU(3, 4)(X), RuntimeError, "input_size. Expected 3, got 2"),
    (lambda: nn.GRU(2, 4)(X[0, 0]), ValueError, "GRU: Expected input to be 2D or 3D, got 1D"),
    (lambda: nn.GRU(2, 4)(X, torch.ones(1, 3, 4)), RuntimeError, r"Expected hidden size \(1, 2, 4\), got \[1, 3, 4\]"),
    (lambda: nn.GRU(2, 4)(X, torch.ones(2, 4)), RuntimeError, "also be 3-D but got 2-D"),
    (lambda: nn.GRU(2, 4)(X[0], torch.ones(1, 2, 4)), RuntimeError, "also be 2-D but got 3-D"),
    (
        lambda: nn.LSTM(2, 4)(X, (torch.ones(1, 2, 4), torch.ones(1, 2, 5))),
        RuntimeError,
        r"Expected hidden\[1\] size \(1, 2, 4\), got \[1, 2, 5\]",
    ),
    (
        lambda: nn.LSTM(2, 4, proj_size=3)(X, (torch.ones(1, 2, 4), torch.ones(1, 2, 4))),
        RuntimeError,
        r"Expected hidden\[0\] size \(1, 2, 3\), got \[1, 2, 4\]",
    ),
    (lambda: nn.LSTM(2, 4, proj_size=4), ValueError, "proj_size has to be smaller than hidden_size"),
    (lambda: nn.LSTM(2, 4, proj_size=-1), ValueError, "proj_size should be a positive integer or zero"),
    (lambda: nn.GRU(2, 4, proj_size=3), ValueError, "proj_size argument is only supported for LSTM"),
]


@pytest.mark.parametrize(("run", "kind", "message"), MISTAKES, ids=[message for _, _, message in MISTAKES])
def test_mistakes(run: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        run()
