"""Shapes as Python programs see them.

In: the sizes of a tensor.  Out: a tuple that prints as PyTorch's does and knows its product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, SupportsIndex


class Size(tuple[int, ...]):
    """A shape; prints as PyTorch's does.  Raises TypeError when made of anything but integers."""

    if not TYPE_CHECKING:

        def __new__(cls, sizes: Any = ()) -> Any:
            made = tuple.__new__(cls, sizes)
            if not _INTS.issuperset(map(type, made)):
                made = tuple.__new__(cls, [_size_of(each, i) for i, each in enumerate(made)])
            return made

        def __add__(self, other: Any) -> Any:
            return Size(tuple.__add__(self, other))

        def __getitem__(self, index: Any) -> Any:
            part = tuple.__getitem__(self, index)
            return Size(part) if isinstance(index, slice) else part

    def numel(self) -> int:
        count = 1
        for size in self:
            count *= size
        return count

    def __repr__(self) -> str:
        numbers = [int(getattr(size, "array", size)) for size in self]  # those of traced programs are tensors
        return f"torch.Size({numbers})"


new_size: Final[Callable[..., Size]] = tuple.__new__
"""The same for a tuple of integers, with `Size` as the first choice."""
_INTS: Final = frozenset({int})


def _size_of(value: Any, place: int) -> int:
    if isinstance(value, int) or hasattr(value, "array"):  # traced programs have sizes that are tensors
        return value  # type: ignore[no-any-return]
    if isinstance(value, SupportsIndex):
        return value.__index__()
    raise TypeError(f"torch.Size() takes integers, but item {place} is a {type(value).__name__}")
