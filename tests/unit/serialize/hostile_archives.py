"""A good archive of one module, ways to change it, and how long its refusal may take."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest

from engine.executor.interpreter.budget import Budget, BudgetedRunner
from engine.lang.errors import ArchiveError
from engine.serialize.archive import load_archive
from engine.serialize.container.write import ContainerWriter
from tests.timing import within
from tests.unit.serialize.model_files import compiled

CLASS = b"class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
EMPTY = b"\x80\x02)."
MODULE = b"\x80\x02c__torch__\nM\n)\x81}(X\x08\0\0\0training\x88ub."
SOON = 20
"""Seconds that a refusal may take on a busy machine."""


def archive(**changes):
    """An archive of one module, with some of its records (by name) replaced, added, or, with None, left out."""
    records = {"data.pkl": MODULE, "code/__torch__.py": CLASS, "constants.pkl": EMPTY, "version": b"3\n"}
    writer = ContainerWriter("m")
    for name, data in {**records, **changes}.items():
        if data is not None:
            writer.add(name, data)
    return b"".join(writer.pieces())


def zipped(entries, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as z:
        for name, data in entries:
            z.writestr(name, data)
    return file.getvalue()


def load(data, **options):
    return compiled(load_archive(io.BytesIO(data), run=BudgetedRunner(Budget(**options))))


def refused(data, **options):
    """The error for this archive, which has to name a place."""
    with within(SOON), pytest.raises(ArchiveError) as caught:
        load(data, **options)
    assert caught.value.record or caught.value.offset is not None, caught.value
    return caught.value


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value


def tensor(count=4, offset=0, size=b"K\x04\x85", stride=b"K\x01\x85", key=b"0", kind=b"FloatStorage", where=b"cpu"):
    pid = b"(" + text(b"storage") + b"ctorch\n" + kind + b"\n" + text(key) + text(where) + _int(count) + b"tQ"
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + pid
        + _int(offset)
        + size
        + stride
        + b"\x89ccollections\nOrderedDict\n)RtR"
    )


def _int(value):
    return b"\x8a\x08" + struct.pack("<q", value)
