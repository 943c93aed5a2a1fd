"""The program of the worker: plans and kernels made for other processes, which find them on disk.

In: jobs as plain data (`sent_groups.py`, `kept_plans.py`, `serialize/code/sent_programs.py`).  Out: nothing but what is
kept on the way, under keys that whoever asked knows as well.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from engine.aten.values.promotion import set_default_dtype
from engine.executor.plans import lowered, sent_groups
from engine.executor.plans.executor import executor_of
from engine.executor.plans.kept_plans import received_key
from engine.executor.plans.lowered import Sizes
from engine.fuser.backend import machine, worker
from engine.fuser.backend.cpython_abi import AbiError
from engine.fuser.backend.symbols import MachineError
from engine.fuser.groups.from_graph import NotFused
from engine.fuser.library import store as store  # what kernels call is looked for there
from engine.ir.flat import NotPlain
from engine.lang.errors import EngineError
from engine.lang.scalars import DTYPE_BY_NUMBER

MAX_PROGRAMS: Final = 4
"""The number of programs that are remembered: a program asks for the plans of its functions one after the other."""
_OPENERS: Final = {"archive": "engine.serialize.code.sent_programs", "functions": "engine.ir.flat_program"}
"""Modules that have `received` and `function_of`, by the kinds of programs that they open."""
_PROGRAMS: Final[OrderedDict[str, tuple[Any, Any]]] = OrderedDict()
"""Modules and what they opened, by the keys of programs."""


def _compile(key: str, text: str) -> None:
    """Make code of LLVM's text."""
    with suppress(MachineError):  # which comes up again where it is told
        machine.compile_for(key, text)


def _lower(data: tuple[Any, ...], example: tuple[Any, ...], sizes: Sizes, floating: int) -> None:
    """Make a kernel of a group."""
    compiler = lowered.SETTINGS.compiler_for(None)
    assert compiler is not None
    set_default_dtype(DTYPE_BY_NUMBER[floating])
    with suppress(NotFused, MachineError, AbiError):  # which are kept, or come up again where they are told
        compiler.lowered(*sent_groups.received(data, example), sizes)


def _plan(
    program: tuple[Any, ...], state: str, function: str, call: tuple[Any, ...], made_of: tuple[str, ...], floating: int
) -> None:
    """Make the graphs of a plan, if they are made of the same here."""
    set_default_dtype(DTYPE_BY_NUMBER[floating])
    with suppress(EngineError, NotPlain):  # of the program, which has them told where it runs
        module, opened = _opened(state, *program)
        executor = executor_of(module.function_of(opened, function))
        key = received_key(call)
        kept = executor.kept(key)
        if kept is not None and kept.made_of == made_of:
            plan = executor.plan_of(key)
            if plan.fusion is not None:
                plan.fusion.make()


def _opened(state: str, kind: str, *data: Any) -> tuple[Any, Any]:
    if state not in _PROGRAMS:
        module = import_module(_OPENERS[kind])
        _PROGRAMS[state] = module, module.received(state, *data)
        while len(_PROGRAMS) > MAX_PROGRAMS:
            _PROGRAMS.popitem(last=False)
    _PROGRAMS.move_to_end(state)
    return _PROGRAMS[state]


HANDLERS: Final[worker.Handlers] = {worker.COMPILE: _compile, worker.LOWER: _lower, worker.PLAN: _plan}
"""Functions of the data of jobs, by the names of these."""


def main() -> None:
    """Do the jobs of programs, until none comes any more."""
    worker.serve(HANDLERS)
