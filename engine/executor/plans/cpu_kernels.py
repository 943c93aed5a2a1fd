"""The compiler of fusion groups for tensors of the CPU, and its kernels on disk.

In: nothing.  Out: `COMPILER`.  It stands alone as it is loaded by name: a program that never gets as far as a plan does
not pay for it.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from engine.executor.plans.lowered import Compiler, Refusal
from engine.executor.plans.sent_groups import makes_kernel
from engine.fuser.backend import code, kernel_cache
from engine.fuser.groups.from_graph import is_fusible, lower
from engine.fuser.images.objects import ImageError
from engine.fuser.ir.kernel_text import show
from engine.fuser.library import key
from engine.fuser.stubs import bound_stubs
from engine.fuser.stubs.bound_stubs import Stub
from engine.fuser.stubs.stub import stub_of


class KeptStubs:
    """Stubs by what they are made of: on disk is the name of a kernel and the key of its code, or a refusal.

    A file is `stub`, the kernel and the key, or `refused`, the number of the node and why, in a line each.
    """

    def find(self, made_of: str) -> Stub | Refusal | None:
        """The stub, or why there is none; None where nobody tried.  Raises AbiError or MachineError."""
        data = kernel_cache.load(_key(made_of))
        kind, _, rest = (data or b"").decode().partition("\n")
        first, _, second = rest.partition("\n")
        if kind == "refused":
            return int(first), second
        return bound_stubs.stored(first, second) if kind == "stub" else None

    def keep(self, made_of: str, found: Stub | Refusal) -> None:
        rows = ("stub", found.kernel, found.key) if isinstance(found, Stub) else ("refused", *map(str, found))
        kernel_cache.store(_key(made_of), "\n".join(rows).encode())

    def forget(self, made_of: str, found: Stub) -> None:
        kernel_cache.discard(_key(made_of))
        code.forget(found.key)

    def is_kept(self, found: Stub) -> bool:
        return found.code.is_kept


def _key(made_of: str) -> str:
    return kernel_cache.key_of(("group", made_of, *_circumstances()), "kernel")


@cache
def _circumstances() -> tuple[str, ...]:
    """The rest of what decides a kernel: the engine's sources, this process, the processor."""
    try:
        facts = key.current().text
    except ImageError as error:
        facts = str(error)
    return facts, *code.circumstances()


COMPILER: Final = Compiler(is_fusible, lower, bound_stubs.bind, show, stub_of, KeptStubs(), makes_kernel)
