"""What compiles with a caution, and what without."""

from __future__ import annotations

import pytest

from engine.frontend.compile import compile_source
from tsrepl.session.session import Session


def found(expression: str) -> list[str]:
    unit = compile_source(f"def f(x: int, y: List[int], t: Tensor, b: bool):\n    return {expression}\n")
    return [f"{caution.range.text}: {caution.message}" for caution in unit.functions["f"].cautions]


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("1 < x < 5", "1 < x < 5: `1 < x < 5` compares the bool `1 < x` with 5"),
        ("b or b and b", "b or b and b: `and` binds no tighter than `or`: this means `(b or b) and b`"),
        ("~t & t", "~t & t: `~` takes all that follows: this means `~(t & t)`"),
        ("[[i for i in y]]", "[[i for i in y]]: the outer of the two brackets adds no list"),
        ("{1: [i for i in y]}", "{1: [i for i in y]}: this is a dict comprehension, not a dict of one list"),
        ("010 + x", "010: 010 is octal: 8"),
        ("7 // t", "7 // t: a number `//` a tensor makes a number of the tensor, which must have one element"),
        ("x ** 2", "x ** 2: int ** int is a float"),
    ],
)
def test_what_surprises(expression: str, what: str) -> None:
    assert found(expression) == [what]


@pytest.mark.parametrize(
    "expression",
    ["(1 < x) < 5", "(b or b) and b", "b and b or b", "~(t & t)", "(~t) & t", "[[i] for i in y]", "{i: [i] for i in y}",
     "10 + x", "0 + 00", "t // 7", "x // 7", "2.0 ** x", "1 < x and x < 5"],
)  # fmt: skip
def test_what_does_not(expression: str) -> None:
    assert found(expression) == []


def test_the_last_of_two_parameters_of_one_name_counts() -> None:
    unit = compile_source("def f(n: int, n: int):\n    return n\n")
    (caution,) = unit.functions["f"].cautions
    assert str(caution).splitlines()[0] == "two parameters are called 'n'; the last one counts:"


def test_a_session_shows_them() -> None:
    replies = Session().execute("def f(n: int):\n    return n ** 2\n\nf(3)\n2 ** 3")
    texts = [reply.text for reply in replies if getattr(reply, "level", "") == "warning"]
    assert texts == [
        "entry 1, line 2: int ** int is a float; convert the result with int(...)",
        "entry 1, line 5: int ** int is a float; convert the result with int(...)",
    ]
