"""`torch.jit._shapes`: the shape functions of operators, to be called with sizes.

In: the name of an operator, or of a shape function.  Out: the compiled function.  A module of its own, since names are
found in modules.

    torch.jit._shapes.matmul([2, 3], [3, 4])      [2, 4]
"""

from __future__ import annotations

from engine.torch.compiled.objects import ScriptFunction
from engine.torch.jit.symbolic_shapes.functions import FUNCTIONS, compiled


def __getattr__(name: str) -> ScriptFunction:
    found = compiled().functions.get(FUNCTIONS.get(f"aten::{name}", name))
    if found is None:
        raise AttributeError(f"module 'torch.jit._shapes' has no attribute '{name}'")
    return ScriptFunction(found)
