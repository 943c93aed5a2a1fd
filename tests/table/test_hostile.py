"""Sizes, dimensions and counts that no tensor can have: every operator answers or refuses, soon, and without its
process running out of memory."""

from __future__ import annotations

import contextlib
import random
import signal
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.lang.errors import EngineError
from engine.lang.schema import Argument
from engine.lang.types import INT, ListType, OptionalType, Type
from tests.table.samples import arguments_for

HOSTILE = (-(2**63), -(2**31), -1, 0, 2**40, 2**62, 2**63 - 1)
ROUNDS = 6
SECONDS = 5.0
NOT_SIZES = ("ScalarType", "Layout", "MemoryFormat")
PRIVATE = ("aten::_fft_backward",)
"""Only gradient formulas call them, with arguments of their own making."""


def bare(type: Type) -> Type:
    return type.element if isinstance(type, OptionalType) else type


def is_number(argument: Argument) -> bool:
    """Is it an int, or a list of them, that says how many or where?"""
    type = bare(argument.type)
    whole = type is INT or (isinstance(type, ListType) and type.element is INT)
    return whole and argument.declared not in NOT_SIZES


def can_be_tried(op: Op) -> bool:
    """Does it take such numbers, and can the rest of its arguments be made?"""
    if not op.name.startswith("aten::") or op.name in PRIVATE or not any(map(is_number, op.schema.arguments)):
        return False
    try:
        arguments_for(op)
    except KeyError:  # of types that samples know nothing of
        return False
    return True


def hostile(argument: Argument, draw: random.Random) -> Any:
    if bare(argument.type) is INT:
        return draw.choice(HOSTILE)
    return [draw.choice((*HOSTILE, 1, 2)) for _ in range(draw.randrange(5))]


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs an alarm clock")
@pytest.mark.parametrize("op", [e for e in table.entries() if can_be_tried(e)], ids=lambda op: op.qualified_name)
def test_hostile_numbers_are_answered_or_refused(op: Op) -> None:
    draw = random.Random(zlib.crc32(op.qualified_name.encode()))
    places = [i for i, a in enumerate(op.schema.arguments) if is_number(a)]
    for _ in range(ROUNDS):
        arguments = list(arguments_for(op))
        for place in places:
            if draw.random() < 0.6:
                arguments[place] = hostile(op.schema.arguments[place], draw)
        with contextlib.suppress(EngineError), time_limit():
            op.run(*arguments)
