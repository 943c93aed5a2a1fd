"""Owners of code: `CompilationUnit`, and the `Function`s in it.

In: definitions under qualified names.  Out: functions whose graphs are compiled when first asked for,
and classes, each under a name that is unique in its unit.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from typing import Any, Final
from weakref import WeakValueDictionary, ref

from engine.ir.graph import Graph
from engine.lang.errors import Caution, CompileError
from engine.lang.records import dataclass
from engine.lang.schema import FunctionSchema
from engine.lang.types import ClassType as ClassType
from engine.lang.types import Type

_TURN: Final = threading.Condition()
"""Whoever needs a function that another thread compiles waits here."""
_MANGLE: Final = "___torch_mangle_"
_MANGLED: Final = re.compile(rf"(.*)\.{_MANGLE}\d+\.([^.]*)")


@dataclass(eq=False, slots=True, weakref_slot=True)
class Function:
    """A function or method: a schema and a graph.

    `creator` makes both when they are first needed, so that functions may call each other in any
    order; a function that needs its own schema meanwhile is a recursive one and refused.  Another thread that needs it
    waits.  `lock` is held meanwhile: functions that are first compiled late and need each other share one, so that two
    threads never wait for each other.
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
    examples: tuple[Type, ...] = ()
    """The types of the arguments that it was traced with, behind `self`; archives keep them."""
    lock: AbstractContextManager[Any] = field(default_factory=nullcontext)
    _schema: FunctionSchema | None = None
    _graph: Graph | None = None
    _signature: FunctionSchema | None = None
    _compiled_by: int = 0
    """The thread that compiles it now, by number."""
    itself: ref[Function] = field(init=False, repr=False)
    """For those who must not keep it."""

    def __post_init__(self) -> None:
        self.itself = ref(self)

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
    def signature(self) -> FunctionSchema:
        """The schema; where the text tells it (`sign`), nothing is compiled for it.  Raises CompileError."""
        return self._signature if self._schema is None and self._signature is not None else self.schema

    @property
    def is_defined(self) -> bool:
        return self._graph is not None

    def define(self, schema: FunctionSchema, graph: Graph) -> None:
        self._schema, self._graph, self.creator = schema, graph, None

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
        with self.lock:
            if not self._is_my_turn():
                return
            assert self.creator is not None, f"{self.qualname} has neither graph nor creator"
            try:
                self.creator(self)
            finally:
                with _TURN:
                    self._compiled_by = 0
                    _TURN.notify_all()
        assert self._graph is not None, f"the creator of {self.qualname} defined nothing"

    def _is_my_turn(self) -> bool:
        """Is it this thread that compiles the function?  Not if another has done it."""
        me = threading.get_ident()
        with _TURN:
            _TURN.wait_for(lambda: self._compiled_by in (0, me))
            if self._compiled_by == me:
                text = f"function '{self.name}' is called recursively. Recursive calls are not supported"
                raise CompileError(text, hints=("write a loop; what is left to do can wait in a list",))
            if self._graph is None:
                self._compiled_by = me
            return self._graph is None


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
    _mangle_count: int = 0

    def find_function(self, qualname: str) -> Function | None:
        return self.functions.get(qualname)

    def find_type(self, qualname: str) -> Type | None:
        return self.types.get(qualname)

    def add_function(self, function: Function) -> Function:
        """Own the function.  Raises CompileError when its name is taken."""
        if function.qualname in self.functions:
            raise CompileError(f"method '{function.qualname}' already defined.")
        self.functions[function.qualname] = function
        self._take(function.qualname)
        return function

    def add_type(self, qualname: str, type: Type) -> None:
        """Own the class, interface, enum or named tuple.  Raises CompileError when its name is taken."""
        if qualname in self.types:
            raise CompileError(f"class '{qualname}' already defined.")
        self.types[qualname] = type
        self._take(qualname)

    def remove_function(self, qualname: str) -> None:
        """Forget a function, as when its definition failed."""
        self.functions.pop(qualname, None)
        self.taken.discard(qualname)

    def remove_type(self, qualname: str) -> None:
        """Forget a class, as when its definition failed."""
        self.types.pop(qualname, None)
        self.taken.discard(qualname)

    def _take(self, qualname: str) -> None:
        if isinstance(self.types, WeakValueDictionary) and _MANGLE not in qualname:
            self.taken.add(qualname)

    def mangle(self, qualname: str) -> str:
        """The name itself while it is free, else `ns.___torch_mangle_N.Name` with the next N."""
        match = _MANGLED.fullmatch(qualname)
        scope, name = (match[1], match[2]) if match else qualname.rpartition(".")[::2]
        while qualname in self.types or qualname in self.functions or qualname in self.taken:
            qualname = f"{scope}.{_MANGLE}{self._mangle_count}.{name}".lstrip(".")
            self._mangle_count += 1
        return qualname


def shared_unit() -> CompilationUnit:
    """A unit that owns nothing, for programs of many owners."""
    return CompilationUnit(WeakValueDictionary(), WeakValueDictionary())
