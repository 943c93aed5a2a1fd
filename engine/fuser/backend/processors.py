"""The processors that code can be made for, by LLVM's names, told without a compiler.

In: nothing.  Out: `KINDS`, which `target` and the library's levels (`library/processor.py`) read, and `VARIABLE`, the
name in the environment that chooses one of them; what the system says of its own processor (`described`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from engine.lang.records import dataclass

VARIABLE: Final = "TSREPL_TARGET"
_X86: Final = "x86_64-unknown-linux-gnu"
_ARM: Final = "aarch64-unknown-linux-gnu"
_V1: Final = frozenset("cmov cx8 fxsr mmx sse sse2".split())
_V2: Final = _V1 | frozenset("cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3".split())
_V3: Final = _V2 | frozenset("avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave".split())
_V4: Final = _V3 | frozenset("avx512bw avx512cd avx512dq avx512f avx512vl".split())
_NEON: Final = frozenset({"neon"})
_IN_LINUX: Final = {
    "bmi": "bmi1",
    "lzcnt": "abm",
    "sahf": "lahf_lm",
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
}
"""Linux's names of features, where they are others than LLVM's."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Processors of a name: those that have the `features` and run images of the `level`, on the system of `triple`."""

    level: str
    triple: str
    features: frozenset[str]

    @property
    def flags(self) -> str:
        """Features to turn on and off, as LLVM spells them: vectors are as wide as there are."""
        return "-prefer-256-bit" if "avx512f" in self.features else ""

    @property
    def linux_flags(self) -> frozenset[str]:
        """Linux's names of the features that not all processors of the system have."""
        return frozenset(_IN_LINUX.get(each, each) for each in self.features - _V1 - {"neon", "fullfp16"})


_LEVELS: Final = {
    Kind("x86-64", _X86, _V1): (),
    Kind("x86-64-v2", _X86, _V2): ("nehalem", "westmere"),
    Kind("x86-64-v3", _X86, _V3): ("haswell", "broadwell", "skylake", "alderlake", "znver1", "znver2", "znver3"),
    Kind("x86-64-v4", _X86, _V4): (
        "skylake-avx512", "cascadelake", "icelake-server", "sapphirerapids", "znver4", "znver5",
    ),
    Kind("cortex-a72", _ARM, _NEON): ("neoverse-n1",),
    Kind("apple-m1", _ARM, _NEON | {"fullfp16"}): ("neoverse-v1",),
}  # fmt: skip
KINDS: Final[Mapping[str, Kind]] = {name: kind for kind, names in _LEVELS.items() for name in (kind.level, *names)}
"""Levels of x86-64 are those of its psABI."""

_FACTS: Final = "/proc/cpuinfo"
_ENOUGH: Final = 4096
"""Bytes of these facts that tell of the first processor."""
_TELLING: Final = frozenset({
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
})  # fmt: skip
"""Names of what tells one kind of processor from another."""


def described() -> Mapping[str, str]:
    """Facts of the kind of processor, by Linux's names; none on other systems."""
    return _read(_FACTS)


@cache
def _read(path: str) -> Mapping[str, str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            text = file.read(_ENOUGH)
    except OSError:
        return {}
    rows = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {name: value.strip() for key, _, value in rows if (name := key.strip()) in _TELLING}
