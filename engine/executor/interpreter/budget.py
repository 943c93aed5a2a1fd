"""Runs code that its user did not ask to run: the `__setstate__` methods of an archive that is being loaded.

In: a `Budget`.  Out: a runner for one load, which raises BudgetExceeded when all that it ran together has taken more
steps, memory or seconds than that.

Note [What a budget can hold]
Steps are instructions of the interpreter, calls included; the clock is read before each.  Memory is held by the
system: while the code runs, the process may not grow by more than the budget (where the system knows such a limit),
so that no single allocation goes over it.  One instruction is never interrupted, so that those which would go over
more numbers than fit the budget, views of few numbers that show many included, are refused before they start, and so
are products that would take long.  Code with a budget starts no threads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final

from engine.aten.values.tensor import Tensor
from engine.executor.bytecode.instructions import FORK, OPERATE
from engine.executor.interpreter.interpreter import InterpreterState
from engine.executor.plans.executor import code_of
from engine.ir.unit import Function
from engine.lang.errors import BudgetExceeded, ExecutionError, causes
from engine.lang.records import dataclass

try:
    import resource
except ImportError:  # a system without limits on processes
    resource = None  # type: ignore[assignment]

MAX_PRODUCT: Final = 10**14
"""The largest product of sizes of multiplied tensors: a few seconds of work at most."""
_PRODUCTS: Final = (
    "mm", "matmul", "bmm", "baddbmm", "addmm", "addbmm", "linear", "einsum", "tensordot", "cdist", "bilinear", "conv",
    "_conv", "multi_head", "scaled_dot", "linalg", "lstm", "gru", "rnn", "kron", "outer",
)  # fmt: skip
_HINTS: Final = ("load it with a larger budget if you trust the file: engine.load(path, budget=engine.Budget(...))",)


@dataclass(frozen=True, slots=True)
class Budget:
    """The time and memory that code run while loading an archive may take."""

    steps: int = 1_000_000
    nbytes: int = 1 << 30
    seconds: float = 10.0


@dataclass(slots=True, eq=False)
class BudgetedRunner:
    """Runs functions that share one budget."""

    budget: Budget = field(default_factory=Budget)
    steps: int = 0
    seconds: float = 0.0
    _end: float = 0.0

    def __call__(self, function: Function, args: Sequence[Any]) -> Any:
        """The result of the function.  Raises BudgetExceeded, ExecutionError."""
        started = time.monotonic()
        self._end = started + self.budget.seconds - self.seconds
        state = InterpreterState(code_of(function), [self._charge])
        try:
            with _limited_growth(self.budget.nbytes):
                return state.run(*args)
        except (ExecutionError, MemoryError) as error:
            if _is_for_want_of_memory(error):
                raise self._exceeded(f"{self.budget.nbytes} bytes of memory", function) from None
            raise
        except BudgetExceeded as error:
            raise self._exceeded(error.message, function) from None
        finally:
            self.seconds += time.monotonic() - started

    def _exceeded(self, what: str, function: Function) -> BudgetExceeded:
        return BudgetExceeded(f"'{function.qualname}', which runs while loading, takes more than {what}", hints=_HINTS)

    def _charge(self, state: InterpreterState) -> None:
        """The hook before each instruction.  Raises BudgetExceeded when nothing is left for it."""
        self.steps += 1
        if self.steps > self.budget.steps:
            raise BudgetExceeded(f"{self.budget.steps} steps")
        if time.monotonic() > self._end:
            raise BudgetExceeded(f"{self.budget.seconds} seconds")
        frame = state.frame
        opcode, _, source, _, _ = frame.code.program[frame.pc]
        if opcode == FORK:
            raise BudgetExceeded("one thread")
        if opcode == OPERATE:
            node = frame.instruction.node
            self._check_sizes("" if node is None else node.kind, source(frame.registers))

    def _check_sizes(self, kind: str, values: Sequence[Any]) -> None:
        tensors = [value for value in values if isinstance(value, Tensor)]
        for value in values:
            if isinstance(value, list) and value and isinstance(value[0], Tensor):
                tensors += value
        product = 1
        for tensor in tensors:
            if tensor.array.size * tensor.array.itemsize > self.budget.nbytes:
                raise BudgetExceeded(f"{self.budget.nbytes} bytes of memory")
            product *= max(1, tensor.array.size)
        if product > MAX_PRODUCT and kind.removeprefix("aten::").startswith(_PRODUCTS):
            raise BudgetExceeded(f"{self.budget.seconds} seconds")


def _is_for_want_of_memory(error: BaseException | None) -> bool:
    return any(isinstance(each, MemoryError) for each in causes(error))


@contextmanager
def _limited_growth(nbytes: int) -> Iterator[None]:
    """A block in which the whole process may grow by so many bytes at most, where the system has such limits."""
    size = _address_space()
    if resource is None or size is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    known = [size + nbytes, *(limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_AS, (min(known), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space() -> int | None:
    """Bytes of address space that the process has, where the system tells."""
    try:
        descriptor = os.open("/proc/self/statm", os.O_RDONLY)
        try:
            pages = int(os.read(descriptor, 256).split()[0])
        finally:
            os.close(descriptor)
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize()
