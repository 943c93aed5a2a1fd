"""Tensors of archives: shapes inside their storages, storages inside their records."""

import io

import numpy as np
import pytest

from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import TO_NUMPY
from engine.lang import scalars
from engine.lang.errors import ArchiveError, MissingDeviceError
from engine.lang.types import TENSOR, ListType, TupleType
from engine.serialize.container.read import open_container
from engine.serialize.container.write import ContainerWriter
from engine.serialize.pickling.entries import check_view
from engine.serialize.pickling.read import PickleRefusal
from engine.serialize.pickling.tensors import StorageType, TensorReader, storage_bytes
from engine.serialize.pickling.unpickle import unpickle
from engine.serialize.pickling.write import Pickler


def container(records):
    writer = ContainerWriter("m")
    for name, data in records.items():
        writer.add(name, data)
    return open_container(io.BytesIO(b"".join(writer.pieces())))


def written(value, type=TENSOR):
    """The pickle and the storage records of a value."""
    pickler = Pickler(str, str)
    data = pickler.dump(value, type)
    return data, {f"data/{i}": bytes(storage_bytes(storage)) for i, storage in enumerate(pickler.storages)}


def reread(value, type=TENSOR, **options):
    data, records = written(value, type)
    return unpickle(data, "data.pkl", TensorReader(container(records or {"x": b""}), "data", **options))


@pytest.mark.parametrize("dtype", scalars.DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3), (1, 1)])
def test_every_dtype_comes_back(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(TO_NUMPY[dtype])
    found = reread(Tensor(array))
    assert found.dtype is dtype
    assert found.array.shape == shape
    assert found.array.tobytes() == array.tobytes()
    assert found.array.flags.writeable


def test_views_share_their_memory():
    base = Tensor(np.arange(12, dtype=np.float32))
    view = Tensor(base.array[3:9].reshape(2, 3).T, storage=base.memory)
    data, records = written((base, view, base), TupleType((TENSOR,) * 3))
    assert list(records) == ["data/0"]
    first, second, third = unpickle(data, "data.pkl", TensorReader(container(records), "data"))
    assert first is third
    assert first.memory is second.memory
    assert second.array.strides == view.array.strides
    first.array[3] = 100
    assert second.array[0, 0] == 100


def test_a_tensor_keeps_requires_grad_and_odd_strides():
    array = np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (2, 3), (4, 0))
    found = reread(Tensor(array, True))
    assert found.requires_grad
    assert found.array.strides == (4, 0)


def test_big_endian_records_are_turned_round():
    data, records = written(
        [Tensor(np.array([1 + 2j], np.complex64)), Tensor(np.array([258], np.int16))], ListType(TENSOR)
    )
    swapped = {
        "data/0": b"".join(records["data/0"][i : i + 4][::-1] for i in (0, 4)),
        "data/1": records["data/1"][::-1],
    }
    first, second = unpickle(data, "data.pkl", TensorReader(container(swapped), "data", swapped=True))
    assert first.array.tolist() == [1 + 2j]
    assert second.array.tolist() == [258]


@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [
        (0, (5,), (1,)),
        (1, (4,), (1,)),
        (0, (2,), (4,)),
        (5, (0,), (1,)),
        (-1, (1,), (1,)),
        (0, (-1,), (1,)),
        (0, (2,), (-1,)),
        (0, (2, 2), (1,)),
        (0, [2], (1,)),
        (0, (2,), None),
        (0, (True,), (1,)),
        (0, (2.0,), (1,)),
        (None, (), ()),
        (0, (0, 1 << 62, 4), (1, 1, 1)),
        (0, (1,), (1 << 62,)),
        (0, (1 << 61,), (0,)),
        (0, (1,) * 40, (1,) * 40),
    ],
)
def test_views_outside_their_storage_are_refused(offset, size, stride):
    with pytest.raises(PickleRefusal):
        check_view(4, 4, offset, size, stride)


@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [(0, (4,), (1,)), (3, (), ()), (4, (0,), (1,)), (0, (2, 2), (2, 1)), (0, (100,), (0,)), (3, (1,), (7,))],
)
def test_views_inside_are_fine(offset, size, stride):
    check_view(4, 4, offset, size, stride)


def persistent(*pid):
    records = container({"data/0": bytes(16), "data/odd": bytes(7)})
    return TensorReader(records, "data").load(pid)


FLOATS = unpickle(b"\x80\x02ctorch\nFloatStorage\n.", "x")


def test_a_storage_is_read_once():
    reader = TensorReader(container({"data/0": bytes(16)}), "data")
    pid = ("storage", FLOATS, "0", "cpu", 4)
    assert reader.load(pid) is reader.load(pid)
    assert reader.load(pid).storage.owner.shape == (4,)


@pytest.mark.parametrize(
    ("pid", "reason"),
    [
        (("storage", FLOATS, "0", "cpu", 5), "said to hold"),
        (("storage", FLOATS, "0", "cpu", -1), "said to hold"),
        (("storage", FLOATS, "0", "cpu", 1 << 60), "said to hold"),
        (("storage", FLOATS, "1", "cpu", 1), "no record"),
        (("storage", FLOATS, "../0", "cpu", 1), "key"),
        (("storage", FLOATS, "a/b", "cpu", 1), "key"),
        (("storage", FLOATS, 0, "cpu", 1), "key"),
        (("module", FLOATS, "0", "cpu", 4), "no storage"),
        (("storage", "FloatStorage", "0", "cpu", 4), "no storage"),
        (("storage", FLOATS, "0", "cpu"), "no storage"),
        (("storage", FLOATS, "odd", "cpu", 2), "said to hold"),
    ],
)
def test_bad_persistent_ids_are_refused(pid, reason):
    with pytest.raises(PickleRefusal, match=reason):
        persistent(*pid)


def test_a_missing_device_is_told_with_the_way_out():
    with pytest.raises(MissingDeviceError) as caught:
        persistent("storage", FLOATS, "0", "cuda:0", 4)
    assert "map_location='cpu'" in caught.value.hints[0]


def test_one_storage_with_two_types_is_refused():
    reader = TensorReader(container({"data/0": bytes(16)}), "data")
    reader.load(("storage", FLOATS, "0", "cpu", 4))
    longs = unpickle(b"\x80\x02ctorch\nLongStorage\n.", "x")
    with pytest.raises(PickleRefusal, match="two ways"):
        reader.load(("storage", longs, "0", "cpu", 2))


def test_tensors_of_another_device_come_here_when_asked():
    reader = TensorReader(container({"data/0": bytes(16)}), "data", map_location=scalars.CPU)
    assert reader.load(("storage", FLOATS, "0", "cuda:0", 4)).storage.owner.size == 4


def test_an_integer_tensor_cannot_require_gradients():
    data, records = written(Tensor(np.zeros(2, np.int64)))
    data = data.replace(b"\x89", b"\x88")
    with pytest.raises(ArchiveError, match="cannot require gradients"):
        unpickle(data, "data.pkl", TensorReader(container(records), "data"))


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        ({"conj": True}, [1 - 2j, -3j]),
        ({"neg": True}, [-1 - 2j, -3j]),
        ({"conj": True, "neg": True}, [-1 + 2j, 3j]),
        ({"conj": False}, [1 + 2j, 3j]),
        (None, [1 + 2j, 3j]),
    ],
)
def test_a_tensor_may_be_the_conjugate_or_negative_of_its_memory(metadata, wanted):
    data = np.array([1 + 2j, 3j], np.complex64)
    reader = TensorReader(container({"data/0": data.tobytes()}), "data")
    loaded = reader.load(("storage", StorageType(scalars.complex64), "0", "cpu", 2))
    assert reader.rebuild(loaded, 0, (2,), (1,), False, {}, metadata).array.tolist() == wanted
