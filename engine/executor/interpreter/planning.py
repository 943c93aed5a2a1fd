"""Plans of calls that are not made.

In: a function and the inputs of a call.  Out: nothing; the plans for the call are there then, as if it had been made.
The function runs as far as its last call of another, whose plan is made, and which is left out: what takes the time of
a call is mostly in there.  A function that calls no other, or whose plan has all that it calls, does not run at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.aten.values.hooks import HOOKS
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.instructions import CALLS, JUMP, JUMP_IF_NOT
from engine.executor.interpreter.interpreter import InterpreterState, run_function
from engine.executor.plans.executor import code_of as generic_code
from engine.executor.plans.executor import executor_of
from engine.executor.profiling.settings import PROFILING
from engine.fuser.backend import tiering
from engine.ir.unit import Function


def plan_call(function: Function, inputs: Sequence[Any]) -> None:
    """Make the plans of a call.  Raises ExecutionError for what fails before its last call of another function.

    Where plans are made from profiles, calls have to be made, and so is this one.
    """
    if PROFILING.is_enabled:
        run_function(function, inputs)
        return
    _plan(function, inputs)
    code = generic_code(function)
    last = None if function.inlines else _last_call(code)
    if last is None:
        return

    def code_of(callee: Function, arguments: Sequence[Any]) -> Code:
        if len(state.frames) == 1:
            _plan(callee, arguments)
            if state.frame.pc == last:
                state.suspend()
        return generic_code(callee)

    state = InterpreterState(code, hooks=[lambda _: None], code_of=code_of)
    state.run(*inputs)
    state.leave()


def _plan(function: Function, inputs: Sequence[Any]) -> None:
    executor = executor_of(function)
    plan = (executor.anywhere if HOOKS.devices else executor).plan_for(inputs)
    if tiering.mode() == "eager":
        plan.form_groups()


def _last_call(code: Code) -> int | None:
    """The call after which there is no other; -1 where it depends on loops which that is, None for no call at all."""
    calls = [at for at, (opcode, *_) in enumerate(code.program) if opcode in CALLS]
    if not calls:
        return None
    jumps = ((at, step[1]) for at, step in enumerate(code.program) if step[0] in (JUMP, JUMP_IF_NOT))
    return -1 if any(target <= at for at, target in jumps) else calls[-1]
