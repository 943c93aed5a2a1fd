"""Archives whose code names what nobody has: an operator, a class, a function, a type.  All else of them is shown."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import engine.torch as torch
from engine.torch import nn
from tsrepl.session.archives import check, operators
from tsrepl.session.programs import show_program
from tsrepl.session.replies import CodeReply, ErrorReply, GraphReply, Reply, ReportReply, SchemaReply, TextReply
from tsrepl.session.session import Session


class Inner(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 3


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + 1

    @torch.jit.export
    def other(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


CUSTOM, PLAIN = "__torch__.torch.classes.mylib.Thing", "__torch__.lost.Thing"
BODIES: Final = {
    "operator": "return ops.mylib.fancy(x, {})",
    "operator of torch": "return torch.fancy(x, {})",
    "function": "return __torch__.lost.helper(x, {})",
    "class of an extension": f"thing = {CUSTOM}({{}})\n    return (thing).go(x, )",
    "class of an extension, made in two steps":
        f"thing = {CUSTOM}.__new__({CUSTOM})\n    _0 = (thing).__init__({{}}, )\n    return (thing).go(x, )",
    "class": f"thing = {PLAIN}.__new__({PLAIN})\n    _0 = (thing).__init__({{}}, )\n    return (thing).go(x, )",
    "class, made twice":
        f"a = {PLAIN}.__new__({PLAIN})\n    _0 = (a).__init__({{}}, )\n"
        f"    b = {PLAIN}.__new__({PLAIN})\n    return (b).go(a, )",
}  # fmt: skip
"""Bodies that compile, as it does not matter what the names mean; `{}` is a number."""
BROKEN: Final = {
    "result": "y = ops.mylib.fancy(x, {})\n    a, b = y\n    return a",
    "static method": f"return {CUSTOM}.make(x, {{}})",
    "attribute": f"thing = {PLAIN}.__new__({PLAIN})\n    return torch.mul(x, (thing).size)",
    "annotation": f"y : {PLAIN} = x\n    return torch.mul(x, {{}})",
    "class as a value": f"return torch.mul(x, {PLAIN})",
    "namespace": "return torch.mul(x, __torch__.lost)",
    "arguments": "return torch.mul(x, )",
    "name": "return torch.mul(x, lost)",
}
"""Bodies that do not compile."""
PLACES: Final = {
    "forward": "torch.add((inner).forward(x, ), 1)",
    "inner": "torch.mul(x, 3)",
    "other": "torch.mul(x, 2)",
}
"""Functions, and what they return before the body takes its place."""
CASES: Final = [(body, place) for body in (*BODIES, *BROKEN) for place in PLACES]


@pytest.fixture
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    body, place = request.param
    text = {**BODIES, **BROKEN}[body].format(2)
    torch.jit.script(Outer()).save(str(tmp_path / "good.pt"))
    found = tmp_path / "m.pt"
    with zipfile.ZipFile(tmp_path / "good.pt") as good, zipfile.ZipFile(found, "w") as changed:
        for name in good.namelist():
            data = good.read(name)
            if b"class Outer(" in data:
                data = edited(data.decode(), place, text).encode()
            if not name.endswith(".debug_pkl"):
                changed.writestr(name, data)
    return found


def edited(code: str, place: str, text: str) -> str:
    lines = code.split("\n")
    begin = next(n for n, line in enumerate(lines) if line == "class Inner(Module):") if place == "inner" else 0
    name = "forward" if place == "inner" else place
    start = next(n for n in range(begin, len(lines)) if f"def {name}(" in lines[n])
    at = next(n for n in range(start, len(lines)) if lines[n].startswith("    return "))
    return "\n".join([*lines[:at], f"    {text}", *lines[at + 1 :]])


def errors(replies: Iterator[Reply] | list[Reply]) -> list[str]:
    return [reply.message for reply in replies if isinstance(reply, ErrorReply)]


@pytest.mark.parametrize("path", CASES, indirect=True, ids="-".join)
def test_all_else_is_shown(path: Path, request: pytest.FixtureRequest) -> None:
    body, place = request.node.callspec.params["path"]
    shown = {view: [*show_program(str(path), view, None)] for view in (None, "code", "graph", "tree", "constants")}
    for view, replies in shown.items():
        assert errors(replies) == [], view
    (signatures,) = (reply for reply in shown[None] if isinstance(reply, SchemaReply))
    assert signatures.schemas == ("forward(Tensor x) -> Tensor", "other(Tensor x) -> Tensor")
    codes = [reply.text for reply in shown["code"] if isinstance(reply, CodeReply)]
    assert [text.partition("(")[0] for text in codes] == ["def forward", "def other"]
    if place != "inner":
        assert any(word in "".join(codes) for word in ("lost", "mylib", "fancy", "torch.mul(x, )"))
    graphs = [reply for reply in shown["graph"] if isinstance(reply, GraphReply)]
    told = [reply for reply in shown["graph"] if isinstance(reply, TextReply) and reply.level == "warning"]
    assert len(graphs) == 2 - len(told)
    assert len(told) == (body in BROKEN and place != "inner"), "what it calls is compiled when it is called"


@pytest.mark.parametrize("path", CASES, indirect=True, ids="-".join)
def test_what_is_not_known_is_counted(path: Path) -> None:
    replies = [*operators(str(path))]
    assert errors(replies) == []
    report = replies[-1]
    assert isinstance(report, ReportReply)
    text = " ".join(cell for reply in replies for section in reply.sections for row in section.rows for cell in row)
    assert "all known" not in report.sections[-1].heading
    assert any(word in text for word in ("mylib", "lost", "fancy", ".Inner.forward", ".Outer."))
    found = [*check(str(path))]
    assert errors(found) == []
    assert isinstance(found[-1], ReportReply)
    assert found[-1].status == 3


@pytest.mark.parametrize("path", CASES, indirect=True, ids="-".join)
def test_the_prompt_shows_it_and_the_other_method_runs(path: Path, request: pytest.FixtureRequest) -> None:
    _, place = request.node.callspec.params["path"]
    session = Session()
    name = "forward" if place == "other" else "other"
    for line in (
        f"%load {path} as m",
        "m",
        "%modules m",
        "%code m",
        "%code m.other",
        "%schema m.forward",
        f"%graph m.{name}",
    ):
        assert errors(session.execute(line)) == [], line
    assert errors(session.execute(f"m.{name}(torch.ones(2))")) == []
    (failed,) = errors(session.execute(f"m.{'other' if place == 'other' else 'forward'}(torch.ones(2))"))
    assert any(word in failed for word in ("not known here", "no operator", "is refused"))
