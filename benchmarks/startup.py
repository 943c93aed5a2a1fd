"""The time that a person waits: from the command to the prompt, and for one entry.

    python benchmarks/startup.py

Prints milliseconds, the medians of ten: `tsrepl` on a terminal up to its prompt, and `tsrepl -c 'torch.ones(2) * 3'`.
"""

from __future__ import annotations

import os
import pty
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

COMMAND: Final = str(Path(sys.executable).parent / "tsrepl")
ENTRY: Final = "torch.ones(2) * 3"
REPEATS: Final = 10


def to_prompt() -> float:
    """Seconds until a shell on a terminal shows its prompt; it answers what prompt_toolkit asks a terminal."""
    start = time.perf_counter()
    child, terminal = pty.fork()
    if child == 0:
        os.execv(COMMAND, [COMMAND])
    shown = b""
    while b"ts>" not in shown:
        shown += os.read(terminal, 4096)
        if b"\x1b[6n" in shown[-16:]:
            os.write(terminal, b"\x1b[1;1R")
    seconds = time.perf_counter() - start
    os.close(terminal)
    os.waitpid(child, 0)
    return seconds


def one_entry() -> float:
    """Seconds of a command that runs one entry."""
    start = time.perf_counter()
    subprocess.run([COMMAND, "-c", ENTRY], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def median(work: Callable[[], float]) -> float:
    work()  # files are read from the disk once
    return statistics.median(work() for _ in range(REPEATS))


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # whoever installs the program has its bytecode
    for name, work in (("to the prompt", to_prompt), (f"-c '{ENTRY}'", one_entry)):
        print(f"{name:28} {median(work) * 1e3:7.0f} ms")


if __name__ == "__main__":
    main()
