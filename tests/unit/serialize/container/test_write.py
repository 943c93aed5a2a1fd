"""The zip file of an archive as it is written, and how it replaces a file."""

import io
import os
import stat
import zipfile
from pathlib import Path

import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.container.read import open_container
from engine.serialize.container.write import ContainerWriter, replace_file

RECORDS = {"data/0": bytes(range(64)), "data.pkl": b"\x80\x02N.", "code/a.py": b"x = 1\n" * 40, "version": b"3\n"}


def archive(records=RECORDS, folder="m"):
    writer = ContainerWriter(folder)
    for name, data in records.items():
        writer.add(name, data)
    return b"".join(writer.pieces())


def test_other_zip_readers_agree():
    with zipfile.ZipFile(io.BytesIO(archive())) as z:
        assert z.testzip() is None
        assert z.namelist() == [f"m/{name}" for name in RECORDS]
        assert z.read("m/code/a.py") == RECORDS["code/a.py"]


def test_contents_begin_on_64_byte_boundaries():
    container = open_container(io.BytesIO(archive()))
    assert [record.start % 64 for record in container.records.values()] == [0] * 4
    assert archive()[44:46] == b"ZZ"


def test_the_same_records_give_the_same_bytes():
    assert archive() == archive(dict(RECORDS))


def test_a_writer_refuses_two_records_of_one_name():
    writer = ContainerWriter("m")
    writer.add("a", b"")
    with pytest.raises(ArchiveError, match="two records"):
        writer.add("a", b"")


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "m.pt"
    path.write_bytes(b"old")
    path.chmod(0o640)
    replace_file(path, [b"new ", memoryview(b"bytes")])
    assert path.read_bytes() == b"new bytes"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["m.pt"]


def test_a_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    replace_file(tmp_path / "m.pt", [b"new"])
    assert (tmp_path / "m.pt").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_what_is_no_ordinary_file_is_written_into(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    replace_file(pipe, [b"a", b"b"])
    assert os.read(reader, 10) == b"ab"
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    os.close(reader)


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real.pt").write_bytes(b"old")
    (tmp_path / "link.pt").symlink_to("real.pt")
    replace_file(tmp_path / "link.pt", [b"new"])
    assert (tmp_path / "link.pt").is_symlink()
    assert (tmp_path / "real.pt").read_bytes() == b"new"


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "m.pt"
    path.write_bytes(b"old")

    def pieces():
        yield b"new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_file(path, pieces())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.pt"]


def test_a_place_that_cannot_be_written_is_an_archive_error(tmp_path):
    with pytest.raises(ArchiveError, match="cannot be written"):
        replace_file(tmp_path / "none" / "m.pt", [b""])
    with pytest.raises(ArchiveError, match="is a folder"):
        replace_file(tmp_path, [b""])
    assert not list(Path(tmp_path).iterdir())
