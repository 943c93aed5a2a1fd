"""The compiler of fusion groups for tensors of the CPU.

In: nothing.  Out: `COMPILER`.  It stands alone as it is loaded by name: a program that never gets as far as a plan does
not pay for it.
"""

from __future__ import annotations

from typing import Final

from engine.executor.plans.fusion import Compiler
from engine.fuser.groups.from_graph import is_fusible, lower
from engine.fuser.ir.kernel_text import show
from engine.fuser.stubs.stub import bind

COMPILER: Final = Compiler(is_fusible, lower, bind, show)
