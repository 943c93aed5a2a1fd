"""The commands that look inside of a running module and cut parts out."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import pytest

import engine.torch as torch
from engine.torch import nn
from tsrepl.session import Session
from tsrepl.session.replies import ErrorReply, ModuleReply, Reply, SchemaReply, TapReply, TapRow, TextReply, ValueReply

R = TypeVar("R", bound=Reply)


class Block(nn.Module):
    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = nn.Parameter(torch.tensor([by]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x * self.by
        return h + 1


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Block(2.0)
        self.layers = nn.Sequential(Block(3.0), Block(4.0))
        self.sizes = Sizes()

    def forward(self, x: torch.Tensor, again: bool = False) -> tuple[torch.Tensor, int]:
        y = self.first(x)
        if again:
            y = self.first(y)
        z = self.layers(y)
        return z, self.sizes(z)


class Sizes(nn.Module):
    def forward(self, x: torch.Tensor) -> int:
        return x.size(0)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    torch.jit.script(Net()).save(str(tmp_path / "net.pt"))
    session = Session()
    session.execute(f"%load {tmp_path / 'net.pt'} as m")
    session.execute("x = torch.ones(1)")
    return session


def last(session: Session, text: str, kind: type[R]) -> R:
    reply = session.execute(text)[-1]
    assert isinstance(reply, kind), reply
    return reply


def test_tap(session: Session) -> None:
    reply = last(session, "%tap m first layers.* -- m(x, again=True)", TapReply)
    assert reply.rows == (
        TapRow("first", 2, "float32 (1,)  7"),
        TapRow("layers.0", 1, "float32 (1,)  22"),
        TapRow("layers.1", 1, "float32 (1,)  89"),
    )
    assert (reply.title, reply.result) == ("m(x, again=True)", "(float32 (1,), requires grad, 1)")
    assert reply.name == "_"
    assert last(session, "_['layers.0'].item()", ValueReply).value == 22.0


def test_tap_on_what_is_no_tensor_keeps_nothing(session: Session) -> None:
    reply = last(session, '%tap m "" sizes :z -- m(x)', TapReply)
    assert [row.place for row in reply.rows] == [":z", "sizes", ""]
    assert reply.rows[1].value == "1" and reply.name == ""
    nothing = last(session, "%tap m.layers 0:h -- m.first(x)", TapReply)
    assert (nothing.rows, nothing.unreached) == ((), ("0:h",))
    assert last(session, "%tap m first :nope layers.?:h -- m(x)", TapReply).unreached == (":nope",)


def test_run_until(session: Session) -> None:
    stopped, value = session.execute("%run_until m layers.0:h -- m(x)")
    assert stopped == TextReply("stopped at layers.0:h", "done")
    assert isinstance(value, ValueReply) and (value.text, value.type) == ("tensor([9.])", "Tensor")
    assert last(session, "_ + 1", ValueReply).text == "tensor([10.])"
    assert last(session, "%run_until m sizes -- m(x)", ValueReply).type == "int"


def test_cut(session: Session, tmp_path: Path) -> None:
    assert last(session, "%cut m.layers 0 -> 1 as tail", TextReply).text.startswith("type tail to see it")
    text = last(session, "tail(x * 22)", ValueReply).text
    assert text in [f"tensor([89.], grad_fn=<{by}>)" for by in ("AddBackward0", "DifferentiableGraphBackward")]
    assert isinstance(session.execute("tail")[0], ModuleReply)
    assert last(session, "%schema tail", SchemaReply).schemas == ("forward(Tensor part_0) -> Tensor",)
    assert session.execute("%cut m.layers -> 0")[0] == TextReply("cut part out of m.layers", "done")
    last(session, f"%save part {tmp_path / 'part.pt'}", TextReply)
    last(session, f"%load {tmp_path / 'part.pt'} as again", TextReply)
    assert last(session, "again(x).item()", ValueReply).value == 4.0


def test_a_submodule_and_a_tensor_inside_are_saved(session: Session, tmp_path: Path) -> None:
    last(session, f"%save m.layers {tmp_path / 'part.pt'}", TextReply)
    last(session, f"%load {tmp_path / 'part.pt'} as part", TextReply)
    assert last(session, "part(x).item()", ValueReply).value == 17.0
    last(session, f"%save m.first.by {tmp_path / 'by.npy'}", TextReply)
    last(session, f"%load {tmp_path / 'by.npy'}", TextReply)
    assert last(session, "by.item()", ValueReply).value == 2.0


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("%tap m layers", "say which call to watch, behind --", "write %tap m pattern ... -- m(x)"),
        ("%tap m -- m(x)", "name a module, then the places in it", "write %tap m pattern ... -- m(x)"),
        ("%tap x a -- x", "'x' is no module", "%load reads one from an archive"),
        ("%tap m.layer a -- m(x)", "'m' has no attribute 'layer'", "did you mean 'layers'?"),
        ("%tap m what -- m(x)", "no submodule matches 'what'", "there is first, layers, layers.0, layers.1, sizes"),
        ("%tap m.first.by a -- m(x)", "'m.first.by' is no module", "%load reads one from an archive"),
        ("%tap m.first.by.x a -- m(x)", "'m.first.by' has no attribute 'x'", None),
        ("%save m.forward f.pt", "'m.forward' is a method, which is nothing without its module", "take m"),
        (
            "%save m.first.forward f.pt",
            "'m.first.forward' is a method, which is nothing without its module",
            "take m.first",
        ),
        (
            "%save m.training f.pt",
            "'m.training' is a value of type bool; only modules, functions and tensors are saved",
            None,
        ),
        ("%tap n a -- n(x)", "nothing is called 'n'", "%who lists what is defined"),
        ("%tap m frist -- m(x)", "no submodule matches 'frist'", "did you mean 'first'?"),
        ("%run_until m a b -- m(x)", "%run_until wants one place to stop at", "write %run_until m pattern -- m(x)"),
        (
            "%run_until m layers -- m.first(x)",
            "the call ended and never came to 'layers'",
            "a tap on '*' shows which submodules are called",
        ),
        (
            "%cut m first",
            "%cut wants a module, and the places where the cut ends",
            "write %cut m encoder -> decoder as part",
        ),
        ("%cut m -> first as 1", "'1' cannot be a name", None),
    ],
)
def test_mistakes(session: Session, line: str, message: str, hint: str | None) -> None:
    reply = last(session, line, ErrorReply)
    assert reply.message == message
    assert reply.hints == ((hint,) if hint else ())


def test_completion(session: Session) -> None:
    def shown(before: str) -> list[str]:
        return [each.text for each in session.complete(before)]

    assert shown("%tap ") == ["m"]
    assert shown("%tap m l") == ["layers", "layers.0", "layers.1"]
    assert shown("%cut m first -> la")[0] == "layers"
    assert shown("%tap m layers -- m.fi") == ["first"]
    assert shown("%tap z l") == []


def test_a_pattern_for_everything_names_modules_alone(session: Session) -> None:
    reply = last(session, "%tap m * -- m(x)", TapReply)
    assert [row.place for row in reply.rows] == ["first", "layers.0", "layers.1", "layers", "sizes", ""]
    assert reply.result == ""  # the last row is the result


def test_a_hint_says_how_many_names_it_leaves_out(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.torch.jit.probing.taps.MOST_NAMED", 2)
    assert last(session, "%tap m xyzzy -- m(x)", ErrorReply).hints == ("there is first, layers and 3 more",)


@pytest.mark.parametrize("bad", ["NaN", "inf", "-inf"])
def test_one_bad_number_among_many_shows_where_it_comes_first(session: Session, bad: str) -> None:
    session.execute(
        f"x = torch.ones(50)\nx[49] = {{'NaN': float('nan'), 'inf': float('inf'), '-inf': -float('inf')}}['{bad}']"
    )
    reply = last(session, "%tap m * -- m(x)", TapReply)
    assert [f"1 {bad}" in row.value for row in reply.rows if "float32" in row.value] == [True] * 5
    assert f"1 {bad}" in last(session, "%tap m first -- m(x)[0]", TapReply).result
