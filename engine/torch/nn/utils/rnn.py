"""`torch.nn.utils.rnn`: batches of sequences of many lengths.

In: sequences, padded or in a list.  Out: a `PackedSequence`, which holds all first elements, then all second ones and
so on, longest sequence first; and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from engine.aten.calls import call
from engine.aten.tensor import Tensor, tensor
from engine.lang.scalars import int64
from engine.torch import functions


class PackedSequence(NamedTuple):
    """`batch_sizes[i]` sequences have an i-th element; the indices lead from the given order to this one and back."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack `(L, N, *)`, or `(N, L, *)`.  Raises OperatorError when lengths should be sorted and are not."""
    counts = lengths if isinstance(lengths, Tensor) else tensor(lengths, dtype=int64)
    order = None
    if not enforce_sorted:
        counts, order = counts.sort(descending=True)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = call("_pack_padded_sequence", (input, counts, batch_first), {})
    return PackedSequence(data, batch_sizes, order, invert_permutation(order))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The sequences padded to the longest (or to `total_length`), and their lengths.  Raises ValueError."""
    longest = sequence.batch_sizes.shape[0]
    if total_length is not None and total_length < longest:
        raise ValueError(f"Expected total_length to be at least the length of the longest sequence ({longest})")
    length = longest if total_length is None else total_length
    padded, lengths = call(
        "_pad_packed_sequence", (sequence.data, sequence.batch_sizes, batch_first, padding_value, length), {}
    )
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths[order]


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences of many lengths as one tensor."""
    pad: Any = functions.find("pad_sequence", "torch.nn.utils.rnn")
    padded: Tensor = pad(list(sequences), batch_first, padding_value, padding_side)
    return padded


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences."""
    lengths = tensor([each.shape[0] for each in sequences], dtype=int64)
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:count] for row, count in zip(rows, lengths.tolist(), strict=True)]


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a pack."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Where each element of the permutation went."""
    return None if permutation is None else permutation.argsort()
