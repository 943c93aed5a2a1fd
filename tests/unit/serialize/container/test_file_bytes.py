"""The bytes of a file: read where it is small, mapped where it is large, never written to."""

from __future__ import annotations

import io
import os
import zlib
from pathlib import Path

import numpy as np
import pytest

import engine
from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.executor.interpreter.interpreter import run_function
from engine.lang.errors import ArchiveError, MissingFileError
from engine.lang.types import TENSOR, ClassType
from engine.serialize.archive import load_archive, save_archive
from engine.serialize.container.file_bytes import MAP_FROM, file_bytes
from engine.serialize.container.read import open_container
from engine.serialize.identify.identify import identify

COUNT = MAP_FROM // 2


def large_module() -> Object:
    """A module of two tensors that share a large storage, one of their own, and a method."""
    type = ClassType("__torch__.M", is_module=True)
    shared = np.arange(COUNT, dtype=np.float32)
    whole = Tensor(shared)
    values = {
        "whole": whole,
        "part": Tensor(shared[10:20], storage=whole.memory),
        "own": Tensor(np.ones(COUNT, np.float32)),
    }
    for name in values:
        type.add_attribute(name, TENSOR, "buffer")
    return Object(type, list(values.values()))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_archive(large_module(), tmp_path / "m.pt")
    return tmp_path / "m.pt"


def is_mapped(array: np.ndarray) -> bool:
    """Does the array lie in a map of a file?"""
    place = array.__array_interface__["data"][0]
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if start <= place < end:
            return line.endswith(".pt") or ".pt (deleted)" in line
    return False


needs_maps = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="the system does not tell what is mapped")


def test_a_small_file_is_read_and_a_large_one_mapped(tmp_path: Path) -> None:
    for size, mapped in ((10, False), (MAP_FROM, True)):
        (tmp_path / "f").write_bytes(os.urandom(size))
        found = file_bytes(tmp_path / "f")
        assert (found.mapped is not None) == mapped
        assert bytes(found.data) == (tmp_path / "f").read_bytes()
        assert file_bytes(tmp_path / "f", mapped=False).mapped is None


def test_what_is_written_into_a_map_stays_there(tmp_path: Path) -> None:
    data = os.urandom(MAP_FROM)
    (tmp_path / "f").write_bytes(data)
    found = file_bytes(tmp_path / "f")
    assert found.mapped is not None
    found.data[:4] = b"mine"
    assert (tmp_path / "f").read_bytes() == data
    assert found.mapped.checksum(0, 100) == zlib.crc32(data[:100])


def test_an_open_file_is_read_from_where_it_stands() -> None:
    file = io.BytesIO(b"before" + b"x" * 10)
    file.seek(6)
    assert bytes(file_bytes(file).data) == b"x" * 10
    with pytest.raises(ArchiveError, match="stands at its end"):
        file_bytes(file)


@needs_maps
def test_tensors_are_mapped_and_share_what_they_shared(path: Path) -> None:
    module = load_archive(path)
    whole, part = module.get("whole"), module.get("part")
    assert is_mapped(whole.array)
    assert whole.memory is part.memory
    whole.array[12] = -1.0
    assert part.array[2] == -1.0
    assert load_archive(path).get("whole").array[12] == 12.0
    assert not is_mapped(load_archive(path, mapped=False).get("whole").array)


@needs_maps
def test_a_module_is_saved_over_the_file_that_it_is_mapped_from(path: Path) -> None:
    module = load_archive(path)
    module.get("own").array[:] = 5.0
    save_archive(module, path)
    assert module.get("whole").array[-1] == COUNT - 1  # not read before the file was replaced
    again = load_archive(path)
    assert again.get("own").array[3] == 5.0
    before = path.read_bytes()
    save_archive(again, path)
    assert path.read_bytes() == before


def damaged(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(np.float32(4321.0).tobytes() + np.float32(4322.0).tobytes())] ^= 1
    path.write_bytes(data)


def test_a_map_is_compared_with_its_checksum_before_it_is_saved(path: Path) -> None:
    damaged(path)
    container = open_container(path)
    container.view("data/0")
    with pytest.raises(ArchiveError, match="checksum"):
        container.check()
    with pytest.raises(ArchiveError, match="checksum"):
        load_archive(path, mapped=False)


def program(path: Path) -> None:
    class M(engine.jit.ScriptModule):
        def __init__(self) -> None:
            super().__init__()
            self.w = engine.nn.Parameter(engine.from_numpy(np.arange(COUNT, dtype=np.float32)))

        @engine.jit.script_method
        def forward(self, x):
            return x + self.w[0]

    M().save(path)


def test_a_map_is_compared_with_its_checksum_before_its_program_runs(tmp_path: Path) -> None:
    program(tmp_path / "m.pt")
    module = engine.load(tmp_path / "m.pt")
    with engine.no_grad():
        module.w[0] = 2.0  # what is written into the map is no damage
        assert module(engine.ones(1)).tolist() == [3.0]
    damaged(tmp_path / "m.pt")
    module = engine.load(tmp_path / "m.pt")
    with pytest.raises(ArchiveError, match="checksum") as caught:
        module(engine.ones(1))
    assert caught.value.record == "data/0"
    with pytest.raises(ArchiveError, match="checksum"):
        module.save(tmp_path / "copy.pt")
    assert not (tmp_path / "copy.pt").exists()
    with pytest.raises(ArchiveError, match="checksum"):
        engine.load(tmp_path / "m.pt", mmap=False)


def test_the_bytes_of_a_real_file_object_are_mapped(path: Path) -> None:
    with path.open("rb") as file:
        module = load_archive(file, run=run_function)
        assert not file.closed
    assert module.get("part").array.tolist() == list(range(10, 20))


def test_a_device_is_refused(tmp_path: Path) -> None:
    if os.path.exists("/dev/zero"):
        with pytest.raises(ArchiveError, match="is a device, not an ordinary file"):
            file_bytes("/dev/zero")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.pt")
    for opened in (file_bytes, identify, engine.load):
        with pytest.raises(ArchiveError, match="is a pipe, not an ordinary file"):
            opened(tmp_path / "m.pt")


def test_a_link_to_nothing_says_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "m.pt").symlink_to("gone.pt")
    with pytest.raises(MissingFileError, match=r"is a link to 'gone\.pt', which does not exist"):
        file_bytes(tmp_path / "m.pt")
