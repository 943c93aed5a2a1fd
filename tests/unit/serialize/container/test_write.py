"""The zip file of an archive as it is written, and how it replaces a file."""

import io
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.container.read import open_container
from engine.serialize.container.write import ContainerWriter, replace_file, write_all

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


def test_long_records_are_deflated_on_request():
    text = b"x = 1\n" * 1000
    writer = ContainerWriter("m")
    writer.add("code/a.py", text, deflate=True)
    writer.add("code/b.py", b"x = 1\n", deflate=True)
    data = b"".join(writer.pieces())
    assert len(data) < 1000 and writer.size() < 100
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        assert z.testzip() is None
        assert [each.compress_type for each in z.infolist()] == [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED]
        assert z.read("m/code/a.py") == text
    assert open_container(io.BytesIO(data)).read("code/a.py") == text


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


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800.pt"])
def test_names_that_no_file_can_have(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArchiveError, match="is no name for a file"):
        replace_file(name, [b"new"])
    assert not list(tmp_path.iterdir())


def test_a_path_that_ends_like_a_folder_makes_no_file(tmp_path):
    with pytest.raises(ArchiveError, match="is a folder"):
        replace_file(f"{tmp_path}/m.pt/", [b"new"])
    assert not list(tmp_path.iterdir())


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "m.pt"
    path.write_bytes(b"old")
    asked = []
    monkeypatch.setattr(os, "access", lambda place, mode: asked.append((place, mode)))
    with pytest.raises(ArchiveError, match="permission denied for the file that is there"):
        replace_file(path, [b"new"])
    assert path.read_bytes() == b"old" and asked == [(path, os.W_OK)] and len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(not hasattr(os, "fchown"), reason="this system's files have no owners")
def test_the_new_file_gets_the_owner_of_the_old(tmp_path, monkeypatch):
    path = tmp_path / "m.pt"
    path.write_bytes(b"old")
    status = path.stat()
    given = []
    monkeypatch.setattr(os, "fchown", lambda _, user, group: given.append((user, group)))
    replace_file(path, [b"new"])
    assert given == [(status.st_uid, status.st_gid)]

    def refuse(*_):
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    replace_file(path, [b"newer"])
    assert path.read_bytes() == b"newer"


class Slow:
    """Takes a few bytes at a time, as a file without a buffer may."""

    def __init__(self, answer):
        self.data, self.answer = b"", answer

    def write(self, piece):
        taken = bytes(piece[:1000]) if self.answer else bytes(piece)
        self.data += taken
        return len(taken) if self.answer else None


@pytest.mark.parametrize("answer", [True, False])
def test_a_file_that_takes_less_than_it_is_given_gets_the_rest(answer):
    pieces = [b"ab", b"", memoryview(bytes(range(256)) * 20)]
    file = Slow(answer)
    write_all(file, pieces)
    assert file.data == b"".join(pieces)


def test_a_process_may_be_limited_in_the_size_of_files(tmp_path):
    path = tmp_path / "m.pt"
    path.write_bytes(b"old")
    code = (
        "import resource, signal, sys\n"
        "from engine.serialize.container.write import replace_file\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "replace_file(sys.argv[1], [b'x' * 100_000])\n"
    )
    pytest.importorskip("resource")
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60)
    assert "cannot be written: file too large" in done.stderr
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
