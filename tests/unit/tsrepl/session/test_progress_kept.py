"""What is bound when an entry ends early, and where that was."""

from __future__ import annotations

import _thread
import threading

import pytest

from tsrepl.session import Session
from tsrepl.session.replies import ErrorReply, Reply, TextReply


@pytest.fixture
def session() -> Session:
    session = Session()
    session.execute("n = 0")
    return session


def values(session: Session) -> dict[str, object]:
    return {name: value for name, value, _ in session.variables()}


def note(replies: list[Reply]) -> str:
    failed, said = replies
    assert isinstance(failed, ErrorReply) and isinstance(said, TextReply), replies
    return said.text


def interrupted(session: Session, text: str) -> list[Reply]:
    """The replies of an entry that is interrupted while it runs: later if a busy machine had not begun to run it."""
    for seconds in (0.3, 1.0, 5.0):
        timer = threading.Timer(seconds, _thread.interrupt_main)
        timer.start()
        replies = list(session.run_text(text))
        timer.join()
        if len(replies) > 1:
            break
    return replies


def test_a_loop_that_fails_keeps_what_it_had(session: Session) -> None:
    said = note(session.execute("for i in range(9):\n    n += i\n    first, n2 = [1, 2, 3][i], n * 2"))
    assert said == "stopped in the iteration where i = 3; i, n, first, n2 keep what they had"
    assert values(session) == {"n": 6, "i": 3, "first": 3, "n2": 6}


def test_the_error_tells_the_line(session: Session) -> None:
    failed = session.execute("while n < 9:\n    n += 1\n    one = 1 // (4 - n)")[0]
    assert isinstance(failed, ErrorReply) and failed.places[0].location == "entry 2, line 3"
    assert values(session) == {"n": 4, "one": 1}


def test_names_keep_their_types(session: Session) -> None:
    session.execute("best: Optional[int] = None")
    session.execute("for i in range(9):\n    best = i\n    [1, 2][i]")
    assert [str(type) for name, _, type in session.variables() if name == "best"] == ["int?"]


@pytest.mark.parametrize("body", ["n = n + i % 7", "n += 1\n    x = torch.tanh(x)"])
def test_an_interrupt_keeps_it_too(session: Session, body: str) -> None:
    session.execute("x = torch.ones(3)")
    said = note(interrupted(session, f"for i in range(2000000000):\n    {body}"))
    at = values(session)["i"]
    assert isinstance(at, int) and at > 0
    assert said.startswith(f"stopped in the iteration where i = {at}; i, n")


def test_a_while_loop_tells_how_often_it_ran(session: Session) -> None:
    said = note(session.execute("while True:\n    n += 1\n    while n < 3:\n        n += 1\n    one = 1 // (6 - n)"))
    assert said == "stopped in iteration 4; n, one keep what they had"


def test_an_interrupt_tells_the_line_and_the_iteration(session: Session) -> None:
    session.execute("def again(n: int):\n    while n >= 0:\n        n = n * 3 % 1000003\n    return n")
    failed, said = interrupted(session, "while True:\n    print(n)\n    again(1)")
    assert isinstance(failed, ErrorReply) and isinstance(said, TextReply)
    outer, inner = failed.places
    assert outer.location == f"entry {len(session.workspace.history)}, line 3"
    assert inner.location in ("entry 2, line 2, in again", "entry 2, line 3, in again")
    assert said.text == "stopped in iteration 1"


def test_statements_on_one_line_are_kept_one_by_one(session: Session) -> None:
    (failed,) = session.execute("a = 1; b = 1 // n; c = 2")
    assert isinstance(failed, ErrorReply)
    assert values(session) == {"n": 0, "a": 1}


def test_a_loop_that_ends_leaves_its_names(session: Session) -> None:
    assert session.execute("for i, word in enumerate(['a', 'b']):\n    last = word") == []
    assert values(session) == {"n": 0, "i": 1, "word": "b", "last": "b"}


def test_what_is_deleted_is_gone(session: Session) -> None:
    session.execute("for i in range(2):\n    n = i\ndel n")
    assert values(session) == {"i": 1}


def test_what_cannot_be_stored_still_runs(session: Session) -> None:
    assert session.execute("for i in range(2):\n    g = torch.relu\n    n += 1") == []
    assert values(session)["n"] == 2


def test_a_loop_that_is_over_tells_nothing(session: Session) -> None:
    said = note(session.execute("if True:\n    for i in range(3):\n        n = i\n    n = 1 // (n - 2)"))
    assert said == "i, n keep what they had"


def test_what_cannot_be_stored_leaves_the_rest_kept(session: Session) -> None:
    said = note(session.execute("for i in range(9):\n    g = torch.relu\n    n += 1\n    one = 1 // (3 - i)"))
    assert said == "stopped in the iteration where i = 3; i, n, one keep what they had"
    assert values(session) == {"n": 4, "i": 3, "one": 1}


NESTED = {
    "for i in range(9):\n    for j in range(9):\n        n = 1 // (16 - i * j)": "the iteration where i = 2, j = 8",
    "for i in range(9):\n    for j in range(2):\n        n = j\n    n = 1 // (4 - i)": "the iteration where i = 4",
    "for i in range(3):\n    while n < 9:\n        n = n + 1\n        one = 1 // (4 - n)": (
        "the iteration where i = 0, in it iteration 4"
    ),
    "while n < 99:\n    for j in range(9):\n        n = n + 1\n        one = 1 // (12 - n)": (
        "iteration 2, in it the iteration where j = 2"
    ),
    "if True:\n    for j in range(9):\n        n = 1 // (2 - j)": "the iteration where j = 2",
    "if True:\n    while n < 9:\n        n = n + 1\n        one = 1 // (3 - n)": "iteration 3",
    "for i in range(9):\n    for j in range(9):\n        if j == 1:\n            break\n    n = 1 // (3 - i)": (
        "the iteration where i = 3"
    ),
}


@pytest.mark.parametrize(("text", "where"), NESTED.items())
def test_all_loops_that_run_are_told(session: Session, text: str, where: str) -> None:
    assert note(session.execute(text)).startswith(f"stopped in {where}; ")
