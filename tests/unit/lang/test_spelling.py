"""Misspelt names: which known one was meant."""

import pytest

from engine.lang.spelling import distance, nearest

KNOWN = ["sigmoid", "tanh", "relu", "relu6", "real", "alpha", "keys", "List", "x", "id", "cosh", "floor", "list", "fix",
         "_version", "_hidden"]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("sigmid", "sigmoid"),
        ("kyes", "keys"),
        ("alpah", "alpha"),
        ("rel", "relu"),
        ("reluu", "relu"),
        ("LIST", "List"),
        ("xx", "x"),
        ("nosuch", None),
        ("foo", None),
        ("first", None),
        ("i", None),
        ("tanh", None),
        ("", None),
        ("fib", None),
        ("fxi", "fix"),
        ("version", None),
        ("__version__", None),
        ("_verison", "_version"),
        ("_relu", "relu"),
        ("hidde", None),
    ],
)
def test_the_nearest(name: str, meant: str | None) -> None:
    assert nearest(name, KNOWN, 1) == ([] if meant is None else [meant])


def test_several_the_nearest_first() -> None:
    assert nearest("rel", KNOWN, 3) == ["relu", "real"]


@pytest.mark.parametrize(
    ("a", "b", "far"), [("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("", "ab", 2), ("abcd", "wxyz", 3)]
)
def test_distances_up_to_a_limit(a: str, b: str, far: int) -> None:
    assert distance(a, b, 2) == far
