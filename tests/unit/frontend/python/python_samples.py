"""Python functions and classes that the tests read; their line numbers matter, for errors name them."""
# mypy: ignore-errors
# ruff: noqa: B007, E701, E731, F401, F722, F821, F841, F842, RET504, RUF012, RUF059, SIM105, UP006, UP035, UP037, UP045
# fmt: off

from __future__ import annotations

import math
from typing import Dict, List, Optional, Tuple

SIZE = 7
opaque = object()


def plain(x, y: int = 3, *, z) -> List[int]:
    "A docstring."
    return x + y


def comment(x, y=1):
    # type: (int, List[str]) -> Tuple[int, str]
    values = []  # type: List[int]
    return x, y


def long_comment(
    x,  # type: int
    y=2,  # type: Optional[str]
):
    # type: (...) -> Dict[str, int]
    return x


def wrong_comment(x, y):
    # type: (int) -> int
    return x


def defaults(a: int = SIZE, b: int = -1, c: "float" = math.pi, d: "Any" = (1, "x"), f: str = "s", g: "Any" = opaque):
    pass


def quoted(x: "Optional[List[int]]") -> "int":
    return 1


def badly_quoted(x: "List[int"):
    pass


def documented():
    """Only a docstring
at the left margin.
    """


def unicode():
    größe = "äöü" + é  # note
    return größe


@staticmethod
@(lambda f: f)
def decorated(x): return x


def outer():
    def inner(self, x):
        # type: (int) -> int
        """Less
    indented."""
        y = f"{x}a{x + 1}"
# a comment at the margin
        return y
    return inner


inner = outer()
lambda_ = lambda x: x


def star(*args): pass
def double_star(**kwargs): pass
def kwarg_default(*, x=1): pass
def use_lambda(x): return lambda: x
def use_try(x):
    try:
        pass
    except ValueError:
        pass
def use_yield(x): yield x
def use_import(x):
    import math
def use_global(x):
    global y
def use_nested(x):
    def g(): pass
def use_class(x):
    class A: pass
def use_walrus(x): return (y := x)
def use_set(x): return {x}
def use_bytes(x): return b"x"
def use_dict_star(x): return {**x}
def use_kwargs(x): return f(**x)
def use_comp_if(x): return [a for a in x if a]
def use_comp_two(x): return [a for a in x for b in a]
def use_format(x): return f"{x:3}"
def use_conversion(x): return f"{x!r}"
def use_while_else(x):
    while x:
        pass
    else:
        pass
def use_for_else(x):
    for a in x:
        pass
    else:
        pass
def use_bare_raise(x): raise
def use_bare_annotation(x): a: int
def use_late_attribute(self): self.x: int = 1
def use_with_tuple(x):
    with x as (a, b):
        pass
def use_match(x):
    match x:
        case 1: pass
def use_reserved(x): __jit_y = x
def use_delayed(x): x[0] //= 2
def use_big(x): return 99999999999999999999
async def use_async(x): pass


class Counter:
    """Counts."""

    step: int = 1
    names = ["a"]
    table = {i: i for i in range(3) if i}

    def __init__(self, start: int):
        self.count: int = start

    @property
    def value(self) -> int:
        return self.count

    @value.setter
    def value(self, new: int):
        self.count = new

    @staticmethod
    def helper(x):
        return lambda: x

    def add(self, n):
        # type: (int) -> int
        self.count += n
        return self.count


class Child(Counter):
    pass


class Two(Counter, dict):
    pass
