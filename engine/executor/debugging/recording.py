"""A run with a journal: forward, back, and to any position.

In: a function and its inputs.  Out: a `Recording`, whose `position` counts the instructions executed so far.
`forward` executes one, `back` undoes one, `go_to` does either until it is where it is wanted.

Note [Going back]
The journal has an entry for each instruction, or for a run of instructions that write registers only (`runs`): what
was in the registers, and the values that it was about to write to (`effects`).  To undo an entry restores these in
place; to be in the middle of a run, its first instructions are executed again.  When the entries take more than
`bound` bytes, the oldest are dropped; of what they kept, the first state of each value that was there before the run
is held on to (`_Origin`).  To go back farther than the journal reaches, everything is restored to the beginning and
run again up to the position, which gives the same values: the generator of random numbers is restored as well, and
what the program prints is not printed again.  What Python functions do outside of the program's values is done again.

Note [Forks as threads]
A fork is a run of its own that stands still until somebody waits for its future, or `switch` is called: so the order
of all instructions is the same each time.
"""

from __future__ import annotations

import io
import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, Final, NamedTuple

from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.instructions import FORK, OPERATE, RETURN, TAIL_CALL, WAIT
from engine.executor.concurrency.futures import Future
from engine.executor.debugging.effects import CHANGING, Effect, effects_of
from engine.executor.debugging.runs import Run, Runs
from engine.executor.debugging.undo import Kept, keep, keep_contents, keep_histories, keep_modes, keep_random, owners_in
from engine.executor.interpreter.interpreter import Frame, InterpreterState
from engine.executor.plans.executor import executor_of
from engine.ir.graph import Graph
from engine.ir.unit import Function
from engine.lang.errors import ExecutionError
from engine.lang.interpreter_settings import collecting_rarely
from engine.lang.records import dataclass

BOUND: Final = 256 << 20
"""Bytes that a journal takes at most."""
_ENTRY_BYTES: Final = 300
"""Bytes of an entry without what it keeps, roughly."""
NOWHERE: Final = -1


@dataclass(eq=False, slots=True)
class Thread:
    """A run within the debugged call: the call itself, or a fork, with the future of its result.

    `waited_by` is the thread that goes on when this one ends.
    """

    number: int
    state: InterpreterState
    future: Future | None = None
    waited_by: Thread | None = None


class _Entry(NamedTuple):
    """The changes of instructions.  `caller` has the place and the old values of registers that a return wrote,
    `before` is the thread that was to run, which may have waited for this one."""

    thread: Thread
    before: Thread
    frame: Frame
    pcs: tuple[int, ...]
    registers: tuple[int, ...]
    values: Sequence[Any]
    kept: tuple[Kept, ...]
    caller: tuple[Frame, int, list[Any]] | None
    nbytes: int


_make: Final[Callable[[type[_Entry], Sequence[Any]], _Entry]] = tuple.__new__
"""Entries are made for each instruction: not through a function in Python."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Statements that were run in a frame at a position: a function, the registers that it reads and writes."""

    position: int
    function: Function
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    depth: int


class _Origin:
    """The beginning of a run: the first states of the values that were there."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._owners: dict[int, object] = {}
        self._held: dict[Hashable, Kept] = {}
        self.note(values)

    def note(self, values: Sequence[Any]) -> None:
        """These values are there before the run."""
        self._owners.update((id(owner), owner) for owner in owners_in(values))

    def hold(self, kept: Sequence[Kept]) -> None:
        """Hold on to states that the journal drops, unless an older one of the same is held."""
        for each in kept:
            if each.owner is None or id(each.owner) in self._owners:
                self._held.setdefault(each.key, each)

    @property
    def held(self) -> tuple[Kept, ...]:
        return (*self._held.values(),)

    def restore(self) -> None:
        for each in reversed(self._held.values()):
            each.restore()


class Recording:
    """One call of a function, recorded.  `thread` is the one that runs next; `result` is there when `finished`.

    `error` is that of the instruction at the position, which has failed and was undone.  With `follows_plans` the
    graphs that run are those of plans, guards included, else the functions' own.
    """

    def __init__(
        self, function: Function, inputs: Sequence[Any], bound: int = BOUND, *, follows_plans: bool = False
    ) -> None:
        self.function, self.inputs, self.bound = function, tuple(inputs), bound
        self.follows_plans = follows_plans
        self.position = 0
        self.error: ExecutionError | None = None
        self.threads: list[Thread] = []
        self._codes: dict[Graph, Code] = {}
        self._effects: dict[Code, tuple[Effect, ...]] = {}
        self._singles: dict[Code, Runs] = {}
        self._runs: dict[Code, Runs] = {}
        self._journal: deque[_Entry] = deque()
        self._nbytes = 0
        self._edits: list[Edit] = []
        self._origin = _Origin(self.inputs)
        self._modes = keep_modes()
        self._start = keep_random(), self._modes
        self._begin()

    def _begin(self) -> None:
        state = InterpreterState(self._code_for(self.function, self.inputs), code_of=self._code_for)
        state.start(*self.inputs)
        self.threads[:] = [Thread(1, state)]
        self.thread, self.position, self.error = self.threads[0], 0, None

    # -- looking

    @property
    def finished(self) -> bool:
        return self.threads[0].state.finished

    @property
    def result(self) -> Any:
        return self.threads[0].state.result

    @property
    def frames(self) -> list[Frame]:
        """The calls under way in the thread that runs next, outermost first."""
        return self.thread.state.frames

    @property
    def reach(self) -> int:
        """The first position to which the journal goes back without running anything again."""
        return self.position - sum(len(entry.pcs) for entry in self._journal)

    def code_of(self, function: Function) -> Code:
        """The function's own code, in which values stay in their registers."""
        return self._code(function, executor_of(function).graph)

    def _code_for(self, function: Function, arguments: Sequence[Any]) -> Code:
        """The code of a call."""
        if not self.follows_plans or not function.inlines:
            return self.code_of(function)
        return self._code(function, executor_of(function).plan_for(arguments).graph)

    def _code(self, function: Function, graph: Graph) -> Code:
        found = self._codes.get(graph)
        if found is None:
            found = self._codes[graph] = Code(graph, function.name, keeps_values=True)
            self._origin.note(found.constants)
        return found

    @property
    def codes(self) -> list[Code]:
        """The codes of the calls so far."""
        return [*self._codes.values()]

    # -- going

    @contextmanager
    def running(self) -> Iterator[None]:
        """While the block runs, this thread has the run's modes: whether gradients are recorded, mixed precision."""
        outside = keep_modes()
        self._modes.restore()
        try:
            with collecting_rarely():  # a journal has many objects, and none of them is garbage
                yield
        finally:
            self._modes = keep_modes()
            outside.restore()

    def forward(self) -> bool:
        """Execute one instruction; True if there is another.  Raises ExecutionError where it fails, and undoes it.

        A fork whose instruction has failed ends there the next time.
        """
        if self.is_straight:
            frame = self.thread.state.frames[-1]
            run = (self._singles.get(frame.code) or self._singles_of(frame.code)).at(frame.pc)
            if run is not None:
                self.forward_over(run)
                return True
        return self._forward_apart()

    @property
    def is_straight(self) -> bool:
        """True if the next instructions change what they say and no more, so that they may be executed as a run."""
        return bool(self.thread.state.frames) and self.error is None and not HOOKS.rebased

    def forward_over(self, run: Run) -> None:
        """Execute the run that begins here, where `is_straight`.

        Raises ExecutionError where an instruction fails, and stands at that.
        """
        thread, frame = self.thread, self.thread.state.frames[-1]
        registers, count, nbytes = frame.registers, len(run.pcs), _ENTRY_BYTES
        if run.large is not None:
            for value in run.large(registers):
                if type(value) is Tensor:
                    nbytes += value.array.nbytes
        values = run.values(registers)
        self._journal.append(_make(_Entry, (thread, thread, frame, run.pcs, run.registers, values, (), None, nbytes)))
        self._nbytes += nbytes
        self.position += count
        if self._nbytes > self.bound:
            self._make_room()
        try:
            thread.state.attempt(count)
        except ExecutionError as error:
            done = run.pcs.index(frame.pc)
            self._undo()
            for _ in range(done):
                self.forward()
            self.error = error
            raise
        except BaseException:
            self._undo()
            raise

    def _forward_apart(self) -> bool:
        """The same for an instruction that may change anything: values, calls, threads."""
        assert not self.finished, "the run is over"
        thread = self.thread
        if not thread.state.frames or thread.state.frame.instruction.opcode == WAIT:
            thread = self._runnable()
        frame = thread.state.frame
        effect = (self._effects.get(frame.code) or self._effects_of(frame.code))[frame.pc]
        self._note(self._entry(thread, frame, effect))
        self.thread = thread
        error, self.error = self.error, None
        try:
            self._execute(thread, frame, error)
        except BaseException as raised:
            self._failed(raised)
            raise
        if not thread.state.frames:
            self._end(thread)
        return not self.finished

    def _note(self, entry: _Entry) -> None:
        """Add an entry, before its instruction is executed."""
        self._journal.append(entry)
        self._nbytes += entry.nbytes
        self.position += 1
        self._make_room()

    def _make_room(self) -> None:
        """Drop the oldest entries of a journal that takes too much."""
        while self._nbytes > self.bound and len(self._journal) > 1:
            self._drop_oldest()

    def _failed(self, error: BaseException) -> None:
        self._undo()
        self.error = error if isinstance(error, ExecutionError) else None

    def back(self) -> bool:
        """Undo one instruction; False if none was executed."""
        if not self.position:
            return False
        self.go_to(self.position - 1)
        return True

    @property
    def last(self) -> tuple[Code, tuple[int, ...]] | None:
        """The instructions that `back_over` would undo; None where the journal has none."""
        return (self._journal[-1].frame.code, self._journal[-1].pcs) if self._journal else None

    def back_over(self) -> None:
        """Undo the run that was executed last."""
        self._undo()

    def go_to(self, position: int) -> None:
        """Be where so many instructions are executed, or where the run ends if that is earlier.

        Raises ExecutionError where an instruction on the way fails.
        """
        while self.position > position and self._journal:
            self._undo()
        if self.position > position:
            self._replay(position)
        self._run_to(position)

    def switch(self, number: int) -> bool:
        """Let the thread of that number run next; False if there is none that could."""
        found = next((each for each in self.threads if each.number == number and not each.state.finished), None)
        if found is not None:
            self.thread = found
        return found is not None

    # -- statements at a position

    def run_here(self, function: Function, reads: Sequence[int], writes: Sequence[int], depth: int = -1) -> Any:
        """Run a function on values of a frame's registers, and put its results into others; its result.

        `writes` has a register for each result, `NOWHERE` for one that goes into none.  What the function changes is
        undone with the instruction before, and changed again by replays.  Raises ExecutionError.
        """
        edit = Edit(self.position, function, tuple(reads), tuple(writes), depth)
        frame = self.frames[depth]
        inner = Recording(function, [frame.registers[r] for r in reads], bound=self.bound)
        try:
            inner._run_to_end()
        finally:
            changed = inner.changes()
            if changed or {*writes} - {NOWHERE}:
                self._edits.append(edit)
                self._keep_more((keep_contents(frame.registers), *changed))
        results = [inner.result] if len(writes) == 1 else inner.result or ()
        for register, value in zip(writes, results, strict=True):
            if register != NOWHERE:
                frame.registers[register] = value
        return inner.result

    def changes(self) -> tuple[Kept, ...]:
        """The states before the run of all that it has changed so far."""
        while self._journal:
            self._drop_oldest()
        return self._origin.held

    def _run_to_end(self) -> None:
        self._run_to(sys.maxsize)

    def _keep_more(self, kept: tuple[Kept, ...]) -> None:
        """Have these states restored with the last instruction."""
        if self._journal:
            last = self._journal.pop()
            self._journal.append(last._replace(kept=(*last.kept, *kept)))
        else:
            self._origin.hold(kept)

    # -- the journal

    def _run_to(self, position: int) -> None:
        while self.position < position and not self.finished:
            run = self._run_here()
            if run is not None and len(run.pcs) <= position - self.position:
                self.forward_over(run)
            else:
                self.forward()

    def _run_here(self) -> Run | None:
        if not self.is_straight:
            return None
        frame = self.thread.state.frames[-1]
        if frame.code not in self._runs:
            self._runs[frame.code] = self.runs_past(frame.code)
        return self._runs[frame.code].at(frame.pc)

    def runs_past(self, code: Code, is_passed: Sequence[bool] | None = None) -> Runs:
        """The runs of a code past these of its instructions (None: all)."""
        return Runs(code, self._effects.get(code) or self._effects_of(code), is_passed)

    def _entry(self, thread: Thread, frame: Frame, effect: Effect) -> _Entry:
        """The record that undoes the instruction at which the frame stands."""
        pc, registers = frame.pc, frame.registers
        opcode, _, source, _, _ = frame.code.program[pc]
        values = [registers[r] for r in effect.registers]
        nbytes = _ENTRY_BYTES
        for value in values:
            nbytes += value.array.nbytes if type(value) is Tensor else 0
        kept: tuple[Kept, ...] = ()
        if effect.keep is not None:
            kept = tuple(effect.keep(source(registers)))
            for each in kept:
                nbytes += each.nbytes
        elif opcode in CHANGING or self.error is not None:
            kept = self._kept_by_control(opcode, thread)
        elif HOOKS.rebased and opcode == OPERATE:
            kept = tuple(keep_histories(source(registers)))
        caller = None
        if opcode == RETURN and len(thread.state.frames) > 1:
            outer = thread.state.frames[-2]
            target = outer.code.instructions[outer.pc].outputs
            caller = (outer, outer.pc, [outer.registers[r] for r in target])
        return _make(_Entry, (thread, self.thread, frame, (pc,), effect.registers, values, kept, caller, nbytes))

    def _kept_by_control(self, opcode: int, thread: Thread) -> tuple[Kept, ...]:
        """The states that forks, the ends of threads, and `with` change besides registers."""
        kept: list[Kept] = [keep_contents(thread.state.entered), keep_contents(self.threads)]
        if opcode == TAIL_CALL or thread.future is not None:
            kept.append(keep_contents(thread.state.frames))
        if thread.future is not None:
            kept += keep(thread.future)
        return tuple(kept)

    def _effects_of(self, code: Code) -> tuple[Effect, ...]:
        found = self._effects[code] = effects_of(code)
        return found

    def _singles_of(self, code: Code) -> Runs:
        found = self._singles[code] = Runs(code, self._effects.get(code) or self._effects_of(code), longest=1)
        return found

    def _undo(self) -> None:
        """Take the last entry back."""
        entry = self._journal.pop()
        self._nbytes -= entry.nbytes
        self.position -= len(entry.pcs)
        frames, frame = entry.thread.state.frames, entry.frame
        if not frames or frames[-1] is not frame:
            if frame in frames:
                del frames[frames.index(frame) + 1 :]
            else:
                frames.append(frame)
        for kept in reversed(entry.kept):
            kept.restore()
        for register, value in zip(entry.registers, entry.values, strict=True):
            frame.registers[register] = value
        frame.pc = entry.pcs[0]
        if entry.caller is not None:
            outer, pc, values = entry.caller
            for register, value in zip(outer.code.instructions[pc].outputs, values, strict=True):
                outer.registers[register] = value
            outer.pc = pc
        self.thread, self.error = entry.before, None
        while self._edits and self._edits[-1].position > self.position:
            self._edits.pop()

    def _drop_oldest(self) -> None:
        entry = self._journal.popleft()
        self._nbytes -= entry.nbytes
        self._origin.hold(entry.kept)

    def _replay(self, position: int) -> None:
        """Restore the beginning, and run up to the position."""
        edits = [each for each in self._edits if each.position <= position]
        while self._journal:
            self._undo()
        self._origin.restore()
        for each in self._start:
            each.restore()
        self._edits = []
        self._begin()
        with redirect_stdout(io.StringIO()):
            for edit in edits:
                self._run_to(edit.position)
                self.run_here(edit.function, edit.reads, edit.writes, edit.depth)
            self._run_to(position)

    # -- threads

    def _runnable(self) -> Thread:
        """The thread that can go on: where the one that runs next waits for another, that one."""
        thread = self.thread
        if thread.state.finished:
            thread = self.threads[0]
        while (owner := self._waits_for(thread)) is not None:
            owner.waited_by, thread = thread, owner
        return thread

    def _waits_for(self, thread: Thread) -> Thread | None:
        frame = thread.state.frames[-1]
        instruction = frame.instruction
        if instruction.opcode != WAIT:
            return None
        future = frame.registers[instruction.inputs[0]]
        return next((each for each in self.threads if each.future is future and not each.state.finished), None)

    def _execute(self, thread: Thread, frame: Frame, error: ExecutionError | None) -> None:
        if error is not None and thread.future is not None:
            thread.state.frames.clear()
            thread.future.fail(error)
        elif frame.instruction.opcode == FORK:
            self._fork(frame)
        else:
            thread.state.attempt()

    def _fork(self, frame: Frame) -> None:
        _, function, source, target, _ = frame.code.program[frame.pc]
        given = source(frame.registers)
        state = InterpreterState(self._code_for(function, given), code_of=self._code_for)
        state.start(*given)
        frame.registers[target] = future = Future()
        self.threads.append(Thread(len(self.threads) + 1, state, future))
        frame.pc += 1

    def _end(self, thread: Thread) -> None:
        """A thread is over: who waited for it goes on."""
        if thread.future is not None:
            if not thread.future.done():
                thread.future.set_result(thread.state.result)
            self.thread = thread.waited_by or self.threads[0]
