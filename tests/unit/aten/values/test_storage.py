"""The memory behind arrays."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.values.storage import owner_of, storage_of
from engine.lang.errors import OperatorError


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


def test_programs_see_bytes_or_elements() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    untyped, typed = x.untyped_storage(), x[1].storage()
    assert (untyped.nbytes(), len(untyped), typed.size(), typed.nbytes()) == (24, 24, 6, 24)
    assert untyped.data_ptr() == typed.data_ptr() == x.data_ptr()
    assert untyped == x[1].untyped_storage()
    assert typed.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    typed[4] = 9.0
    assert x[1, 1] == 9
    assert x._version == 1
    assert repr(typed).endswith("[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 6]")
    assert torch.is_storage(untyped)
    with pytest.raises(OperatorError, match="cannot be resized to 0"):
        untyped.resize_(0)


def test_a_tensor_is_set_to_a_storage() -> None:
    x = torch.arange(6.0)
    whole = torch.empty(0).set_(x.untyped_storage())
    part = torch.empty(0).set_(x.storage(), 1, (2,), (2,))
    assert whole.tolist() == x.tolist()
    assert part.tolist() == [1.0, 3.0]
    part.fill_(7)
    assert x.tolist() == [0.0, 7.0, 2.0, 7.0, 4.0, 5.0]


def test_copies_and_pickles_keep_what_is_shared() -> None:
    x = torch.arange(4.0)
    for again in (copy.deepcopy([x, x[1:3]]), pickle.loads(pickle.dumps([x, x[1:3]]))):
        again[1].fill_(8)
        assert again[0].tolist() == [0.0, 8.0, 8.0, 3.0]
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    shallow = copy.copy(x)
    shallow[0] = 5
    assert x[0] == 5
    weight = torch.nn.Parameter(torch.ones(2))
    for again in (copy.deepcopy(weight), pickle.loads(pickle.dumps(weight))):
        assert isinstance(again, torch.nn.Parameter)
        assert again.requires_grad
    with pytest.raises(OperatorError, match="graph leaves"):
        pickle.dumps(weight * 2)
