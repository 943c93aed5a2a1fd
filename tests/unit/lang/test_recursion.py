"""Room for deep programs, given back afterwards."""

import sys

from engine.lang.interpreter_settings import MAX_HEIGHT, deep_recursion


def depth(levels: int) -> int:
    return 0 if levels == 0 else 1 + depth(levels - 1)


def test_the_limit_is_raised_inside_and_restored() -> None:
    before = sys.getrecursionlimit()
    with deep_recursion():
        assert depth(MAX_HEIGHT * 10) == MAX_HEIGHT * 10
        inside = sys.getrecursionlimit()
        with deep_recursion():
            assert sys.getrecursionlimit() == inside
        assert sys.getrecursionlimit() == inside
    assert sys.getrecursionlimit() == before
