"""`DataLoader`: batches of samples.

In: a dataset.  Out: an iterable of batches, in which tensors have one dimension more.  Samples are read in this
process; `num_workers` is accepted without effect.  `pin_memory` has an effect only with a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from engine.aten.devices.pinned import pinned_alike
from engine.aten.dispatch.calls import call
from engine.aten.kernels.random import Generator
from engine.aten.values import libraries
from engine.aten.values.tensor import Tensor, from_numpy, tensor
from engine.lang.scalars import float64, int64
from engine.torch.utils.data.datasets import IterableDataset
from engine.torch.utils.data.samplers import BatchSampler, RandomSampler, SequentialSampler, batches


class DataLoader:
    """An iterable over the batches of a dataset.  Raises ValueError for contradictory options."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        generator: Generator | None = None,
        **_options: Any,
    ) -> None:
        if num_workers < 0:
            raise ValueError(f"num_workers must not be negative, but is {num_workers}")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
        self.dataset, self.drop_last, self.generator, self.num_workers = dataset, drop_last, generator, num_workers
        self.batch_size = None if batch_sampler is not None else batch_size
        self._in_order = isinstance(dataset, IterableDataset)
        self.sampler = sampler if sampler is not None or self._in_order else _sampler(dataset, shuffle, generator)
        self.batch_sampler = batch_sampler
        if batch_sampler is None and batch_size is not None and self.sampler is not None:
            self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        batched = self.batch_sampler is not None or self.batch_size is not None
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)
        self.pin_memory = pin_memory

    def __iter__(self) -> Iterator[Any]:
        found = self._batches()
        return map(pinned_alike, found) if self.pin_memory and libraries.is_there("cuda") else found

    def _batches(self) -> Iterator[Any]:
        if self.sampler is None:
            samples = iter(self.dataset)
            groups = samples if self.batch_size is None else batches(samples, self.batch_size, self.drop_last)
            return (self.collate_fn(group) for group in groups)
        _base_seed(self.generator)
        if self.batch_sampler is None:
            return (self.collate_fn(self.dataset[number]) for number in self.sampler)
        return (self.collate_fn([self.dataset[number] for number in batch]) for batch in self.batch_sampler)

    def __len__(self) -> int:
        if self._in_order:
            count = len(self.dataset)
            if self.batch_size is None:
                return count
            return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self.batch_sampler if self.batch_sampler is not None else self.sampler)  # type: ignore[arg-type]


def _sampler(dataset: Any, shuffle: bool | None, generator: Generator | None) -> Any:
    return RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)


def _base_seed(generator: Generator | None) -> None:
    """Draw the seed that PyTorch draws for its workers in each pass, so that later random numbers are the same."""
    call("empty", ([],), {"dtype": int64}).random_(generator=generator)


def default_collate(batch: Sequence[Any]) -> Any:
    """A batch of samples: tensors stacked, numbers as a tensor, tuples and dicts part by part.

    Raises TypeError for samples of another kind.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return call("stack", (list(batch), 0), {})
    if isinstance(first, np.ndarray):
        return from_numpy(np.stack(batch))
    if isinstance(first, float):
        return tensor(batch, dtype=float64)
    if isinstance(first, (int, np.generic)):
        return tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(default_collate, zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        return [default_collate(part) for part in zip(*batch, strict=True)]
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}"
    )


def default_convert(sample: Any) -> Any:
    """A sample with its arrays as tensors."""
    return from_numpy(sample) if isinstance(sample, np.ndarray) else sample


def get_worker_info() -> None:
    """None, since samples are read in this process."""
    return
