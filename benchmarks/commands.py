"""What commands of the shell cost: processor time of `tsrepl`, all of its threads and children included.

    python benchmarks/commands.py [--only PART]

Out: for this processor and as an older one a table of seconds: processor time, and the time that a person waits.  Each
is the least of `TIMES` runs, which find the library of operators on disk, and what the run before left there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import sides
from sides import ROOT, Aim, Asked, Figures, Section

TIMES: Final = 7
EXAMPLE: Final = str(ROOT / "examples" / "mlp.pt")
COMMANDS: Final[Mapping[str, tuple[Sequence[str], Aim]]] = {
    "tsrepl -c '1+1'": (("-c", "1+1"), Aim(0.2, 0.1)),
    "tsrepl identify mlp.pt": (("identify", EXAMPLE), Aim(0.25, 0.12)),
    "tsrepl run mlp.pt": (("run", EXAMPLE, "--input", "x=ones(4, 6)"), Aim(0.35, 0.2)),
}


def _seconds(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Processor time and time of one run; raises CalledProcessError where it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    taken = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, stderr=errors)
    return used.ru_utime + used.ru_stime, taken


def measure(asked: Asked) -> Figures:
    """Seconds by target and command, of the processor and as they pass."""
    found: Figures = {"machine": sides.machine(), "targets": {}}
    program = Path(sys.executable).with_name("tsrepl")
    for target in sides.targets():
        rows = found["targets"][target] = {}
        with sides.library(target) as built:
            environment = sides.environment(target, None, TSREPL_KERNEL_CACHE=str(built))
            for name, (words, _) in COMMANDS.items():
                if asked.only in name:
                    runs = [_seconds([str(program), *words], environment) for _ in range(TIMES + 1)]
                    processor, passed = zip(*runs[1:], strict=True)  # the first reads files from the disk
                    rows[name] = {"processor": min(processor), "passed": min(passed)}
    return found


def lines(figures: Figures) -> Iterator[str]:
    text = f"Processor time of a command, and the time until it ends. {sides.NOT_ENOUGH}"
    yield from sides.introduction("Commands", figures, text)
    yield from sides.tables(figures["targets"], _table)


def _table(rows: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    def cells(name: str, processor: float, passed: float) -> list[str]:
        aim = COMMANDS[name][1]
        return [name, aim.cell(processor, sides.duration(processor)), str(aim), sides.duration(passed)]

    head = ["command", "processor time", "floor / aim, s", "until it ends"]
    return sides.table(head, [cells(name, **found) for name, found in rows.items()])


SECTION: Final = Section(measure, lines)

if __name__ == "__main__":
    sides.alone(SECTION)
