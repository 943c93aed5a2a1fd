"""Errors: kinds, places, messages."""

import pytest

from engine.lang import errors
from engine.lang.errors import ArchiveError, CallFrame, CompileError, EngineError, Error, ExecutionError, ParseError
from engine.lang.source import Source, SourceRange

SOURCE = Source("def f(x):\n    return g(x)\n", "m.py")
CALL = SourceRange(SOURCE, 21, 25)


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.ParseError, RuntimeError),
        (errors.NotSupportedError, RuntimeError),
        (errors.SchemaError, RuntimeError),
        (errors.IRError, RuntimeError),
        (errors.OperatorIndexError, IndexError),
        (errors.OperatorTypeError, TypeError),
        (errors.OperatorValueError, ValueError),
        (errors.ArgumentError, RuntimeError),
        (errors.MissingExtraError, ImportError),
        (errors.ArchiveError, RuntimeError),
        (errors.ExecutionError, RuntimeError),
        (errors.Error, RuntimeError),
    ],
)
def test_each_error_is_the_builtin_kind_too(kind: type[EngineError], builtin: type[Exception]) -> None:
    assert issubclass(kind, EngineError)
    assert issubclass(kind, builtin)


def test_a_compile_error_shows_its_place_and_what_to_do() -> None:
    error = ParseError("no such thing", CALL, hints=("write another",))
    assert str(error) == (
        'no such thing:\n  File "m.py", line 2\ndef f(x):\n    return g(x)\n           ~~~~ <--- HERE\n'
        "Hint: write another"
    )
    assert (error.line, error.message) == (2, "no such thing")


def test_names_of_any_length_are_cut() -> None:
    error = CompileError(f"undefined value {'x' * 1_000_000}\nsecond line", hints=["y" * 1_000_000])
    assert error.message.startswith("undefined value xxx")
    assert error.message.endswith("xxx\nsecond line")
    assert len(str(error)) < 3000
    assert len(Error("z" * 1_000_000).message) == 1_000_000


def test_an_error_without_a_place() -> None:
    assert str(CompileError("wrong")) == "wrong"
    assert CompileError("wrong").line is None


def test_the_calls_that_led_there_innermost_first() -> None:
    text = str(CompileError("wrong", CALL, frames=(CallFrame("outer", CALL), CallFrame("inner", CALL))))
    assert text.index("'inner' is being compiled") < text.index("'outer' is being compiled")


def test_a_run_time_error_has_a_traceback() -> None:
    text = str(ExecutionError("division by 0", frames=(CallFrame("f", CALL),)))
    head = "The following operation failed in the TorchScript interpreter."
    assert text.startswith(f"{head}\nTraceback of TorchScript (most recent call last):\n")
    assert text.endswith("\nRuntimeError: division by 0")
    assert str(ExecutionError("division by 0")) == "division by 0"


def test_an_error_of_the_program_names_its_class() -> None:
    error = Error("bad", python_class="builtins.ValueError")
    assert str(error) == "ValueError: bad"
    assert error.kind() == "ValueError"


def test_an_archive_error_names_the_record() -> None:
    assert str(ArchiveError("truncated", record="data.pkl", offset=7)) == "truncated (record 'data.pkl', byte 7)"


def test_others_are_numbered_and_follow() -> None:
    first, second, third = ParseError("one", CALL, hints=("a",)), CompileError("two"), CompileError("three")
    second.others = (third,)
    error = errors.together([errors.FollowUpError("because of one"), first, second])
    assert error is first
    assert error.others == (second, third)
    assert str(error) == f"{first.told_alone()}\n\nError 2 of 3: two\n\nError 3 of 3: three"
    error.called_from(CallFrame("f", CALL))
    assert [len(each.frames) for each in (first, second, third)] == [1, 1, 1]


def test_what_only_follows_is_told_when_nothing_else_is() -> None:
    only = errors.FollowUpError("because of something")
    assert errors.together([only, errors.FollowUpError("and again")]) is only
    assert only.others == ()


def test_no_more_than_so_many_are_told() -> None:
    assert len(errors.together([CompileError(str(n)) for n in range(100)]).others) == errors.MAX_TOLD - 1


def test_did_you_mean() -> None:
    assert errors.did_you_mean("sigmid", ["sigmoid", "tanh"]) == ("did you mean 'sigmoid'?",)
    assert errors.did_you_mean("qqq", ["sigmoid"]) == ()
