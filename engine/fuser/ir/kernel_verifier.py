"""The rules of kernel IR, checked.

In: a `Kernel`, or a `Function` of numbers.  Out: nothing; raises `KernelError`, with the text and a mark at the
statement, for what no front door may make: a name that is not known or known already, operands of other types than a
function takes, a store to what is only read, a loop that promises independent iterations and has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from keyword import iskeyword

from engine.fuser.ir.externals import EXTERNALS
from engine.fuser.ir.kernel import (
    ACCUMULATORS,
    BOOL,
    FUNCTIONS,
    POINTER,
    TYPES,
    VECTORS,
    WHOLE,
    Accumulate,
    Address,
    Allocate,
    Apply,
    Assign,
    Break,
    Buffer,
    Call,
    Constant,
    Continue,
    Declare,
    Expression,
    For,
    Function,
    If,
    Kernel,
    Let,
    Load,
    Name,
    Return,
    Scalar,
    Statement,
    Store,
    View,
    While,
    all_expressions,
    all_statements,
    element_of,
    index,
    parts,
    wrapped,
)
from engine.fuser.ir.kernel_text import show
from engine.lang.records import dataclass


class KernelError(Exception):
    """A kernel breaks the rules of kernel IR: the mistake of whoever made it."""


def verify(kernel: Kernel) -> None:
    """Raise KernelError unless the kernel and its helpers keep the rules."""
    known: dict[str, Kernel] = {}
    for each in (*kernel.helpers, kernel):
        if each.name in known or each.name in EXTERNALS:
            raise KernelError(f"{each.name}: a function of this name is known already")
        if each is not kernel and each.helpers:
            raise KernelError(f"{each.name}: a helper with helpers of its own")
        known[each.name] = each
        _Verifier(known).kernel(each)


def verify_function(function: Function) -> None:
    """Raise KernelError unless the function keeps the rules."""
    verifier = _Verifier({})
    for let in (*function.body, Let("result", function.result)):
        try:
            if not verifier.names:
                verifier.scalars(function.parameters)
            verifier.statement(let)
        except _Broken as error:
            raise KernelError(f"{function.name}: {show(let)}  # <- {error}") from None


class _Broken(Exception):
    """A rule that is broken where the verifier is."""


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise _Broken(rule)


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop around: its kind, and the variables and buffers that were known before it."""

    kind: str
    outside: frozenset[str]


@dataclass(slots=True)
class _Verifier:
    """The names that are known at a place in a kernel."""

    helpers: dict[str, Kernel]
    """The functions that may be called: those before, and this one."""
    names: dict[str, str] = field(default_factory=dict)
    """The types of names and variables."""
    variables: set[str] = field(default_factory=set)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    loops: list[_Loop] = field(default_factory=list)
    line: int = 0
    """The line of the statement at hand in the kernel's text, counted from that of its name."""

    # -- kernels

    def kernel(self, kernel: Kernel) -> None:
        try:
            self.parameters(kernel)
            self.block(kernel.body)
        except _Broken as error:
            raise KernelError(f"{error}\n{_marked(kernel, self.line, str(error))}") from None

    def parameters(self, kernel: Kernel) -> None:
        _require(kernel.name.isidentifier(), f"{kernel.name} is no name")
        self.scalars(kernel.scalars)
        for buffer in kernel.buffers:
            self.bind(buffer)

    def scalars(self, scalars: Iterable[Scalar]) -> None:
        for each in scalars:
            _require(each.type in TYPES, f"{each.name} of no type")
            self.name(each.name, each.type)

    def bind(self, buffer: Buffer) -> None:
        """Make a buffer known."""
        self.fresh(buffer.name)
        _require(buffer.type in TYPES, f"{buffer.name} of no type")
        shape, strides = buffer.shape or (), buffer.strides or ()
        _require(buffer.strides is None or len(strides) == len(shape), "as many strides as extents")
        _require(all(self.value(each) == "i64" for each in (*shape, *strides)), "extents and strides are i64")
        self.buffers[buffer.name] = buffer

    def fresh(self, name: str) -> None:
        _require(name.isidentifier() and not iskeyword(name), f"{name} is no name")
        _require(name not in self.names and name not in self.buffers, f"{name} is known already")

    def name(self, name: str, type: str) -> None:
        """Make a name known."""
        self.fresh(name)
        self.names[name] = type

    # -- statements

    def block(self, body: Sequence[Statement]) -> None:
        """Statements with names of their own."""
        names, variables, buffers = dict(self.names), set(self.variables), dict(self.buffers)
        for statement in body:
            self.line += 1
            self.statement(statement)
        self.line += not body  # "pass"
        self.names, self.variables, self.buffers = names, variables, buffers

    def statement(self, of: Statement) -> None:
        match of:
            case Let(name=name, value=value):
                self.name(name, self.number(value))
            case Declare(name=name, value=value):
                self.name(name, self.number(value))
                self.variables.add(name)
            case Assign(name=name, value=value):
                self.assign(name, self.number(value))
            case Accumulate(name=name, function=function, value=value):
                self.accumulate(name, function, self.number(value))
            case Store(buffer=buffer, indices=indices, value=value):
                self.store(buffer, indices, self.number(value))
            case For() | While() | If():
                self.nested(of)
            case Break() | Continue():
                self.leave(of)
            case Return(value=value):
                _require(self.value(value) == "i64", "i64 is returned")
                _require(all(each.kind == "range" for each in self.loops), "a loop of any order is not left")
            case Allocate(buffer=buffer):
                _require(buffer.shape is not None and buffer.strides is None, "a contiguous buffer is allocated")
                _require(buffer.access == "inout", "an allocated buffer is read and written")
                self.bind(buffer)
            case View(buffer=buffer, address=address):
                _require(buffer.shape is None and buffer.access == "inout", "a view is of unknown extent")
                _require(self.value(address) == "i64", "a view's address is i64")
                self.bind(buffer)
            case Call():
                self.call(of)

    def nested(self, of: For | While | If) -> None:
        if isinstance(of, For):
            self.loop(of)
            return
        _require(self.value(of.condition) == BOOL, "a condition is bool")
        if isinstance(of, While):
            with self.within("range"):
                self.block(of.body)
            return
        self.block(of.body)
        if of.orelse:
            self.line += 1
            self.block(of.orelse)

    def assign(self, name: str, type: str) -> None:
        _require(name in self.variables, f"{name} is no variable")
        _require(self.names[name] == type, f"{name} is {self.names[name]}, not {type}")
        for loop in self.loops:
            _require(loop.kind == "range" or name not in loop.outside, "iterations depend on one another")

    def accumulate(self, name: str, function: str, type: str) -> None:
        _require(name in self.variables, f"{name} is no variable")
        _require(self.names[name] == type, f"{name} is {self.names[name]}, not {type}")
        _require(function in ACCUMULATORS and type in FUNCTIONS[function].types, f"no sum is {function} of {type}")
        for loop in self.loops:
            _require(loop.kind != "parallel" or name not in loop.outside, "threads share a variable")

    def store(self, name: str, indices: Sequence[Expression], type: str) -> None:
        buffer = self.element(name, indices, type)
        _require(buffer.access != "in", f"{name} is only read")

    def loop(self, of: For) -> None:
        _require({self.value(each) for each in parts(of)} == {"i64"}, "bounds are i64")
        _require(of.step != index(0), "a loop that does not step")
        if of.kind == "parallel":
            _require(of.step == index(1), "threads step by one")
            _require(all(each.kind != "parallel" for each in self.loops), "threads within threads")
        with self.within(of.kind):
            names = dict(self.names)
            self.name(of.index, "i64")
            self.block(of.body)
            self.names = names
        if of.kind != "range":
            self.independent(of)

    def independent(self, of: For) -> None:
        """Require that no iteration reads what others accumulate."""
        found = {each.name for each in _summed(of.body)} & self.variables
        used = {each.name for each in _names(of.body)}
        _require(not found & used, f"iterations read the sum {', '.join(sorted(found & used))}")

    @contextmanager
    def within(self, kind: str) -> Iterator[None]:
        self.loops.append(_Loop(kind, frozenset(self.variables)))
        yield
        self.loops.pop()

    def leave(self, of: Break | Continue) -> None:
        _require(bool(self.loops), "no loop around")
        _require(isinstance(of, Continue) or self.loops[-1].kind == "range", "a loop of any order is not left")

    def call(self, of: Call) -> None:
        given = [self.value(each) for each in of.operands]
        helper = self.helpers.get(of.function)
        if helper is not None:
            wanted = tuple(POINTER if isinstance(each, Buffer) else each.type for each in helper.parameters)
            _require(tuple(given) == wanted, f"{of.function} takes ({', '.join(wanted)}), not ({', '.join(given)})")
            self.called(of, ("i64",))
            return
        _require(of.function in EXTERNALS, f"no function {of.function}")
        external = EXTERNALS[of.function]
        types = external.types(len(given))
        fits = len(given) == len(types) and all(map(_passes, given, types))
        _require(fits, f"{of.function} takes ({', '.join(types)}), not ({', '.join(given)})")
        self.called(of, ("i64", POINTER) if external.result == POINTER else (external.result,))

    def called(self, of: Call, results: Collection[str]) -> None:
        if of.name:
            _require(bool(of.type) and of.type in results, f"{of.function} gives no {of.type}")
            self.name(of.name, of.type)

    # -- expressions

    def number(self, of: Expression) -> str:
        """The type of what can be held, which addresses are not."""
        type = self.value(of)
        _require(type in TYPES or type in VECTORS, "an address that is no operand of a call")
        return type

    def value(self, of: Expression) -> str:
        """The type of an expression."""
        match of:
            case Constant(value=value, type=type):
                _require(_holds(type, value), f"{value!r} is no {type}")
            case Name(name=name, type=type):
                _require(name in self.names, f"{name} is not known")
                _require(self.names[name] == type, f"{name} is {self.names[name]}, not {type}")
            case Load(buffer=buffer, indices=indices, type=type):
                self.element(buffer, indices, type)
            case Address(buffer=buffer, indices=indices):
                self.element(buffer, indices)
            case Apply():
                self.apply(of)
        return of.type

    def element(self, name: str, indices: Sequence[Expression], type: str = "") -> Buffer:
        """The buffer of an element, or of elements, that are of this type if one is given."""
        _require(name in self.buffers, f"{name} is no buffer")
        buffer = self.buffers[name]
        _require(len(indices) == buffer.rank, f"{name} has {buffer.rank} dimensions")
        _require(all(self.value(each) == "i64" for each in indices), "indices are i64")
        if type:
            _require(buffer.type == element_of(type), f"{name} holds {buffer.type}, not {type}")
            is_row = buffer.strides is None or buffer.strides[-1] == index(1)
            _require(type not in VECTORS or is_row, f"elements of {name} do not follow one another")
        return buffer

    def apply(self, of: Apply) -> None:
        row = FUNCTIONS.get(of.function)
        if row is None:
            raise _Broken(f"no function {of.function}")
        given = [self.number(each) for each in of.operands]
        _require(len(given) == row.operands, f"{of.function} takes {row.operands} operands")
        if of.function == "convert":
            is_vector = of.type in VECTORS and given[0] == element_of(of.type)
            _require(is_vector or (of.type in TYPES and given[0] in TYPES), f"{given[0]} becomes no {of.type}")
            return
        if of.function == "select":
            _require(given[0] == BOOL, "a condition is bool")
            given = given[1:]
        _require(len({*given}) == 1, f"{of.function} of {' and '.join(given)}")
        _require(given[0] in row.types, f"no {of.function} of {given[0]}")
        _require(of.type == (row.result or given[0]), f"{of.function} gives {row.result or given[0]}, not {of.type}")


def _passes(given: str, wanted: str) -> bool:
    """True if an operand of one type may be one of an external function; addresses may be whole numbers."""
    return given == wanted or (wanted == POINTER and given == "i64")


def _holds(type: str, value: object) -> bool:
    """True if a constant's value is one of its type, as Python has it."""
    if type == BOOL:
        return isinstance(value, bool)
    if type not in WHOLE:
        return type in TYPES and isinstance(value, float)
    return isinstance(value, int) and not isinstance(value, bool) and wrapped(value, type) == value


def _summed(body: Sequence[Statement]) -> Iterator[Accumulate]:
    """The sums of a body."""
    return (each for each in all_statements(body) if isinstance(each, Accumulate))


def _names(body: Sequence[Statement]) -> Iterator[Name]:
    """The names that a body reads."""
    roots = (part for statement in all_statements(body) for part in parts(statement))
    return (each for root in roots for each in all_expressions(root) if isinstance(each, Name))


def _marked(kernel: Kernel, line: int, note: str) -> str:
    """The kernel's text with a note at a line, counted from that of its name."""
    lines = show(replace(kernel, helpers=())).splitlines()
    first = next(i for i, each in enumerate(lines) if each.startswith("def "))
    lines[first + line] += f"  # <- {note}"
    return "\n".join(lines)
