"""`engine.debug`: a call of a compiled function or module under the debugger.

In: a compiled function, method or module, and arguments.  Out: a `Debugger` that stands at the first line.

    debugger = engine.debug(f, x)
    debugger.break_at("model.py:12 if h.max() > 10")
    debugger.go()
    debugger.evaluate("h.max()")
    debugger.back_step()
"""

from __future__ import annotations

from typing import Any

from engine.executor.calls.call import boundary_of
from engine.executor.debugging.debugger import Debugger
from engine.executor.plans.executor import executor_of
from engine.torch.compiled.objects import ScriptFunction, ScriptMethod, ScriptObject


def debug(compiled: ScriptFunction | ScriptMethod | ScriptObject, *args: Any, **kwargs: Any) -> Debugger:
    """The call `compiled(*args, **kwargs)` (of a module: its `forward`), to be stepped through in both directions.

    What the call changes is changed in the arguments that are given, and undone by steps back.  Raises ArgumentError
    for arguments that do not fit.
    """
    method: Any = compiled.forward if isinstance(compiled, ScriptObject) else compiled
    owner = (method.owner,) if isinstance(method, ScriptMethod) else ()
    inputs = boundary_of(executor_of(method._function)).inputs((*owner, *args), kwargs)
    return Debugger(method._function, inputs)
