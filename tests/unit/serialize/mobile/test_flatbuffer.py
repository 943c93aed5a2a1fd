"""The reader of flatbuffers: what is right is read, and what is wrong is refused with its place."""

from __future__ import annotations

import struct

import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.mobile.file import IDENTIFIER
from engine.serialize.mobile.flatbuffer import FlatBuffer, FlatTable, Member
from engine.serialize.mobile.schema import FORMS
from tests.unit.serialize.mobile.flatbuffer_maker import Maker, Shared
from tests.unit.serialize.model_files import ARCHIVES

MOBILE = (ARCHIVES / "mobile.ff").read_bytes()


def root(data: bytes) -> FlatTable:
    return FlatBuffer(memoryview(data), FORMS).root("Module", IDENTIFIER)


def everything(table: FlatTable) -> int:
    """Read every field; how many tables there are."""
    count = 1
    for name in FORMS.tables[table.name]:
        value = table[name]
        parts = value if isinstance(value, list) else [value.value if isinstance(value, Member) else value]
        count += sum(everything(each) for each in parts if isinstance(each, FlatTable))
    return count


def test_fields_of_every_kind() -> None:
    values = [{}, {"val": ("Double", (1.5,))}, {"val": ("IntList", {"items": [-1, 1 << 40]})}]
    values.append({"val": ("Function", {"qn": "f", "instructions": [(0, 2, -3)], "operators": [{"name": "a"}]})})
    read = root(Maker().file({"bytecode_version": 9, "ivalues": values, "methods": [3, 4]}))
    assert (read["bytecode_version"], read["state_obj"], read["methods"], read["extra_files"]) == (9, 0, [3, 4], None)
    none, double, ints, function = (each["val"] for each in read["ivalues"])
    assert none is None and double == Member("Double", (1.5,)) and ints.value["items"] == [-1, 1 << 40]
    assert function.value["qn"] == "f" and function.value["instructions"] == [(0, 2, -3)]
    (operator,) = function.value["operators"]
    assert (operator["name"], operator["overload_name"], operator["num_args_serialized"]) == ("a", None, -1)


def test_what_pytorch_wrote_is_read_with_bytes_to_spare() -> None:
    read = root(MOBILE)
    assert everything(read) > 100
    assert read.buffer.left > 4 * len(MOBILE)


@pytest.mark.parametrize("size", range(0, len(MOBILE) - 1, 501))
def test_a_file_that_is_cut_off(size: int) -> None:
    with pytest.raises(ArchiveError) as caught:
        everything(root(MOBILE[:size]))
    assert caught.value.offset is not None


def changed(at: int, form: str, value: int) -> bytes:
    data = bytearray(MOBILE)
    struct.pack_into(form, data, at, value)
    return bytes(data)


ROOT = root(MOBILE)
FIELDS = ROOT.at - struct.unpack_from("<i", MOBILE, ROOT.at)[0]
IVALUES, STORAGES = ROOT.place_of("ivalues"), ROOT.place_of("storage_data")


@pytest.mark.parametrize(
    ("at", "form", "value", "reason"),
    [
        (0, "<I", 0, "a reference leads to byte 0"),
        (0, "<I", len(MOBILE), "a reference leads to byte"),
        (0, "<I", len(MOBILE) - 1, "askew"),
        (4, "<I", 0, "does not say"),
        (IVALUES, "<I", 0, "a reference leads to byte"),
        (IVALUES, "<I", 0xFFFFFFFF, "a reference leads to byte"),
        (IVALUES, "<I", 2, "askew"),
        (ROOT.buffer.follow(IVALUES), "<I", 0x3FFFFFFF, "a vector of 1073741823 elements|does not fit"),
        (ROOT.buffer.follow(STORAGES), "<I", 0xFFFFFFFF, "does not fit"),
        (ROOT.at, "<i", 1 << 30, "are said to lie"),
        (ROOT.at, "<i", -(1 << 30), "are said to lie"),
        (FIELDS, "<H", 3, "the list of the fields"),
        (FIELDS + 4, "<H", 0xFFF0, "outside of it"),
        (ROOT["ivalues"][1].place_of("val"), "<I", 0x7FFFFFF0, "a reference leads"),
    ],
)  # fmt: skip
def test_numbers_that_cannot_be(at: int, form: str, value: int, reason: str) -> None:
    with pytest.raises(ArchiveError, match=reason) as caught:
        everything(root(changed(at, form, value)))
    assert caught.value.record == "flatbuffer" and caught.value.offset is not None


def test_a_kind_of_value_that_is_not_known() -> None:
    value = ROOT["ivalues"][1]
    kind = value.at + value.places[0]
    with pytest.raises(ArchiveError, match="the kind 200, and 16 are known"):
        everything(root(changed(kind, "<B", 200)))


def test_parts_that_are_shared_too_often() -> None:
    shared = Shared({"val": ("IntList", {"items": list(range(1000))})})
    data = Maker().file({"ivalues": [shared] * 2000})
    with pytest.raises(ArchiveError, match="shared so often"):
        everything(root(data))


def test_a_table_of_another_kind_is_read_as_that() -> None:
    """Nothing in the file says what a table is: fields that it lacks are read as their defaults."""
    read = root(Maker().file({}))
    assert read["ivalues"] is None and read.listed("ivalues") == [] and read["operator_version"] == 0
