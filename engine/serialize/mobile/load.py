"""Loading of files with bytecode and no code: the module, with methods made from the instructions.

In: an open container.  Out: the module, as from any other archive; its classes have the attributes that its objects
have.  `mobile_program` gives the instructions themselves, to be looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from engine.aten.values.ivalue import Object
from engine.frontend.names.type_annotations import TypeReader
from engine.frontend.syntax.parser import parse_expression
from engine.ir.unit import CompilationUnit, Function
from engine.lang import scalars
from engine.lang.errors import ArchiveError, CompileError, EngineError
from engine.lang.source import Source
from engine.lang.types import Type
from engine.serialize.container.read import Container
from engine.serialize.mobile.bare import BareClasses
from engine.serialize.mobile.bytecode import MobileFunction, MobileProgram
from engine.serialize.mobile.file import BYTECODE, STORAGES, holds_bytecode, is_flatbuffer
from engine.serialize.mobile.lift import graph_of, schema_of
from engine.serialize.mobile.makers import ProgramMaker
from engine.serialize.mobile.program import flatbuffer_program, pickled_program
from engine.serialize.mobile.records import root_of
from engine.serialize.mobile.values import Values
from engine.serialize.pickling.tensors import TensorReader
from engine.serialize.pickling.unpickle import GlobalNames, Runner, unpickle

_DATA: Final = "data.pkl"
_MOST_ROUNDS: Final = 5
_WEIGHTS: Final = "engine.load_weights(path) gives its tensors"


def mobile_program(container: Container) -> MobileProgram | None:
    """The bytecode in a file; None when it has none.  Raises ArchiveError where it makes no sense."""
    classes = BareClasses(CompilationUnit(), None)
    if not is_flatbuffer(container):
        return pickled_program(container, classes) if holds_bytecode(container) else None
    program = flatbuffer_program(_values(container, classes, None))
    return program if program.functions else None


def load_bytecode(
    container: Container,
    version: int,
    map_location: scalars.device | None,
    run: Runner | None,
    before_run: Callable[[], None],
    *,
    lazy: bool,
    swapped: bool = False,
) -> Object:
    """The module of such a file; `version` is that of its operators, `swapped` numbers are the other way round.

    Raises ArchiveError.
    """
    classes = BareClasses(CompilationUnit(), run)
    if is_flatbuffer(container):
        values = _values(container, classes, map_location)
        program, read = flatbuffer_program(values), values.module
        version = values.root["operator_version"]
    else:
        tensors = TensorReader(container, STORAGES, swapped, map_location)
        program = pickled_program(container, classes, swapped=swapped, map_location=map_location)
        read = partial(unpickle, container.read(_DATA), _DATA, tensors, classes.find, run, classes.fill)
    if not program.functions:
        raise ArchiveError("the file holds tensors and no program", record=BYTECODE, hints=(_WEIGHTS,))
    functions = [_function(each, classes, version, before_run) for each in program.functions]
    classes.add_methods(functions)
    module = read()
    if not isinstance(module, Object):
        raise ArchiveError("the file holds data and no module", record=_DATA)
    _settle([each for each in program.functions if _sets_attributes(each)], classes, version)
    for function in () if lazy else functions:
        function.ensure_defined()
    return module


def _values(container: Container, classes: BareClasses, map_location: scalars.device | None) -> Values:
    tensors = TensorReader(container, STORAGES, map_location=map_location)
    return Values(root_of(container), ProgramMaker(tensors, GlobalNames(tensors, classes.find, {}), classes))


def _function(
    described: MobileFunction, classes: BareClasses, version: int, before_run: Callable[[], None]
) -> Function:
    function = Function(described.name, partial(_define, described, classes, version))
    function.before_run = before_run
    return function


def _sets_attributes(described: MobileFunction) -> bool:
    return any(instruction.opcode == "SET_ATTR" for instruction in described.instructions)


def _settle(setters: Sequence[MobileFunction], classes: BareClasses, version: int) -> None:
    """Find the types of attributes that code sets to what the file's objects do not show: one that is None at first."""
    for _ in range(_MOST_ROUNDS if setters else 0):
        before = classes.widened
        for described in setters:
            with suppress(EngineError):  # who calls it is told
                _define(described, classes, version, Function(described.name))
        if classes.widened == before:
            return


def _define(described: MobileFunction, classes: BareClasses, version: int, function: Function) -> None:
    read_type = partial(_type, TypeReader(classes), described.name)
    schema = schema_of(described, read_type)
    function.declare(schema)
    function.define(schema, graph_of(described, schema, classes, read_type, version))


def _type(reader: TypeReader, owner: str, text: str) -> Type:
    try:
        return reader.read(parse_expression(Source(text, BYTECODE, is_generated=True)))
    except CompileError as error:
        raise ArchiveError(f"the type '{text:.80}' in '{owner}' is refused: {error}", record=BYTECODE) from None
