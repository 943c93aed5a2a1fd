"""The memory behind arrays."""

from __future__ import annotations

import numpy as np

from engine.aten.storage import owner_of, storage_of


def test_the_owner_is_at_the_end_of_the_chain() -> None:
    array = np.zeros((3, 4))
    view = np.lib.stride_tricks.as_strided(array[1:].T[::2], (2, 2), (16, 32))
    assert owner_of(view) is array


def test_offsets_count_elements() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    storage = storage_of(array[1:, 2:])
    assert storage.offset_of(array[1:, 2:]) == 6
    assert storage.flat().tolist() == list(range(12))


def test_memory_in_another_order_is_flat_as_it_lies() -> None:
    assert storage_of(np.asfortranarray([[1, 2], [3, 4]])).flat().tolist() == [1, 3, 2, 4]
