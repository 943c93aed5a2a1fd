"""What compiles with a caution, and what without."""

from __future__ import annotations

import pytest

from engine.frontend.compilation.compile import compile_source
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
        ("round(x)", "round(x): round gives a float"),
        ("round(2.5)", "round(2.5): round gives a float"),
        ("len(3)", "len(3): len of what has no length is 1"),
        ("len('é')", "len('é'): strings are bytes: this one has 2"),
        ("str(2.5)", "str(2.5): floats are written as C++ does it: 1.0 as '1.', 0.1 as '0.10000000000000001'"),
        ("'{0}'.format(x)", "'{0}'.format(x): only {} is replaced: '{0}' stays as it is"),
        ("'{}'.format(x, x)", "'{}'.format(x, x): there are 2 values for 1 places; the rest is left out"),
        ("'%x' % x", "'%x' % x: '%x' will raise when it runs"),
        ("min(t, t)", "min(t, t): min compares numbers: each tensor must have one element, and becomes an int"),
        ("y[slice(None, None, -1)]", "slice(None, None, -1): `slice(None, None, -1)` starts at the first element"),
        ("t.dtype", "t.dtype: a dtype is a number here: torch.float32 is 6, torch.int64 is 4"),
    ],
)
def test_what_surprises(expression: str, what: str) -> None:
    assert found(expression) == [what]


@pytest.mark.parametrize(
    "expression",
    ["(1 < x) < 5", "(b or b) and b", "b and b or b", "~(t & t)", "(~t) & t", "[[i] for i in y]", "{i: [i] for i in y}",
     "round(t)", "len(y)", "len([x])", "len('e')", "str(x)", "'{}'.format(x)", "'{{}} {}'.format(x)", "'%d%%' % x",
     "min(x, 3)", "min(y)", "t.to(t.dtype)", "t.dtype == torch.float32", "10 + x", "0 + 00", "t // 7", "x // 7",
     "2.0 ** x", "1 < x and x < 5", "y[slice(3, None, -1)]", "y[slice(None, 3, 2)]"],
)  # fmt: skip
def test_what_does_not(expression: str) -> None:
    assert found(expression) == []


def test_a_write_that_only_a_loop_that_does_not_run_would_show() -> None:
    text = "def f(a: Tensor, n: int):\n    y = a\n    for i in range(n):\n        y = torch.zeros(2)\n    y.add_(1)\n"
    lost, kept = (compile_source(text + end).functions["f"].cautions for end in ("", "    return y\n"))
    assert [(caution.range.text, caution.message) for caution in lost] == [
        ("y.add_(1)", "this write is removed: the loop that assigns the variable is taken to run at least once")
    ]
    assert not kept


def test_a_write_to_what_adding_to_a_list_gives() -> None:
    text = "def f(a: List[int]):\n    y = a\n    y += [1]\n    y.append(2)\n    return {}\n"
    lost, kept = (compile_source(text.format(end)).functions["f"].cautions for end in ("a", "y"))
    assert [(caution.range.text, caution.message) for caution in lost] == [
        ("y.append(2)", "this write is removed: TorchScript takes what `+=` gives for another list")
    ]
    assert not kept


def test_the_last_of_two_parameters_of_one_name_counts() -> None:
    unit = compile_source("def f(n: int, n: int):\n    return n\n")
    (caution,) = unit.functions["f"].cautions
    assert str(caution).splitlines()[0] == "two parameters are called 'n'; the last one counts:"


def test_a_list_that_grows_while_a_loop_goes_through_it() -> None:
    body = "    for i in y:\n        if i > 0:\n            {}.append(i)\n    return y\n"
    texts = [f"def f(y: List[int], z: List[int]):\n{body.format(name)}" for name in "yz"]
    found = [compile_source(text).functions["f"].cautions for text in texts]
    assert [[caution.message for caution in each] for each in found] == [
        ["the loop ends after as many items as y had when it began"],
        [],
    ]


def test_a_session_shows_them() -> None:
    replies = Session().execute("def f(n: int):\n    return n ** 2\n\nf(3)\n2 ** 3")
    texts = [reply.text for reply in replies if getattr(reply, "level", "") == "warning"]
    assert texts == [
        "entry 1, line 2: int ** int is a float; convert the result with int(...)",
        "entry 1, line 5: int ** int is a float; convert the result with int(...)",
    ]
