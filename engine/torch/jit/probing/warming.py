"""`engine.warm`: all that a call compiles, made and kept before somebody waits for it.

In: a compiled function, method or module, and arguments.  Out: a `Warmed`.
"""

from __future__ import annotations

from typing import Any

from engine.executor.calls import warming
from engine.executor.calls.warming import Warmed
from engine.lang.errors import ArgumentError
from engine.torch.compiled.objects import ScriptFunction, ScriptMethod, ScriptObject


def warm(compiled: ScriptFunction | ScriptMethod | ScriptObject, /, *args: Any, **kwargs: Any) -> Warmed:
    """Compile all that the call `compiled(*args, **kwargs)` comes to, now and in this thread: the library of operators
    where it is missing, the plan, its groups and their kernels.  Later processes find it on disk, and compile nothing.

    The call is made, with what it writes and draws; where groups need another one, up to eight times.  Gradients are
    recorded as they are outside: programs that run in `torch.no_grad()` find what was made in such a block.  Raises
    ArgumentError for what is not compiled, and what the call raises.
    """
    method: Any = compiled.forward if isinstance(compiled, ScriptObject) else compiled
    if not isinstance(method, (ScriptFunction, ScriptMethod)):
        hint = "torch.jit.script or torch.jit.trace compile functions and modules, torch.jit.load opens archives"
        raise ArgumentError(f"only what is compiled can be warmed, not {type(compiled).__name__}", hints=(hint,))
    call: Any = compiled  # a module with its hooks
    return warming.warm(method._function, lambda: call(*args, **kwargs))
