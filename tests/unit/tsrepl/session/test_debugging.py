"""The debugger's dialogue: what it answers to each command."""

from keyword import iskeyword
from pathlib import Path

import pytest

from engine.executor.debugging.recording import Recording
from tsrepl.session.debugging import COMMANDS
from tsrepl.session.entries import LEAVE
from tsrepl.session.replies import (
    DebugReply,
    ErrorReply,
    HelpReply,
    Reply,
    ReportReply,
    TextReply,
    TraceReply,
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


FAILS = """
def spoil(x):
    y = x - x
    return (y + 1) / (y - y)

def sums(a, n: int):
    total = torch.zeros(1)
    for i in range(n):
        total = total + spoil(a).sum()
    return total

def swapped(n, a):
    b = n + a
    return b

a = torch.ones(2)
"""


@pytest.fixture
def failing() -> Session:
    made = Session()
    made.execute(FAILS)
    return made


def texts(replies: list[Reply]) -> list[str]:
    return [each.text for each in replies if isinstance(each, TextReply)]


@pytest.mark.parametrize("word", [*sorted(LEAVE), "q"])
def test_every_word_that_leaves_leaves_the_debugger_alone(session: Session, word: str) -> None:
    session.execute("%debug f(x, 2)")
    assert texts(session.execute(word)) == ["left the debugger"]
    assert session.prompt == ""
    assert isinstance(session.execute("x")[0], ValueReply)


def test_a_watch_of_what_is_not_set_yet_says_so(failing: Session) -> None:
    failing.execute("%debug sums(a, 3)")
    failing.execute("watch total")
    assert place(failing.execute("c")).reason == "1: watch total   unset → float32 (1,)  0"


def test_a_watch_takes_nan_for_nan(failing: Session) -> None:
    failing.execute("%debug sums(a, 3)")
    failing.execute("watch torch.isnan(total) * total")
    stops = [place(failing.execute("c")) for _ in range(3)]
    assert [bool(stop.reason) for stop in stops] == [True, True, False]


def test_a_display_of_what_is_not_set_says_so(failing: Session) -> None:
    failing.execute("%debug sums(a, 3)")
    assert texts(failing.execute("display i")) == ["i is not set here"]
    assert texts(failing.execute("display i + n")) == ["i is not set here"]
    assert any("nothing" in text for text in texts(failing.execute("display nothing")))


@pytest.mark.parametrize("name", ["x", "w", "a", "h", "locals"])
def test_a_command_with_the_name_of_a_variable_tells_of_it_once(name: str) -> None:
    session = Session()
    session.execute(f"def f({name}):\n    y = {name} * 2\n    return y\n")
    session.execute("%debug f(torch.ones(2))")
    assert f"{name} is also a variable here: !{name} shows it" in texts(session.execute(name))
    assert texts(session.execute(name)) == []
    (value,) = session.execute(f"!{name}")
    assert isinstance(value, ValueReply)
    (value,) = session.execute(f"{name} + 1")
    assert isinstance(value, ValueReply) and value.text == "tensor([2., 2.])"


def test_arguments_stand_in_the_order_of_the_signature(failing: Session) -> None:
    failing.execute("%debug swapped(torch.ones(1), torch.ones(1))")
    (reply,) = failing.execute("a")[:1]
    assert isinstance(reply, WhoReply)
    assert [each.name for each in reply.bindings] == ["n", "a"]


def test_every_name_of_pdb_and_gdb_is_known(session: Session) -> None:
    """A command of theirs works, or says what to do instead; none is read as TorchScript."""
    session.execute("def calls(x):\n    y = x * 2\n    return y\n")
    for name in PDB + GDB:
        session.execute("%debug calls(x)")
        for reply in session.execute(name):
            if isinstance(reply, ErrorReply):
                assert "is no command" not in reply.message and "undefined" not in reply.message, name
                assert reply.kind != "Syntax error" and (reply.hints or name in ("d", "down", "info")), name


PDB = (
    "h help bt where w d down u up b break tbreak cl clear disable enable ignore condition commands s step n next unt "
    "until r return c cont continue j jump l list ll longlist a args p pp whatis source display undisplay interact "
    "alias unalias run restart q quit exit debug retval rv exceptions"
).split()
GDB = (
    "backtrace frame info finish fin stepi si nexti ni delete thread watch rwatch awatch reverse-step reverse-next "
    "reverse-continue reverse-finish reverse-stepi start kill inspect ptype advance set catch record layout shell "
    "printf disassemble checkpoint print tb"
).split()


def test_conditions_are_changed(failing: Session) -> None:
    failing.execute("%debug sums(a, 5)")
    failing.execute("b 9")
    failing.execute("condition 1 i == 3")
    failing.execute("c")
    assert [each.text for each in failing.execute("p i") if isinstance(each, ValueReply)] == ["3"]
    failing.execute("condition 1")
    failing.execute("c")
    assert [each.text for each in failing.execute("p i") if isinstance(each, ValueReply)] == ["4"]
    for wrong in ("condition 7 i > 1", "condition", "condition 1 ((", "condition nan"):
        (error,) = failing.execute(wrong)
        assert isinstance(error, ErrorReply)


def test_gdbs_info_tells_what_other_commands_tell(failing: Session) -> None:
    failing.execute("%debug sums(a, 2)")
    failing.execute("n")
    for info, same in (("locals", "locals"), ("args", "a"), ("breakpoints", "b"), ("b", "b"), ("registers", "regs")):
        assert failing.execute(f"info {info}")[:1] == failing.execute(same)[:1], info
    (error,) = failing.execute("info nonsense")
    assert isinstance(error, ErrorReply) and "locals" in error.message


def test_a_stop_at_nan_shows_what_was_computed(failing: Session) -> None:
    failing.execute("%debug sums(a, 2)")
    failing.execute("watch inf")
    stop = place(failing.execute("c"))
    first = stop.variables[0]
    assert (first.name, first.summary) == ("(y + 1) / (y - y)", "float32 (2,)  inf, inf")
    failing.execute("%debug swapped(torch.full([1], float('nan')), torch.ones(1))")
    failing.execute("watch nan")
    stop = place(failing.execute("c"))
    assert [each.name for each in stop.variables].count("b") == 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_nan_is_found_in_every_dtype(dtype: str) -> None:
    session = Session()
    session.execute("def f(x):\n    y = x - x\n    z = y / y\n    return torch.relu(z.abs())\n")
    session.execute(f"x = torch.ones(2, dtype=torch.{dtype})")
    session.execute("%debug f(x)")
    session.execute("watch nan")
    assert here(session.execute("c")) == "return torch.relu(z.abs())"
    session.execute("q")
    trace = session.execute("%trace --first-nan f(x)")[0]
    assert isinstance(trace, TraceReply) and " = div" in trace.rows[-1].instruction


def test_nan_is_found_in_numbers_and_lists() -> None:
    session = Session()
    session.execute("def f(x: float):\n    y = x - x\n    z = [y, y * float('inf')]\n    return z\n")
    session.execute("%debug f(1.0)")
    session.execute("watch nan")
    assert "nan" in place(session.execute("c")).variables[0].summary


def test_a_debugged_call_that_is_replaced_is_told_of(session: Session) -> None:
    session.execute("%debug f(x, 2)")
    replies = session.execute("%debug f(x, 3)")
    assert texts(replies) == ["the call that was debugged before is left"]
    assert here(replies) == "z = x * 2"


def test_an_interrupted_goto_shows_where_it_stands(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.execute("%debug f(x, 100)")

    def interrupted(self: Recording, position: int) -> None:
        self.forward()
        raise KeyboardInterrupt

    monkeypatch.setattr(Recording, "go_to", interrupted)
    assert place(session.execute("goto 99999")).reason == "interrupted"


# -- values that are taken out


def test_values_are_kept_beyond_the_call(session: Session) -> None:
    session.execute("%debug f(x, 2)")
    session.execute("n 3")
    session.execute("keep z as taken")
    session.execute("keep z")
    session.execute("keep z.sum() + n as both")
    session.execute("p z * 2")
    session.execute("restart")
    session.execute("c")
    session.execute("q")
    shown = {name: session.execute(name)[0] for name in ("taken", "z", "both", "_")}
    assert {name: each.text for name, each in shown.items() if isinstance(each, ValueReply)} == {
        "taken": "tensor([0., 2.])", "z": "tensor([0., 2.])", "both": "tensor(4.)", "_": "tensor(4.)",
    }  # fmt: skip


@pytest.mark.parametrize(
    "command", ["%save z z.npy", "%doc z", "%tree z + n", "%time z.sum()", "%trace total(z)", "%graph z + n"]
)
def test_commands_see_the_variables_of_the_call(
    session: Session, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    session.execute("%debug f(x, 2)")
    session.execute("n")
    assert [each for each in session.execute(command) if isinstance(each, ErrorReply)] == []
    session.execute("c")
    session.execute("q")
    assert isinstance(session.execute("%doc z")[0], ErrorReply)


NAMES_OF_COMMANDS = {
    name: row for row in COMMANDS for name in (*row.names, *row.others) if name.isidentifier() and not iskeyword(name)
}
SPACED = {" + 1": 6, " == 5": True, " < 6": True, " ** 2": 25, " and False": False}
TIGHT = {" +1": 6, " -1": 4, " <6": True, " ==5": True}
"""What may also be an argument of a command that takes text: `p -n`."""
BEGUN = (" +", " -", " *", " ==", " and", " =", " **", " in")


@pytest.mark.parametrize("name", NAMES_OF_COMMANDS)
def test_a_variable_with_the_name_of_a_command_stands_in_expressions(name: str) -> None:
    """Whole ones have a value, begun ones are an error of syntax that says what is missing; the run stays."""
    session = Session()
    session.execute(f"def f({name}: int):\n    z = {name} * 2\n    return z\n")
    before = place(session.execute("%debug f(5)")).position
    for text, wanted in (SPACED if NAMES_OF_COMMANDS[name].argument else SPACED | TIGHT).items():
        assert [value(each) for each in session.execute(f"{name}{text}")] == [wanted], text
    for text in BEGUN:
        (error,) = session.execute(f"{name}{text}")
        assert isinstance(error, ErrorReply) and error.kind == "Syntax error" and "too early" in error.hints[0], text
    assert place(session.execute("frame")).position == before


def value(reply: Reply) -> object:
    return reply.value if isinstance(reply, ValueReply) else reply


def test_a_new_name_at_its_prompt_is_an_error_that_says_how_to_keep_values(session: Session) -> None:
    session.execute("%debug f(x, 2)")
    (error,) = session.execute("mine = x * 2")
    assert isinstance(error, ErrorReply) and "keep x * 2 as mine" in error.hints[-1]
    (error,) = session.execute("keep x as 3")
    assert isinstance(error, ErrorReply)


# -- completion


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [("mas", ["mask"]), ("wa", ["watch"]), ("und", ["undisplay"]), ("b blo", ["block"]), ("b mas", ["masked"]),
     ("p mas", ["mask"]), ("mask * ma", ["mask"]), ("back-n", ["back-next"]), ("longl", ["longlist"]),
     ("reverse-s", ["reverse-step", "reverse-stepi"]), ("undisplay ma", ["mask * 2"]), ("help unt", ["until", "unt"])],
)  # fmt: skip
def test_completion_knows_the_call(typed: str, wanted: list[str]) -> None:
    session = Session()
    session.execute(
        "def block(mask):\n    return mask + 1\n\ndef masked(mask):\n    walked = block(mask)\n    return walked\n"
    )
    session.execute("%debug masked(torch.ones(2))")
    session.execute("display mask * 2")
    assert [each.text for each in session.complete(typed)] == wanted


FIRST_LINES = ("b, t, d = x.shape", "y = x.mT", "y = x.mH", "y = F.relu(x)", "y = x[0, 1:]", "y = F.layer_norm(x, [2])",
               "y = torch.einsum('ijk->kji', x)", "y = [v * 2 for v in x]", "y = x.tolist() if False else x",
               "y = torch.stft(x[0], 2, return_complex=True)", "y = f'{x.dim()}'", "assert x.dim() == 3")  # fmt: skip


@pytest.mark.parametrize("line", FIRST_LINES)
def test_a_function_is_entered_at_its_own_first_line(line: str) -> None:
    session = Session()
    session.execute(f"def inner(x: Tensor):\n    {line}\n    return x * 2\n")
    session.execute("def outer(x: Tensor):\n    x = x + 1\n    return inner(x)\n")
    session.execute("x = torch.ones(1, 3, 2)")
    session.execute("%debug outer(x)")
    session.execute("b inner")
    (stop,) = (reply for reply in session.execute("c") if isinstance(reply, DebugReply))
    assert " in inner" in stop.title and stop.title.startswith("entry 1:")
    assert any(row.is_here and row.text.strip() in (line, "return x * 2") for row in stop.source), stop.source


def test_a_debugged_call_within_another_is_said_to_take_its_place() -> None:
    session = Session()
    session.execute("def f(x: Tensor):\n    return x * 2\n")
    session.execute("%debug f(torch.ones(2))")
    warning, stop = session.execute("%debug f(torch.ones(3))")
    assert isinstance(warning, TextReply) and warning.level == "warning" and "left" in warning.text
    assert isinstance(stop, DebugReply)
    session.execute("q")
    assert isinstance(session.execute("1 + 1")[-1], ValueReply)


FAILING = {
    "index": ("x[9] > 1", "index 9 out of range"),
    "sizes": ("(x @ torch.ones(9)) > 1", "got 2 and 9"),
    "attribute": ("x.nope > 1", "no attribute or method 'nope'"),
}


def said(replies: list[Reply]) -> str:
    return " ".join(each.text for each in replies if isinstance(each, TextReply))


@pytest.mark.parametrize("name", FAILING)
def test_what_is_wrong_with_an_expression_is_told_wherever_it_is_written(session: Session, name: str) -> None:
    text, why = FAILING[name]
    session.execute("%debug f(x, 2)")
    assert why in session.execute(f"p {text}")[0].message  # type: ignore[attr-defined]
    assert why in said(session.execute(f"display {text}"))
    assert why in said(session.execute("n"))
    session.execute(f"undisplay {text}")
    assert why in said(session.execute(f"watch {text}"))
    session.execute("delete")
    session.execute(f"b s = total(z) if {text}")
    session.execute(f"b 10 if {text}")
    stopped = session.execute("c")
    if name == "attribute":  # which makes no sense anywhere, and so may be meant for another function
        assert f"never stopped: 'Tensor' object has {why}" in said(stopped)
    else:
        assert "whose condition failed" in place(stopped).reason and why in place(stopped).reason


@pytest.mark.parametrize("command", ["p (x", "display x +", "watch x +", "b 10 if x ++", "tbreak 10 if (", "b if x +",
                                     "condition 1 x +", "keep x + as y", "whatis x +"])  # fmt: skip
def test_what_is_no_expression_is_refused_at_once(session: Session, command: str) -> None:
    session.execute("%debug f(x, 2)")
    session.execute("b 10")
    before = session.execute("b")
    (found,) = session.execute(command)
    assert isinstance(found, ErrorReply) and found.kind == "Syntax error" and "<--- HERE" in found.excerpt
    assert session.execute("b") == before
