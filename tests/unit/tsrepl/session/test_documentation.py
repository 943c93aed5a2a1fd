"""`%doc` knows what a person may ask for: operators, layers, functions of nn, passes and kinds of nodes."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Final

import pytest

import engine
import engine.torch as torch
from engine.aten.dispatch import table
from engine.fuser.backend import tiering
from engine.passes.pipeline import names as pass_names
from tsrepl.session.documentation import of_object
from tsrepl.session.module_classes import layer_names
from tsrepl.session.node_kinds import NODE_KINDS
from tsrepl.session.replies import ErrorReply, GraphReply, HelpReply, Reply, ReportReply, SchemaReply, TextReply
from tsrepl.session.session import Session

ENGINE: Final = Path(__file__).parents[4] / "engine"
_KIND: Final = re.compile(r'"(prim::[A-Z]\w*)"')


@pytest.fixture(scope="module")
def session() -> Session:
    return Session()


def texts(replies: list[Reply]) -> str:
    return "\n".join(reply.text for reply in replies if isinstance(reply, TextReply))


@pytest.mark.parametrize("name", pass_names())
def test_passes_are_told_of_with_what_they_do_to_a_graph(session: Session, name: str) -> None:
    told = texts(session.execute(f"%doc {name}"))
    assert f"the pass {name}: " in told and "→" in told
    assert f"%passes f {name}" in told


@pytest.mark.parametrize("name", pass_names())
def test_examples_of_passes_fit_a_narrow_terminal(session: Session, name: str) -> None:
    first, *lines = texts(session.execute(f"%doc {name}")).split("\n")
    assert all(len(line) <= 80 for line in lines if "%" in line and " : " in line)
    assert all(line.endswith((".", ":", ")")) for line in (first, *lines) if line[:1].isupper())  # prose is one line


def test_signatures_have_annotations_without_quotes(session: Session) -> None:
    (schema, *_) = session.execute("%doc nn.Linear")
    assert isinstance(schema, SchemaReply)
    assert schema.schemas[0].startswith("nn.Linear(in_features: int, out_features: int, bias: bool = True")
    assert not any("'int'" in text or "-> None" in text for text in schema.schemas)


def test_help_has_a_word_on_every_pass(session: Session) -> None:
    (reply,) = session.execute("%help passes")
    assert isinstance(reply, HelpReply)
    assert [topic.usage for topic in reply.topics] == pass_names()
    assert all(len(topic.summary) > 10 for topic in reply.topics)


@pytest.mark.parametrize("kind", NODE_KINDS)
def test_nodes_are_told_of(session: Session, kind: str) -> None:
    for name in (kind, kind.removeprefix("prim::")):
        replies = session.execute(f"%doc {name}")
        assert NODE_KINDS[kind].meaning in texts(replies)
        examples = [reply.text for reply in replies if isinstance(reply, GraphReply)]
        assert examples == ([NODE_KINDS[kind].example] if NODE_KINDS[kind].example else [])


def test_no_kind_of_node_is_left_out() -> None:
    """Kinds begin with a capital letter where they are no operators; the engine's sources name them all."""
    written = {kind for path in ENGINE.rglob("*.py") for kind in _KIND.findall(path.read_text(encoding="utf-8"))}
    known = {*NODE_KINDS, *table.names()}
    assert sorted(kind for kind in written - known if not kind.endswith("_")) == []


@pytest.mark.parametrize("name", layer_names())
def test_layers_are_told_of_with_what_they_take(session: Session, name: str) -> None:
    for path in (f"torch.nn.{name}", f"nn.{name}"):
        replies = session.execute(f"%doc {path}")
        assert isinstance(replies[0], SchemaReply) and f"{name}(" in replies[0].schemas[0]


@pytest.mark.parametrize(
    "name", ["relu", "torch.relu", "aten::relu", "F.relu", "nn.functional.relu", "torch.nn.functional.relu"]
)
def test_operators_are_told_of_by_their_rows(session: Session, name: str) -> None:
    replies = session.execute(f"%doc {name}")
    assert isinstance(replies[0], SchemaReply)
    rows = [
        row for reply in replies if isinstance(reply, ReportReply) for section in reply.sections for row in section.rows
    ]
    assert ("gradient of self", "threshold_backward(grad, result, 0)") in [row[:2] for row in rows]


def test_every_operator_can_be_asked_for(session: Session) -> None:
    names = [name for name in table.names() if name.startswith(("aten::", "prim::"))]
    failed = [name for name in names[::7] if any(isinstance(r, ErrorReply) for r in session.execute(f"%doc {name}"))]
    assert failed == []


@pytest.mark.parametrize("entry", ["?cse", "cse?", "?? cse", "help(cse)", "help('cse')", "%doc cse"])
def test_every_way_to_ask_is_one(session: Session, entry: str) -> None:
    assert session.execute(entry) == session.execute("%doc cse")


def test_what_is_unknown_is_told_with_the_nearest(session: Session) -> None:
    (error,) = session.execute("%doc dec")
    assert isinstance(error, ErrorReply) and error.hints
    (error,) = session.execute("%doc prim::Lop")
    assert isinstance(error, ErrorReply) and "Loop" in error.hints[0]


@pytest.mark.parametrize("name", ["tanh", "sum", "exp", "relu"])
def test_methods_are_documented_alike_when_kernels_have_taken_them(name: str) -> None:
    tensor, mode = torch.ones(3), tiering.mode()
    before = [*of_object(name, getattr(tensor, name))]
    engine.set_compile_mode("eager")
    try:
        for _ in range(5):
            getattr(tensor, name)()
        assert inspect.isbuiltin(getattr(tensor, name))
        assert [*of_object(name, getattr(tensor, name))] == before != []
    finally:
        engine.set_compile_mode(mode)
