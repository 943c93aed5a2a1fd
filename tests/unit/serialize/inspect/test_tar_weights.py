"""Tar files of the first PyTorch, written as it wrote them."""

import io
import pickle
import struct
import tarfile
from typing import ClassVar

import numpy as np
import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.identify.identify import identify
from engine.serialize.inspect.weights import load_weights, open_weights


class Name:
    """Is pickled as a global name."""

    def __init__(self, name):
        self.name = name

    def __reduce__(self):
        return self.name


class Pickler(pickle._Pickler):
    def persistent_id(self, value):
        return str(value.key) if isinstance(value, Key) else None

    def save_global(self, value, name=None):
        self.write(b"ctorch\n" + (name or value.name).encode() + b"\n")

    dispatch: ClassVar = {**pickle._Pickler.dispatch, Name: save_global}


class Key:
    def __init__(self, key):
        self.key = key


def dumped(value):
    file = io.BytesIO()
    Pickler(file, 2).dump(value)
    return file.getvalue()


ROWS = np.arange(6, dtype="<f4")
BIG = 1 << 40
STORAGES = b"".join((
    dumped(2), dumped((BIG, "cpu", Name("FloatStorage"))), struct.pack("<q", 6), ROWS.tobytes(),
    dumped((7, "cpu", Name("LongStorage"))), struct.pack("<q", 1), struct.pack("<q", 5), dumped([(8, BIG, 2, 3)]),
))  # fmt: skip


def described(key, root, size, stride, offset=0):
    numbers = struct.pack(f"<ii{2 * len(size) + 1}q", len(size), 0, *size, *stride, offset)
    return dumped((key, root, Name("FloatTensor"))) + numbers


TENSORS = dumped(3) + described(1, BIG, (2, 3), (3, 1)) + described(2, 7, (1,), (1,)) + described(3, 8, (2,), (1,), 1)
VALUE = {"weight": Key(1), "layers": [Key(2), Key(3)], "epoch": 3}


def saved(path, storages=STORAGES, tensors=TENSORS, value=None, cut=0):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        members = {"sys_info": dumped({}), "pickle": dumped(value or VALUE), "tensors": tensors, "storages": storages}
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    path.write_bytes(file.getvalue()[: len(file.getvalue()) - cut])
    return path


def test_its_tensors_are_read(tmp_path):
    path = saved(tmp_path / "old.pt")
    assert identify(path).kind == "torch-tar" and identify(path).has_weights
    found = load_weights(path)
    assert {name: tensor.tolist() for name, tensor in found.items()} == {
        "weight": [[0, 1, 2], [3, 4, 5]], "layers.0": [5], "layers.1": [3, 4],
    }  # fmt: skip


@pytest.mark.parametrize("changes", [
    {"storages": STORAGES[:-30]}, {"storages": STORAGES.replace(struct.pack("<q", 6), struct.pack("<q", 1 << 60))},
    {"storages": STORAGES.replace(struct.pack("<q", 6), struct.pack("<q", -1))}, {"storages": dumped(1 << 50)},
    {"storages": dumped(1) + dumped((1, 2, 3))}, {"storages": dumped(0) + dumped([(8, 9, 0, 1)])},
    {"storages": b"", "tensors": b""}, {"tensors": TENSORS[:-8]}, {"tensors": dumped(5) + dumped(("a", 1, 2))},
    {"tensors": dumped(1) + described(1, 9, (1,), (1,))}, {"tensors": dumped(1) + described(1, BIG, (7,), (1,))},
    {"tensors": dumped(1) + described(1, BIG, (2,), (-1,))}, {"tensors": dumped(1) + described(1, BIG, (2,), (1,), -1)},
    {"tensors": dumped(1) + dumped((1, BIG, 0)) + struct.pack("<ii", 1 << 30, 0)}, {"cut": 9000},
])  # fmt: skip
def test_damaged_ones_are_refused(changes, tmp_path):
    with pytest.raises(ArchiveError):
        open_weights(saved(tmp_path / "old.pt", **changes))
