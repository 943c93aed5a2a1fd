"""Who may step in when an operator is called: gradients, traces, and what layers above bring.

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
"""An `engine.aten.dispatch.body.Body`, likewise."""
Hook = Callable[[Op, tuple[Any, ...], Callable[..., Any]], Any]


@dataclass(slots=True)
class Hooks:
    """Who wants to step in; None costs one attribute read."""

    grad: Hook | None = None
    recorder: Callable[[Op, Callable[..., Any], Body | None], Callable[..., Any]] | None = None
    """Makes the function that does, for one operator and its body (and the text of that), what `recorded` does."""
    recorded: Hook | None = None
    """The hook of which `recorder` knows; another one in `grad` is called itself."""
    rebased: int = 0
    """How many tensors came to require grad by a write, so that views of them may not know yet."""
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
    """May there be tensors elsewhere than on the CPU?  Until then nobody asks where one is."""
    quantized: bool = False
    """May there be tensors whose integers stand for numbers?  Then `devices` is set, too."""
    call: Callable[[Any, Sequence[Any]], Any] | None = None
    """Runs a script function or method on its arguments; the layer that executes sets it."""


HOOKS: Final = Hooks()
