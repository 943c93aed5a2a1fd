"""The interpreter, which defines the meaning of programs.

In: `Code` and arguments.  Out: results; or, instruction by instruction, everything that happens on the way.

`InterpreterState` is one run: frames (one for each call; calls of TorchScript functions do not use Python's stack),
registers, program counters.  It can stop between any two instructions and go on later:

    state = InterpreterState(code)
    state.run(x, y)                   the result
    state.start(x, y)                 … or step by step
    while state.step(): print(state.frame.pc)

A hook is called with the state before each instruction; it may look at everything, and call `state.suspend()` to make
`resume` return before the instruction.  Runs without hooks do not ask for them.

Note [Ctrl-C]
A KeyboardInterrupt leaves the frames as they are, each program counter at an instruction that is not finished, so
`resume` goes on from there.  One that arrives while an operator works interrupts that operator, whose instruction is
then done again; with the hook `events.InterruptPoll` it waits until the instruction is done.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from engine.aten.dispatch.grad_mode import MODE
from engine.aten.values.hooks import HOOKS
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.instructions import (
    ASSIGN,
    CALL,
    CALLS,
    CONSTANT,
    ENTER,
    EXIT,
    FORK,
    JUMP,
    JUMP_IF_NOT,
    OPERATE,
    RETURN,
    TAIL_CALL,
    WAIT,
    Instruction,
    Step,
)  # fmt: skip
from engine.executor.bytecode.traceback import CallSite, execution_error
from engine.executor.concurrency.forks import fork
from engine.executor.concurrency.futures import Future, launch
from engine.executor.plans.executor import GraphExecutor, code_of, executor_of
from engine.executor.plans.first_call import runs_before_plan
from engine.executor.plans.plan import RECENT, RUNTIME, ExecutionPlan, failure
from engine.executor.plans.switches import SWITCHES, hooks_of_thread, is_optimizing
from engine.ir.graph import Value
from engine.ir.unit import Function
from engine.lang.errors import ExecutionError
from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.executor.profiling.bailouts import BailoutSite

MAX_DEPTH: Final = 10_000
"""The greatest depth of calls; deeper recursion is taken to be endless."""

Hook = Callable[["InterpreterState"], object]
CodeOf = Callable[[Function, Sequence[Any]], Code]
"""From a function and the arguments of a call to the instructions that run."""


def _generic_code(function: Function, arguments: Sequence[Any]) -> Code:
    return code_of(function)


@dataclass(eq=False, slots=True)
class Frame:
    """One call: its registers, and the instruction it is at (the call itself, while it waits for one)."""

    code: Code
    registers: list[Any]
    pc: int = 0
    watched: AbstractContextManager[Any] | None = None
    """The block that a profiler has around the call."""

    def watch(self, function: Function) -> None:
        """Enter the profiler's block around calls of the function, if there is one."""
        if HOOKS.calls is not None:
            self.watched = HOOKS.calls(function)
            self.watched.__enter__()

    def end(self) -> None:
        """Leave the profiler's block."""
        watched, self.watched = self.watched, None
        if watched is not None:
            watched.__exit__(None, None, None)

    @property
    def instruction(self) -> Instruction:
        return self.code.instructions[self.pc]

    def value(self, value: Value) -> Any:
        """The current value of a graph value; None also before it is computed and after it dies."""
        return self.registers[self.code.register_of(value)]


class InterpreterState:
    """One run of a code.

    `frames` are the calls under way, outermost first; none are left when the run is over, and then `result` is
    there.  `waiting_for` is the future at which the run stands still.  `depth` counts the calls around it, `code_of`
    gives the code of functions that it calls, for these arguments.  A run that `stands_in` for a plan, until that is
    there, may call what has plans.
    """

    __slots__ = (
        "_suspended",
        "code",
        "code_of",
        "depth",
        "entered",
        "frames",
        "hooks",
        "result",
        "stands_in",
        "waiting_for",
    )  # fmt: skip

    def __init__(
        self, code: Code, hooks: Sequence[Hook] = (), depth: int = 0, code_of: CodeOf | None = None, *,
        stands_in: bool = False,
    ) -> None:  # fmt: skip
        self.code = code
        self.depth = depth
        self.stands_in = stands_in
        self.code_of: CodeOf = code_of or _generic_code
        self.hooks = list(hooks)
        self.frames: list[Frame] = []
        self.entered: list[Any] = []
        self.result: Any = None
        self.waiting_for: Future | None = None
        self._suspended = False

    @property
    def frame(self) -> Frame:
        """The innermost call."""
        return self.frames[-1]

    @property
    def finished(self) -> bool:
        return not self.frames

    # -- running

    def run(self, *inputs: Any) -> Any:
        """The result for these inputs: one value, a tuple where the graph returns several, None where it returns none.

        Waits for futures.  Raises ExecutionError.  When a hook suspends the run, the result is None and not final.
        """
        self.start(*inputs)
        while not self.resume() and self.waiting_for is not None:
            self._await(self.waiting_for)
        return self.result

    def start(self, *inputs: Any) -> None:
        """Begin anew with these inputs; nothing is executed yet."""
        assert len(inputs) == len(self.code.graph.inputs), f"{self.code!r} takes {len(self.code.graph.inputs)} inputs"
        self.frames = [Frame(self.code, [*inputs, *self.code.blank])]
        self.entered, self.result, self.waiting_for = [], None, None

    def step(self) -> bool:
        """Execute one instruction; True if there is another.  Waits for the future if it stands at one."""
        if self.waiting_for is not None:
            self._await(self.waiting_for)
        self._advance_safely(repeat(None, 1))
        return not self.finished

    def attempt(self, count: int = 1) -> None:
        """Execute so many instructions, for who can go on after an error: what it raises leaves frames and contexts
        alone.

        Waits for the future if it comes to one.  Raises ExecutionError.
        """
        try:
            self._advance(repeat(None, count))
            if self.waiting_for is not None:
                self._await(self.waiting_for)
                self._advance(repeat(None, 1))
        except AssertionError:
            raise
        except Exception as error:
            raise self._located(error) from (None if isinstance(error, ExecutionError) else error)

    def resume(self) -> bool:
        """Go on until the run is over (True) or suspended (False): by a hook, or at a future that is not there yet."""
        self._suspended = False
        if not self.hooks:
            self._advance_safely(repeat(None))
            return self.finished
        while self.frames:
            for hook in self.hooks:
                hook(self)
            if self._suspended:
                return False
            self._advance_safely(repeat(None, 1))
            if self.waiting_for is not None:
                return False
        return True

    def suspend(self) -> None:
        """For hooks: stop before the next instruction."""
        self._suspended = True

    # -- the loop

    def _advance(self, budget: Iterable[None]) -> None:
        """Execute an instruction for each item of the budget; less if the run ends or has to wait."""
        frame: Frame | None = self.frames[-1]
        assert frame is not None
        program, registers, pc = frame.code.program, frame.registers, frame.pc
        self.waiting_for = None
        try:
            for _ in budget:
                opcode, operand, source, target, dead = program[pc]
                if opcode == OPERATE:
                    registers[target] = operand(*source(registers))
                    pc += 1
                elif opcode == CONSTANT:
                    registers[target] = operand
                    pc += 1
                elif opcode == JUMP_IF_NOT:
                    pc = pc + 1 if registers[source] else operand
                elif opcode == ASSIGN:
                    registers[target] = source(registers)
                    pc += 1
                elif opcode == JUMP:
                    pc = operand
                elif opcode in CALLS:
                    frame.pc = pc
                    frame = self._call(frame, program[pc])
                    program, registers, pc = frame.code.program, frame.registers, frame.pc
                    continue
                elif opcode == RETURN:
                    frame = self._return(source(registers))
                    if frame is None:
                        return
                    program, registers, pc = frame.code.program, frame.registers, frame.pc
                    continue
                elif opcode == FORK:
                    registers[target] = fork_function(operand, source(registers))
                    pc += 1
                elif opcode == WAIT:
                    if not registers[source].done():
                        self.waiting_for = registers[source]
                        return
                    registers[target] = registers[source].value()
                    pc += 1
                else:
                    pc += 1
                for register in dead:
                    registers[register] = None
        finally:
            if frame is not None:
                frame.pc = pc

    def _advance_safely(self, budget: Iterable[None]) -> None:
        """`_advance`; what an instruction raises becomes an ExecutionError.  Our own assertions pass through."""
        try:
            self._advance(budget)
        except AssertionError:
            raise
        except Exception as error:
            found = self._leave_contexts(self._located(error))
            raise found from (None if isinstance(error, ExecutionError) else error)

    def _located(self, error: Exception) -> ExecutionError:
        """The error of the instruction that the run stands at, with the calls that led there."""
        return execution_error(error, [CallSite(frame.code.name, frame.instruction.node) for frame in self.frames])

    # -- calls

    def _call(self, caller: Frame, step: Step) -> Frame:
        """Begin a call: the arguments leave the caller's registers where they are used for the last time.  A function
        that takes the caller's place leaves no trace of it."""
        opcode, callee, source, _, dead = step
        inputs = source(caller.registers)
        function, arguments = callee(inputs)
        code = self.code_of(function, arguments)
        if opcode == CALL and self._is_for_plan(code, arguments):
            return self._run_plan(caller, step, function, arguments)
        if len(self.frames) - (opcode == TAIL_CALL) + self.depth >= MAX_DEPTH:
            raise ExecutionError(
                f"maximum depth of calls exceeded ({MAX_DEPTH}) in '{function.name}'",
                hints=("write a loop; what is left to do can wait in a list",),
            )
        if opcode == ENTER:
            self.entered.append(inputs[0])
        elif opcode == EXIT:
            self.entered.pop()
        for register in dead:
            caller.registers[register] = None
        if opcode == TAIL_CALL:
            self.frames.pop().end()
        frame = Frame(code, [*arguments, *code.blank])
        frame.watch(function)
        self.frames.append(frame)
        return frame

    def _is_for_plan(self, code: Code, arguments: Sequence[Any]) -> bool:
        """True of a callee that would take longer here than a plan for it takes to make."""
        return self.stands_in and code.has_loops and HOOKS.calls is None and not runs_before_plan(code.graph, arguments)

    def _run_plan(self, caller: Frame, step: Step, function: Function, arguments: Sequence[Any]) -> Frame:
        """A call as a whole.  Raises ExecutionError."""
        _, _, _, target, dead = step
        try:
            caller.registers[target] = _call_from_generated(function, arguments, self.depth + len(self.frames))
        except AssertionError:
            raise
        except Exception as error:
            raise failure(error)  # noqa: B904  (it knows its cause)
        for register in dead:
            caller.registers[register] = None
        caller.pc += 1
        return caller

    def _return(self, results: Sequence[Any]) -> Frame | None:
        """End a call; its caller goes on behind the call, unless the run is over."""
        self.frames.pop().end()
        result = results[0] if len(results) == 1 else tuple(results) if results else None
        if not self.frames:
            self.result = result
            return None
        caller = self.frames[-1]
        target = caller.code.program[caller.pc][3]
        caller.registers[target] = result
        caller.pc += 1
        return caller

    def leave(self) -> None:
        """For hooks that stop a run for good by an exception: leave the contexts that it entered."""
        self._leave_contexts(ExecutionError("the run was left"))

    def _leave_contexts(self, error: ExecutionError) -> ExecutionError:
        """Call `__exit__` of what is still entered, innermost first; the error, or that of an `__exit__`.  The calls
        are over for a profiler."""
        for frame in reversed(self.frames):
            frame.end()
        try:
            _leave(self.entered)
        except ExecutionError as another:
            return another
        return error

    def _await(self, future: Future) -> None:
        try:
            future.wait()
        except ExecutionError:
            self.waiting_for = None  # the instruction raises it again, with its place


def run_function(function: Function, args: Sequence[Any]) -> Any:
    """Run the function on values (not checked: see `call` for calls from Python).  Raises ExecutionError."""
    return run(executor_of(function), args)


def run(executor: GraphExecutor, inputs: Sequence[Any]) -> Any:
    """Run it in the fastest tier available for these inputs.  Raises ExecutionError."""
    if HOOKS.trace is not None or (SWITCHES.special and not is_optimizing()) or _is_packing():
        with HOOKS.calls(executor.function) if HOOKS.calls is not None else nullcontext():
            return InterpreterState(executor.code, hooks_of_thread()).run(*inputs)
    plan = (executor.anywhere if HOOKS.devices else executor).plan_for(inputs)
    RECENT.ran = plan.itself
    entry = plan.entry
    if entry is None:
        return _interpret(plan, inputs)
    try:
        return _enter(plan, entry, inputs) if plan.calls else entry(*inputs)
    except AssertionError:
        raise
    except Exception as error:
        raise failure(error)  # noqa: B904  (it knows its cause)


def _interpret(plan: ExecutionPlan, inputs: Sequence[Any], depth: int = 0) -> Any:
    """Run a plan that has no generated code, or is none yet.  Raises ExecutionError."""
    start = time.perf_counter_ns()
    try:
        return InterpreterState(plan.code, depth=depth, stands_in=plan.stands_in).run(*inputs)
    finally:
        plan.spent += time.perf_counter_ns() - start


def _is_packing() -> bool:
    """True if saved-tensor hooks of the program are active; each operator calls them when it runs."""
    return HOOKS.rebased > 0 and MODE.packing is not None


MAX_GENERATED_DEPTH: Final = 100
"""The greatest depth of calls in generated code, which use Python's stack; the interpreter runs deeper ones."""
_FRAMES_OF_CALL: Final = 3
_SPARE_FRAMES: Final = 100


def _enter(plan: ExecutionPlan, entry: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """Run a generated function that calls others, if Python's stack has room for that."""
    room = sys.getrecursionlimit() - MAX_GENERATED_DEPTH * _FRAMES_OF_CALL - _SPARE_FRAMES
    try:
        sys._getframe(max(0, room))
    except ValueError:
        return entry(*inputs)
    return InterpreterState(plan.code).run(*inputs)


def _call_from_generated(function: Function, arguments: Sequence[Any], depth: int) -> Any:
    """A call in generated code, `depth` calls deep."""
    executor = executor_of(function)
    if executor.is_early:
        return executor.timed(_call_from_generated, function, arguments, depth)
    depth += 1
    if depth >= MAX_GENERATED_DEPTH:
        return InterpreterState(executor.code, depth=depth).run(*arguments)
    plan = (executor.anywhere if HOOKS.devices else executor).plan_for(arguments)
    if plan.entry is None:
        return _interpret(plan, arguments, depth)
    return plan.entry(*arguments, depth) if plan.calls else plan.entry(*arguments)


def _leave(entered: list[Any]) -> None:
    """Call `__exit__` of what is still entered, innermost first; raises the last error of these."""
    raised: ExecutionError | None = None
    while entered:
        owner = entered.pop()
        try:
            run_function(owner.type.methods["__exit__"], (owner, None, None, None))
        except ExecutionError as error:
            raised = error
    if raised is not None:
        raise raised


def fork_function(function: Function, inputs: Sequence[Any]) -> Future:
    """Start the function; on this thread, at once, while this thread is traced or watched by others than a profiler."""
    if (HOOKS.trace is not None and not HOOKS.only_profiles) or hooks_of_thread():
        return launch(lambda: run_function(function, inputs))
    return fork(partial(_begin, function), inputs)


def _resume(site: BailoutSite, live: Sequence[Any], depth: int) -> Any:
    """The rest of the program behind a guard that fails in generated code."""
    if site.code is None:
        site.code = Code(site.rest, site.function)
    return InterpreterState(site.code, depth=depth).run(*live)


RUNTIME.call, RUNTIME.fork, RUNTIME.leave, RUNTIME.resume = _call_from_generated, fork_function, _leave, _resume


def _begin(function: Function, inputs: Sequence[Any]) -> InterpreterState | Callable[[], Any]:
    """The generated code, if nothing in it can wait; else a run that may be suspended."""
    executor = executor_of(function)
    if HOOKS.trace is not None or (SWITCHES.special and not is_optimizing()):
        code = executor.code
    else:
        plan = (executor.anywhere if HOOKS.devices else executor).plan_for(inputs)
        if plan.entry is not None and not plan.calls and not plan.waits:
            return partial(run, executor, inputs)
        code = plan.code
    state = InterpreterState(code)
    state.start(*inputs)
    state.frame.watch(function)
    return state
