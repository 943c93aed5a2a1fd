"""Files that are no programs, whatever they are called and however they are encoded: each is named, at each door."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import shlex
import tarfile
import zipfile

import numpy as np
import pytest

import engine
import engine.torch as torch
from engine.lang.errors import ArchiveError
from engine.serialize.identify.identify import identify
from tests.unit.serialize.hostile_archives import archive, zipped

HTML = "<html><head><title>Sign in</title></head></html>"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 12345\n"
BOM = b"\xef\xbb\xbf"


def tarred(name, content):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as target:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        target.addfile(entry, io.BytesIO(content))
    return file.getvalue()


WEB_PAGES = {
    "plain": HTML.encode(),
    "marked": BOM + HTML.encode(),
    "UTF-16": HTML.encode("utf-16"),
    "UTF-16 the other way round": b"\xfe\xff" + HTML.encode("utf-16-be"),
    "UTF-32": HTML.encode("utf-32"),
    "blanks": BOM + b" \r\n\n" + HTML.encode(),
    "upper case": HTML.upper().encode(),
    "XML": b'<?xml version="1.0"?>\n<!DOCTYPE html>' + HTML.encode(),
    "doctype": b"<!doctype  HTML>",
    "no head": b"<div>Hi</div>",
    "comments": b"<!-- a --> <!-- b -->" + HTML.encode(),
    "a long comment": b"<!--" + b"-" * 100_000 + b"-->" + HTML.encode(),
    "a script": b"<script>location='/login'</script>",
    "a title": b"<title>Just a moment...</title>",
    "Latin-1": "<html><title>Olé</title>".encode("latin1"),
}
POINTERS = {
    "plain": POINTER,
    "marked": BOM + POINTER,
    "CRLF": POINTER.replace(b"\n", b"\r\n"),
    "a line before": b"\n" + POINTER,
    "the old name": POINTER.replace(b"git-lfs", b"hawser"),
}
OTHERS = {
    "gzip": (gzip.compress(archive()), "compressed"), "bz2": (bz2.compress(archive()), "compressed"),
    "xz": (lzma.compress(archive()), "compressed"), "lzma": (lzma.compress(archive(), lzma.FORMAT_ALONE), "compressed"),
    "7z": (b"7z\xbc\xaf\x27\x1c" + bytes(99), "compressed"), "tar": (tarred("m.pt", archive()), "tar"),
    "tar.gz": (gzip.compress(tarred("m.pt", archive())), "compressed"),
    "gzip of a page": (gzip.compress(HTML.encode()), "compressed"),
    "numpy 0": (pickle.dumps(np.ones(3), 0), "pickle"), "numpy 4": (pickle.dumps(np.ones(3), 4), "pickle"),
    "h5": (b"\x89HDF\r\n\x1a\n" + bytes(99), "keras-h5"), "empty": (b"", "empty"), "zeros": (bytes(999), "zeros"),
    "cut off": (archive()[:-30], "truncated"), "half": (archive()[: len(archive()) // 2], "truncated"),
    "without a version": (archive(version=None), "damaged"), "without data": (archive(**{"data.pkl": None}), "damaged"),
    "without code": (archive(**{"code/__torch__.py": None}), "damaged"),
    "SavedModel": (zipped([("saved_model.pb", b"x"), ("variables/variables.index", b"x")]), "zip"),
    "SavedModel in a folder": (zipped([("m/saved_model.pb", b"x"), ("m/variables/variables.index", b"x")]), "zip"),
    "an empty zip file": (zipped([]), "zip"), "Windows": (b"MZ\x90\0" + bytes(99), "executable"),
    "ONNX": (b"\x08\x07\x12\x07pytorch\x3a\x00\x42\x02\x10\x0d", "onnx"),
}  # fmt: skip
FILES = {
    **{f"page: {name}": (data, "html") for name, data in WEB_PAGES.items()},
    **{f"pointer: {name}": (data, "lfs-pointer") for name, data in POINTERS.items()},
    **OTHERS,
}
NAMES = ("model.pt", "model.ts", "model.pth", "model.zip", "model")
DOORS = (engine.load, torch.jit.load, torch.load, engine.load_weights)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file", FILES)
def test_contents_decide_and_never_the_name(file, name, tmp_path):
    data, kind = FILES[file]
    path = tmp_path / name
    path.write_bytes(data)
    found = identify(path)
    assert found.kind == kind
    for door in DOORS:
        with pytest.raises(ArchiveError) as caught:
            door(path)
        assert found.title in str(caught.value) or caught.value.record or caught.value.offset is not None


@pytest.mark.parametrize("door", [engine.load, torch.jit.load, torch.load])
@pytest.mark.parametrize("file", [name for name in FILES if name.startswith(("page", "pointer"))])
def test_buffers_are_named_too_and_get_no_advice_for_files(file, door):
    with pytest.raises(ArchiveError, match="a web page" if file.startswith("page") else "a Git LFS pointer") as caught:
        door(io.BytesIO(FILES[file][0]))
    assert "tmp" not in str(caught.value)


@pytest.mark.parametrize("file", FILES)
def test_advice_names_the_file_as_a_shell_reads_it(file, tmp_path):
    path = tmp_path / "a model; of 'mine'"
    path.write_bytes(FILES[file][0])
    for line in identify(path).advice:
        if path.name.partition("'")[0] in line and "engine." not in line:
            assert str(path) in shlex.split(line.partition(": ")[2] or line, comments=False) or line.startswith("unzip")


def test_what_a_pointer_stands_for(tmp_path):
    for data in POINTERS.values():
        (tmp_path / "m").write_bytes(data)
        assert ("the real file has", "12,345 bytes") in identify(tmp_path / "m").facts


@pytest.mark.parametrize("record", ["version", "byteorder"])
def test_a_word_of_fifty_megabytes_is_not_read(record):
    with zipfile.ZipFile(io.BytesIO(archive(byteorder=b"little"))) as source:
        records = [(n, bytes(50 << 20) if n == f"m/{record}" else source.read(n)) for n in source.namelist()]
    with pytest.raises(ArchiveError, match="says but one word") as caught:
        engine.load(io.BytesIO(zipped(records, zipfile.ZIP_DEFLATED)))
    assert caught.value.record == record
