"""Hooks of operator calls: recording for gradients, tracing, and services of the layers above.

In: functions that those layers leave here.  Out: `HOOKS`, which every operator looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from functools import reduce
from typing import Any, Final, Protocol

from engine.lang.locks import lock
from engine.lang.records import dataclass

Tensor = Any
"""An `engine.aten.values.tensor.Tensor`, of a layer above."""
Op = Any
"""An `engine.aten.dispatch.op.Op`, likewise."""
Body = Any
"""An `engine.aten.dispatch.op.Body`, likewise."""
Hook = Callable[[Op, tuple[Any, ...], Callable[..., Any]], Any]
"""hook(op, args, run): does what the operator does, by `run(*args)`, and gives its result."""
NOT_TRACED: Final[Any] = object()
"""The answer of a `Tracer` to a thread that is not traced, or whose trace is paused: go on as without it."""


class Tracer(Protocol):
    """Records what a program does besides calling operators.  Every method first looks for a trace of its thread."""

    def has_trace(self) -> bool:
        """True if this thread is traced, also while its trace is paused."""

    def member(self, name: str, tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        """The value of a member of `Tensor` that Python could take out of the trace; else NOT_TRACED."""

    def module(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of calling a submodule of a traced module; else NOT_TRACED."""

    def call(self, function: Any, args: Sequence[Any], kwargs: Any, run: Callable[..., Any]) -> Any:
        """The result of a script function, called from Python."""

    def fork(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Any, completed: Callable[[Any], Any]
    ) -> Any:
        """The future of a call, made by `completed` of its result; without a trace NOT_TRACED."""

    def wait(self, future: Any, result: Any) -> Any:
        """The result of a future that was recorded, as other tensors; else NOT_TRACED."""

    def function(self, function: Any, args: Sequence[Any], kwargs: Any, run: Callable[..., Any]) -> Any:
        """The result of a function with a gradient of its own; `run` tells its result and the arguments that it wrote
        to.  Without a trace NOT_TRACED."""

    def lost(self, kind: str) -> None:
        """Note that a number of the trace became one of Python's: "a Python float" and the like."""

    def constant(self, made: Tensor, maker: str) -> None:
        """Note a tensor that Python made of its own values, by the function `maker`."""


@dataclass(slots=True)
class Hooks:
    """The hooks in force; None costs one attribute read."""

    grad: Hook | None = None
    """Called where an argument requires grad; `engine.aten.autograd` sets it when it is imported."""
    recorder: Callable[[Op, Callable[..., Any], Body | None], Callable[..., Any]] | None = None
    """Makes `Op.recorded`: `recorded` specialised to an operator and its body (with its text); set with `grad`."""
    recorded: Hook | None = None
    """The hook that `recorder` specialises, set with `grad`; while another one is in `grad`, that is called."""
    rebased: int = 0
    """The number of tensors that came to require grad by a write, so that views of them may not know yet."""
    paused: set[int] = field(default_factory=set)
    """Threads that record nothing now, for a quick test that there are any; `grad_mode.MODE` tells whether this one."""
    trace: Hook | None = None
    """Called for every operator; made of the hooks that stepped in, see `step_in`."""
    calls: Callable[[Any], AbstractContextManager[Any]] | None = None
    """A block around each call of a script function, in any thread; a profiler sets it with its hook."""
    tracer: Tracer | None = None
    """Set while any thread is traced.  Python switches no thread between a test for None and the call that follows."""
    composite: Callable[[Op], Any] | None = None
    """Compiles TorchScript bodies to functions, which `call` runs; the layer that executes sets it."""
    native: Callable[[Op], bool] | None = None
    """Called when an operator is first called, for machine code to take its slots; false where there is none.
    `engine.fuser` sets it."""
    native_member: Callable[[str, Any], Any] | None = None
    """Called with a member of tensors when that is first used; gives what serves in its place, None for nothing.
    `engine.fuser` sets it."""
    native_recorder: Callable[[Op], None] | None = None
    """Called when an operator is first recorded, for machine code that serves it to record it, too; `engine.fuser`
    sets it."""
    python_only: bool = False
    """True while no machine code may serve operators; kernels that plans and instructions hold look here."""
    devices: bool = False
    """True if there may be tensors on other devices than the CPU; until then nobody asks where one is."""
    several: bool = False
    """True if there are several devices of a type, so that tensors may be on another than the current one."""
    quantized: bool = False
    """True if there may be quantized tensors; then `devices` is set, too."""
    call: Callable[[Any, Sequence[Any]], Any] | None = None
    """Runs a script function or method on its arguments; the layer that executes sets it."""
    _stepped_in: tuple[Hook, ...] = ()

    def step_in(self, hook: Hook, *, innermost: bool = False) -> None:
        """Put a hook around all operators, outside of those before it or, `innermost`, inside of them."""
        with _LOCK:
            hooks = self._stepped_in
            self._set_trace((*hooks, hook) if innermost else (hook, *hooks))

    def step_out(self, hook: Hook) -> None:
        """Take the hook away again; the others stay, in whatever order they came."""
        with _LOCK:
            hooks = list(self._stepped_in)
            hooks.remove(hook)
            self._set_trace(tuple(hooks))

    @property
    def only_profiles(self) -> bool:
        """True if those who stepped in are profilers, which other threads may have around their operators as well."""
        return self.calls is not None and len(self._stepped_in) == 1

    def _set_trace(self, hooks: tuple[Hook, ...]) -> None:
        self._stepped_in = hooks
        self.trace = reduce(lambda inner, outer: _around(outer, inner), reversed(hooks)) if hooks else None


def _around(outer: Hook, inner: Hook) -> Hook:
    """The hook that runs the operator by `inner` where `outer` would run it."""

    def through(op: Op, args: tuple[Any, ...], run: Callable[..., Any]) -> Any:
        return outer(op, args, lambda *given: inner(op, given, run))

    return through


_LOCK: Final = lock()


HOOKS: Final = Hooks()
