"""Functions of operators that are written in TorchScript, kept on disk.

In: an entry of the operator table with a `composite` text.  Out: its function, as `frontend/compilation/composites.py`
compiles it.  Compiling one takes some milliseconds, and more for the first, which loads the front end: so graphs lie
beside the machine code (Note [Trusting the cache] in `kernel_cache.py`), known by the text and the engine's sources.
"""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING

from engine.aten.dispatch.op import Op
from engine.fuser.backend import kernel_cache
from engine.ir.flat import NAMELESS, NotPlain, flatten, unflatten
from engine.ir.rewrites import is_watched
from engine.ir.unit import Function
from engine.lang.deferred import deferred

if TYPE_CHECKING:
    from engine.frontend.compilation import composites
else:
    composites = deferred("engine.frontend.compilation.composites")


def composite_function(op: Op) -> Function:
    """The operator as a function.  Raises CompileError where its text does not compile."""
    assert op.composite is not None
    if is_watched() or kernel_cache.directory() is None:
        return composites.compile_composite(op)
    state = kernel_cache.state_of_engine(*kernel_cache.ROOMS)
    key = kernel_cache.key_of((op.text, op.composite, state), "operator")
    return _read(op, kernel_cache.load(key)) or _kept(composites.compile_composite(op), key)


def _read(op: Op, data: bytes | None) -> Function | None:
    if data is None:
        return None
    try:
        graph = unflatten(marshal.loads(data), NAMELESS)
    except NotPlain:
        return None
    function = Function(op.qualified_name)
    function.define(op.schema, graph)
    return function


def _kept(function: Function, key: str) -> Function:
    kernel_cache.store(key, marshal.dumps(flatten(function.graph, NAMELESS)))
    return function
