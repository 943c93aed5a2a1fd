"""Mobile programs at the command line: shown, listed, checked, taken apart, compared."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.unit.serialize.model_files import ARCHIVES, FILES, without_code
from tsrepl.render.terminal import to_text
from tsrepl.session.archives import check, identify_files, operators
from tsrepl.session.changes import extract, fix
from tsrepl.session.differences import diff
from tsrepl.session.failures import guarded
from tsrepl.session.programs import run_program, show_program
from tsrepl.session.replies import ErrorReply, Reply

MOBILE = str(ARCHIVES / "mobile.ff")


def text(replies: Iterable[Reply]) -> str:
    return "".join(map(to_text, replies))


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """The same program without its code."""
    path = tmp_path / "bare.ptl"
    path.write_bytes(without_code(Path(MOBILE).read_bytes()))
    return str(path)


def test_show(bare: str) -> None:
    for path in (MOBILE, bare):
        shown = text(show_program(path, None, None))
        assert "linear Linear  8 parameters, 32 B" in shown
        assert "pairs: (int, bool)[] = [(1, True), (2, False)]" in shown
        assert "Tensor x, float? factor=None) -> ((Tensor, Dict(str, Tensor), str))" in shown
        assert "what these modules hold is made by their __setstate__" in shown
    assert "while" in text(show_program(bare, "code", "forward"))
    assert "aten::linear" in text(show_program(bare, "graph", "forward"))


def test_instructions(bare: str) -> None:
    shown = (text(show_program(path, "bytecode", None)) for path in (MOBILE, bare))
    listings = [each.partition("__torch__.Model.forward")[2] for each in shown]
    assert listings[0] == listings[1]
    assert "aten::linear, 3 arguments" in listings[0] and "LOADC" in listings[0]
    one = text(show_program(MOBILE, "bytecode", "count"))
    assert "Model.count" in one and "Model.forward" not in one
    (reply,) = show_program(MOBILE, "bytecode", "coun")
    assert isinstance(reply, ErrorReply) and "did you mean 'count'?" in to_text(reply)


def test_a_method_that_cannot_be_lifted_is_shown_as_an_error_beside_the_rest(tmp_path: Path) -> None:
    data = without_code(Path(MOBILE).read_bytes())
    path = tmp_path / "m.ff"
    path.write_bytes(data.replace(b"aten::linear\0", b"aten::linean\0"))
    shown = text(operators(str(path)))
    assert "aten::linean" in shown and "not known here" in shown


def test_operators_and_check(bare: str) -> None:
    for path in (MOBILE, bare):
        assert "all known" in text(operators(path))
        shown = text(check(path))
        assert "code that runs while loading (__setstate__)" in shown
        assert "4 tensors, 8 parameters, 60 bytes" in shown
    assert "files that came along (extra files)" in text(check(bare))


def test_identify() -> None:
    shown = text(identify_files([MOBILE, str(FILES / "mobile_weights.ff")]))
    assert "a mobile program as a flatbuffer, with its code" in shown and "look inside: tsrepl show" in shown
    assert "tensors in a file for mobile devices" in shown


def test_run(bare: str, tmp_path: Path) -> None:
    for path in (MOBILE, bare):
        assert text(run_program(path, "count", ["6"], None)).strip() == "10"


def test_extract(bare: str, tmp_path: Path) -> None:
    assert "wrote" in text(extract(bare, str(tmp_path / "w.safetensors")))
    assert "code/__torch__.py" in text(extract(MOBILE, str(tmp_path / "parts")))
    assert (tmp_path / "parts" / "extra" / "notes.txt").read_text() == "hello"
    assert "linear.weight" in text(show_program(str(FILES / "mobile_weights.ff"), None, None))


def test_diff_and_fix(bare: str, tmp_path: Path) -> None:
    assert "no differences; 4 tensors are equal" in text(diff([MOBILE, MOBILE]))
    assert "mobile bytecode without code" in text(diff([MOBILE, bare]))
    (reply,) = guarded(fix(MOBILE, "cpu", str(tmp_path / "m.pt")))
    assert isinstance(reply, ErrorReply) and "tsrepl repack makes an archive of it" in to_text(reply)
