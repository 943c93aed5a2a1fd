"""Hooks of operator calls: recording for gradients, tracing, and services of the layers above.

In: functions that those layers leave here.  Out: `HOOKS`, which every operator looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from engine.aten.values.tensor import Tensor

Op = Any
"""An `engine.aten.dispatch.op.Op`, of a layer above."""
Body = Any
"""An `engine.aten.dispatch.compile.Body`, likewise."""
Hook = Callable[[Op, tuple[Any, ...], Callable[..., Any]], Any]


@dataclass(slots=True)
class Hooks:
    """The hooks in force; None costs one attribute read."""

    grad: Hook | None = None
    recorder: Callable[[Op, Callable[..., Any], Body | None], Callable[..., Any]] | None = None
    """Makes the function that does, for one operator and its body (and the text of that), what `recorded` does."""
    recorded: Hook | None = None
    """The hook of which `recorder` knows; another one in `grad` is called itself."""
    rebased: int = 0
    """The number of tensors that came to require grad by a write, so that views of them may not know yet."""
    paused: set[int] = field(default_factory=set)
    """Threads that record nothing for now: which threads those are their `MODE` says, this only that there are some."""
    trace: Hook | None = None
    composite: Callable[[Op], Callable[..., Any]] | None = None
    """Compiles TorchScript bodies; the layer that knows the language sets it."""
    trace_call: Callable[..., Any] | None = None
    """Called for a call of a script function from Python, as hook(function, args, kwargs, run)."""
    trace_constant: Callable[[Tensor, str], None] | None = None
    """Called for a tensor that Python makes of its own values, with the name of what makes it."""
    native: Callable[[Op], None] | None = None
    """Called when an operator's functions are made; an optimised implementation may take `op.impl` then or later."""
    devices: bool = False
    """True if there may be tensors on other devices than the CPU; until then nobody asks where one is."""
    quantized: bool = False
    """True if there may be quantized tensors; then `devices` is set, too."""
    call: Callable[[Any, Sequence[Any]], Any] | None = None
    """Runs a script function or method on its arguments; the layer that executes sets it."""


HOOKS: Final = Hooks()
