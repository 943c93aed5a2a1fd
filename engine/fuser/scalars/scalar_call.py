"""Scalar programs as functions of Python values.

In: a `ScalarProgram`.  Out: a builtin function (`stub`) of ints, floats, bools, lists and dicts.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from engine.fuser.scalars.containers import FAILURE
from engine.fuser.scalars.from_scalar import ScalarProgram
from engine.fuser.scalars.scalar_writer import MOST_INPUTS, NUMBERS, is_container
from engine.fuser.stubs import stub
from engine.fuser.stubs.binding import (
    Argument,
    Binding,
    NumberArgument,
    NumberResult,
    ObjectArgument,
    ObjectResult,
    Result,
    Told,
)
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Node, Value
from engine.lang.types import BOOL, FLOAT, INT, DictType, Type

Function = Callable[..., Any]
Failure = Callable[[Node, list[Any] | None], Exception | None]
"""Gives the error of a node for its inputs, where they are known; None if there is none."""
_KINDS: Final[dict[Type, Any]] = {INT: ctypes.c_int64, FLOAT: ctypes.c_double, BOOL: ctypes.c_bool}


def function_of(name: str, program: ScalarProgram, binding: Binding, fallback: Function, failure: Failure) -> Function:
    """The compiled program, by its binding; raises MachineError or AbiError.

    Where the kernel fails it raises the error that `failure` gives, else it is `fallback(*args)`.  See Note [Codes of
    scalar kernels].
    """

    def on_error(code: int, address: int, *args: Any) -> Any:
        error = failure(*_failed(program, code, address)) if code > 0 else None
        if error is None:
            return fallback(*args)
        try:
            raise error
        finally:
            del error  # whose traceback holds this frame, and so the arguments

    return stub.bind(name, [binding], fallback, on_error=on_error)


def binding_of(program: ScalarProgram) -> Binding:
    """The program's kernel with what it takes and gives."""
    arguments = tuple(_argument(name, type) for name, type in program.arguments)
    results = tuple(_result(name, type) for name, type in program.results)
    return Binding(program.kernel, arguments, results, told=Told(FAILURE, 1 + MOST_INPUTS))


def _argument(name: str, type: Type) -> Argument:
    if is_container(type):
        return ObjectArgument(name, "dict" if isinstance(type, DictType) else "list")
    return NumberArgument(name, NUMBERS[type])


def _result(name: str, type: Type) -> Result | NumberResult | ObjectResult:
    return ObjectResult(name) if is_container(type) else NumberResult(name, NUMBERS[type])


# ------------------------------------------------------------------ failures


class _UnknownError(Exception):
    """An input of the node was not told."""


def _failed(program: ScalarProgram, code: int, address: int) -> tuple[Node, list[Any] | None]:
    """The node that failed and its inputs, if they are known."""
    told = (ctypes.c_int64 * (1 + MOST_INPUTS)).from_address(address)
    node = program.nodes[code - 1]
    container = _taken(ctypes.py_object.from_buffer(told)) if told[0] else None
    try:
        return node, [_input(value, container, told, i) for i, value in enumerate(node.inputs)]
    except _UnknownError:
        return node, None


def _taken(cell: Any) -> Any:
    """The object whose reference the kernel left there, which is given up."""
    found = cell.value
    ctypes.pythonapi.Py_DecRef(cell)
    return found


def _input(value: Value, container: Any, told: Any, place: int) -> Any:
    known = constant_value(value)
    if known is not NOT_CONSTANT:
        return known
    if is_container(value.type) and container is not None:
        return container
    if value.type not in _KINDS or place >= MOST_INPUTS:
        raise _UnknownError
    cell = ctypes.c_int64(told[1 + place])
    return _KINDS[value.type].from_buffer(cell).value
