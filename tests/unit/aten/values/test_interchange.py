"""Tensors and arrays of other libraries in the same memory."""

from __future__ import annotations

import ctypes
import gc
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.values import interchange
from engine.lang.errors import OperatorError, OperatorTypeError, OperatorValueError


def test_dlpack_goes_both_ways_without_a_copy() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    array = np.from_dlpack(x[:, 1:])
    array[0, 0] = 9
    assert x[0, 1] == 9
    back = torch.from_dlpack(array)
    back[1, 1] = 7
    assert array[1, 1] == x[1, 2] == 7
    assert x.__dlpack_device__() == (1, 0)
    assert torch.from_dlpack(x).data_ptr() == x.data_ptr()
    assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()


def test_dlpack_refuses_what_needs_gradients_or_exports_nothing() -> None:
    with pytest.raises(BufferError, match="detach"):
        np.from_dlpack(torch.ones(2, requires_grad=True))
    with pytest.raises(OperatorTypeError, match="__dlpack__"):
        torch.from_dlpack([1])


def test_memory_that_may_not_be_written_to_is_shared_with_a_warning() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="may not be written to"):
        x = torch.from_numpy(array)
    assert x.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(BufferError, match="may not be written to"):
        x.__dlpack__()


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ([1, 2], OperatorTypeError, "expected np.ndarray"),
        (np.arange(2, dtype=">i4"), OperatorValueError, "byte order"),
        (np.arange(2)[::-1], OperatorValueError, "negative"),
        (np.array(["a"]), OperatorTypeError, "<U1"),
    ],
)
def test_from_numpy_refuses(given: object, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        torch.from_numpy(given)


def test_buffers_are_shared() -> None:
    data = bytearray(b"\1\0\0\0\2\0\0\0")
    x = torch.frombuffer(data, dtype=torch.int32)
    data[0] = 5
    assert x.tolist() == [5, 2]
    assert torch.frombuffer(data, dtype=torch.int32, offset=4).tolist() == [2]
    assert torch.frombuffer(data, dtype=torch.int16, count=1).tolist() == [5]
    for options in ({"offset": 8}, {"count": 3}, {"offset": 1}):
        with pytest.raises(OperatorValueError, match="8 bytes"):
            torch.frombuffer(data, dtype=torch.int32, **options)


def test_arrays_and_tensors_meet_in_expressions() -> None:
    x, array = torch.ones(3), np.array([1.0, 2.0, 3.0])
    assert isinstance(array * x, torch.Tensor)
    assert (array * x).tolist() == (x * array).tolist() == [1.0, 2.0, 3.0]
    assert (array / torch.full((3,), 2.0)).tolist() == [0.5, 1.0, 1.5]
    assert (np.eye(2) @ torch.ones(2, 2, dtype=torch.float64)).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert (np.float32(2) * x).tolist() == [2.0] * 3
    assert isinstance(np.sin(x), torch.Tensor)
    assert np.array([torch.tensor(1.0), torch.tensor(2.0)]).tolist() == [1.0, 2.0]
    assert np.concatenate([x, x]).shape == (6,)


def test_asarray_copies_only_where_it_must() -> None:
    x = torch.arange(3)
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert not np.shares_memory(np.array(x), x.numpy())
    with pytest.raises(OperatorValueError, match="without a copy"):
        np.asarray(x, dtype=np.float32, copy=False)
    with pytest.raises(OperatorError, match="detach"):
        np.asarray(torch.ones(1, requires_grad=True))


def test_tensors_on_the_cpu_have_no_cuda_interface() -> None:
    assert not hasattr(torch.ones(1), "__cuda_array_interface__")
    with pytest.raises(OperatorError, match=r"cupy|NVIDIA GPU"):
        torch.ones(1).cuda()


def test_memory_goes_with_the_last_reference() -> None:
    gc.disable()
    try:
        tracemalloc.start()
        x = torch.zeros(1 << 20)
        view, owner = x[10:], weakref.ref(x.untyped_storage())
        held = tracemalloc.get_traced_memory()[0]
        del x
        assert tracemalloc.get_traced_memory()[0] > held - (1 << 20)
        del view
        assert owner() is None
        assert tracemalloc.get_traced_memory()[0] < held - (4 << 20) + (1 << 16)
    finally:
        tracemalloc.stop()
        gc.enable()


def test_an_array_of_a_tensor_has_a_shape_of_its_own() -> None:
    given = np.arange(6.0)
    tensor = torch.from_numpy(given)
    given.shape = (2, 3)
    shown = tensor.numpy()
    shown.shape = (3, 2)
    shown[0, 0] = 9.0
    assert tuple(tensor.shape) == (6,)
    assert tensor.tolist() == [9.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_force_gives_an_array_of_what_requires_grad() -> None:
    tensor = torch.tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        tensor.numpy()
    assert tensor.numpy(force=True).tolist() == [1.0]


def test_a_capsule_made_by_hand_is_read() -> None:
    tensor = torch.tensor([1.0, 2.0])
    with pytest.warns(UserWarning, match="may not be written to"):
        again = torch.from_dlpack(torch.to_dlpack(tensor))
    assert again.data_ptr() == tensor.data_ptr()


def test_reversed_turns_the_first_dimension() -> None:
    assert reversed(torch.tensor([[1, 2], [3, 4]])).tolist() == [[3, 4], [1, 2]]


def test_a_gradient_is_deleted_by_del() -> None:
    tensor = torch.tensor([1.0], requires_grad=True)
    tensor.sum().backward()
    del tensor.grad
    assert tensor.grad is None


@pytest.mark.parametrize(
    ("options", "name", "start"), [({}, b"dltensor", 8), ({"max_version": (1, 0)}, b"dltensor_versioned", 40)]
)
def test_capsules_tell_their_device(options: dict[str, Any], name: bytes, start: int) -> None:
    capsule = np.ones(3).__dlpack__(**options)
    exported = interchange._Exported(capsule)
    assert exported.__dlpack_device__() == (1, 0)
    (ctypes.c_int32 * 2).from_address(interchange._POINTER_OF(capsule, name) + start)[:] = [2, 1]
    assert exported.__dlpack_device__() == (2, 1)
