"""`engine.explain`: the plans that a compiled function or module runs, and what calls taught.

In: a compiled function, method or module.  Out: an `Explanation`.
"""

from __future__ import annotations

from typing import Any

from engine.executor.plans.explanation import Explanation
from engine.executor.plans.explanation import explain as explain_function
from engine.torch.compiled.objects import ScriptFunction, ScriptMethod, ScriptObject


def explain(compiled: ScriptFunction | ScriptMethod | ScriptObject) -> Explanation:
    """The plans of a function or method, or of a module's `forward`, and the kernels in them; calls make plans.

    Each group has the lines that it is from, its graph and its kernels: text, guards, bytes and operations of a call,
    machine code; each operator on tensors outside has the reason why it is.  Differentiable graphs have both halves and
    what goes between; `profiles` tell what runs have shown of values, and which guards failed on what.
    """
    method: Any = compiled.forward if isinstance(compiled, ScriptObject) else compiled
    return explain_function(method._function)
