"""Modules are called by their paths in every view of a call, wherever they stand among its variables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Final

import pytest

from tsrepl.session.plan_replies import CostReply
from tsrepl.session.replies import DebugReply, ErrorReply, Reply, ReportReply, TapReply, TraceReply
from tsrepl.session.session import Session

CLASSES: Final = """
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
    def forward(self, x):
        return self.fc(x) + 1

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Inner(), Inner()])
        self.same = self.blocks[0]
    def forward(self, x):
        for each in self.blocks:
            x = each(x)
        return self.same(x)
"""
MADE: Final = ("x = torch.ones(1, 2)", "m = Net()", "n = Net()")
CALLS: Final = {
    "m(x)": ("blocks.0", "blocks.0.fc", "blocks.1", "blocks.1.fc", "same", "same.fc"),
    "n(m(x))": tuple(
        f"{root}.{path}" for root in "mn"
        for path in ("blocks.0", "blocks.0.fc", "blocks.1", "blocks.1.fc", "same", "same.fc")
    ),
}  # fmt: skip
"""Each call, and the paths of the modules inside that it works for, in their order."""


@pytest.fixture(params=[*permutations(MADE)], ids=lambda order: "-".join(line[0] for line in order))
def session(request: pytest.FixtureRequest) -> Session:
    made = Session()
    for line in (CLASSES, *request.param):
        assert not any(isinstance(reply, ErrorReply) for reply in made.execute(line))
    return made


def debugged(session: Session, call: str) -> Iterator[str]:
    """The modules at which a debugger stops that is told to stop at each of those that the call names."""
    session.execute(f"%debug {call}")
    for path in CALLS[call]:
        session.execute(f"b {path}")
    while isinstance(stop := session.execute("c")[0], DebugReply) and stop.source:
        yield stop.title.rpartition(" of ")[2]
        if stop.title.endswith(".fc"):
            table = next(reply for reply in session.execute("w") if isinstance(reply, ReportReply))
            assert table.sections[0].rows[-2][2].endswith(f" of {stop.title.rpartition(' of ')[2][:-3]}")


def traced(session: Session, call: str) -> Iterator[str]:
    """The modules inside for which the rows of a trace are, in their order."""
    reply = session.execute(f"%trace {call}")[0]
    assert isinstance(reply, TraceReply)
    yield from dict.fromkeys(row.module for row in reply.rows if row.module not in ("", "m", "n"))


@pytest.mark.parametrize("call", CALLS)
def test_breakpoints_and_stops_name_the_modules_that_are_called(session: Session, call: str) -> None:
    assert tuple(debugged(session, call)) == CALLS[call]


@pytest.mark.parametrize("call", CALLS)
def test_traces_name_them(session: Session, call: str) -> None:
    assert tuple(traced(session, call)) == CALLS[call]


@pytest.mark.parametrize("call", CALLS)
def test_traces_are_of_the_modules_asked_for(session: Session, call: str) -> None:
    for path in CALLS[call]:
        reply = session.execute(f"%trace --module {path} {call}")[0]
        assert isinstance(reply, TraceReply)
        assert reply.rows and all(f"{row.module}.".startswith(f"{path}.") for row in reply.rows)


def test_a_path_without_a_name_before_it_means_one_in_each_model(session: Session) -> None:
    session.execute("%debug n(m(x))")
    session.execute("b blocks.1")
    stops = [session.execute("c")[0] for _ in range(3)]
    titles = [stop.title for stop in stops if isinstance(stop, DebugReply)]
    assert [title.rpartition(" of ")[2] for title in titles[:2]] == ["m.blocks.1", "n.blocks.1"]
    assert titles[2] == "the call has returned"


def test_the_name_of_the_model_may_stand_before_a_path(session: Session) -> None:
    session.execute("%debug m(x)")
    session.execute("b m.blocks.1")
    assert session.execute("c")[0].title.endswith(" of blocks.1")  # type: ignore[union-attr]


@pytest.mark.parametrize("ask", ["%trace --module blocks.7 m(x)", "%tap m blocks.7 -- m(x)"])
def test_an_unknown_path_is_refused_with_the_nearest(session: Session, ask: str) -> None:
    (error,) = session.execute(ask)
    assert isinstance(error, ErrorReply)
    assert "blocks.7" in error.message and any("blocks." in hint for hint in error.hints)
    session.execute("%debug m(x)")
    (error,) = session.execute("b blocks.7")
    assert isinstance(error, ErrorReply) and any("blocks." in hint for hint in error.hints)


def test_costs_are_told_for_each_model(session: Session) -> None:
    reply = session.execute("%profile n(m(x))")[0]
    assert isinstance(reply, CostReply)
    assert {"m", "n"} <= {row.name.split(".")[0] for row in reply.modules}


def test_taps_are_on_the_model_that_is_named(session: Session) -> None:
    m, n = (tapped(session.execute(f"%tap {name} * -- n(m(x))")) for name in "mn")
    assert m == n
    assert "blocks.1.fc" in m


def tapped(replies: list[Reply]) -> list[str]:
    return [row.place for reply in replies if isinstance(reply, TapReply) for row in reply.rows]
