"""Owners of code: `CompilationUnit`, and the `Function`s in it.

In: definitions under qualified names.  Out: functions whose graphs are compiled when first asked for,
and classes, each under a name that is unique in its unit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, MutableMapping
from dataclasses import field
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary, ref

from engine.ir.graph import Graph
from engine.lang.deferred import pattern_of
from engine.lang.errors import Caution, CompileError, EngineError
from engine.lang.locks import callers, lock
from engine.lang.records import dataclass
from engine.lang.schema import FunctionSchema
from engine.lang.source import SourceRange
from engine.lang.types import ClassType as ClassType
from engine.lang.types import Type

if TYPE_CHECKING:
    from engine.ir.flat import Program

DEFINING: Final = lock()
"""Held by the thread that defines, compiles or removes functions and classes, of whatever unit.

Definitions need each other across units, so there is one lock for all: no two threads wait for each other, and what one
defines while another fails is its own.
"""
_MANGLE: Final = "___torch_mangle_"
_MANGLED: Final = pattern_of(rf"(.*)\.{_MANGLE}\d+\.([^.]*)")


@dataclass(eq=False, slots=True, weakref_slot=True)
class Function:
    """A function or method: a schema and a graph.

    `creator` makes both when they are first needed, so that functions may call each other in any
    order; a function that needs its own schema meanwhile is a recursive one and refused.  Another thread that needs it
    waits for `DEFINING`.
    `executor` is whatever `engine.executor` keeps to run it, which calls `before_run` when it first does, `entry` a
    builtin that does a call with positional arguments where nobody watches, `cautions` what may surprise in its text.
    The plans of a function that `inlines` hold what it calls; those of others, which run once only, leave that to the
    plans of the functions that are called.
    """

    qualname: str
    creator: Callable[[Function], None] | None = None
    executor: Any = None
    entry: Callable[..., Any] | None = None
    before_run: Callable[[], None] | None = None
    inlines: bool = True
    doc: str = ""
    cautions: tuple[Caution, ...] = ()
    kept: Any = None
    """Source text from its own archive, written to archives again where the code calls unknown operators."""
    written: SourceRange | None = None
    """The definition in its archive, which tells of a function that does not compile, too."""
    declares: Callable[[], FunctionSchema] | None = None
    """Reads what the text tells of the schema, where callers are compiled against that."""
    program: Program | None = None
    """The program that it is part of, where what is made of that is kept on disk."""
    examples: tuple[Type, ...] = ()
    """The types of the arguments that it was traced with, behind `self`; archives keep them."""
    _schema: FunctionSchema | None = None
    _graph: Graph | None = None
    _signature: FunctionSchema | None = None
    _was_begun: bool = False
    """True while it is compiled, and after that was interrupted."""
    itself: ref[Function] = field(init=False, repr=False)
    """For those who must not keep it."""

    def __post_init__(self) -> None:
        self.itself = ref(self)

    @property
    def is_method(self) -> bool:
        """True for a method: its first argument, of any name, is the object that owns it."""
        arguments = self.signature.arguments
        owner = arguments[0].type if arguments else None
        return isinstance(owner, ClassType) and self.qualname == f"{owner.qualname}.{self.name}"

    @property
    def name(self) -> str:
        return self.qualname.rsplit(".", 1)[-1]

    @property
    def schema(self) -> FunctionSchema:
        """Compiles the function if its schema is not known yet.  Raises CompileError."""
        if self._schema is None:
            self.ensure_defined()
        assert self._schema is not None
        return self._schema

    @property
    def graph(self) -> Graph:
        """Compiles the function if need be.  Raises CompileError."""
        if self._graph is None:
            self.ensure_defined()
        assert self._graph is not None
        return self._graph

    @property
    def body(self) -> Graph | None:
        """The graph, for those who look into what a program calls; None for a function of an archive that does not
        compile: who calls it is told why."""
        try:
            return self.graph
        except EngineError:
            return None

    @property
    def signature(self) -> FunctionSchema:
        """The schema; where the text tells it (`sign`), nothing is compiled for it.  Raises CompileError."""
        return self._signature if self._schema is None and self._signature is not None else self.schema

    @property
    def called_schema(self) -> FunctionSchema:
        """The schema that callers are compiled against: what the text declares, where it is the text that decides and
        says what the function returns.  Compiles the function if need be.  Raises CompileError."""
        declared = self.declares() if self._schema is None and self.declares is not None else None
        return declared if declared is not None and declared.returns else self.schema

    @property
    def is_defined(self) -> bool:
        return self._graph is not None

    def define(self, schema: FunctionSchema, graph: Graph) -> None:
        self._schema, self._graph, self.creator = schema, graph, None

    def undefine(self, creator: Callable[[Function], None]) -> None:
        """Take the definition back; who needs it next runs this creator."""
        self._schema, self._graph, self.creator = None, None, creator

    def declare(self, schema: FunctionSchema) -> None:
        """Give the schema before the body: calls of the function may then be compiled, its own among them."""
        self._schema = schema

    def sign(self, schema: FunctionSchema) -> None:
        """Say what the text tells of the schema.  Callers are still compiled against the function itself."""
        self._signature = schema

    def ensure_defined(self) -> None:
        """Run the creator once.  Raises CompileError when the function needs itself to be compiled."""
        if self._graph is not None:
            return
        with DEFINING:
            if self._graph is not None:
                return
            if self._was_begun and self._is_being_compiled():
                raise recursive_call(self)
            assert self.creator is not None, f"{self.qualname} has neither graph nor creator"
            self._was_begun = True
            try:
                self.creator(self)
            finally:
                self._was_begun = False
        assert self._graph is not None, f"the creator of {self.qualname} defined nothing"

    def _is_being_compiled(self) -> bool:
        """True if a call of `ensure_defined` is under way in this thread, besides the one that asks."""
        innermost = sys._getframe(1)
        outer = (frame for frame in callers(innermost.f_back) if frame.f_code is innermost.f_code)
        return any(frame.f_locals.get("self") is self for frame in outer)


def recursive_call(function: Function, range: SourceRange | None = None) -> CompileError:
    """The error for a function that calls itself, also by way of others."""
    text = f"function '{function.name}' is called recursively. Recursive calls are not supported"
    return CompileError(text, range, hints=("write a loop; what is left to do can wait in a list",))


class _Attempt:
    """A block that adds to the unit what it defines or, where it raises, nothing.  See `CompilationUnit.attempt`."""

    __slots__ = ("frame", "start", "unit")

    def __init__(self, unit: CompilationUnit) -> None:
        self.unit = unit
        self.start = 0
        """The number of steps to undo that were there before it."""
        self.frame: FrameType | None = None
        """The call that the block stands in."""

    def __enter__(self) -> None:
        unit = self.unit
        unit.clear_interrupted()
        self.start, self.frame = len(unit.undoing), sys._getframe(1)
        unit.attempts.append(self)

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        unit = self.unit
        if error is not None:
            unit.undo(self.start)
        # nothing is called from here on, so that who is interrupted knows that all or nothing was added
        unit.attempts = unit.attempts[:-1]
        if not unit.attempts:
            unit.undoing = []
        self.frame = None


@dataclass(eq=False, slots=True)
class CompilationUnit:
    """A namespace of functions and classes with unique qualified names.

    A `shared_unit` owns none of them: each goes with the last who uses it.  Its name does not become free again, so
    that names do not depend on when memory is given back.
    """

    functions: MutableMapping[str, Function] = field(default_factory=dict)
    types: MutableMapping[str, Type] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    """The names that a shared unit has given, but for those with a number, which come only once."""
    undoing: list[Callable[[], object]] = field(default_factory=list)
    """Steps that undo the additions of the attempts under way."""
    attempts: list[_Attempt] = field(default_factory=list)
    """The attempts under way, and those that were interrupted while they ended."""
    _mangle_count: int = 0

    def attempt(self) -> _Attempt:
        """A block that adds to the unit what it defines or, where it raises, nothing: `with DEFINING, unit.attempt()`.

        Blocks nest; an outer one that raises undoes what inner ones added.
        """
        return _Attempt(self)

    def clear_interrupted(self) -> None:
        """Undo attempts that ended in an interrupt before they undid anything, or in a thread that a fork left out."""
        while self.attempts and not any(frame is self.attempts[-1].frame for frame in callers(sys._getframe(1))):
            self.undo(self.attempts[-1].start)
            del self.attempts[-1:]

    def settled(self) -> CompilationUnit:
        """Itself, once it has all or nothing of what definitions under way in other threads add.

        It is for those who read names and define nothing.
        """
        if self.attempts:
            with DEFINING:
                self.clear_interrupted()
        return self

    def undo(self, start: int) -> None:
        """Undo all steps but so many of the first."""
        while len(self.undoing) > start:
            self.undoing[-1]()
            del self.undoing[-1:]

    def on_undo(self, step: Callable[[], object]) -> None:
        """Have an attempt that fails do this, which may be done twice."""
        self.clear_interrupted()
        if self.attempts:
            self.undoing.append(step)

    def find_function(self, qualname: str) -> Function | None:
        return self.functions.get(qualname)

    def find_type(self, qualname: str) -> Type | None:
        return self.types.get(qualname)

    def add_function(self, function: Function) -> Function:
        """Own the function.  Raises CompileError when its name is taken."""
        with DEFINING:
            name = function.qualname
            if name in self.functions:
                raise CompileError(f"method '{name}' already defined.")
            self._take(name)
            self.on_undo(partial(self._drop, self.functions, name, function))
            self.functions[name] = function
        return function

    def add_type(self, qualname: str, type: Type) -> None:
        """Own the class, interface, enum or named tuple.  Raises CompileError when its name is taken."""
        with DEFINING:
            if qualname in self.types:
                raise CompileError(f"class '{qualname}' already defined.")
            self._take(qualname)
            self.on_undo(partial(self._drop, self.types, qualname, type))
            self.types[qualname] = type

    def remove_function(self, qualname: str) -> None:
        """Forget a function, whose name is free then."""
        with DEFINING:
            self.functions.pop(qualname, None)
            self.taken.discard(qualname)

    def _drop(self, owned: MutableMapping[str, Any], qualname: str, added: Any) -> None:
        """Take back what was added under the name, if it still stands there."""
        if owned.get(qualname) is added:
            del owned[qualname]

    def _take(self, qualname: str) -> None:
        if isinstance(self.types, WeakValueDictionary) and _MANGLE not in qualname and qualname not in self.taken:
            self.on_undo(partial(self.taken.discard, qualname))
            self.taken.add(qualname)

    def mangle(self, qualname: str) -> str:
        """The name itself while it is free, else `ns.___torch_mangle_N.Name` with the next N."""
        match = _MANGLED.fullmatch(qualname)
        scope, name = (match[1], match[2]) if match else qualname.rpartition(".")[::2]
        with DEFINING:
            while qualname in self.types or qualname in self.functions or qualname in self.taken:
                qualname = f"{scope}.{_MANGLE}{self._mangle_count}.{name}".lstrip(".")
                self._mangle_count += 1
        return qualname


def shared_unit() -> CompilationUnit:
    """A unit that owns nothing, for programs of many owners."""
    return CompilationUnit(WeakValueDictionary(), WeakValueDictionary())
