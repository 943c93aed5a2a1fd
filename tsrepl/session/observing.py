"""Commands that run an expression to observe it: `%trace`, `%time`, `%bisect`.

In: an expression.  Out: a `TraceReply`: each instruction with the registers it read and wrote; a `TimeReply`, for which
the expression is compiled once and run in rounds that are long enough for the clock; or a `TextReply` naming the
rewrite of a pass that changes the expression's value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from functools import partial
from time import perf_counter
from typing import Any, Final

from engine.aten.values.submodules import joined
from engine.aten.values.tensor import Tensor
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.instructions import CALL, CONSTANT, DROP, ENTER, EXIT, LOAD, RETURN, Instruction
from engine.executor.bytecode.operations import CALLEES
from engine.executor.debugging.places import ModulePaths, ModuleStack
from engine.executor.debugging.stops import is_bad, names_of
from engine.executor.interpreter.interpreter import Frame, InterpreterState
from engine.executor.interpreter.interrupts import calls_under_way
from engine.executor.plans.executor import code_of, executor_of
from engine.executor.plans.plan import ExecutionPlan
from engine.executor.plans.source_lines import line_of
from engine.executor.plans.source_places import full_place
from engine.frontend.compilation.entries import ENTRY
from engine.ir.graph import Graph
from engine.ir.match import callees_in
from engine.ir.unit import Function
from engine.lang.counts import counted
from engine.lang.errors import ExecutionError, did_you_mean
from engine.lang.records import dataclass
from engine.passes.pipeline import ALIASES, OPTIMIZE, PIPELINES, names
from engine.torch.jit.probing.bisection import bisect as find_culprit
from tsrepl.session.called import compiled_at_once
from tsrepl.session.costs import LONG_RUN, group_of, measured_rounds, tier_row, warm_up
from tsrepl.session.failures import UsageError, error_replies, interrupt_reply
from tsrepl.session.instruction_rows import instruction_text
from tsrepl.session.replies import ErrorReply, Moment, Reply, TextReply, TimeReply, TraceReply, TraceRow
from tsrepl.session.values import RESULT, described
from tsrepl.session.workspace import Workspace

# -- %trace


MOST_ROWS: Final = 1000
"""Rows that are kept, half of them the first and half the last: a loop may run for millions of instructions."""
MOST_HELD: Final = 1 << 28
"""Bytes of computed tensors that a trace holds on to, for those who look closer."""
_CALLING: Final = (LOAD, CONSTANT, CALL, DROP, RETURN)
"""An entry of these alone is a call, and what is called is of interest, not the entry around it."""


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """The instructions of a trace that are shown: those that all that is given applies to.

    `value` is a variable that the instruction reads or computes, `op` an operator, `module` a path, `line` a line,
    `last` how many of the last ones, `first_nan` the first that computes one and what led there.  With `plan` the
    graphs of plans run; `no_lines` leaves out the places.  Without `all`, so are instructions that only move values.
    """

    value: str = ""
    op: str = ""
    module: str | None = None
    line: int = 0
    last: int = 0
    first_nan: bool = False
    plan: bool = False
    no_lines: bool = False
    all: bool = False

    @property
    def text(self) -> str:
        given = [("variable", self.value), ("operator", self.op), ("module", self.module), ("line", self.line)]
        return ", ".join(f"{name} {value}" for name, value in given if value)

    def shows(self, code: Code, instruction: Instruction) -> bool:
        """True for an instruction that is to be shown, whatever module its call works for."""
        node = instruction.node
        range = line_of(instruction.range)
        return (
            (self.all or instruction.opcode not in _MOVING)
            and (not self.value or self.value in _names(code, (*instruction.inputs, *instruction.outputs)))
            and (not self.op or (node is not None and self.op in (node.kind, node.kind.partition("::")[2])))
            and (not self.line or (range is not None and range.number == self.line))
        )


def _names(code: Code, registers: Iterable[int]) -> set[str]:
    values = [code.values[register] for register in registers]
    return {value.variable_name for value in values if value is not None and value.name}


_OPTIONS: Final[dict[str, Callable[[str], Any]]] = {
    "value": str, "op": str, "module": str, "line": int, "last": int,
}  # fmt: skip
_FLAGS: Final = ("first-nan", "plan", "no-lines", "all")
_MOVING: Final = (LOAD, CONSTANT, DROP)
"""Opcodes of instructions that compute nothing; what they bring shows where it is read."""


def _filter(argument: str) -> tuple[TraceFilter, str]:
    """The options in front of an expression, and the expression.  Raises UsageError."""
    chosen = TraceFilter()
    while argument.startswith("--"):
        word, _, rest = argument[2:].partition(" ")
        if word in _FLAGS:
            flag: dict[str, Any] = {word.replace("-", "_"): True}
            chosen, argument = replace(chosen, **flag), rest.strip()
            continue
        if word not in _OPTIONS:
            known = ", ".join(f"--{each}" for each in (*_OPTIONS, *_FLAGS))
            raise UsageError(f"%trace has no option --{word}", hints=(f"it has {known}",))
        value, _, argument = rest.strip().partition(" ")
        try:
            chosen = replace(chosen, **{word: _OPTIONS[word](value)})
        except ValueError:
            raise UsageError(f"--{word} wants a number, not '{value}'") from None
        argument = argument.strip()
    return chosen, argument


def trace(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%trace [options] f(x)`: a run that fails or is interrupted is shown up to there."""
    chosen, expression = _filter(argument)
    function, arguments = workspace.compile_expression(expression)
    recording = _Recording(function, arguments, chosen)
    try:
        if chosen.plan:
            function.inlines = not any(node.kind in CALLEES for node in function.graph.all_nodes())
            with compiled_at_once():
                workspace.run(function, arguments)
                recording.run()
        else:
            recording.run()
    except (ExecutionError, KeyboardInterrupt) as error:
        yield recording.reply(expression)
        yield from [recording.interrupted()] if isinstance(error, KeyboardInterrupt) else error_replies(error)
    else:
        yield recording.reply(expression)


class _Recording:
    """A run step by step, and the rows of its trace so far."""

    def __init__(self, function: Function, arguments: Sequence[Any], chosen: TraceFilter) -> None:
        self._function, self._arguments, self._chosen = function, arguments, chosen
        self._paths = ModulePaths(function.graph, arguments)
        self._wanted = self._paths.meant(chosen.module) if chosen.module else set()
        if chosen.module and not self._wanted:
            hints = did_you_mean(chosen.module, self._paths.known()) or ("%modules lists those inside a module",)
            raise UsageError(f"no module '{chosen.module}' is in this call", hints=hints)
        self._codes = _Codes(chosen.plan)
        self._head: list[tuple[TraceRow, Moment]] = []
        self._tail: deque[tuple[TraceRow, Moment]] = deque(maxlen=chosen.last or MOST_ROWS // 2)
        self._total = self._held = self._ran = 0
        self._state: InterpreterState | None = None
        self._result = ""

    def run(self) -> None:
        """Run the function.  Raises ExecutionError, KeyboardInterrupt; the rows up to there are kept."""
        code = self._codes.of(self._function, self._arguments)
        is_call = self._function.name.startswith(ENTRY) and all(each.opcode in _CALLING for each in code.instructions)
        state = self._state = InterpreterState(code, code_of=self._codes.of)
        state.start(*self._arguments)
        modules = ModuleStack(self._paths)
        going = True
        while going:
            depth, instruction = len(state.frames) - 1 - is_call, state.frame.instruction
            module = _module(modules.of(state.frames), instruction)
            self._ran += depth >= 0
            if depth < 0 or not self._shows(state.frame.code, instruction, module):
                going = state.step()
            else:
                frame = state.frame
                going = self._step(state, depth, module)
                if self._chosen.first_nan and _has_nan(frame, instruction):
                    self._result = "the trace ends where NaN appeared first"
                    return
        if self._chosen.first_nan:
            self._head.clear()
            self._tail.clear()
            self._total = 0
        self._result = described(state.result, RESULT)

    def _note(self) -> str:
        """The choice of the rows; where it leaves none, the fact that it does."""
        chosen = self._chosen.text
        if self._total:
            return chosen
        sought = "no NaN" if self._chosen.first_nan else "none"
        return f"{sought} in {counted(self._ran, 'instruction')}" + (f": {chosen}" if chosen else "")

    def _shows(self, code: Code, instruction: Instruction, module: str) -> bool:
        is_inside = not self._wanted or any(f"{module}.".startswith(f"{path}.") for path in self._wanted)
        return is_inside and self._chosen.shows(code, instruction)

    def _step(self, state: InterpreterState, depth: int, module: str) -> bool:
        """Run an instruction and keep its row; True if there is another."""
        frame, pc, instruction = state.frame, state.frame.pc, state.frame.instruction
        reads, before = _registers(frame, instruction.inputs), _values(frame, instruction.inputs)
        going = state.step()
        row = _row(frame, depth, pc, reads)
        row = replace(row, module=module, kernel=self._codes.kernels.get(frame.code.graph, ""))
        row = replace(row, place="") if self._chosen.no_lines else row
        values = (*before, *(_values(frame, instruction.outputs) if row.writes else ()))
        self._held += sum(value.array.nbytes for value, _ in values[len(before) :] if isinstance(value, Tensor))
        moment = Moment(frame.code.graph, instruction.node, [*values] if self._held < MOST_HELD else [])
        is_late = self._chosen.last or len(self._head) >= MOST_ROWS // 2
        (self._tail if is_late else self._head).append((row, moment))
        self._total += 1
        return going

    def reply(self, title: str) -> TraceReply:
        """The trace of what has run."""
        kept = (*self._head, *self._tail)
        rows, moments = tuple(row for row, _ in kept), tuple(moment for _, moment in kept)
        left_out, tiers = self._total - len(rows), tuple(self._codes.tiers)
        result = self._result or f"none: the run stopped at {self._place()}"
        return TraceReply(title, rows, result, left_out, len(self._head), self._note(), tiers, moments)

    def _place(self) -> str:
        place = "" if self._state is None else full_place(line_of(self._state.frame.instruction.range))
        return place or "its beginning"

    def interrupted(self) -> ErrorReply:
        """The error for an interrupt, with the lines in which the run stopped."""
        return interrupt_reply([] if self._state is None else calls_under_way(self._state))


def _module(module: str, instruction: Instruction) -> str:
    """The module for which an instruction works, of a call that works for `module`: calls may be inlined there."""
    node = instruction.node
    return module if node is None else joined(module, *(call.module for call in node.inlined_from))


@dataclass(eq=False, slots=True)
class _Codes:
    """The codes of the calls of a trace: of the functions, or with `follows_plans` of their plans.

    `tiers` are the plans that were come to, with what runs of them; `kernels` are the names of those that stand for a
    graph inside a plan.
    """

    follows_plans: bool
    tiers: list[tuple[str, str]] = field(default_factory=list)
    kernels: dict[Graph, str] = field(default_factory=dict)
    known: dict[Graph, Code] = field(default_factory=dict)

    def of(self, function: Function, arguments: Sequence[Any]) -> Code:
        if not self.follows_plans:
            return code_of(function)
        graph = function.graph
        if graph not in self.kernels and function.inlines:
            plan = executor_of(function).plan_for(arguments)
            graph = plan.graph
            if graph not in self.known:
                self._note(plan)
        elif graph not in self.kernels:
            return code_of(function)
        return self.known.setdefault(graph, Code(graph, function.name))

    def _note(self, plan: ExecutionPlan) -> None:
        self.tiers.append(tier_row(plan))
        for node in plan.graph.all_nodes():
            if node.has_attribute("Subgraph") and (name := group_of(plan, node)):
                self.kernels[node.attr("Subgraph")] = name


def _has_nan(frame: Frame, instruction: Instruction) -> bool:
    return any(is_bad(frame.registers[register]) for register in instruction.outputs)


def _row(frame: Frame, depth: int, pc: int, reads: tuple[tuple[str, str], ...]) -> TraceRow:
    instruction = frame.code.instructions[pc]
    node = instruction.node
    name = "" if frame.code.name.startswith(ENTRY) else names_of(frame.code)[-1]
    name = node.inlined_from[-1].function if node is not None and node.inlined_from else name
    text = instruction_text(frame.code, instruction)
    return TraceRow(depth, name, pc, text, reads, _writes(frame, instruction), full_place(line_of(instruction.range)))


def _writes(frame: Frame, instruction: Instruction) -> tuple[tuple[str, str], ...]:
    """The registers the instruction wrote in its own frame: a call has not returned yet."""
    return () if instruction.opcode in (CALL, ENTER, EXIT) else _registers(frame, instruction.outputs)


def _registers(frame: Frame, registers: Sequence[int]) -> tuple[tuple[str, str], ...]:
    """The registers by their numbers, or as the author's variables, and what they hold."""
    return tuple((_label(frame.code, each), described(frame.registers[each])) for each in dict.fromkeys(registers))


def _values(frame: Frame, registers: Sequence[int]) -> tuple[tuple[Any, int], ...]:
    """The values in the registers, as `_registers` lists them, with the writes to each so far."""
    values = [frame.registers[each] for each in dict.fromkeys(registers)]
    return tuple((value, value._version if isinstance(value, Tensor) else 0) for value in values)


def _label(code: Code, register: int) -> str:
    value = code.values[register]
    return value.variable_name if value is not None and value.name else str(register)


# -- %time


ROUND_SECONDS: Final = 0.2


def time(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%time expression`: the first run, where it compiles, and then runs as `%profile` measures them."""
    function, arguments = workspace.compile_expression(argument)
    function.inlines = not any(node.kind in CALLEES for node in function.graph.all_nodes())
    plans = _plans_of(function)
    begin = perf_counter()
    workspace.run(function, arguments)
    first = perf_counter() - begin
    compiled = "expression" if function.inlines else "calls" if _plans_of(function) > plans else ""
    if first < LONG_RUN:
        with compiled_at_once():
            warm_up(workspace, function, arguments)
    rounds, loops = measured_rounds(partial(workspace.run, function, arguments), ROUND_SECONDS)
    yield TimeReply(argument, first, min(rounds), sum(rounds) / len(rounds), loops, len(rounds), compiled)


def _plans_of(function: Function) -> int:
    """The number of plans of the function, unless it is an entry around calls, and of all that it calls."""
    waiting, seen = [function], {function}
    while waiting:
        callees = {each for each in callees_in(waiting.pop().graph) if each.body is not None} - seen
        seen |= callees
        waiting += callees
    return sum(len(executor_of(each).plans) for each in seen if each.inlines or each is not function)


# -- %bisect


def bisect(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%bisect expression [pass ...]`."""
    words, chosen = argument.split(" "), list[str]()
    known = {*names(), *ALIASES, *PIPELINES}
    while len(words) > 1 and words[-1] in known:
        chosen.insert(0, words.pop())
    pipeline = [name for word in chosen for name in PIPELINES.get(word, (word,))] or list(OPTIMIZE)
    function, arguments = workspace.compile_expression(" ".join(words))
    culprit = find_culprit(function, arguments, pipeline=pipeline)
    if culprit is None:
        yield TextReply(f"no rewrite of {len(pipeline)} passes changes the result", "done")
    else:
        yield TextReply(str(culprit).rstrip(), "warning")
