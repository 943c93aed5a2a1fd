"""`torch.nn.utils.rnn`: batches of sequences of many lengths.

In: sequences, padded or in a list.  Out: a `PackedSequence`, which holds all first elements, then all second ones and
so on, longest sequence first; and back.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from typing import Any

import engine as torch
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError
from engine.torch.namespace import functions
from engine.torch.namespace.missing_names import refuse_unknown_names
from engine.torch.nn.modules.packed_sequence import PackedSequence as PackedSequence


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | list[int], batch_first: builtins.bool = False, enforce_sorted: builtins.bool = True
) -> PackedSequence:
    """Pack `(L, N, *)`, or `(N, L, *)`.  Raises OperatorError for unsorted lengths, if `enforce_sorted`."""
    counts = lengths.to("cpu") if isinstance(lengths, Tensor) else torch.as_tensor(lengths, dtype=torch.int64)
    order: Tensor | None = None
    if not enforce_sorted:
        counts, order = torch.sort(counts, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = torch._pack_padded_sequence(input, counts, batch_first)
    return PackedSequence(data, batch_sizes, order, invert_permutation(order))


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: builtins.bool = False,
    padding_value: builtins.float = 0.0,
    total_length: builtins.int | None = None,
) -> tuple[Tensor, Tensor]:
    """The sequences padded to the longest (or to `total_length`), and their lengths.  Raises ValueError."""
    length = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                f"Expected total_length to be at least the length of the longest sequence, {length}, but got "
                f"total_length={total_length}"
            )
        length = total_length
    padded, lengths = torch._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, length
    )  # fmt: skip
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths[order.to("cpu")]


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: builtins.float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences of many lengths as one padded tensor.  Raises OperatorError unless given a nonempty sequence."""
    if not isinstance(sequences, Iterable):
        raise OperatorError(f"pad_sequence takes a list of tensors, not a {type(sequences).__name__}")
    pad: Any = functions.find("pad_sequence", "torch.nn.utils.rnn")
    padded: Tensor = pad(list(sequences), batch_first, padding_value, padding_side)
    return padded


def pack_sequence(sequences: list[Tensor], enforce_sorted: builtins.bool = True) -> PackedSequence:
    """Pack a list of sequences."""
    lengths = torch.as_tensor([each.size(0) for each in sequences])
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
    """The inverse of a permutation."""
    if permutation is None:
        return None
    inverse: Tensor = permutation.argsort()
    return inverse


refuse_unknown_names(__name__)
