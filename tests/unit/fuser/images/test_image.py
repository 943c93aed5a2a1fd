"""Files of images: what was written comes back, and nothing else does; images in memory run."""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import struct
import tempfile
import time
from typing import Any

import numpy as np
import pytest

from engine.fuser.images import image, mapping
from engine.fuser.images.image import Image, from_bytes, to_bytes
from engine.fuser.images.objects import ImageError, MemoryRefused
from tests.unit.fuser.images.modules import PROGRAM, SECOND, TRIPLES, Surroundings, function, image_of, loaded


@pytest.fixture(scope="module")
def made() -> Image:
    return image_of(PROGRAM, SECOND)


@pytest.mark.parametrize("triple", TRIPLES)
def test_what_was_written_comes_back(triple: str) -> None:
    before = image_of(PROGRAM, triple=triple)
    after, offset = from_bytes(memoryview(to_bytes(before)))
    assert offset % before.page == 0
    assert (after.key, after.page, after.zeros, after.exports, after.imports) == (
        before.key, before.page, before.zeros, before.exports, before.imports
    )  # fmt: skip
    assert (bytes(after.code), bytes(after.data), after.size) == (before.code, before.data, before.size)
    assert after.relatives.tolist() == before.relatives.tolist()


def test_a_byte_that_is_changed_anywhere_is_noticed(made: Image) -> None:
    whole = to_bytes(made)
    rng = np.random.default_rng(0)
    header = _header(whole)
    for place in (*range(header), *rng.integers(header, len(whole), 300).tolist()):
        changed = bytearray(whole)
        changed[place] ^= int(rng.integers(1, 256))
        with pytest.raises(ImageError):
            from_bytes(memoryview(changed))


def _header(whole: bytes) -> int:
    """Where the header ends, names and places included."""
    numbers = struct.unpack_from("<10I", whole, 48)
    return 48 + 40 + sum(numbers[1:4]) + 4 * sum(numbers[4:7])


@pytest.mark.parametrize("size", [0, 1, 16, 47, 48, 87, 88, 200, 4096, -1])
def test_a_file_that_is_cut_off_is_noticed(made: Image, size: int) -> None:
    with pytest.raises(ImageError):
        from_bytes(memoryview(to_bytes(made)[:size]))
    with pytest.raises(ImageError):
        from_bytes(memoryview(to_bytes(made) + b"\0"))


def test_headers_with_a_digest_that_fits_name_nothing_outside_the_file(made: Image) -> None:
    """Whoever can write the user's files can run code anyhow; but mistakes do not become crashes."""
    whole = to_bytes(made)
    rng = np.random.default_rng(1)
    refused = 0
    for place in rng.integers(48, _header(whole), 2000):
        changed = bytearray(whole)
        changed[place] ^= int(rng.integers(1, 256))
        changed[16:48] = hashlib.sha256(changed[48:]).digest()
        try:
            found, _ = from_bytes(memoryview(changed))
        except ImageError:
            refused += 1
            continue
        end = len(found.code) + len(found.data)
        places = [place for _, place in found.imports] + found.relatives.tolist()
        assert all(len(found.code) <= place <= end - 8 for place in places)
        assert all(place <= end + found.zeros for place in found.exports.values())
    assert refused > 500


# ------------------------------------------------------------------ in memory


def test_code_is_the_files_own_pages(made: Image) -> None:
    found = loaded(made, Surroundings().symbols)
    assert found.is_shared
    with open("/proc/self/maps", encoding="ascii") as file:
        lines = [line.split() for line in file]
    mapped = {int(line[0].partition("-")[0], 16): line[1] for line in lines}
    assert mapped[found.base] == "r-xp"
    assert not [line for line in lines if "w" in line[1] and "x" in line[1] and _is_in(found, line[0])]


def _is_in(found: mapping.Mapped, spread: str) -> bool:
    start, end = (int(each, 16) for each in spread.split("-"))
    return start < found.base + found.image.size and end > found.base


def test_code_is_copied_where_files_cannot_be_mapped_to_be_run(made: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "_maps", lambda *given: False)
    around = Surroundings()
    found = loaded(made, around.symbols)
    assert not found.is_shared
    assert found.addresses is not None
    assert function(found.addresses["whole"])(5) == 3018


class _Refusing:
    """The C library of a system that makes no memory executable."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def mmap(self, address: Any, size: int, rights: int, *rest: Any) -> Any:
        return mapping._FAILED if rights & mapping._RUN else self._library.mmap(address, size, rights, *rest)

    def mprotect(self, address: int, size: int, rights: int) -> int:
        return -1 if rights & mapping._RUN else int(self._library.mprotect(address, size, rights))


def test_memory_that_cannot_be_run_is_said(made: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = _Refusing(mapping._library())
    monkeypatch.setattr(mapping, "_library", lambda: refusing)
    with pytest.raises(MemoryRefused, match="executable"):
        loaded(made, Surroundings().symbols)


def test_large_pages_are_said(made: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmap, "PAGESIZE", 1 << 20)
    with pytest.raises(MemoryRefused, match="pages"):
        loaded(made, Surroundings().symbols)


def test_what_is_missing_is_named(made: Image) -> None:
    with pytest.raises(ImageError, match="given, outside"):
        loaded(made, {})


def test_each_copy_has_data_of_its_own(made: Image) -> None:
    around = Surroundings()
    first, second = (loaded(made, around.symbols).addresses for _ in range(2))
    assert first is not None and second is not None
    ctypes.c_int64.from_address(first["data"]).value = 50
    assert [function(each["first"])(0) for each in (first, second)] == [50, 1]


def test_an_image_is_in_memory_within_a_millisecond() -> None:
    functions = "".join(f"define i64 @f{i}(i64 %x) {{\n  %r = add i64 %x, {i}\n  ret i64 %r\n}}\n" for i in range(1000))
    made = image_of(functions, PROGRAM)
    symbols, times = Surroundings().symbols, []
    with tempfile.TemporaryFile() as file:
        file.write(to_bytes(made) + b"")
        file.flush()
        for _ in range(20):
            start = time.perf_counter()
            found = mapping.mapped(file.fileno(), made.key.__eq__)
            found.settle(found.needed(symbols.get))
            times.append(time.perf_counter() - start)
    assert found.addresses is not None and function(found.addresses["f7"])(1) == 8
    assert min(times) < 1e-3
    assert image.MAGIC
