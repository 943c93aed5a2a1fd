"""Numbers that several commands tell are the same number, or have names that say where they part."""

from typing import TypeVar

import pytest

from engine.lang.counts import duration
from tsrepl.session import Session
from tsrepl.session.plan_replies import CostReply, ExplainReply
from tsrepl.session.replies import KernelsReply, PassReply, TimeReply

R = TypeVar("R")


@pytest.fixture
def session() -> Session:
    session = Session()
    session.execute("x = torch.ones(2)")
    session.execute("def g(x):\n    return (x * 2).tanh().sum()\n")
    session.execute(
        "def loop(x, n: int):\n    for i in range(n):\n        x = x * 2 + bool(x.sum() > 9)\n    return x\n"
    )
    return session


def reply(session: Session, line: str, kind: type[R]) -> R:
    (found,) = (each for each in session.execute(line) if isinstance(each, kind))
    return found


def test_the_first_run_is_told_where_it_compiles(session: Session) -> None:
    compiled = [reply(session, f"%time {text}", TimeReply).compiled for text in ("g(x)", "g(x)", "x + 1", "x + 1")]
    assert compiled == ["calls", "", "expression", "expression"]


@pytest.mark.parametrize("call", ["g(x)", "loop(x, 20)", "x + 1"])
def test_two_commands_measure_a_call_alike(session: Session, call: str) -> None:
    pairs = [
        (reply(session, f"%time {call}", TimeReply).best, reply(session, f"%profile {call}", CostReply).call)
        for _ in range(3)
    ]
    assert min(max(pair) / min(pair) for pair in pairs) < 1.5  # a busy machine may slow one of two down


def test_two_commands_tell_of_one_compilation(session: Session) -> None:
    session.execute("def h(x):\n    y = (x * 2).tanh()\n    print(y)\n    return (y + x).relu() * y\n")
    (plan,) = reply(session, "%explain h(x)", ExplainReply).plans
    told = [text.rpartition("compiled in ")[2] for label, text in plan.facts if label == "kernel"]
    (row,) = reply(session, "%kernels h(x)", KernelsReply).plans
    assert told == [duration(sum(kernel.compiled for kernel in group.kernels)) for group in row.groups] != []


def test_a_pass_with_options_says_so(session: Session) -> None:
    session.execute("def caller(x):\n    return g(x) * g(x)\n")
    titles = [
        next(each.title for each in session.execute(line) if isinstance(each, PassReply) and each.changed)
        for line in ("%passes caller inline", "%passes caller(x)")
    ]
    assert titles == ["inline", "inline(simplify=False)"]
