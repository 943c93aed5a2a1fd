"""Datasets, samplers, loaders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import engine.torch as torch

data = torch.utils.data
NUMBERS = data.TensorDataset(torch.arange(7), torch.arange(7) * 2)


class Stream(data.IterableDataset):  # type: ignore[name-defined,misc]
    def __iter__(self) -> Iterator[int]:
        return iter(range(5))


def lists(batches: Any) -> list[Any]:
    return [batch[0].tolist() for batch in batches]


def test_batches_in_order() -> None:
    loader = data.DataLoader(NUMBERS, batch_size=3)
    assert (lists(loader), len(loader)) == ([[0, 1, 2], [3, 4, 5], [6]], 3)
    loader = data.DataLoader(NUMBERS, batch_size=3, drop_last=True)
    assert (lists(loader), len(loader)) == ([[0, 1, 2], [3, 4, 5]], 2)
    assert [pair[1].item() for pair in data.DataLoader(NUMBERS, batch_size=None)] == [0, 2, 4, 6, 8, 10, 12]


def test_shuffled_batches_follow_the_seed() -> None:
    torch.manual_seed(3)
    loader = data.DataLoader(NUMBERS, batch_size=7, shuffle=True)
    first, second = lists(loader), lists(loader)
    torch.manual_seed(3)
    assert lists(loader) == first != second
    assert sorted(first[0]) == list(range(7))


def test_samples_of_every_kind_make_batches() -> None:
    samples = [{"a": 1.5, "b": (2, torch.ones(2)), "c": "x"}] * 2
    (batch,) = data.DataLoader(samples, batch_size=2)
    assert batch["a"].dtype == torch.float64
    assert (batch["b"][0].tolist(), tuple(batch["b"][1].shape), batch["c"]) == ([2, 2], (2, 2), ["x", "x"])
    with pytest.raises(TypeError):
        data.default_collate([object()])


def test_streams_come_as_they_are() -> None:
    assert [batch.tolist() for batch in data.DataLoader(Stream(), batch_size=2)] == [[0, 1], [2, 3], [4]]


def test_datasets_are_joined_and_split() -> None:
    both = data.Subset(NUMBERS, [6, 5]) + NUMBERS
    assert [both[i][0].item() for i in (0, 1, 2, -1)] == [6, 5, 0, 6]
    with pytest.raises(IndexError):
        both[9]
    parts = data.random_split(NUMBERS, [0.5, 0.5], generator=torch.Generator().manual_seed(1))
    assert [len(part) for part in parts] == [4, 3]
    assert sorted([*parts[0].indices, *parts[1].indices]) == list(range(7))
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(NUMBERS, [3, 3])


def test_samplers() -> None:
    assert list(data.SequentialSampler(NUMBERS)) == list(range(7))
    assert len(list(data.RandomSampler(NUMBERS, replacement=True, num_samples=20))) == 20
    assert sorted(data.SubsetRandomSampler([4, 5])) == [4, 5]
    assert set(data.WeightedRandomSampler([0.0, 1.0], 5)) == {1}
    batched = data.BatchSampler(range(5), 2, drop_last=False)
    assert (list(batched), len(batched)) == ([[0, 1], [2, 3], [4]], 3)


def test_options_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="shuffle"):
        data.DataLoader(NUMBERS, shuffle=True, sampler=[0])
    with pytest.raises(ValueError, match="batch_sampler"):
        data.DataLoader(NUMBERS, batch_size=2, batch_sampler=[[0]])
