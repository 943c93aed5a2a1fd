"""The slots that operators offer to machine code made while programs run: of loops, and of recurrent layers.

In: nothing.  Out: the slots taken, as an effect of the import.  What makes machine code is loaded with the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.aten.kernels.recurrence import COMPILED, Ran, States, Weights
from engine.aten.stepwise.language import COMPILER, Entry, Key, Loop
from engine.aten.values.xp import Array
from engine.lang.deferred import deferred

if TYPE_CHECKING:
    from engine.fuser.operators import loops, recurrent
else:
    loops, recurrent = deferred("engine.fuser.operators.loops"), deferred("engine.fuser.operators.recurrent")


def entry_for(loop: Loop, kinds: Key, work: int) -> Entry | None:
    """The machine code of a loop, if there is any yet."""
    return loops.entry_for(loop, kinds, work)


def layer(kind: str, x: Array, state: States, weights: Weights, backwards: bool, keeps: bool) -> Ran | None:
    """A recurrent layer by machine code, if there is any yet."""
    return recurrent.layer(kind, x, state, weights, backwards, keeps)


COMPILER.request, COMPILED.layer = entry_for, layer
