"""The processor that code is made for: this one, or one that `TSREPL_TARGET` names, which this one can stand for.

In: LLVM's description of the host, and the name in the environment (`TSREPL_TARGET=x86-64-v3`, or `haswell`).  Out: a
`Target`, which everything that asks about the processor reads: LLVM's target machine, the keys of kernels on disk, the
tiles of products.  Raises `ArgumentError` for a name that is not in the table, or that this processor cannot run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final

from engine.lang.errors import ArgumentError, did_you_mean
from engine.lang.records import dataclass

VARIABLE: Final = "TSREPL_TARGET"

_X86: Final = "x86_64-unknown-linux-gnu"
_ARM: Final = "aarch64-unknown-linux-gnu"
_V2: Final = frozenset("cmov cx8 cx16 fxsr mmx popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3".split())
_V3: Final = _V2 | frozenset("avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave".split())
_V4: Final = _V3 | frozenset("avx512bw avx512cd avx512dq avx512f avx512vl".split())
_NEON: Final = frozenset({"neon"})
_KINDS: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    **dict.fromkeys(["x86-64"], (_X86, frozenset("cmov cx8 fxsr mmx sse sse2".split()))),
    **dict.fromkeys(["x86-64-v2", "nehalem", "westmere"], (_X86, _V2)),
    **dict.fromkeys(
        ["x86-64-v3", "haswell", "broadwell", "skylake", "alderlake", "znver1", "znver2", "znver3"], (_X86, _V3)
    ),
    **dict.fromkeys(
        ["x86-64-v4", "skylake-avx512", "cascadelake", "icelake-server", "sapphirerapids", "znver4", "znver5"],
        (_X86, _V4),
    ),
    **dict.fromkeys(["cortex-a72", "neoverse-n1"], (_ARM, _NEON)),
    **dict.fromkeys(["neoverse-v1", "apple-m1"], (_ARM, _NEON | {"fullfp16"})),
}
"""LLVM's names of processors -> the system that code is made for, and features that all of them have.

Levels of x86-64 are those of its psABI.
"""


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
    if name not in _KINDS:
        near = did_you_mean(name, _KINDS)
        raise ArgumentError(f"{VARIABLE}: there is no target '{name}'", hints=(f"one of {', '.join(_KINDS)}", *near))
    triple, features = _KINDS[name]
    return Target(triple, name, "-prefer-256-bit" if "avx512f" in features else "", features)


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
