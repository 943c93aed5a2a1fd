"""Graphs of an archive's code on disk, so that a second process need not compile it again.

In: the functions of one archive, once compiled.  Out: their graphs in another process that opens an archive with the
same code.  `ArchivedProgram` names what graphs of the archive refer to, of plans as well.  They lie beside the machine
code (see Note [Trusting the cache]), all of one archive in one file.

The key covers all that graphs are made from: the archive's code, its version, its constants, and the engine's own
sources.  What a graph refers to it names: classes, functions, operators, constants by their place in the table.
Graphs that refer to anything else are compiled each time, and so is everything while somebody watches the compiler.
"""

from __future__ import annotations

import marshal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from engine.aten.values.tensor import Tensor
from engine.ir.flat import NotPlain, flat_type, flatten, type_of_flat, unflatten
from engine.ir.rewrites import is_watched
from engine.ir.unit import Function
from engine.lang.deferred import deferred
from engine.lang.errors import Caution
from engine.lang.interpreter_settings import deep_recursion
from engine.lang.records import dataclass
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.source import Source, SourceRange
from engine.lang.types import FunctionType, Type

if TYPE_CHECKING:
    import hashlib

    from engine.fuser.backend import kernel_cache, tiering
    from engine.ir import flat_program
    from engine.serialize.code.source_import import SourceImporter
else:
    hashlib = deferred("hashlib")
    kernel_cache = deferred("engine.fuser.backend.kernel_cache")
    tiering = deferred("engine.fuser.backend.tiering")
    flat_program = deferred("engine.ir.flat_program")

FORMAT: Final = "graphs 4"
MANY: Final = 1 << 20
"""Bytes of constants from which on an archive's graphs are not kept: graphs depend on these, and they take long to read
for a key."""
QUIET: Final = 0.02
"""Seconds without a new graph after which graphs are written."""
Texts = Callable[[], Iterable[tuple[str, bytes]]]
"""Gives all records of code of an archive, by name."""


@dataclass(slots=True, eq=False)
class KeptGraphs:
    """The graphs of one archive by the names of functions."""

    texts: Texts
    _key: str | None = None
    _known: dict[str, bytes] = field(default_factory=dict)
    _is_waiting: bool = False
    """True if new ones wait for being written."""

    def restore(self, function: Function, importer: SourceImporter, source: Source) -> bool:
        """Define the function by what was kept; False where there is nothing."""
        data = None if is_watched() else self._read(importer).get(function.qualname)
        if data is None:
            return False
        graph, returned, cautions = marshal.loads(data)
        references = ArchivedProgram(importer)
        arguments = importer.signature_of(function).arguments
        try:
            result = Argument("", type_of_flat(returned, references))
            with deep_recursion():
                restored = unflatten(graph, references)
        except NotPlain:
            return False
        function.cautions = tuple(Caution(text, SourceRange(source, *at), hints) for text, at, hints in cautions)
        function.define(FunctionSchema(function.name, "", arguments, (result,)), restored)
        return True

    def keep(self, function: Function, importer: SourceImporter, source: Source) -> None:
        """Keep the function's graph; it is written soon and in the background."""
        if is_watched() or not self._key:
            return
        references = ArchivedProgram(importer)
        try:
            returned = flat_type(function.schema.returns[0].type, references)
            cautions = tuple(_flat_caution(each, source) for each in function.cautions)
            with deep_recursion():
                graph = flatten(function.graph, references)
            self._known[function.qualname] = marshal.dumps((graph, returned, cautions))
        except (NotPlain, ValueError):  # or nested too deeply for marshal
            return
        if not self._is_waiting:
            self._is_waiting = True
            tiering.in_background(self._write)

    def key(self, importer: SourceImporter) -> str:
        """The key of the archive's graphs; empty where they are not kept."""
        self._read(importer)
        return self._key or ""

    def _read(self, importer: SourceImporter) -> dict[str, bytes]:
        if self._key is None:
            self._key = "" if kernel_cache.directory() is None else _key_of(self.texts(), importer)
            data = kernel_cache.load(self._key) if self._key else None
            self._known = {} if data is None else marshal.loads(data)
        return self._known

    def _write(self) -> None:
        """Write all, once no more come: functions are compiled when they are called, one soon after the other."""
        count = 0
        while count < len(self._known) and not tiering.has_to_stop():
            count = len(self._known)
            time.sleep(QUIET)
        self._is_waiting = False
        if self._key:
            kernel_cache.store(self._key, marshal.dumps(dict(self._known)))


def _flat_caution(caution: Caution, source: Source) -> tuple[str, tuple[int, int], tuple[str, ...]]:
    if caution.range.source is not source:
        raise NotPlain(caution.message)
    return caution.message, (caution.range.start, caution.range.end), caution.hints


@dataclass(eq=False, slots=True)
class ArchivedProgram:
    """All that graphs of an archive refer to, by the names that it has in the archive."""

    importer: SourceImporter
    is_open: bool = False
    """True once somebody has a graph in hand, who may change it."""

    @property
    def key(self) -> str:
        """The key of all that the graphs are made from; empty where nothing is kept."""
        graphs = self.importer.graphs
        return "" if self.is_open or graphs is None else graphs.key(self.importer)

    def open(self) -> None:
        """Keep nothing from here on that is made of the graphs."""
        self.is_open = True

    def sent(self) -> tuple[Any, ...]:
        """The archive's code, its version and its constants, behind the kind of program.  Raises NotPlain."""
        if self.importer.graphs is None:
            raise NotPlain("an archive without text")
        constants = tuple(flat_program.flat_tensors(self.importer.constants()))
        return "archive", self.importer.version, constants, tuple(self.importer.graphs.texts())

    def name_of_source(self, source: Source) -> str:
        if self.importer.source_of(source.filename) is not source:
            raise NotPlain(source.filename)
        return source.filename

    def source(self, name: str) -> Source:
        found = self.importer.source_of(name)
        if found is None:
            raise NotPlain(name)
        return found

    def name_of_type(self, type: Type) -> str:
        name = type.annotation_str
        if self.importer.find_type(name) is not type:
            raise NotPlain(name)
        return name

    def type(self, name: str) -> Type:
        found = self.importer.find_type(name)
        if found is None:
            raise NotPlain(name)
        return found

    def name_of_function(self, type: FunctionType) -> str:
        function = type.function
        if not isinstance(function, Function) or self.importer.find_function(function.qualname) is not function:
            raise NotPlain(function.name)
        return function.qualname

    def function(self, name: str) -> FunctionType:
        found = self.importer.find_function(name)
        if found is None:
            raise NotPlain(name)
        return FunctionType(found)

    def name_of_tensor(self, tensor: Tensor) -> int:
        for index, constant in enumerate(self.importer.constants()):
            if constant is tensor:
                return index
        raise NotPlain("a tensor")

    def tensor(self, name: int) -> Tensor:
        found: Tensor = self.importer.constants()[name]
        return found


# ------------------------------------------------------------------ keys


def _key_of(texts: Iterable[tuple[str, bytes]], importer: SourceImporter) -> str:
    """The key of an archive's graphs; "" where its constants are too large to look at."""
    try:
        constants = [repr(each) for each in _shown(importer.constants())]
    except NotPlain:
        return ""
    code = (part for name, text in texts for part in (ascii(name), hashlib.sha256(text).hexdigest()))
    return kernel_cache.key_of(
        (FORMAT, sys.version, compiler_state(), str(importer.version), *constants, *code), "graphs"
    )


def _shown(constants: Sequence[Any]) -> Iterator[Any]:
    """All that a program may learn of the constants.  Raises NotPlain where that is too much."""
    room = MANY
    for value in constants:
        if not isinstance(value, Tensor) or value.device.type != "cpu" or (room := room - value.array.nbytes) < 0:
            raise NotPlain("a constant")
        yield str(value.dtype), value.array.shape, value.array.strides, value.requires_grad
        yield hashlib.sha256(value.array.tobytes()).hexdigest()


@cache
def compiler_state() -> str:
    """The state of the engine's sources that compile."""
    return kernel_cache.state_of_engine("aten", "frontend", "ir", "lang", "passes", "serialize")
