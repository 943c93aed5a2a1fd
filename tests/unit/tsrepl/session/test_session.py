"""One session, from entry to entry: values, names, definitions, errors that leave it alive."""

import _thread
import threading

import pytest

from tsrepl.session import Session
from tsrepl.session.replies import (
    DefinitionReply,
    ErrorReply,
    Reply,
    SchemaReply,
    TextReply,
    ValueReply,
)


@pytest.fixture
def session() -> Session:
    return Session()


def only(replies: list[Reply]) -> Reply:
    (reply,) = replies
    return reply


def value(session: Session, text: str) -> object:
    """What the last reply shows."""
    reply = session.execute(text)[-1]
    assert isinstance(reply, ValueReply), reply
    return reply.value


def error(session: Session, text: str) -> ErrorReply:
    reply = session.execute(text)[-1]
    assert isinstance(reply, ErrorReply), reply
    return reply


# -- values


@pytest.mark.parametrize(
    ("text", "shown", "number"),
    [
        ("torch.float32", "torch.float32", 6),
        ("torch.half", "torch.float16", 5),
        ("torch.ones(2).dtype", "torch.float32", 6),
        ("y = 1; torch.ones(2).dtype", "torch.float32", 6),
        ("torch.channels_last", "torch.channels_last", 2),
        ("torch.float32 + 0", "6", 6),
        ("def f(x: Tensor):\n    return x.dtype\n\nf(torch.ones(2, dtype=torch.int64))", "torch.int64", 4),
        (
            "def f(x):\n    return x.dtype\n\ndef g(x):\n    return f(x)\n\ng(torch.ones(2))",
            "torch.float32",
            6,
        ),
        ("def f(x: Tensor):\n    return x.size(0)\n\nf(torch.ones(6))", "6", 6),
    ],
)
def test_numbers_that_stand_for_dtypes_are_shown_by_name(session: Session, text: str, shown: str, number: int) -> None:
    reply = session.execute(text)[-1]
    assert isinstance(reply, ValueReply)
    assert (reply.text, reply.value) == (shown, number)


@pytest.mark.parametrize(
    ("text", "expected", "type"),
    [
        ("1 + 2", 3, "int"),
        ("7 / 2", 3.5, "float"),
        ("'a' + 'b'", "ab", "str"),
        ("[1, 2] + [3]", [1, 2, 3], "int[]"),
        ("(1, 'a')", (1, "a"), "(int, str)"),
        ("{'k': 1}", {"k": 1}, "Dict(str, int)"),
        ("1 < 2 and not False", True, "bool"),
        ("[i * i for i in range(4)]", [0, 1, 4, 9], "int[]"),
    ],
)
def test_an_expression_shows_its_value_and_type(session: Session, text: str, expected: object, type: str) -> None:
    reply = only(session.execute(text))
    assert isinstance(reply, ValueReply)
    assert (reply.value, reply.type, reply.text) == (expected, type, repr(expected))


def test_a_tensor_tells_dtype_and_shape(session: Session) -> None:
    reply = only(session.execute("torch.ones(2, 3)"))
    assert isinstance(reply, ValueReply)
    assert (reply.type, reply.facts) == ("Tensor", "float32 (2, 3)")


def test_operators_are_found_without_torch(session: Session) -> None:
    assert value(session, "ones(2).size(0)") == 2


def test_the_last_value_is_kept(session: Session) -> None:
    session.execute("41")
    assert value(session, "_ + 1") == 42


def test_statements_and_none_leave_the_last_value_alone(session: Session) -> None:
    session.execute("41")
    assert session.execute("x = 1") == []
    session.execute("None")
    assert value(session, "_") == 41


# -- variables


def test_variables_live_on(session: Session) -> None:
    session.execute("x = 2")
    session.execute("y = x * 3")
    assert value(session, "x + y") == 8


def test_a_variable_may_change_its_type(session: Session) -> None:
    session.execute("x = 1")
    session.execute("x = x + 0.5")
    assert value(session, "x") == 1.5
    session.execute("x = 'now a string'")
    assert value(session, "x") == "now a string"


def test_unpacking_swaps(session: Session) -> None:
    session.execute("a, b = 1, 2.5")
    session.execute("a, b = b, a")
    assert value(session, "(a, b)") == (2.5, 1)


def test_lists_are_the_same_object_from_entry_to_entry(session: Session) -> None:
    session.execute("a = [1]")
    session.execute("b = a")
    session.execute("b.append(2)")
    assert value(session, "a") == [1, 2]


def test_tensors_are_written_in_place(session: Session) -> None:
    session.execute("x = torch.zeros(2, dtype=torch.int64)")
    session.execute("y = x[0:1]")
    session.execute("y += 7")
    assert value(session, "x.tolist()[0] if False else int(x[0])") == 7


def test_what_is_set_on_some_paths_only_keeps_its_old_value(session: Session) -> None:
    session.execute("x = 1")
    session.execute("if x > 5:\n    x = 2")
    assert value(session, "x") == 1


def test_a_branch_leaves_what_it_sets(session: Session) -> None:
    session.execute("c = 1")
    assert session.execute("if c > 0:\n    z = 3\nelse:\n    w = 4") == []
    assert value(session, "z") == 3
    assert error(session, "w").message.startswith("undefined value w")


def test_loops_update_variables(session: Session) -> None:
    session.execute("total = 0")
    session.execute("for i in range(5):\n    total += i")
    assert value(session, "total") == 10


def test_the_counter_of_a_loop_is_not_worth_a_word(session: Session) -> None:
    assert session.execute("for i in range(2):\n    for j, k in zip([i], [2]):\n        pass") == []


def test_an_annotation_gives_the_type(session: Session) -> None:
    session.execute("x: List[int] = []")
    session.execute("o: Optional[int] = 3")
    reply = only(session.execute("o"))
    assert isinstance(reply, ValueReply)
    assert reply.type == "int?"
    session.execute("assert o is not None")
    assert value(session, "o + 1") == 4


def test_del_forgets(session: Session) -> None:
    session.execute("x = 1")
    session.execute("del x")
    assert error(session, "x").message.startswith("undefined value x")


def test_several_statements_on_a_line(session: Session) -> None:
    assert value(session, "a = 1; b = a + 1; a + b") == 3


def test_imports_of_what_is_there_are_nothing(session: Session) -> None:
    assert session.execute("import torch\nfrom typing import List, Optional\nimport math") == []


# -- definitions

ADD = "def f(x: int) -> int:\n    return x + 1\n"


def test_a_definition_tells_its_signature(session: Session) -> None:
    reply = only(session.execute(ADD))
    assert reply == DefinitionReply("f", "function", "f(int x) -> int")
    assert value(session, "f(2)") == 3


def test_the_name_of_a_function_shows_its_schema(session: Session) -> None:
    session.execute(ADD)
    assert only(session.execute("f")) == SchemaReply("f", ("f(int x) -> int",))


def test_redefinition_is_said_and_seen_by_those_that_call(session: Session) -> None:
    session.execute(ADD)
    session.execute("def g(x: int):\n    return f(x) * 10\n")
    session.execute("def h(x: int):\n    return g(x) + f(x)\n")
    assert value(session, "h(1)") == 22
    reply = only(session.execute(ADD.replace("+ 1", "+ 2")))
    assert isinstance(reply, DefinitionReply)
    assert (reply.replaced, reply.relinked, reply.broken) == (True, ("g", "h"), ())
    assert value(session, "h(1)") == 33


def test_what_no_longer_fits_the_new_one_is_told_and_mended_by_the_next(session: Session) -> None:
    session.execute(ADD)
    session.execute("def g(x: int):\n    return f(x)\n")
    reply = only(session.execute("def f(x: str):\n    return x\n"))
    assert isinstance(reply, DefinitionReply)
    assert [name for name, _ in reply.broken] == ["g"]
    assert "g" in error(session, "g(1)").message
    session.execute(ADD)
    assert value(session, "g(1)") == 2


def test_a_definition_that_fails_leaves_the_old_one(session: Session) -> None:
    session.execute(ADD)
    assert error(session, "def f(x: int) -> int:\n    return nope\n").kind == "Compile error"
    assert value(session, "f(2)") == 3


def test_definitions_in_a_row_may_use_each_other(session: Session) -> None:
    text = "def a(n: int):\n    return b(n) + 1\n\ndef b(n: int):\n    return n * 2\n"
    assert all(isinstance(reply, DefinitionReply) for reply in session.execute(text))
    assert value(session, "a(3)") == 7


def test_one_wrong_definition_does_not_keep_the_others_out(session: Session) -> None:
    replies = list(session.run_text("def a():\n    return nope\n\ndef b():\n    return 2\n", stop=False))
    assert [type(reply) for reply in replies] == [ErrorReply, DefinitionReply]
    assert value(session, "b()") == 2


def test_functions_do_not_see_variables_and_the_hint_says_so(session: Session) -> None:
    session.execute("x = 1")
    reply = error(session, "def f():\n    return x\n")
    assert any("variable of the session" in hint for hint in reply.hints)


def test_a_definition_takes_the_name_of_a_variable(session: Session) -> None:
    session.execute("f = 1")
    session.execute(ADD)
    assert value(session, "f(1)") == 2


POINT = """\
class Point:
    def __init__(self, x: int):
        self.x = x

    def double(self):
        return self.x * 2
"""


def test_classes(session: Session) -> None:
    assert only(session.execute(POINT)) == DefinitionReply("Point", "class", "Point(int x)")
    session.execute("p = Point(3)")
    session.execute("p.x = 4")
    assert value(session, "p.double()") == 8
    reply = only(session.execute("p"))
    assert isinstance(reply, ValueReply)
    assert reply.text == "Point(x=4)"


def test_named_tuples_and_enums_show_their_names(session: Session) -> None:
    session.execute("class Pair(NamedTuple):\n    a: int\n    b: str\n")
    session.execute("class Color(Enum):\n    RED = 1\n    BLUE = 2\n")
    shown = [only(session.execute(text)) for text in ("Pair(1, 'z')", "Color.RED")]
    assert [reply.text for reply in shown if isinstance(reply, ValueReply)] == ["Pair(a=1, b='z')", "Color.RED"]


def test_a_class_defined_again_reaches_the_functions_that_use_it(session: Session) -> None:
    session.execute(POINT)
    session.execute("def f(n: int):\n    return Point(n).double()\n")
    session.execute(POINT.replace("* 2", "* 5"))
    assert value(session, "f(2)") == 10


# -- errors


def test_a_syntax_error_points(session: Session) -> None:
    reply = error(session, "x = = 2")
    assert reply.kind == "Syntax error"
    assert reply.location == "entry 1"
    assert reply.excerpt == "x = = 2\n    ~ <--- HERE"


def test_an_unknown_name_points_and_suggests(session: Session) -> None:
    session.execute("weights = 1")
    reply = error(session, "y = weihgts + 1")
    assert reply.message == "undefined value weihgts"
    assert "~~~~~~~ <--- HERE" in reply.excerpt
    assert reply.hints == ("did you mean 'weights'?",)


@pytest.mark.parametrize("call", ["f()", "f(1, 2)", "f('a')", "f(y=1)"])
def test_a_wrong_call_points(session: Session, call: str) -> None:
    session.execute(ADD)
    reply = error(session, call)
    assert reply.kind == "Compile error"
    assert call in reply.excerpt
    assert "f(int x) -> int" in reply.details


def test_a_failing_program_tells_the_calls_that_led_there(session: Session) -> None:
    session.execute("def f(x: List[int], i: int):\n    return x[i]\n")
    reply = error(session, "f([1, 2], 5)")
    assert [place.location for place in reply.places] == ["entry 2", "entry 1, line 2, in f"]
    assert "x[i]" in reply.places[1].excerpt


def test_nothing_is_assigned_by_an_entry_that_fails(session: Session) -> None:
    session.execute("x = 1")
    error(session, "x = [1][5]")
    assert value(session, "x") == 1


def test_entries_after_one_that_failed_do_not_run(session: Session) -> None:
    session.execute("x = 1\nnope\nx = 2")
    assert value(session, "x") == 1


def test_lines_count_within_what_was_pasted(session: Session) -> None:
    assert error(session, "x = 1\n\n\nnope").location == "entry 1, line 4"


@pytest.mark.parametrize("text", ["(" * 3000, "x = " + "-" * 5000 + "1", "[" * 500 + "]" * 500, "\x00", "\ud800", "¿?"])
def test_absurd_texts_are_one_clear_error(session: Session, text: str) -> None:
    reply = error(session, text)
    assert reply.kind != "Internal error"
    assert value(session, "1 + 1") == 2


def test_an_interrupt_stops_the_program_and_the_session_lives(session: Session) -> None:
    session.execute("x = 1")
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    try:
        replies = list(session.run_text("while True:\n    x += 1\n\ny = 5", stop=False))
        timer.join()
    except KeyboardInterrupt:
        pytest.fail("the interrupt came through")
    assert [reply.kind for reply in replies if isinstance(reply, ErrorReply)] == ["Interrupted"]
    assert error(session, "y").message == "undefined value y"
    assert isinstance(reached := value(session, "x"), int) and reached > 1


def test_mistakes_of_ours_say_so(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("a node is upside down")

    monkeypatch.setattr("tsrepl.session.workspace.run_function", broken)
    reply = error(session, "1 + 1")
    assert reply.kind == "Internal error"
    assert "upside down" in reply.message


# -- printing and names


def test_print_goes_to_standard_output(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    session.execute("print('hello', 3)")
    assert capsys.readouterr().out == "hello 3\n"


def test_bindings_tell_name_kind_type_and_value(session: Session) -> None:
    session.execute("x = 3")
    session.execute(ADD)
    rows = [(b.name, b.kind, b.type, b.summary) for b in session.bindings()]
    assert rows == [("f", "function", "", "f(int x) -> int"), ("x", "variable", "int", "3")]


def test_reset_forgets_all(session: Session) -> None:
    session.execute("x = 3")
    session.execute(ADD)
    session.reset()
    assert session.bindings() == ()


# -- several errors of one text

SEVERAL = """
def g(x: int):
    return one
def f(x: int):
    y = g(x)
    z = two
    return y
def open_bracket(x
    return x
def user(x: int):
    return open_bracket(x)
def good(x: int):
    return x + 1
"""


def messages(replies: list[Reply]) -> list[str]:
    return [reply.message for reply in replies if isinstance(reply, ErrorReply)]


def test_independent_errors_are_told_together_and_the_rest_is_defined(session: Session) -> None:
    replies = session.execute(SEVERAL)
    assert messages(replies) == [
        "expected ) but found 'return' here",
        "undefined value one",
        "undefined value two",
    ]
    assert [reply.name for reply in replies if isinstance(reply, DefinitionReply)] == ["good"]
    assert [reply.text for reply in replies if isinstance(reply, TextReply)] == [
        "user is not defined: it uses open_bracket, which does not compile"
    ]
    assert value(session, "good(1)") == 2


def test_what_is_not_run_is_still_read(session: Session) -> None:
    assert messages(session.execute("wrong\nx = 1\ny = 2)\nz = 1 +\n%nothing")) == [
        "undefined value wrong",
        "expected newline but found ')' here",
        "expected ident but found 'newline' here",
    ]


def test_statements_in_one_block(session: Session) -> None:
    assert messages(session.execute("if True:\n    a = one\n    b = a + 1\n    c = two\n")) == [
        "undefined value one",
        "undefined value two",
    ]


@pytest.mark.parametrize(
    ("text", "word"),
    [("try:\n    x = 1\nexcept:\n    x = 2\n", "try"), ("try: x = 1", "try"), ("def f():\n    try:\n        return 1\n"
     "    finally:\n        pass\n", "try"), ("f = lambda x: x", "lambda"), ("async def f():\n    pass\n", "async")],
)  # fmt: skip
def test_syntax_that_there_is_not_is_named(session: Session, text: str, word: str) -> None:
    first = next(reply for reply in session.execute(text) if isinstance(reply, ErrorReply))
    assert f"'{word}'" in first.message + "".join(first.hints)
    assert "write `x: int = 0`" not in first.hints


def test_a_name_whose_definition_was_refused_is_compared_with_nothing(session: Session) -> None:
    session.execute("def fib(n: int) -> int:\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n")
    (hint,) = error(session, "fib(10)").hints
    assert "did not compile" in hint and "did you mean" not in hint
