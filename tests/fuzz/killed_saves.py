"""Saving that is killed: the file is the old archive or the new one, whole, whenever the process ends.

    python -m tests.fuzz.killed_saves [--count 200] [--seed 1]

A process saves archive after archive to one path and is killed with SIGKILL at a random moment; then the file must
load, with checksums that are right, and hold the numbers of one save.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.lang.types import INT, TENSOR, ClassType
from engine.serialize.archive import load_archive, save_archive

NUMBERS: Final = 500_000
LONGEST: Final = 0.08
"""Seconds until the process is killed, at most."""


def module(number: int) -> Object:
    """A module whose tensor is full of its number."""
    type = ClassType("__torch__.M", is_module=True)
    type.add_attribute("number", INT)
    type.add_attribute("numbers", TENSOR, "buffer")
    return Object(type, [number, Tensor(np.full(NUMBERS, number, np.float32))])


def number_in(path: Path) -> int:
    """The number of the archive.  Raises ArchiveError, AssertionError when it is not whole."""
    found = load_archive(path, mapped=False)
    number: int = found.get("number")
    assert (found.get("numbers").array == number).all(), f"{path} holds parts of two archives"
    return number


def kill_saves(folder: Path, count: int, seed: int) -> int:
    """Kill so many processes that save; how often the file was a new one.  Raises ArchiveError, AssertionError."""
    path, random, last, changes = folder / "m.pt", Random(seed), 0, 0
    save_archive(module(0), path)
    path.chmod(0o640)
    for _ in range(count):
        child = os.fork()
        if child == 0:
            _save_without_end(path, last)
        time.sleep(random.uniform(0, LONGEST))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        number = number_in(path)
        assert number >= last, "the file is older than it was"
        assert path.stat().st_mode & 0o777 == 0o640, "the file has other permissions"
        changes += number > last
        last = number
    return changes


def _save_without_end(path: Path, number: int) -> None:
    with contextlib.suppress(BaseException):
        while True:
            number += 1
            save_archive(module(number), path)
    os._exit(1)


def main() -> int:
    parser = argparse.ArgumentParser(description="kill processes that save")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        changes = kill_saves(Path(folder), options.count, options.seed)
    print(f"{options.count} saves killed, {changes} of them after the file was replaced; nothing was lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
