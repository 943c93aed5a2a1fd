"""The processor that code is made for: this one, or one that `TSREPL_TARGET` names, which this one can stand for.

In: LLVM's description of the host, and the name in the environment (`TSREPL_TARGET=x86-64-v3`, or `haswell`).  Out: a
`Target`, which everything that asks about the processor reads: LLVM's target machine, the keys of kernels on disk, the
tiles of products.  Raises `ArgumentError` for a name that is not in the table, or that this processor cannot run.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Final

from engine.fuser.backend.processors import KINDS
from engine.fuser.backend.processors import VARIABLE as VARIABLE
from engine.lang.errors import ArgumentError, did_you_mean
from engine.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A processor as LLVM knows it, and what its vector unit is like.

    `flags`: features to turn on and off, as LLVM spells them, besides those of `cpu`.  `vector`: bytes of a register;
    `registers`: how many of them there are.
    """

    triple: str
    cpu: str
    flags: str
    features: frozenset[str]

    @property
    def vector(self) -> int:
        wide = {"avx512f": 64, "avx": 32}
        return next((size for feature, size in wide.items() if feature in self.features), 16)

    @property
    def registers(self) -> int:
        return 32 if self.features & {"avx512f", "neon"} else 16

    @property
    def fuses(self) -> bool:
        """True if there are instructions for a * b + c, which need no register for the product."""
        return bool(self.features & {"fma", "neon"})

    @property
    def converts_halves(self) -> bool:
        """True if there are instructions for numbers of half precision."""
        return bool(self.features & {"f16c", "fullfp16"})


@cache
def current() -> Target:
    """The target of this process."""
    return checked(_NAME, host()) if _NAME else host()


@cache
def host() -> Target:
    """This processor; one that has nothing where there is no llvmlite, and so no code."""
    try:
        llvm = import_module("llvmlite.binding")
    except (ImportError, OSError):
        return Target("", "", "", frozenset())
    try:
        found = llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM cannot tell on this system
        return Target(llvm.get_default_triple(), llvm.get_host_cpu_name(), "", frozenset())
    flags = found.flatten()
    if found.get("avx512f"):  # vectors as wide as it has them
        flags += ",-prefer-256-bit"
    features = frozenset(name for name, is_there in found.items() if is_there)
    return Target(llvm.get_default_triple(), llvm.get_host_cpu_name(), flags, features)


def named(name: str) -> Target:
    """The target of that name; raises ArgumentError for one that is not known."""
    if name not in KINDS:
        near = did_you_mean(name, KINDS)
        raise ArgumentError(f"{VARIABLE}: there is no target '{name}'", hints=(f"one of {', '.join(KINDS)}", *near))
    kind = KINDS[name]
    return Target(kind.triple, name, kind.flags, kind.features)


def checked(name: str, machine: Target) -> Target:
    """The target of that name, in the system of `machine`; raises ArgumentError for one that it cannot run."""
    found = named(name)
    missing = sorted(found.features - machine.features)
    if found.triple.split("-")[0] != machine.triple.split("-")[0].replace("arm64", "aarch64"):
        raise ArgumentError(f"{VARIABLE}: this machine ({machine.triple}) runs no code for {name}")
    if missing:
        raise ArgumentError(f"{VARIABLE}: this processor has no {', '.join(missing)}, which {name} has")
    return Target(machine.triple, found.cpu, found.flags, found.features)


_NAME: Final = os.environ.get(VARIABLE)
if _NAME:
    named(_NAME)  # so that a mistake is told where the compiler is first loaded
