"""Tar files of the first PyTorch are read; what lies in their headers or members is refused."""

import struct
import tarfile

import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.identify.identify import identify
from engine.serialize.inspect.weights import load_weights, open_weights
from tests.unit.serialize.inspect.tar_files import (
    BIG,
    STORAGES,
    TENSORS,
    described,
    dumped,
    headed,
    members,
    saved,
    tarred,
)

TOLD = {"weight": [[0, 1, 2], [3, 4, 5]], "layers.0": [5], "layers.1": [3, 4]}


def test_its_tensors_are_read(tmp_path):
    path = saved(tmp_path / "old.pt")
    assert identify(path).kind == "torch-tar" and identify(path).has_weights
    found = load_weights(path)
    assert {name: tensor.tolist() for name, tensor in found.items()} == TOLD


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


SIZE, KIND = slice(124, 136), slice(156, 157)
WHOLE = tarred(members())
WIDE = b"\x80" + len(STORAGES).to_bytes(11, "big")
ALIKE = {
    "times with fractions": tarred(members(), tarfile.PAX_FORMAT, mtime=1.5),
    "long comments": tarred(members(), tarfile.PAX_FORMAT, pax_headers={"comment": "x" * 200_000}),
    "sizes in records": tarred(
        members(), tarfile.PAX_FORMAT, pax_headers=lambda data: {"comment": "size=3", "size": str(len(data))}
    ),
    "sizes of 95 bits": headed(WHOLE, "storages", SIZE, WIDE),
    "names below a folder": tarred({f"./{name}": data for name, data in members().items()}),
    "others between": tarred({"a": b"x" * 700, **members(), "b": b"x" * 512}),
    "names without an end": tarred({"x" * 30_000: b"", **members()}, tarfile.GNU_FORMAT),
    "links beside": tarred({"a": b"", **members()}, type=lambda data: b"0" if data else b"2", linkname="/etc/passwd"),
}  # fmt: skip
HOSTILE = {
    "no storages but a link": headed(WHOLE, "storages", KIND, b"2"),
    "a file with holes": headed(WHOLE, "tensors", KIND, b"S"),
    "a size below nothing": headed(WHOLE, "storages", SIZE, b"-0000000001"),
    "a number below nothing": headed(WHOLE, "storages", SIZE, b"\xff" * 12),
    "a size of 95 bits": headed(WHOLE, "sys_info", SIZE, b"\x80" + b"\xff" * 11),
    "a size behind the end": headed(WHOLE, "storages", SIZE, b"77777777777"),
    "a size that is no number": headed(WHOLE, "pickle", SIZE, b"12x"),
    "a size of records that is no number": tarred(members(), tarfile.PAX_FORMAT, pax_headers={"size": "9" * 5000}),
    "members without an end": tarred({f"m{n}": b"" for n in range(3000)} | members()),
}


@pytest.mark.parametrize("name", ALIKE)
def test_headers_may_say_the_same_otherwise(name, tmp_path):
    path = tmp_path / "old.pt"
    path.write_bytes(ALIKE[name])
    assert identify(path).kind == "torch-tar"
    assert {key: tensor.tolist() for key, tensor in load_weights(path).items()} == TOLD


@pytest.mark.parametrize("name", HOSTILE)
def test_headers_that_lie_are_refused(name, tmp_path):
    path = tmp_path / "old.pt"
    path.write_bytes(HOSTILE[name])
    assert identify(path).kind in ("torch-tar", "tar", "truncated", "damaged")
    with pytest.raises(ArchiveError):
        load_weights(path)
