"""Bytecode for mobile devices."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from engine.lang.errors import ArchiveError
from engine.serialize.archive import load_archive
from engine.serialize.container.read import Container, open_container
from engine.serialize.mobile.load import mobile_program

BYTECODE = Path(__file__).parents[1] / "archives" / "mobile_bytecode.pkl"
"""What PyTorch 2.13 wrote for a loop over an `if` with a linear layer."""
LISTING = """\
__torch__.M.forward(self : __torch__.M, x : Tensor, n : int) -> Tuple[List[Tensor], Dict[str, int], str, float]
   0  STOREN 1 3
   1  LIST_CONSTRUCT 0 0      List[Tensor]
   2  STORE 4 0
   3  LOADC 8 0               0
   4  MOVE 3 0
   5  LOADC 3 0               True
   6  LOOP 33 2               -> 39
   7  STORE 5 0
   8  LOAD 5 0
   9  LOADC 4 0               2
  10  OP 0 0                  aten::remainder.int, 2 arguments"""


def container(data: bytes, **records: bytes) -> Container:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        for name, content in {"version": b"8\n", "bytecode.pkl": data, **records}.items():
            z.writestr(f"m/{name}", content)
    file.seek(0)
    return open_container(file)


def test_listing() -> None:
    program = mobile_program(container(BYTECODE.read_bytes()))
    assert program is not None
    assert program.version == 8
    assert program.listing().startswith(LISTING)
    assert program.operators()[:3] == ["aten::remainder.int", "aten::eq.int", "aten::linear"]
    assert program.functions[0].registers == 6
    assert program.functions[0].constants[0] == "s"


def test_an_archive_without_it() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("m/version", b"8\n")
    file.seek(0)
    assert mobile_program(open_container(file)) is None


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02K\x08.", b"\x80\x02).", b"\x80\x02K\x08K\x09\x86.",
        b"\x80\x02K\x08X\x01\0\0\0f)\x86\x86."[:-1] + b"X\x01\0\0\0y\x86.",
        b"\x80\x02K\x08X\x01\0\0\0fX\x0c\0\0\0instructionsK\x03\x86\x85\x86\x86.",
        b"\x80\x02K\x08X\x01\0\0\0fX\x0c\0\0\0instructionsK\x03\x85\x86\x85\x86\x86.",
        b"cos\nsystem\nX\x01\0\0\0a\x85R.",
    ],
)  # fmt: skip
def test_damaged_bytecode(data: bytes) -> None:
    with pytest.raises(ArchiveError):
        mobile_program(container(data))


def test_loading_an_archive_of_nothing_else() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        for name, content in {
            "version": b"8\n",
            "bytecode.pkl": BYTECODE.read_bytes(),
            "data.pkl": b"\x80\x02).",
        }.items():
            z.writestr(f"m/{name}", content)
    file.seek(0)
    with pytest.raises(ArchiveError, match="holds data and no module"):
        load_archive(file)
