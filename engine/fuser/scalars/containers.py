"""The kernel that Python calls, of one that works on numbers, lists and dicts.

In: the inner kernel, and the types of its arguments and results.  Out: the kernel around it: it converts lists and
dicts that go in and out, tells what a failing node was given, and frees everything that was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from engine.fuser.ir.kernel import (
    Address,
    Allocate,
    Buffer,
    Call,
    Expression,
    If,
    Kernel,
    Load,
    Name,
    Parameter,
    Return,
    Scalar,
    Statement,
    Store,
    all_statements,
    apply,
    index,
)
from engine.fuser.scalars.container_helpers import FIRST, THREAD, with_those_called
from engine.fuser.scalars.scalar_writer import (
    FAILED_ON,
    INPUTS,
    INTERRUPTED,
    MOST_INPUTS,
    NO_MEMORY,
    NUMBERS,
    STATE,
    is_container,
    machine_type,
)
from engine.lang.types import BOOL, FLOAT, INT, DictType, Type

FAILURE: Final = "failure"
"""The kernel's last parameter: a list or dict, as a new reference or 0, and the numbers that the node was given."""
_ELEMENT_KINDS: Final[dict[Type, int]] = {INT: 0, FLOAT: 1, BOOL: 2}


def kind_of(type: Type) -> int:
    """A list's kind is that of its elements; a dict's has those of keys and values, and 16."""
    if isinstance(type, DictType):
        return 16 + _ELEMENT_KINDS[type.key] + 4 * _ELEMENT_KINDS[type.value]
    return _ELEMENT_KINDS[type.contained()[0]]


Names = Sequence[tuple[str, Type]]


def enclosed(
    name: str, inner: Kernel, arguments: Names, results: Names, helpers: Iterable[str], writes: bool
) -> Kernel:
    """The kernel that runs the inner one on Python's objects.  `writes`: it may change lists or dicts that go in."""
    failure = Buffer(FAILURE, "i64", (index(1 + MOST_INPUTS),), None, "out")
    body = tuple(_enclosing(inner, arguments, results, writes))
    called = (each.function for each in all_statements(body) if isinstance(each, Call) and each.function != inner.name)
    parameters: tuple[Parameter, ...] = (
        *(Scalar(each, machine_type(type) or "i64") for each, type in arguments),
        *(Buffer(each, machine_type(type) or "i64", (index(1),), None, "out") for each, type in results),
        failure,
    )
    return Kernel(name, parameters, body, helpers=(*with_those_called([*helpers, *called]), inner))


def _enclosing(inner: Kernel, arguments: Names, results: Names, writes: bool) -> Iterable[Statement]:
    state = Buffer(STATE.name, "i64", (index(INPUTS + MOST_INPUTS),), None, "inout")
    given = Address(state.name, (index(0),))
    yield Allocate(state)
    yield Store(state.name, (index(FIRST),), index(0))
    yield Store(state.name, (index(THREAD),), index(0))
    yield Store(state.name, (index(FAILED_ON),), index(0))
    passed: list[Expression] = [given]
    for name, type in arguments:
        passed.append(Name(name, machine_type(type) or "i64"))
        if is_container(type):
            passed[-1] = found = Name(f"{name}_in", "i64")
            yield Call(_conversion(type, "from"), (given, Name(name, "i64"), index(kind_of(type))), found.name, "i64")
            yield _leave_if(apply("eq", found, index(0)), NO_MEMORY, given)
    passed += [Address(name, (index(0),)) for name, _ in results]
    status = Name("status", "i64")
    yield Call(inner.name, tuple(passed), status.name, "i64")
    yield Call("resume", (given,), "resumed", "i64")
    tell = Call("tell_failure", (given, Address(FAILURE, (index(0),))), "told", "i64")
    yield If(apply("gt", status, index(0)), (tell,))
    yield If(apply("ne", status, index(0)), (Call("free_all", (given,), "freed", "i64"), Return(status)))
    if writes:
        yield Call("write_back", (given,), "written", "i64")
        yield _leave_if(apply("eq", Name("written", "i64"), index(0)), INTERRUPTED, given)
    for name, type in results:
        if is_container(type):
            made = Name(f"{name}_out", "i64")
            yield Call(
                _conversion(type, "to"), (Load(name, (index(0),), "i64"), index(kind_of(type))), made.name, "i64"
            )
            yield _leave_if(apply("eq", made, index(0)), INTERRUPTED, given)
            yield Store(name, (index(0),), made)
    yield Call("free_all", (given,), "freed", "i64")
    yield Return(index(0))


def _conversion(type: Type, direction: str) -> str:
    return f"dict_{direction}" if isinstance(type, DictType) else f"list_{direction}"


def _leave_if(condition: Expression, code: int, state: Expression) -> Statement:
    return If(condition, (Call("free_all", (state,), "freed", "i64"), Return(index(code))))


def element_type(type: Type) -> str:
    """The kernel's type of a list's elements, or of a dict's values."""
    return NUMBERS[type.value if isinstance(type, DictType) else type.contained()[0]]
