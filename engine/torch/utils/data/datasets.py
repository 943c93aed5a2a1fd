"""Datasets: samples by index.  In: tensors, other datasets.  Out: `dataset[i]`, `len(dataset)`."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from engine.aten.dispatch.calls import call
from engine.aten.kernels.random import Generator
from engine.aten.values.tensor import Tensor

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """The base of datasets; subclasses define `__getitem__`, and most define `__len__`."""

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """The base of datasets that are only iterated over; subclasses define `__iter__`."""

    def __add__(self, other: Dataset[Any]) -> Any:
        return ChainDataset([self, other])

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors of the same length."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(each.shape[0] != tensors[0].shape[0] for each in tensors):
            raise AssertionError(f"Size mismatch between tensors: {[len(each) for each in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(each[index] for each in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class Subset(Dataset[Any]):
    """The samples of another dataset at the given indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[[self.indices[i] for i in index] if isinstance(index, list) else self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[Any]):
    """Datasets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("datasets should not be an empty iterable")
        self.cumulative_sizes = list(accumulate(len(each) for each in self.datasets))

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError("dataset index out of range")
        place = index % len(self)
        which = bisect_right(self.cumulative_sizes, place)
        return self.datasets[which][place - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class StackDataset(Dataset[Any]):
    """Datasets of the same length side by side: a tuple, or a dict, of their samples."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("give datasets either in order or by names")
        self.datasets: Any = args or kwargs
        sizes = [len(each) for each in args or kwargs.values()]
        if len({*sizes}) != 1:
            raise ValueError(f"Size mismatch between datasets: {sizes}")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: each[index] for name, each in self.datasets.items()}
        return tuple(each[index] for each in self.datasets)

    def __len__(self) -> int:
        return len(next(iter(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)))


class ChainDataset(IterableDataset[Any]):
    """Iterable datasets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        return (sample for each in self.datasets for sample in each)

    def __len__(self) -> int:
        return sum(len(each) for each in self.datasets)


def random_split(dataset: Any, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset]:
    """A random partition of the samples into parts of these lengths, or of these shares, which sum to one.

    Raises ValueError when the lengths do not sum to the number of samples.
    """
    counts = _counts(lengths, len(dataset))
    if sum(counts) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = call("randperm", (sum(counts),), {"generator": generator}).tolist()
    return [Subset(dataset, order[end - n : end]) for n, end in zip(counts, accumulate(counts), strict=True)]


def _counts(lengths: Sequence[float], size: int) -> list[int]:
    if not math.isclose(sum(lengths), 1) or sum(lengths) > 1:
        return [int(each) for each in lengths]
    counts = [math.floor(size * share) for share in lengths]
    for number in range(size - sum(counts)):
        counts[number % len(counts)] += 1
    return counts
