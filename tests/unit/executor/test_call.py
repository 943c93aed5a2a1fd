"""Calls from Python: what fits, what does not, and in which words."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.executor.call import call_function
from engine.frontend.compile import compile_source
from engine.lang.errors import ArgumentError

PROGRAM = """
def f(x: int, y: float=2.0, *, z: str='a'):
    return x, y, z
def g():
    return 1
def g2(y: float):
    return y
def listed(x: List[int] = [1, 2]):
    return x
"""


@pytest.fixture(scope="module")
def call() -> Callable[..., Any]:
    unit = compile_source(PROGRAM)

    def by_name(name: str, *args: object, **kwargs: object) -> object:
        return call_function(unit.functions[name], args, kwargs)

    return by_name


def test_defaults_and_keywords(call: Callable[..., Any]) -> None:
    assert call("f", 1) == (1, 2.0, "a")
    assert call("f", 1, z="b", y=3) == (1, 3.0, "b")
    assert call("f", x=1) == (1, 2.0, "a")
    assert call("listed") == [1, 2]


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "message"),
    [
        ("f", (), {}, "f() is missing value for argument 'x'"),
        ("f", (1, 2.0, "a", 4), {}, "f() expected at most 3 argument(s) but received 4 argument(s)"),
        ("f", (1, 2.0, "a"), {}, "f() takes 2 positional argument(s) but 3 was/were given"),
        ("f", (1,), {"q": 2}, "Unknown keyword argument 'q' for operator 'f'"),
        ("f", (1,), {"x": 2}, "Argument 'x' specified both as positional and keyword argument"),
        ("g", (1,), {}, "g() expected at most 0 argument(s) but received 1 argument(s). Declaration: g() -> int"),
    ],
)
def test_calls_that_do_not_fit(
    call: Callable[..., Any], name: str, args: tuple[object, ...], kwargs: dict[str, object], message: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        call(name, *args, **kwargs)
    assert message in str(caught.value)
    assert "Declaration: " in str(caught.value)


def test_a_wrong_type_is_told_with_everything_that_helps(call: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError) as caught:
        call("g2", "a")
    assert str(caught.value).split("\n") == [
        "g2() Expected a value of type 'float' for argument 'y' but instead found type 'str'.",
        "Position: 0",
        "Value: 'a'",
        "Declaration: g2(float y) -> float",
    ]


def test_a_misspelt_keyword_is_answered_with_the_right_one(call: Callable[..., Any]) -> None:
    with pytest.raises(ArgumentError, match="did you mean 'x'"):
        call("f", xx=1)
