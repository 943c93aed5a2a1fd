"""The text behind a call can be read."""

import pytest

import engine
from engine.aten.dispatch.table import find
from engine.lang.errors import OperatorError


def test_the_text_is_what_runs() -> None:
    text = engine.show_call("aten::mm")
    entry = find("aten::mm")
    assert entry is not None
    assert text.startswith(f"# {entry.text}\n")
    assert entry.compiled.run.source in text  # type: ignore[attr-defined]
    assert "hooks.trace" in text and "op.recorded" in text and "fresh(result)" in text


def test_all_overloads_of_a_name_are_shown() -> None:
    assert engine.show_call("aten::add").count("\n# served by") >= 4
    assert engine.show_call("aten::add.Tensor").count("\n# served by") == 1


def test_who_serves_calls_is_told() -> None:
    entry = find("aten::tril")
    assert entry is not None
    assert "served by the function below" in engine.show_call("aten::tril")
    entry.take(lambda *args: entry.compiled.run(*args))
    try:
        assert "served by function" in engine.show_call("aten::tril")
    finally:
        entry.give_back()
    assert "served by the function below" in engine.show_call("aten::tril")


def test_operators_without_tensors_are_python_s() -> None:
    assert "without hooks" in engine.show_call("aten::len.str")


def test_a_name_that_is_none_is_told() -> None:
    with pytest.raises(OperatorError, match="there is no operator aten::ad"):
        engine.show_call("aten::ad")
