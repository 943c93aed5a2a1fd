"""Errors: kinds, places, messages."""

import pytest

from engine.lang import errors
from engine.lang.errors import ArchiveError, CompileError, EngineError, Error, ExecutionError, Frame, ParseError
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
        'no such thing:\n  File "m.py", line 2\ndef f(x):\n    return g(x)\n           ~~~~ <--- HERE\n\n'
        "Hint: write another"
    )
    assert (error.line, error.message) == (2, "no such thing")


def test_an_error_without_a_place() -> None:
    assert str(CompileError("wrong")) == "wrong"
    assert CompileError("wrong").line is None


def test_the_calls_that_led_there_innermost_first() -> None:
    text = str(CompileError("wrong", CALL, frames=(Frame("outer", CALL), Frame("inner", CALL))))
    assert text.index("'inner' is being compiled") < text.index("'outer' is being compiled")


def test_a_run_time_error_has_a_traceback() -> None:
    text = str(ExecutionError("division by 0", frames=(Frame("f", CALL),)))
    assert text.startswith("Traceback of TorchScript (most recent call last):\n")
    assert text.endswith("\nRuntimeError: division by 0")
    assert str(ExecutionError("division by 0")) == "division by 0"


def test_an_error_of_the_program_names_its_class() -> None:
    error = Error("bad", python_class="builtins.ValueError")
    assert str(error) == "ValueError: bad"
    assert error.kind() == "ValueError"


def test_an_archive_error_names_the_record() -> None:
    assert str(ArchiveError("truncated", record="data.pkl", offset=7)) == "truncated (record 'data.pkl', byte 7)"


def test_did_you_mean() -> None:
    assert errors.did_you_mean("sigmid", ["sigmoid", "tanh"]) == ("did you mean 'sigmoid'?",)
    assert errors.did_you_mean("qqq", ["sigmoid"]) == ()
