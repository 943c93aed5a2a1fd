"""What is completed can be typed: no candidate is a name that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

import engine.torch as torch
from engine.torch import nn
from tsrepl.session import Session
from tsrepl.session.replies import ErrorReply

SETUP = (
    "x = torch.ones(2)",
    "words = 'a'",
    "numbers = [1, 2]",
    "table = {'a': 1}",
    "def widen(n: int) -> int:\n    return n",
    "class Pair:\n    def __init__(self, n: int):\n        self.n = n\n",
    "pair = Pair(1)",
    "class Color(Enum):\n    RED = 1\n    GREEN = 2\n",
    "class Point(NamedTuple):\n    first: Tensor\n    second: int\n",
    "point = Point(x, 1)",
    "colour = Color.RED",
)
PREFIXES = (
    "m.", "m.layers.", "m.layers[0].", "m.layers.0.", "m.layers.0.weight.requires", "x.sh", "x.shape.", "x.re",
    "words.", "numbers.", "table.", "pair.", "math.", "torch.rel", "torch.fl", "wid", "num", "len", "max", "sor",
    "arang", "Color.", "Color.RED.", "colour.", "point.", "point.fi", "'a' + wor",
)  # fmt: skip
STRANGE = ("undefined value", "has no attribute", "Unknown builtin", "not defined on", "nothing is called")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    torch.jit.script(Net()).save(str(tmp_path / "net.pt"))
    session = Session()
    session.execute(f"%load {tmp_path / 'net.pt'} as m")
    for text in SETUP:
        session.execute(text)
    return session


def is_strange(session: Session, text: str) -> bool:
    """True if the session does not know what the text names; it may still want arguments."""
    reply = session.execute(text)[-1:]
    return (
        bool(reply)
        and isinstance(reply[0], ErrorReply)
        and (reply[0].kind == "Syntax error" or any(each in reply[0].message for each in STRANGE))
    )


@pytest.mark.parametrize("prefix", PREFIXES)
def test_what_is_offered_is_accepted(session: Session, prefix: str) -> None:
    offered = session.complete(prefix)
    texts = [prefix[: len(prefix) - each.replaces] + each.text for each in offered]
    assert texts
    assert [text for text in texts if is_strange(session, text) and is_strange(session, f"{text}()")] == []
