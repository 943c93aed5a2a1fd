"""Objects of four systems become images: those that run here run, of others every address is decoded."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from engine.fuser.images import elf, linking, macho
from engine.fuser.images.image import Image
from engine.fuser.images.objects import ImageError, Kind
from engine.fuser.images.relocations import PATCHES, SIZES
from tests.unit.fuser.images.modules import (
    MAC,
    PROGRAM,
    SECOND,
    TRIPLES,
    Surroundings,
    function,
    image_of,
    loaded,
    object_of,
    runs_here,
)

X86, ARM = [triple for triple in TRIPLES if "x86" in triple], [triple for triple in TRIPLES if "x86" not in triple]
HERE = [triple for triple in TRIPLES if runs_here(triple)]


@pytest.mark.parametrize("triple", HERE)
def test_code_of_this_processor_runs_whatever_the_format(triple: str) -> None:
    around = Surroundings()
    found = loaded(image_of(PROGRAM, SECOND, triple=triple), around.symbols).addresses
    assert found is not None
    assert function(found["whole"])(5) == 3 * (1000 + 6)
    assert function(found["of_first"])(7) == 21
    assert [function(found["chosen"])(x) for x in range(6)] == [8, 3, 23, 3 * 1002, 99, -1]
    numbers = np.arange(8, dtype=np.float32)
    function(found["raised"], None, ctypes.c_void_p)(numbers.ctypes.data)
    assert numbers.tolist() == [1, 3, 5, 7, 9, 11, 13, 15]
    table = function(found["where"], ctypes.c_void_p, ctypes.c_void_p)(None)
    assert [*(ctypes.c_uint64 * 3).from_address(table)] == [found[name] for name in ("whole", "tripled", "data")]


def reached(image: Image, start: int) -> Iterator[int]:
    """The places that code of AArch64 names one by one, until it returns or goes elsewhere."""
    pages: dict[int, int] = {}
    for at in range(start, len(image.code), 4):
        (word,) = struct.unpack_from("<I", image.code, at)
        target, base = word & 31, word >> 5 & 31
        if word & 0x9F000000 == 0x90000000:
            pages[target] = (at & ~4095) + 4096 * _signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21)
        elif word & 0xFFC00000 == 0x91000000 and base in pages:
            pages[target] = pages.pop(base) + (word >> 10 & 4095)
            yield pages[target]
        elif word & 0x3B000000 == 0x39000000 and base in pages:
            wide = word >> 26 & 1 and word >> 23 & 1
            yield pages[base] + ((word >> 10 & 4095) << (4 if wide else word >> 30))
        elif word & 0x7C000000 == 0x14000000:
            yield at + 4 * _signed(word & 0x3FFFFFF, 26)
        if word in (0xD65F03C0, 0xD61F0200) or word & 0xFC000000 == 0x14000000:
            return


def _signed(number: int, bits: int) -> int:
    return (number ^ 1 << bits - 1) - (1 << bits - 1)


@pytest.mark.parametrize("triple", ARM)
def test_addresses_in_code_of_aarch64_are_those_of_what_is_meant(triple: str) -> None:
    image = image_of(PROGRAM, SECOND, triple=triple)
    words = dict(image.imports)
    table = np.frombuffer(image.data, "<u8")
    names = {place: name for name, place in image.exports.items()}

    def means(place: int) -> str:
        """The symbol at a place, or whose address the word there has."""
        known = next((name for name, at in words.items() if at == place), names.get(place))
        if known is None and place in image.relatives:
            known = names.get(int(table[(place - len(image.code)) // 8]))
        if known is None and place < len(image.code):  # a jump through the table
            return "/".join(f"jump {means(at)}" for at in reached(image, place))
        return known or ("room" if place >= len(image.code) + len(image.data) else "constant")

    told = {name: [means(at) for at in reached(image, image.exports[name])] for name in ("whole", "where", "of_first")}
    assert {"given", "jump outside", "room", "tripled"} <= {*told["whole"]} | {"room"}
    assert "table" in told["where"]
    assert told["of_first"] == ["tripled"]
    assert "data" in [means(at) for at in reached(image, image.exports["first"])]
    raised = [*reached(image, image.exports["raised"])]
    constants = struct.pack("<8f", *range(1, 9))
    assert any(image.code[at:].startswith(constants) for at in raised)


@pytest.mark.parametrize("triple", TRIPLES)
def test_words_with_addresses_point_where_they_should(triple: str) -> None:
    image = image_of(PROGRAM, triple=triple)
    table = np.frombuffer(image.data, "<u8")[(image.exports["table"] - len(image.code)) // 8 :][:3]
    assert table.tolist() == [image.exports[name] for name in ("whole", "tripled", "data")]
    assert {*range(image.exports["table"], image.exports["table"] + 24, 8)} <= {*image.relatives}
    assert {name for name, _ in image.imports} == {"given", "outside"}
    assert image.zeros >= 800


# ------------------------------------------------------------------ single relocations

ENCODED: list[tuple[Kind, int, int, int, int]] = [
    ("branch26", 0x94000000, 0x1000, 0x1004, 0x94000001), ("branch26", 0x14000000, 0x1000, 0xFFC, 0x17FFFFFF),
    ("page21", 0x90000000, 0x1FFC, 0x2000, 0xB0000000), ("page21", 0x90000001, 0x5000, 0x1FFF, 0x90FFFFE1),
    ("lo12", 0x91000000, 0, 0x5123, 0x91048C00), ("lo12", 0xF9400000, 0, 0x5008, 0xF9400400),
    ("lo12", 0x39400000, 0, 0x5005, 0x39401400), ("lo12", 0x79400000, 0, 0x5006, 0x79400C00),
    ("lo12", 0xB9000000, 0, 0x5FFC, 0xB90FFC00), ("lo12", 0x3DC00000, 0, 0x5010, 0x3DC00400),
    ("lo12", 0xFD400000, 0, 0x5010, 0xFD400800), ("got_lo12", 0xF9400210, 0, 0x10008, 0xF9400610),
    ("rel32", 0, 0x100, 0x90, 0xFFFFFF90), ("got32", 0, 0x100, 0x204, 0x104),
]  # fmt: skip
"""Kind, word, place, target, and the word that the manuals say."""


@pytest.mark.parametrize(("kind", "word", "place", "target", "wanted"), ENCODED)
def test_words_are_changed_as_the_manuals_say(kind: Kind, word: int, place: int, target: int, wanted: int) -> None:
    image = bytearray(place + 8)
    struct.pack_into("<I", image, place, word)
    PATCHES[kind](image, place, target, place)
    assert struct.unpack_from("<I", image, place) == (wanted,)
    assert SIZES.get(kind, 4) == 4


REFUSED: list[tuple[Kind, int, int, int]] = [
    ("branch26", 0x94000000, 0, 1 << 27), ("branch26", 0x94000000, 0, -(1 << 27) - 4), ("branch26", 0x94000000, 0, 6),
    ("branch26", 0x91000000, 0, 4), ("page21", 0x90000000, 0, 1 << 32), ("page21", 0x94000000, 0, 0),
    ("lo12", 0xF9400000, 0, 4), ("lo12", 0x3DC00000, 0, 8), ("lo12", 0x94000000, 0, 0), ("rel32", 0, 0, 1 << 31),
    ("branch32", 0, 8, -(1 << 31)), ("got32", 0, 0, 1 << 31),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "word", "place", "target"), REFUSED)
def test_what_does_not_fit_is_refused(kind: Kind, word: int, place: int, target: int) -> None:
    image = bytearray(struct.pack("<IIII", word, word, word, word))
    with pytest.raises(ImageError):
        PATCHES[kind](image, place, target, place)


# ------------------------------------------------------------------ objects that make no image


@pytest.mark.parametrize("triple", TRIPLES)
def test_a_relocation_that_is_not_known_is_refused(triple: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = object_of(PROGRAM, triple)
    kinds = (macho if "apple" in triple else elf).KINDS[linking.read(data).machine]
    for number in [number for number, kind in kinds.items() if kind.startswith("branch")]:
        monkeypatch.delitem(kinds, number)
    with pytest.raises(ImageError, match="relocation"):
        linking.linked([data], "")


TWICE = "define i64 @tripled(i64 %x) {\n  ret i64 %x\n}\n"
OF_THREADS = "@mine = thread_local global i64 3\ndefine i64 @f() {\n  %v = load i64, ptr @mine\n  ret i64 %v\n}\n"
RUN_FIRST = (
    "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }]"
    " [{ i32, ptr, ptr } { i32 1, ptr @f, ptr null }]\ndefine void @f() {\n  ret void\n}\n"
)


@pytest.mark.parametrize("triple", TRIPLES)
@pytest.mark.parametrize("texts", [(PROGRAM, TWICE), (OF_THREADS,), (RUN_FIRST,)], ids=["twice", "threads", "first"])
def test_what_needs_more_than_memory_is_refused(texts: tuple[str, ...], triple: str) -> None:
    with pytest.raises(ImageError):
        image_of(*texts, triple=triple)


@pytest.mark.parametrize("triple", TRIPLES)
def test_of_weak_symbols_any_one_serves(triple: str) -> None:
    weak = "define linkonce_odr i64 @least() {\n  ret i64 4\n}\n"
    users = [f"{weak}define i64 @f{i}() {{\n  %r = call i64 @least()\n  ret i64 %r\n}}\n" for i in range(2)]
    assert {"f0", "f1", "least"} <= image_of(*users, triple=triple).exports.keys()


def test_objects_of_two_machines_are_refused() -> None:
    with pytest.raises(ImageError, match="one machine"):
        linking.linked([object_of(PROGRAM, triple) for triple in (X86[0], ARM[0])], "")
    with pytest.raises(ImageError, match="none"):
        linking.linked([], "")


@pytest.mark.parametrize("triple", TRIPLES)
def test_objects_that_are_cut_off_or_changed_are_refused_or_linked(triple: str) -> None:
    data = object_of(PROGRAM, triple)
    whole = linking.linked([data], "")
    rng = np.random.default_rng(0)
    for size in rng.integers(0, len(data), 60):
        _attempt(data[:size])
    for place in rng.integers(0, len(data), 300):
        changed = bytearray(data)
        changed[place] ^= int(rng.integers(1, 256))
        _attempt(bytes(changed))
    assert linking.linked([data], "").exports == whole.exports


def _attempt(data: bytes) -> None:
    """Link an object that is not as LLVM wrote it."""
    try:
        linking.linked([data], "")
    except ImageError:
        return


def test_windows_objects_are_refused() -> None:
    with pytest.raises(ImageError, match="neither"):
        linking.read(object_of(TWICE, "x86_64-pc-windows-msvc"))


def test_an_address_at_an_odd_place_is_refused() -> None:
    read = linking.read(object_of(PROGRAM, MAC.format("arm64")))
    mark = next(each for each in read.relocations if each.kind == "abs64")
    others = tuple(replace(each, place=each.place + 4) if each == mark else each for each in read.relocations)
    linker = linking._Linker([replace(read, relocations=others)], read.machine)
    with pytest.raises(ImageError):
        linker.image("")
