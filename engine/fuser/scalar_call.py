"""Scalar programs as functions of Python values, through ctypes.

In: a `ScalarProgram`.  Out: a function of ints, floats, bools, lists and dicts, exactly of their types in TorchScript.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from engine.fuser import machine, to_llvm
from engine.fuser.from_scalar import ScalarProgram
from engine.fuser.scalar_writer import MOST_INPUTS, is_container
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Node, Value
from engine.lang.types import BOOL, FLOAT, INT, Type

Function = Callable[..., Any]
_KINDS: Final[dict[Type, Any]] = {INT: ctypes.c_int64, FLOAT: ctypes.c_double, BOOL: ctypes.c_bool}


class Failed(Exception):
    """The kernel returned this code, and changed nothing.  See Note [Codes of scalar kernels].

    `inputs` are those of the node that failed, if they are known.
    """

    def __init__(self, code: int, node: Node | None, inputs: list[Any] | None) -> None:
        super().__init__(str(code))
        self.node, self.inputs = node, inputs


def function_of(program: ScalarProgram) -> Function:
    """The compiled program; raises MachineError.  It raises `Failed`, or what a handler of a signal raises."""
    name = program.kernel.name
    code = machine.compile_module(to_llvm.module([program.kernel]), [name])
    arguments = [_kind(type) for _, type in program.arguments]
    results = [_kind(type) for _, type in program.results]
    pointers = [ctypes.c_void_p] * (len(results) + 1)
    entry = ctypes.PYFUNCTYPE(ctypes.c_int64, *arguments, *pointers)(code.addresses[name])

    def call(*args: Any) -> Any:
        cells, told = [kind() for kind in results], _Failure()
        status = entry(*args, *map(ctypes.addressof, cells), ctypes.addressof(told))
        if status != 0:
            raise _failed(program, status, told)
        found = tuple(map(_content, cells))
        return found if program.returns_tuple else found[0] if found else None

    return call


_Failure: Final = ctypes.c_int64 * (1 + MOST_INPUTS)


def _failed(program: ScalarProgram, status: int, told: Any) -> Failed:
    if status < 0:
        return Failed(status, None, None)
    node = program.nodes[status - 1]
    container = _content(ctypes.py_object.from_buffer(told)) if told[0] else None
    try:
        return Failed(status, node, [_input(value, container, told, i) for i, value in enumerate(node.inputs)])
    except _UnknownError:
        return Failed(status, node, None)


class _UnknownError(Exception):
    """An input of the node was not told."""


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


def _kind(type: Type) -> Any:
    return ctypes.py_object if is_container(type) else _KINDS[type]


def _content(cell: Any) -> Any:
    """The value that the kernel wrote there; its reference to an object is given up."""
    found = cell.value
    if isinstance(cell, ctypes.py_object):
        ctypes.pythonapi.Py_DecRef(cell)
    return found
