"""`torch.nn.utils.rnn`: batches of sequences of many lengths.

In: sequences, padded or in a list.  Out: a `PackedSequence`, which holds all first elements, then all second ones and
so on, longest sequence first; and back.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import engine.torch as torch
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError
from engine.lang.scalars import float16, float32, float64, int64
from engine.torch import functions
from engine.torch.lacking import refuse_unknown_names


class PackedSequence(NamedTuple):
    """`batch_sizes[i]` sequences have an i-th element; the indices lead from the given order to this one and back."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        return False

    def pin_memory(self) -> PackedSequence:
        return self

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with data of another dtype or on another device."""
        return self._replace(data=self.data.to(*args, **kwargs))

    def cpu(self) -> PackedSequence:
        return self.to("cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Raises OperatorError: there is no GPU."""
        return self._replace(data=self.data.cuda(*args, **kwargs))

    def double(self) -> PackedSequence:
        return self.to(float64)

    def float(self) -> PackedSequence:
        return self.to(float32)

    def half(self) -> PackedSequence:
        return self.to(float16)

    def long(self) -> PackedSequence:
        return self.to(int64)


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | list[int], batch_first: builtins.bool = False, enforce_sorted: builtins.bool = True
) -> PackedSequence:
    """Pack `(L, N, *)`, or `(N, L, *)`.  Raises OperatorError when lengths should be sorted and are not."""
    counts = lengths.to("cpu") if isinstance(lengths, Tensor) else torch.as_tensor(lengths, dtype=torch.int64)
    order: Tensor | None = None
    if not enforce_sorted:
        counts, order = torch.sort(counts, descending=True)
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
    """Sequences of many lengths as one tensor.  Raises OperatorError for what is no sequence, or an empty one."""
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
    """Where each element of the permutation went."""
    if permutation is None:
        return None
    inverse: Tensor = permutation.argsort()
    return inverse


refuse_unknown_names(__name__)
