"""A kernel in LLVM's texts, each line with the statement that it is from.

In: a `Kernel`.  Out: `Listing`s.  They are of a module of their own, which nobody runs: it is written with debug
locations, that of the code that runs is not.
"""

from __future__ import annotations

from engine.fuser.backend import machine, to_llvm
from engine.fuser.backend.llvm_lines import Listing, listing_of_assembly, listing_of_llvm
from engine.fuser.ir.kernel import Kernel
from engine.fuser.ir.kernel_text import numbered
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class Listings:
    """The texts, made when they are asked for; raise MachineError."""

    kernel: Kernel

    @property
    def before(self) -> Listing:
        """LLVM's text of the kernel."""
        return listing_of_llvm(self._text)

    @property
    def after(self) -> Listing:
        """The same, optimized."""
        return listing_of_llvm(machine.optimized_text(self._text))

    @property
    def assembly(self) -> Listing:
        """The machine code of that."""
        return listing_of_assembly(machine.assembly_text(self._text))

    @property
    def _text(self) -> str:
        return str(to_llvm.module([numbered(self.kernel)], has_lines=True))
