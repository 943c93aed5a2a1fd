"""The library of operators: how long its images take to be mapped and to be found, beside the import of llvmlite.

Usage: `tsrepl warm`, then `python -m benchmarks.library`.  Prints minima of several rounds, in milliseconds.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from engine.fuser.backend import tiering
from engine.fuser.images import mapping
from engine.fuser.library import image_files, key, store

ROUNDS = 30
IMPORT = "import time; t = time.perf_counter(); import llvmlite.binding; print(time.perf_counter() - t)"


def least(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The shortest time of a round, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def first_look() -> None:
    """Find all images, as a process does that has found none."""
    store._STORE = store._Store()
    store.address("no symbol")


def main() -> None:
    """Print all figures."""
    tiering.set_mode("off")  # nothing is built beside
    key_time = least(key.current, 1)
    current, room = key.current(), image_files.folder()
    files = image_files.packaged(current)
    files += [file for file in image_files.kept(room) if file.key == current.digest] if room is not None else []
    print(f"{current.facts['target']}: {len(files)} images, {sum(file.size for file in files) / 1024:.0f} KiB")
    for file in files:
        with open(file.open(), "rb") as opened:
            taken = least(partial(mapping.mapped, opened.fileno(), lambda text: True))
        print(f"  {file.part:12} {file.size / 1024:7.0f} KiB, mapped in {taken:.3f}")
    first_look()
    print(f"key of this process {key_time:.2f}, first look at all images {least(first_look):.2f}")
    imported = min(float(subprocess.check_output([sys.executable, "-c", IMPORT])) for _ in range(5)) * 1e3
    print(f"llvmlite imported in {imported:.1f}, which images do without")


if __name__ == "__main__":
    main()
