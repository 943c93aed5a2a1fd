"""PTX assembled by NVIDIA's tools, as far as they are installed: registers, spills, occupancy, machine code.

In: the text of a PTX module and a target.  Out: a `Report` for each kernel in it; the machine code's text.  Raises
`NotAssembled` where a tool is missing, does not know the target, or refuses the text.

`ptxas` and `nvdisasm` are looked for on the path, in `/usr/local/cuda`, and in the wheels `nvidia-cuda-nvcc`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from engine.lang.records import dataclass

_SECONDS: Final = 120


class NotAssembled(Exception):
    """There is no machine code; says why."""


@dataclass(frozen=True, slots=True)
class Report:
    """Of a kernel: registers of a thread; bytes of a thread that are spilled or on its stack; static shared memory."""

    name: str
    registers: int
    spilled: int
    stack: int
    shared: int


@dataclass(frozen=True, slots=True)
class Resources:
    """Of a multiprocessor: threads, blocks, and bytes of shared memory."""

    threads: int
    blocks: int
    shared: int


RESOURCES: Final = {
    "sm_70": Resources(2048, 32, 96 << 10), "sm_75": Resources(1024, 16, 64 << 10),
    "sm_80": Resources(2048, 32, 164 << 10), "sm_86": Resources(1536, 16, 100 << 10),
    "sm_89": Resources(1536, 24, 100 << 10), "sm_90": Resources(2048, 32, 228 << 10),
    "sm_100": Resources(2048, 32, 228 << 10), "sm_120": Resources(1536, 24, 100 << 10),
}  # fmt: skip
_REGISTERS: Final = 1 << 16
"""Registers of a multiprocessor, of all targets."""
_WARP: Final = 32
_REGISTER_UNIT: Final = 256
"""Registers are given to warps in multiples of this."""
_SHARED_OF_BLOCK: Final = 1 << 10
"""Bytes of shared memory that the system takes of each block."""


def occupancy(target: str, threads: int, registers: int, shared: int) -> float:
    """The part of a multiprocessor's threads that can be there at a time; KeyError for a target without resources."""
    has = RESOURCES[target]
    warps = -(-threads // _WARP)
    of_warp = -(-max(registers, 1) * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
    limits = (
        has.blocks, has.threads // (warps * _WARP), _REGISTERS // of_warp // warps,
        has.shared // (shared + _SHARED_OF_BLOCK),
    )  # fmt: skip
    return min(limits) * warps * _WARP / has.threads


def reports(ptx: str, target: str) -> list[Report]:
    """The reports of `ptxas` on the kernels of a module."""
    with tempfile.TemporaryDirectory() as folder:
        said = _assembled(ptx, target, Path(folder) / "code.cubin")
    return [*_parsed(said)]


def sass(ptx: str, target: str) -> str:
    """The text of the machine code of a module."""
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "code.cubin"
        _assembled(ptx, target, code)
        return _run(_tool("nvdisasm"), str(code)).stdout


def _assembled(ptx: str, target: str, code: Path) -> str:
    """The messages of `ptxas` while it writes the code to that file."""
    source = code.with_suffix(".ptx")
    source.write_text(ptx)
    return _run(_tool("ptxas"), "-v", f"-arch={target}", str(source), "-o", str(code)).stderr


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    found = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if found.returncode:
        raise NotAssembled(found.stderr.strip() or found.stdout.strip())
    return found


_KERNEL: Final = re.compile(
    r"Compiling entry function '(?P<name>[^']+)'.*?(?P<stack>\d+) bytes stack frame, "
    r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
    r".*?Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.S,
)


def _parsed(said: str) -> Iterator[Report]:
    for found in _KERNEL.finditer(said):
        shared = re.search(r"(\d+) bytes smem", found["rest"])
        spilled = int(found["stores"]) + int(found["loads"])
        yield Report(
            found["name"], int(found["registers"]), spilled, int(found["stack"]), int(shared[1]) if shared else 0
        )


# ------------------------------------------------------------------ tools


def _tool(name: str) -> str:
    found = shutil.which(name) or next((str(path) for path in _candidates(name) if path.is_file()), None)
    if found is None:
        raise NotAssembled(f"{name} is not installed")
    return found


def _candidates(name: str) -> Iterator[Path]:
    yield Path("/usr/local/cuda/bin") / name
    spec = find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield from sorted(Path(folder).glob(f"*/bin/{name}"))


@cache
def targets_of_ptxas() -> frozenset[str]:
    """The targets that `ptxas` assembles for; raises NotAssembled where it is not installed."""
    return frozenset(re.findall(r"'(sm_\d+)'", _run(_tool("ptxas"), "--help").stdout))
