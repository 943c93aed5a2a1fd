"""What is not computed while compiling, since it would grow."""

from __future__ import annotations

import pytest

from engine.frontend.compilation.compile import compile_source
from engine.ir.evaluate import LONGEST_FOLDED


def graph_text(body: str) -> str:
    return str(next(iter(compile_source(f"def f():\n{body}").functions.values())).graph)


@pytest.mark.parametrize(
    ("expression", "operator"),
    [
        ('"a".ljust(1000000000)', "aten::ljust"),
        ('"a".rjust(1000000000)', "aten::rjust"),
        ('"a".center(1000000000)', "aten::center"),
        ('"a".zfill(1000000000)', "aten::zfill"),
        ('"\\t".expandtabs(1000000000)', "aten::expandtabs"),
    ],
)
def test_long_texts_are_the_programs_to_make(expression: str, operator: str) -> None:
    assert operator in graph_text(f"    return {expression}\n")
    assert operator not in graph_text(f"    return {expression.replace('1000000000', '10')}\n")


def test_doubling_stops() -> None:
    text = graph_text('    a = "a"\n' + "    a = a + a\n" * 60 + "    return a\n")
    assert "aten::add" in text
    assert len(text) < 100 * LONGEST_FOLDED


def test_a_large_number_that_counts_nothing_is_no_reason() -> None:
    assert "aten::find" not in graph_text('    return "abc".find("b", 0, 9223372036854775807)\n')
