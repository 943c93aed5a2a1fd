"""`PackedSequence`: sequences of many lengths in one tensor, as recurrent layers take them.

In: the tensors that `torch.nn.utils.rnn` makes of padded or separate sequences.  Out: all first elements, then all
second ones and so on, longest sequence first.  The class is here since layers use it, and `torch.nn.utils` uses layers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from engine.aten.values.tensor import Tensor
from engine.lang.scalars import float16, float32, float64, int64


class PackedSequence(NamedTuple):
    """Sequences of which `batch_sizes[i]` have an i-th element; the indices map the given order to this and back."""

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
        """A pack with data of another dtype or on another device."""
        return self._replace(data=self.data.to(*args, **kwargs))

    def cpu(self) -> PackedSequence:
        return self.to("cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """A pack on a GPU.  Raises OperatorError without one."""
        return self._replace(data=self.data.cuda(*args, **kwargs))

    def double(self) -> PackedSequence:
        return self.to(float64)

    def float(self) -> PackedSequence:
        return self.to(float32)

    def half(self) -> PackedSequence:
        return self.to(float16)

    def long(self) -> PackedSequence:
        return self.to(int64)


PackedSequence.__module__ = "engine.torch.nn.utils.rnn"  # where programs find it
