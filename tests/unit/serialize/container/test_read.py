"""The zip file of an archive: what is read, what is refused, what is written."""

import io
import random
import struct
import zipfile

import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.container.read import open_container
from engine.serialize.container.write import ContainerWriter

RECORDS = {
    "data/0": bytes(range(64)),
    "data.pkl": b"\x80\x02N.",
    "code/__torch__.py": b"x = 1\n" * 40,
    "version": b"3\n",
}


def archive(records=RECORDS, folder="m"):
    writer = ContainerWriter(folder)
    for name, data in records.items():
        writer.add(name, data)
    return b"".join(writer.pieces())


def zipped(entries, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as z:
        for name, data in entries:
            z.writestr(name, data)
    return file.getvalue()


def opened(data):
    return open_container(io.BytesIO(data))


def test_what_is_written_is_read_back():
    container = opened(archive())
    assert container.folder == "m"
    assert {name: container.read(name) for name in container.names()} == RECORDS


def test_compressed_records_are_read():
    container = opened(zipped([("m/version", b"3\n"), ("m/big", b"a" * 10_000)], zipfile.ZIP_DEFLATED))
    assert container.read("big") == b"a" * 10_000
    assert container.view("big") == b"a" * 10_000


def test_a_record_is_seen_where_it_lies_and_written_to_in_private():
    file = io.BytesIO(archive())
    view = open_container(file).view("data/0")
    assert view == bytes(range(64))
    view[0] = 9
    assert file.getvalue() == archive()


def test_folder_entries_are_passed_over():
    assert opened(zipped([("m/", b""), ("m/version", b"3\n")])).names() == ["version"]


@pytest.mark.parametrize("size", [1 << 20, (1 << 32) - 2])
def test_a_size_that_the_record_does_not_have_is_refused(size):
    data = zipped([("m/a", b"x" * 1000)], zipfile.ZIP_DEFLATED)
    at = data.index(b"PK\x01\x02")
    for place in (at + 24, 22):
        data = data[:place] + struct.pack("<L", size) + data[place + 4 :]
    with pytest.raises(ArchiveError, match="inflate"):
        opened(data).read("a")


def test_a_header_that_disagrees_with_the_directory_is_refused():
    data = zipped([("m/a", b"abc")])
    at = data.index(b"PK\x01\x02")
    with pytest.raises(ArchiveError, match="disagrees"):
        opened(data[: at + 46] + b"m/b" + data[at + 49 :])


def test_overlapping_records_are_refused():
    data = zipped([("m/a", b"abc"), ("m/b", b"abc")])
    second = data.rindex(b"PK\x01\x02")
    data = data[: second + 42] + struct.pack("<L", 1) + data[second + 46 :]
    with pytest.raises(ArchiveError, match=r"overlaps|disagrees"):
        opened(data)


def test_a_damaged_record_is_refused():
    data = archive()
    at = data.index(bytes(range(64)))
    container = opened(data[:at] + b"\xff" + data[at + 1 :])
    with pytest.raises(ArchiveError, match="checksum") as caught:
        container.read("data/0")
    assert caught.value.record == "data/0"


@pytest.mark.parametrize("length", range(len(archive({"version": b"3\n", "a": b"b"}))))
def test_every_truncation_is_refused(length):
    with pytest.raises(ArchiveError):
        opened(archive({"version": b"3\n", "a": b"b"})[:length])


def test_changed_bytes_are_refused_or_harmless():
    good = archive()
    chance = random.Random(7)
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(chance.choice((1, 1, 3))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            container = opened(bytes(data))
            contents = {name: container.read(name) for name in container.names()}
        except ArchiveError:
            continue
        assert contents == RECORDS


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x05\x06", b"\0" * 100])
def test_what_is_no_zip_is_refused(tmp_path, content):
    path = tmp_path / "x.pt"
    path.write_bytes(content)
    with pytest.raises(ArchiveError):
        open_container(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(ArchiveError, match="does not exist"):
        open_container(tmp_path / "none.pt")
    with pytest.raises(ArchiveError, match="is a folder"):
        open_container(tmp_path)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("m/../x", "outside"),
        ("/m/x", "outside"),
        ("m//x", "outside"),
        ("m/./x", "outside"),
        ("m/a\\b", "outside"),
        ("c:/x", "outside"),
        ("other/x", "one folder"),
        ("x", "one folder"),
    ],
)
def test_bad_names_are_refused(name, reason):
    with pytest.raises(ArchiveError, match=reason):
        opened(zipped([("m/version", b"3\n"), (name, b"x")]))


def test_two_records_of_one_name_are_refused():
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        pytest.raises(ArchiveError, match="two records are named 'a'"),
    ):
        opened(zipped([("m/a", b"1"), ("m/a", b"2")]))
