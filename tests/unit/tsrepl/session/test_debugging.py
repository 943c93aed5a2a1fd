"""The debugger's dialogue: what it answers to each command."""

from pathlib import Path

import pytest

from tsrepl.session.replies import (
    DebugReply,
    ErrorReply,
    HelpReply,
    Reply,
    ReportReply,
    TextReply,
    ValueReply,
    WhoReply,
)
from tsrepl.session.session import Session

PROGRAM = """
def total(a):
    a.add_(1)
    return a.sum()

def f(x, n: int):
    z = x * 2
    for i in range(n):
        z[0] = float(i)
        s = total(z)
        x = x + s
    return x

x = torch.ones(2)
"""


@pytest.fixture
def session() -> Session:
    made = Session()
    made.execute(PROGRAM)
    return made


def place(replies: list[Reply]) -> DebugReply:
    (found,) = [each for each in replies if isinstance(each, DebugReply)]
    return found


def here(replies: list[Reply]) -> str:
    """The text of the line at which the run stands."""
    return next(row.text.strip() for row in place(replies).source if row.is_here)


def test_it_starts_at_the_first_line_of_what_is_called_and_asks_for_commands(session: Session) -> None:
    assert session.prompt == ""
    assert here(session.execute("%debug f(x, 2)")) == "z = x * 2"
    assert session.prompt == "(debug) "
    session.execute("q")
    assert session.prompt == ""
    assert isinstance(session.execute("1 + 1")[0], ValueReply)


def test_moves_show_what_changed(session: Session) -> None:
    session.execute("%debug f(x, 2)")
    found = place(session.execute("n"))
    assert [(each.name, each.summary) for each in found.variables] == [("z", "float32 (2,)  2, 2"), ("i", "0")]
    assert found.node.startswith("%x : Tensor = prim::Loop")
    assert "lt" in found.instruction
    assert here(session.execute("n 2")) == "s = total(z)"
    assert here(session.execute("s")) == "a.add_(1)"
    assert here(session.execute("bs")) == "s = total(z)"
    assert here(session.execute("back 2")) == "for i in range(n):"


def test_an_empty_line_repeats_the_last_move(session: Session) -> None:
    session.execute("%debug f(x, 2)")
    session.execute("n")
    assert here(session.execute("")) == "z[0] = float(i)"
    session.execute("p z")
    assert session.execute("") == []


def test_breakpoints_are_made_listed_and_deleted(session: Session) -> None:
    session.execute("%debug f(x, 3)")
    assert session.execute("b total if a.max() > 3") == [TextReply("1: total if a.max() > 3", "done")]
    found = place(session.execute("c"))
    assert found.reason == "breakpoint 1: total if a.max() > 3"
    assert [row.is_stop for row in found.source if row.is_here] == [True]
    (table,) = session.execute("b")
    assert isinstance(table, ReportReply)
    assert table.sections[0].rows == (("1", "total if a.max() > 3", "1", ""),)
    session.execute("cl 1")
    assert session.execute("b") == [TextReply("no breakpoints")]


def test_values_are_shown_and_changed(session: Session) -> None:
    session.execute("%debug f(x, 2)")
    session.execute("n")
    (value,) = session.execute("z.sum() + n")
    assert isinstance(value, ValueReply)
    assert value.text == "tensor(6.)"
    session.execute("n = 0")
    assert isinstance(session.execute("!n")[0], ValueReply)
    found = place(session.execute("c"))
    assert found.result == "float32 (2,)  1, 1"


def test_assignments_to_names_of_commands_are_assignments(session: Session) -> None:
    session.execute("%debug f(x, 2)")
    session.execute("n += 1")
    (value,) = session.execute("p n")
    assert isinstance(value, ValueReply)
    assert value.value == 3


def test_calls_are_listed_and_selected(session: Session) -> None:
    session.execute("%debug f(x, 2)")
    session.execute("b total")
    session.execute("c")
    (table,) = session.execute("w")
    assert isinstance(table, ReportReply)
    assert [row[3] for row in table.sections[0].rows] == ["f(x, 2)", "s = total(z)", "a.add_(1)"]
    assert here(session.execute("u")) == "s = total(z)"
    assert here(session.execute("d")) == "a.add_(1)"
    (error,) = session.execute("d")
    assert isinstance(error, ErrorReply)


def test_watches_tell_the_values(session: Session) -> None:
    session.execute("%debug f(x, 2)")
    session.execute("n")
    session.execute("watch z.sum()")
    assert place(session.execute("c")).reason == "1: watch z.sum()   tensor(4.) → tensor(2.)"


def test_after_an_error_the_entry_is_run_again_up_to_it(session: Session) -> None:
    session.execute("def g(x):\n    y = x * 2\n    return y[7]\n")
    assert isinstance(session.execute("g(x)")[0], ErrorReply)
    replies = session.execute("%debug")
    assert isinstance(place(replies).error, ErrorReply)
    assert here(replies) == "return y[7]"
    assert here(session.execute("bs")) == "y = x * 2"


def test_without_an_error_there_is_nothing_to_look_at(session: Session) -> None:
    (error,) = session.execute("%debug")
    assert isinstance(error, ErrorReply)
    assert error.message == "nothing has failed yet"


def test_the_end_can_be_left_backwards(session: Session) -> None:
    session.execute("%debug f(x, 1)")
    assert place(session.execute("c")).result
    (error,) = session.execute("w2")
    assert isinstance(error, ErrorReply)
    assert here(session.execute("bs")) == "return x"
    assert here(session.execute("run")) == "z = x * 2"


def test_displays_and_lists(session: Session) -> None:
    session.execute("%debug f(x, 2)")
    session.execute("display n * 2")
    assert session.execute("n")[-1] == TextReply("n * 2 = 4")
    session.execute("undisplay n * 2")
    assert isinstance(session.execute("n")[-1], DebugReply)
    assert isinstance(session.execute("locals")[0], WhoReply)
    assert isinstance(session.execute("regs")[0], ReportReply)
    assert len(place(session.execute("l 5")).source) == 7
    assert isinstance(session.execute("h")[0], HelpReply)


def test_commands_of_the_shell_work_at_its_prompt(session: Session) -> None:
    session.execute("%debug f(x, 2)")
    assert isinstance(session.execute("%who")[0], WhoReply)
    assert session.prompt


def test_a_text_may_hold_the_commands_too(session: Session) -> None:
    replies = session.execute("%debug f(x, 2)\nn\nn\nq\n2 + 3")
    assert isinstance(replies[-1], ValueReply)
    assert replies[-1].value == 5


def test_unknown_names_are_errors_with_hints(session: Session) -> None:
    session.execute("%debug f(x, 2)")
    (error,) = session.execute("b totl")
    assert isinstance(error, ErrorReply)
    assert any("total" in hint for hint in error.hints)
    (error,) = session.execute("qqq")
    assert isinstance(error, ErrorReply)


def test_graphs_of_plans_run_with_their_guards(session: Session) -> None:
    session.execute("%guards f(x, 2)")
    session.execute("y = torch.ones(5)")
    session.execute("%debug --plan f(y, 2)")
    session.execute("b guard")
    found = place(session.execute("c"))
    assert found.reason == "breakpoint 1: guard"
    assert "prim::BailOut" in found.node
    assert here(session.execute("s")) in PROGRAM
    assert "float32 (5,)" in place(session.execute("c")).result


def test_guards_are_those_of_plans(session: Session) -> None:
    session.execute("%debug f(x, 2)")
    (error,) = session.execute("b guard")
    assert isinstance(error, ErrorReply)
    assert error.message == "there are no guards here"


def test_variables_of_an_archive_have_their_authors_names() -> None:
    session = Session()
    session.execute(f"%load {Path(__file__).parents[4] / 'examples' / 'mlp.pt'} as m")
    session.execute("%debug m(torch.ones(1, 6))")
    session.execute("b if x.size(1) == 16")
    stop = place(session.execute("c"))
    assert here([stop]) == "x = F.gelu(self.fc1(x))"
    assert [each.name for each in stop.variables] == ["x"]
    (shape,) = session.execute("x.shape")
    assert isinstance(shape, ValueReply) and "[1, 16]" in str(shape)


def test_functions_that_forks_call_are_places_for_breakpoints() -> None:
    session = Session()
    session.execute("def work(x):\n    return x * 2\n\ndef f(x):\n    return torch.jit.wait(torch.jit.fork(work, x))\n")
    session.execute("%debug f(torch.ones(2))")
    session.execute("b work")
    assert here(session.execute("c")) == "return x * 2"


def test_a_mistyped_command_names_the_nearest(session: Session) -> None:
    session.execute("%debug f(x, 2)")
    (error,) = session.execute("nxt")
    assert isinstance(error, ErrorReply) and "'next'" in error.hints[0]
