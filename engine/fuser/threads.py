"""Threads of parallel loops.

In: nothing.  Out: `PARALLEL`, LLVM's text of `tsrepl_parallel`, which runs the parts of a loop.
"""

from __future__ import annotations

from typing import Final

PARALLEL: Final = """define void @tsrepl_parallel(ptr %body, ptr %context, i64 %n, i64 %grain) {
  call void %body(ptr %context, i64 0, i64 %n)
  ret void
}"""
"""All in this thread."""
