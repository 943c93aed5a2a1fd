"""Statements in a frame: expressions over its variables, and assignments to them.

In: text, and a frame.  Out: values; registers that are written.  Names that are no variables are the functions of the
program, `torch`, and operators without their `torch.`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import count
from typing import Any, Final

from engine.aten.dispatch import table
from engine.aten.values.tensor import Tensor
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.instructions import CONSTANT, DROP, LOAD, OPERATE, RETURN, Instruction
from engine.executor.bytecode.operations import op_of
from engine.executor.bytecode.traceback import CallSite, execution_error
from engine.executor.debugging.places import Variable, variables_in
from engine.executor.debugging.recording import NOWHERE, Recording
from engine.executor.interpreter.interpreter import Frame, InterpreterState
from engine.executor.plans.executor import code_of
from engine.frontend.compilation.entries import EntryFunction, compile_entry
from engine.frontend.names.resolve import Resolver, TextResolver
from engine.frontend.sugared.sugared_value import Builder, SugaredValue
from engine.frontend.sugared.values import BuiltinFunction
from engine.frontend.syntax.name_uses import names_of
from engine.frontend.syntax.parser import parse_statements
from engine.frontend.syntax.tree import Tree
from engine.ir.graph import Node
from engine.ir.unit import CompilationUnit
from engine.lang.errors import ArgumentError, CompileError, EngineError, did_you_mean
from engine.lang.records import dataclass
from engine.lang.source import Source, SourceRange
from engine.lang.types import NONE, Type

RESULT: Final = "_"
ResolverFor = Callable[[Mapping[str, Type], Iterable[str]], Resolver]
"""From annotations, and the names of variables, to what resolves the names of statements."""


class FrameResolver(TextResolver):
    """The names of statements in a frame: `types` are annotations, `variables` those of the frame."""

    def __init__(self, unit: CompilationUnit, types: Mapping[str, Type], variables: Iterable[str]) -> None:
        super().__init__(unit)
        self._types, self._variables = types, variables

    def resolve_value(self, b: Builder, name: str, range: SourceRange) -> SugaredValue | None:
        found = super().resolve_value(b, name, range)
        return BuiltinFunction(f"aten::{name}") if found is None and table.overloads(f"aten::{name}") else found

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        return self._types.get(name) or super().resolve_type(name, range)

    def names(self) -> Iterable[str]:
        return [*super().names(), *self._variables]


class StraightCode:
    """A code of one result without branches and calls: its operations one after the other, and nothing in between.

    An interpreter's state takes longer to set up than a condition takes to compute.
    """

    __slots__ = ("_name", "_nodes", "_registers", "_result", "_steps")

    def __init__(self, code: Code) -> None:
        self._name, self._registers = code.name, [*code.blank]
        self._steps: list[tuple[Callable[..., Any], Callable[[list[Any]], Any], int]] = []
        self._nodes: list[Node | None] = []
        first = len(code.graph.inputs)
        for (opcode, operand, source, target, _), instruction in zip(code.program, code.instructions, strict=True):
            if opcode == CONSTANT:
                self._registers[target - first] = operand
            elif opcode == OPERATE:
                self._steps.append((operand, source, target))
                self._nodes.append(instruction.node)
            elif opcode == RETURN:
                (self._result,) = instruction.inputs

    @staticmethod
    def fits(code: Code) -> bool:
        opcodes = {step[0] for step in code.program}
        return opcodes <= {LOAD, CONSTANT, OPERATE, DROP, RETURN} and len(code.graph.outputs) == 1

    def run(self, *inputs: Any) -> Any:
        """The result for these inputs.  Raises ExecutionError."""
        registers = [*inputs, *self._registers]
        done = count()
        try:
            for operate, source, target in self._steps:
                registers[target] = operate(*source(registers))
                next(done)
        except Exception as error:
            raise execution_error(error, [CallSite(self._name, self._nodes[next(done)])]) from error
        return registers[self._result]


@dataclass(frozen=True, slots=True)
class Statements:
    """Compiled statements, with the registers of the frame that they read and write.

    `type` is that of the value of the last one; None where it is no expression, or one without a value.  `is_steady`
    says that what is read decides the value, and nothing else.
    """

    entry: EntryFunction
    code: Code
    straight: StraightCode | None
    is_steady: bool
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    type: Type | None

    def run(self, recording: Recording, depth: int) -> Any:
        """The value of the last statement; what the statements change is part of the recording.

        Raises ExecutionError.
        """
        result = recording.run_here(self.entry.function, self.reads, self.writes, depth)
        if self.type is None:
            return None
        return result[-1] if len(self.entry.results) > 1 else result

    def value(self, inputs: Sequence[Any]) -> Any:
        """The value of an expression, for conditions: what it might change is not recorded.  Raises ExecutionError.

        Asked thousands of times in a run, it would get a plan and machine code, and these cost more than they save.
        """
        return self.straight.run(*inputs) if self.straight else InterpreterState(self.code).run(*inputs)


class Evaluator:
    """Compiles statements; `resolver_for` resolves the names in them that are no variables of the frame."""

    def __init__(self, resolver_for: ResolverFor | None = None) -> None:
        unit = CompilationUnit()
        self._resolver_for = resolver_for or (lambda types, names: FrameResolver(unit, types, names))
        self._known: dict[tuple[Code, int, str], Statements] = {}
        self._entries: dict[tuple[str, tuple[tuple[str, Type], ...]], EntryFunction] = {}

    def compile(self, text: str, frame: Frame) -> Statements:
        """The statements where the frame stands.  Raises ParseError, CompileError, ArgumentError."""
        key = frame.code, frame.pc, text
        if key not in self._known:
            variables = variables_in(frame)
            self._known[key] = _placed(self._entry(text, variables), variables)
        return self._known[key]

    def _entry(self, text: str, variables: Mapping[str, Variable]) -> EntryFunction:
        """The function that the statements are, for all places at which what they name is of the same types."""
        statements = _parsed(text)
        if not statements:
            raise ArgumentError("an expression is wanted")
        names = names_of(statements)
        key = text, tuple((n, variables[n].type) for n in names.reads | names.assigned if n in variables)
        if key not in self._entries:
            types = {name: variable.type for name, variable in variables.items()}
            entry = compile_entry(statements, types, lambda given: self._resolver_for(given, variables), RESULT)
            for name in (*entry.lost, *entry.deleted):
                raise ArgumentError(f"'{name}' has to keep a value here")
            self._entries[key] = entry
        return self._entries[key]


def _placed(entry: EntryFunction, variables: Mapping[str, Variable]) -> Statements:
    """The statements over the registers that hold the variables at one place."""
    reads = tuple(variables[name].register for name in entry.parameters)
    writes = tuple(_target(name, type, variables) for name, type in entry.results)
    last, type = entry.results[-1] if entry.results else ("", NONE)
    is_value = last == RESULT and type is not NONE
    code = code_of(entry.function)
    straight = StraightCode(code) if StraightCode.fits(code) else None
    is_steady = straight is not None and all(map(_is_steady, code.instructions))
    return Statements(entry, code, straight, is_steady, reads, writes, type if is_value else None)


def _is_steady(instruction: Instruction) -> bool:
    """True if the inputs of the instruction decide its results; what takes none asks for a state."""
    op = op_of(instruction.node) if instruction.node is not None else None
    is_free = op is None or not (op.nondeterministic or op.side_effects)
    return instruction.opcode != OPERATE or (is_free and bool(instruction.inputs))


def _target(name: str, type: Type, variables: Mapping[str, Variable]) -> int:
    """The register of a variable that is assigned to.  Raises ArgumentError unless the value fits it."""
    if name == RESULT:
        return NOWHERE
    variable = variables.get(name)
    if variable is None:
        raise ArgumentError(f"the program has no variable '{name}' here", hints=did_you_mean(name, variables))
    if not type.is_subtype_of(variable.type):
        raise ArgumentError(f"'{name}' is of type {variable.type}, and cannot become a value of type {type}")
    return variable.register


def names_in(text: str) -> list[str]:
    """The names that an expression reads.  Raises ParseError."""
    return [*names_of(_parsed(text)).reads]


def _parsed(text: str) -> list[Tree]:
    return parse_statements(Source(text, "<debugger>"), extended=True)


# ------------------------------------------------------------------ conditions


@dataclass(eq=False, slots=True)
class Condition:
    """An expression that decides whether a run stops: true for a tensor that has any element that is.

    It is computed only where what it reads may be another than the last time; `held` is the answer of then.
    `problem` says why it could not be computed the last time; then it holds, so that nobody waits in vain.  Where it
    makes no sense, since names are of other functions, it does not hold; `never` says why, if that was so everywhere.
    """

    text: str
    evaluator: Evaluator
    problem: str = ""
    never: str = ""
    held: bool = False
    _asked_for: Sequence[tuple[Any, object]] | None = None
    _known: dict[tuple[Code, int], Statements | None] = field(default_factory=dict)

    def __call__(self, frame: Frame) -> bool:
        place = frame.code, frame.pc
        statements = self._known[place] if place in self._known else self._compiled(frame)
        if statements is None:
            return False
        inputs = [frame.registers[r] for r in statements.reads]
        if statements.is_steady and self._was_asked_for(inputs):
            return self.held
        self.problem = ""
        try:
            self.held = is_true(statements.value(inputs))
        except EngineError as error:
            self.problem, self.held = error.message, True
        self._asked_for = [(each, _version(each)) for each in inputs]
        return self.held

    def _was_asked_for(self, inputs: Sequence[Any]) -> bool:
        """True if it was asked for these very values the last time, and nothing was written to them since."""
        if self._asked_for is None or len(inputs) != len(self._asked_for):
            return False
        for value, (before, version) in zip(inputs, self._asked_for, strict=True):
            if value is not before or _version(value) != version:
                return False
        return True

    def _compiled(self, frame: Frame) -> Statements | None:
        """The expression where the frame stands; None where it cannot be asked."""
        try:
            found = self.evaluator.compile(self.text, frame)
            self.never = ""
        except (CompileError, ArgumentError) as error:
            found = None
            if not any(self._known.values()):
                self.never = error.message
        self._known[frame.code, frame.pc] = found
        return found


@dataclass(eq=False, slots=True)
class Change:
    """A condition that stops where a variable of it is written, and behind other changes where it begins to hold."""

    condition: Condition
    writes: Callable[[Code], Iterable[int]]
    changes: Callable[[Code], Iterable[int]]
    _known: dict[Code, tuple[frozenset[int], frozenset[int]]] = field(default_factory=dict)

    def __call__(self, frame: Frame) -> bool:
        held = self.condition.held
        return self.condition(frame) and (not held or self._is_at_write(frame))

    def _is_at_write(self, frame: Frame) -> bool:
        """True where the instruction behind which the run stands, or going back the one before it, is a write."""
        if frame.code not in self._known:
            self._known[frame.code] = frozenset(self.writes(frame.code)), frozenset(self.changes(frame.code))
        writes, changes = self._known[frame.code]
        return (frame.pc - 1 if frame.pc - 1 in changes else frame.pc) in writes


def _version(value: Any) -> object:
    """The same as long as nothing is written to the value; never the same for what holds others."""
    if type(value) is Tensor:
        return value.memory.version
    return 0 if isinstance(value, (int, float, complex, str)) else object()


def is_true(value: Any) -> bool:
    if not isinstance(value, Tensor):
        return bool(value)
    return bool(value.array) if value.array.size == 1 else bool(value.array.any())


class _Unset:
    """The value of an expression whose variables are not set."""

    def __repr__(self) -> str:
        return "unset"


_MISSING: Final = _Unset()


@dataclass(eq=False, slots=True)
class Watch:
    """An expression; true where its value is another one than the last time, in either direction."""

    text: str
    evaluator: Evaluator
    before: Any = _MISSING
    now: Any = _MISSING

    def look(self, frame: Frame) -> None:
        """Take the present value as what it was before."""
        self.now = self._value(frame)

    def __call__(self, frame: Frame) -> bool:
        value = self._value(frame)
        if value is _MISSING or _is_same(value, self.now):
            return False
        self.before, self.now = self.now, value
        return True

    def _value(self, frame: Frame) -> Any:
        try:
            statements = self.evaluator.compile(self.text, frame)
            value = statements.value([frame.registers[r] for r in statements.reads])
        except EngineError:
            return _MISSING
        return copied(value)


def copied(value: Any) -> Any:
    """A copy that writes do not change, tensors included, without their gradients."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, list):
        return [copied(each) for each in value]
    if isinstance(value, tuple):
        return tuple(copied(each) for each in value)
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    return value


def _is_same(a: Any, b: Any) -> bool:
    """True for equal values; NaN is the same as NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key]) for key in a)
    if isinstance(a, Tensor):
        x, y = a.array, b.array
        return x.dtype == y.dtype and x.shape == y.shape and bool(((x == y) | ((x != x) & (y != y))).all())
    return a is b or bool(a == b) or bool(a != a and b != b)
