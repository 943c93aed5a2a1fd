"""Facts for LLVM: loops whose iterations are independent, which it need not find out from addresses, and loops that
are to stay as they are.

In: a module of `llvmlite.ir`.  Out: metadata: a group for the accesses to memory of a loop (`llvm.access.group`), and
a note for its last branch (`llvm.loop`) which says that accesses of these groups do not depend on other iterations.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from engine.fuser.backend.llvm_numbers import ir


def group(module: Any) -> Any:
    """A group of accesses, like no other."""
    return _distinct()(module, (), str(len(module.metadata)))


def note(module: Any, group: Any) -> Any:
    """The note for the last branch of a loop whose accesses are in the group."""
    lib = ir()
    name = lib.MetaDataString(module, "llvm.loop.parallel_accesses")
    says = module.add_metadata([name, group])
    made = _distinct()(module, (says,), str(len(module.metadata)))
    made.operands = (made, says)
    return made


def as_written(module: Any) -> Any:
    """The note for a loop whose values fill the registers, which LLVM is not to unroll."""
    says = module.add_metadata(["llvm.loop.unroll.disable"])
    made = _distinct()(module, (says,), str(len(module.metadata)))
    made.operands = (made, says)
    return made


@cache
def _distinct() -> Any:
    """The class of metadata that equals no other; llvmlite has none."""

    class Distinct(ir().values.MDValue):  # type: ignore[misc]
        def descr(self, buf: Any) -> None:
            buf += f"distinct !{{ {', '.join(each.get_reference() for each in self.operands)} }}\n"

        def __eq__(self, other: object) -> bool:
            return self is other

        def __hash__(self) -> int:
            return id(self)

    return Distinct
