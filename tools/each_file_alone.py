"""Run each test file in a process of its own, so that none passes only for what another one has left.

    python tools/each_file_alone.py [--jobs N] [--seconds N] [tests/table ...] [-- -m "not slow"]

In: files and folders, all of `tests/` but `tests/browser` unless some are named; options for pytest behind `--`.
Out: a line for each file that fails or takes longer than the seconds that it has, with the end of what pytest said, and
an exit status of 1 if there is one.  A file of which all tests are left out passes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

from engine.lang.counts import counted, duration

ROOT: Final = Path(__file__).parents[1]
PATTERNS: Final = ("test_*.py", "*.case")
LEFT_OUT: Final = "browser"
NO_TESTS: Final = 5
"""The exit status of pytest where it runs no test."""
LINES: Final = 30


@dataclass(frozen=True)
class Result:
    """The run of a file: `trouble` is "" where it passed."""

    file: Path
    seconds: float
    trouble: str


def test_files(named: Sequence[Path]) -> Iterator[Path]:
    """The files that are named, and those in the folders that are."""
    for path in named:
        yield from [path] if path.is_file() else sorted(file for each in PATTERNS for file in path.rglob(each))


def run_alone(options: Sequence[str], seconds: float, file: Path) -> Result:
    """The result of pytest with this file and no other."""
    command, begun = [sys.executable, "-m", "pytest", "-q", *options, str(file.resolve())], perf_counter()
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return Result(file, perf_counter() - begun, f"takes longer than {seconds:g} s")
    said = "\n".join((done.stdout + done.stderr).rstrip("\n").split("\n")[-LINES:])
    return Result(file, perf_counter() - begun, "" if done.returncode in (0, NO_TESTS) else said)


def report(results: Iterable[Result]) -> int:
    """Print what fails as it comes, and how many files there were; the number of those that failed."""
    done: list[Result] = []
    for each in results:
        done.append(each)
        if each.trouble:
            print(
                f"{os.path.relpath(each.file)} fails alone, after {duration(each.seconds)}\n{each.trouble}\n",
                flush=True,
            )
    failed = sum(1 for each in done if each.trouble)
    print(f"{counted(len(done), 'file')} ran alone, {failed} failed")
    return failed


def main(arguments: Sequence[str]) -> int:
    at = [*arguments, "--"].index("--")
    parser = argparse.ArgumentParser(description="Run each test file in a process of its own.")
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders, all of tests/ unless some are named")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=1800.0, help="time that a file has")
    given = parser.parse_args(arguments[:at])
    if unknown := [str(path) for path in given.paths if not path.exists()]:
        parser.error(f"there is no {', '.join(unknown)}")
    files = test_files(given.paths or sorted(each for each in (ROOT / "tests").iterdir() if each.name != LEFT_OUT))
    with ThreadPoolExecutor(given.jobs) as pool:
        return int(report(pool.map(partial(run_alone, arguments[at + 1 :], given.seconds), files)) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
