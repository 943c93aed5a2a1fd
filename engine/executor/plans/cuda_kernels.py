"""The compiler of fusion groups for tensors on NVIDIA GPUs.

In: nothing.  Out: `COMPILER`.  It stands alone as it is loaded by name: only programs with tensors on a GPU pay for it.
"""

from __future__ import annotations

from typing import Final

from engine.executor.plans.lowered import Compiler
from engine.fuser.gpu.compiler import is_fusible, lower
from engine.fuser.gpu.launcher import bind
from engine.fuser.ir.kernel_text import show

COMPILER: Final = Compiler(is_fusible, lower, bind, show)
