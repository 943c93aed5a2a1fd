"""Modules at the prompt as in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import engine.torch as torch
from engine.torch import nn
from tsrepl.session import Session
from tsrepl.session.replies import ErrorReply, ModuleReply, ReportReply, TextReply, ValueReply


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)

    @torch.jit.export
    def zero_grad(self) -> int:
        return 7


@pytest.fixture
def session(tmp_path: Path) -> Session:
    torch.jit.script(Net()).save(str(tmp_path / "net.pt"))
    session = Session()
    session.execute(f"%load {tmp_path / 'net.pt'} as m")
    return session


def value(session: Session, text: str) -> object:
    reply = session.execute(text)[-1]
    assert isinstance(reply, ValueReply), reply
    return reply.value


@pytest.mark.parametrize("path", ["m.layers[0]", "m.layers.0", "m.layers[-2]"])
def test_parts_by_number(session: Session, path: str) -> None:
    (reply,) = session.execute(path)
    assert isinstance(reply, ModuleReply) and reply.root.type == "Linear"


def test_an_attribute_of_a_part(session: Session) -> None:
    (reply,) = session.execute("m.layers.0.weight")
    assert isinstance(reply, ValueReply) and reply.facts.startswith("float32 (3, 2)")


@pytest.mark.parametrize("path", ["m.layers[2]", "m.layers.2", "m.nothing[0]", "nothing[0]"])
def test_parts_that_are_not_there(session: Session, path: str) -> None:
    assert isinstance(session.execute(path)[0], ErrorReply)


def test_modes(session: Session) -> None:
    assert session.execute("m.eval()") == [TextReply("eval has changed m", "done")]
    assert value(session, "m.training") is False
    session.execute("m.layers[1].train()")
    assert isinstance(session.execute("m.layers[1]")[0], ModuleReply)
    session.execute("m.train(False)")
    assert value(session, "m.training") is False
    session.execute("m.train()")
    assert value(session, "m.training") is True


def test_dtypes(session: Session) -> None:
    session.execute("m.eval()")
    for text, name in (("m.to(torch.float64)", "float64"), ("m.half()", "float16"), ("m.float()", "float32")):
        session.execute(text)
        (reply,) = session.execute(f"m(torch.ones(1, 2, dtype=torch.{name}))")
        assert isinstance(reply, ValueReply) and reply.facts.startswith(name)


def test_state(session: Session) -> None:
    (reply,) = session.execute("m.state_dict()")
    assert isinstance(reply, ReportReply)
    assert reply.sections[0].rows == (("layers.0.weight", "float32", "3 × 2"), ("layers.0.bias", "float32", "3"))
    assert session.execute("w = m.state_dict()") == []
    assert value(session, 'w["layers.0.bias"].size(0)') == 3
    session.execute("p = m.parameters()")
    assert value(session, "sum([each.numel() for each in p])") == 9


def test_names(session: Session) -> None:
    (reply,) = session.execute("m.named_modules()")
    assert isinstance(reply, ReportReply)
    assert reply.sections[0].rows == (
        ("(the module)", "Net"), ("layers", "Sequential"), ("layers.0", "Linear"), ("layers.1", "Dropout"),
    )  # fmt: skip
    (reply,) = session.execute("m.layers.children()")
    assert isinstance(reply, ReportReply) and len(reply.sections[0].rows) == 2


def test_a_method_of_the_program_is_the_programs(session: Session) -> None:
    assert value(session, "m.zero_grad()") == 7


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("m.to(torch.int64)", "only accepts floating point"),
        ("m.to(nonsense())", "'nonsense()' cannot be an argument here"),
        ("m.parameters(1)", "takes no arguments"),
        ("m.eval(1, 2)", "eval"),
    ],
)
def test_what_is_refused(session: Session, text: str, told: str) -> None:
    (reply,) = session.execute(text)
    assert isinstance(reply, ErrorReply) and told in reply.message


def test_parts_in_expressions(session: Session) -> None:
    for path in ("m.layers[0]", "m.layers.0", "m.layers[-2]"):
        assert value(session, f"{path}(torch.ones(1, 2)).size(1) + {path}.bias.numel()") == 6
    session.execute("y = m.layers[0](torch.ones(1, 2))")
    assert value(session, "y.size(1)") == 3


def test_parts_by_the_name_that_they_have(session: Session) -> None:
    assert value(session, 'm["layers"]["0"].bias.numel()') == 3


@pytest.mark.parametrize("command", ["graph", "code", "schema", "doc", "modules", "instructions"])
def test_commands_take_the_paths_of_parts(session: Session, command: str) -> None:
    texts = [session.execute(f"%{command} {path}") for path in ("m.layers[0]", "m.layers.0")]
    assert not any(isinstance(reply, ErrorReply) for reply in texts[0])
    assert str(texts[0]).replace("layers[0]", "layers.0") == str(texts[1])


def test_a_part_is_shown_under_its_path(session: Session) -> None:
    (reply,) = session.execute("m.layers[0]")
    assert isinstance(reply, ModuleReply) and reply.title == "m.layers.0"


def test_queries_in_programs(session: Session) -> None:
    assert value(session, "sum([each.numel() for each in m.parameters()])") == 9
    assert value(session, "list(m.state_dict().keys())") == ["layers.0.weight", "layers.0.bias"]
    session.execute("n = 0\nfor name, p in m.layers[0].named_parameters():\n    n += p.numel() * len(name)")
    assert value(session, "n") == 6 * len("weight") + 3 * len("bias")


def test_names_of_the_entry_hide_modules(session: Session) -> None:
    assert value(session, "sum([m[0] for m in [[1, 2], [3, 4]]])") == 4


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("m.register_forward_hook(1)", "%tap m part"),
        ("m.layers[0].apply(1)", "loop over m.parameters()"),
        ("m.eval()(torch.ones(1, 2))", "give it an entry before this one"),
        ("[each for each in m.modules()]", "modules differ in type"),
        ("m.layers['a']", "there is 0, 1"),
    ],
)
def test_refusals_say_what_to_write_instead(session: Session, text: str, hint: str) -> None:
    (reply,) = session.execute(text)
    assert isinstance(reply, ErrorReply) and hint in reply.hints[0]
    assert "HERE" in reply.excerpt
