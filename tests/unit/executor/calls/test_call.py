"""Calls from Python: what fits, what does not, and in which words."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.aten.values.parameter import Parameter
from engine.aten.values.tensor import tensor
from engine.executor.calls.call import call_function
from engine.frontend.compilation.compile import compile_source
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


PLAIN = """
def plain(x: Tensor, n: int = 3, s: Optional[str] = None, b: bool = False):
    return n, s, b
def kept(x: Tensor, xs: List[int] = [1]):
    xs.append(2)
    return xs
"""


def test_arguments_that_stand_for_themselves() -> None:
    unit = compile_source(PLAIN)
    plain, x = unit.functions["plain"], tensor([1.0])
    assert call_function(plain, (x,)) == (3, None, False)
    assert call_function(plain, (x, 4)) == (4, None, False)
    assert call_function(plain, (x, True)) == (1, None, False), "a bool is made an int"
    assert call_function(plain, (x, 4, "s", True)) == (4, "s", True)
    assert call_function(plain, (Parameter(x), 4, None), {"b": True}) == (4, None, True)
    for args in ((), (x, 2**63), (x, "4"), (x, 1, 2), (x, 1, None, False, 0)):
        with pytest.raises(ArgumentError):
            call_function(plain, args)


def test_lists_that_are_defaults_are_not_taken_for_values_that_never_change() -> None:
    kept = compile_source(PLAIN).functions["kept"]
    first = call_function(kept, (tensor([1.0]),))
    assert call_function(kept, (tensor([1.0]), [5])) == [5, 2]
    assert first[0] == 1
