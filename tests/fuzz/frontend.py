"""Breaks the front end, if it can be broken.

    python -m tests.fuzz.frontend --minutes 30 --seed 0 [--corpus FILE.jsonl ...] [--save FOLDER]

In: programs (the sources of `tests/cases`, own ones, the `source`s of a corpus).  Out: what went wrong with their
mutants, each kind once.  A mutant goes through every door that text has: as a compilation unit, as shells and notebooks
take it, as Python's parser reads it.  Compiling it may raise what `engine.lang.errors` defines and nothing else, in at
most `SLOW` seconds; the error must print; a graph that comes out must be well made, and read back as it was printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from engine.frontend.compile import compile_source, define
from engine.frontend.from_python import trees_from_text
from engine.frontend.parser import parse_statements
from engine.frontend.resolve import TextResolver
from engine.frontend.tree import Tree
from engine.ir.parser import parse_ir
from engine.ir.unit import CompilationUnit
from engine.ir.verify import verify
from engine.lang.errors import EngineError, IRError
from engine.lang.source import Source
from tsrepl.session.definitions import Definitions
from tsrepl.session.entries import split_entries
from tsrepl.session.entry_function import compile_entry
from tsrepl.session.failures import error_reply

from .mutations import mutant

TESTS: Final = Path(__file__).parents[1]
SLOW: Final = 10
_SEPARATOR: Final = "---\n"


class Hang(BaseException):
    """A mutant took too long; no `except Exception` on the way may swallow it."""


class Finding:
    """What one mutant broke: `kind` tells findings apart."""

    def __init__(self, door: str, text: str, error: BaseException) -> None:
        self.door, self.text, self.error = door, text, error
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "/engine/" in frame.filename or "/tsrepl/" in frame.filename]
        where = own[-1] if own else frames[-1]
        self.kind = f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno} ({where.name})"

    def __str__(self) -> str:
        lines = "".join(traceback.format_exception(self.error)[-6:])
        return f"=== {self.kind}, by {self.door}\n{lines}--- the program\n{self.text}\n"


def check(text: str) -> list[Finding]:
    """What the text breaks."""
    return [finding for door, enter in DOORS.items() if (finding := _entered(door, enter, text))]


def _entered(door: str, enter: Callable[[str], CompilationUnit], text: str) -> Finding | None:
    try:
        with _time_limit(SLOW):
            unit = enter(text)
    except EngineError as error:
        return _unprintable(door, text, error)
    except (Exception, Hang) as error:
        return Finding(door, text, error)
    try:
        _check_graphs(unit)
    except Exception as error:
        return Finding(door, text, error)
    return None


def _unprintable(door: str, text: str, error: EngineError) -> Finding | None:
    try:
        str(error), error.line, error_reply(error)
    except Exception as failure:
        return Finding(door, text, failure)
    return None


def _check_graphs(unit: CompilationUnit) -> None:
    """Whatever compiled is well made, and its text reads back."""
    for function in unit.functions.values():
        verify(function.graph)
        if not unit.types:  # a class is but a name in the text of a graph
            _check_text(str(function.graph))


def _check_text(printed: str) -> None:
    try:
        again = parse_ir(printed)
    except IRError:
        if "<Tensor>" not in printed:  # the text does not tell the elements
            raise
        return
    assert str(again) == printed, f"reads back as\n{again}\nwas\n{printed}"


def _as_unit(text: str) -> CompilationUnit:
    return compile_source(text)


def _as_entry(text: str) -> CompilationUnit:
    """As shells and notebooks do: definitions into the session's unit, statements as a function of their own."""
    definitions = Definitions()
    split_entries(text)
    for tree in parse_statements(Source(text, "<entry 1>"), extended=True):
        if tree.kind in ("def", "class_def"):
            definitions.define([tree])
        else:
            compile_entry([tree], {}, definitions, "_")
    return definitions.unit


def _as_python(text: str) -> CompilationUnit:
    unit = CompilationUnit()
    trees: list[Tree] = trees_from_text(Source(text))
    define(unit, [tree for tree in trees if tree.kind in ("def", "class_def")], TextResolver(unit))
    return unit


DOORS: Final[dict[str, Callable[[str], CompilationUnit]]] = {
    "text": _as_unit, "entry": _as_entry, "python": _as_python,
}  # fmt: skip


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    def stop(number: int, frame: Any) -> None:
        raise Hang(f"still at it after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def own_programs() -> list[str]:
    """The programs of the golden cases and of the front end's tests."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((TESTS / "cases").rglob("*.case"))]
    sections = [section for text in texts for section in text.split("\n[source]\n")[1:]]
    programs = [section.partition("\n[")[0] + "\n" for section in sections]
    for path in (TESTS / "fuzz/programs.txt", TESTS / "unit/frontend/programs.txt"):
        programs += path.read_text(encoding="utf-8").split(_SEPARATOR)
    return programs


def corpus_programs(path: Path) -> list[str]:
    """The sources of a file with a JSON object on each line."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    cases = map(json.loads, text.splitlines())
    return [case["source"] for case in cases if case.get("source")]


def fuzz(programs: Sequence[str], random: Random, seconds: float) -> tuple[int, dict[str, Finding]]:
    """So many mutants were tried in that time; the findings, one of each kind (the shortest program)."""
    findings: dict[str, Finding] = {}
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        count += 1
        for finding in check(mutant(programs, random)):
            known = findings.get(finding.kind)
            if known is None:
                print(finding, flush=True)
            if known is None or len(finding.text) < len(known.text):
                findings[finding.kind] = finding
    return count, findings


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.frontend", description="Fuzz the front end.")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--corpus", type=Path, nargs="*", default=[], help="more programs: .jsonl files with a 'source'"
    )
    parser.add_argument("--save", type=Path, help="a folder for the program of each finding")
    options = parser.parse_args(arguments)
    programs = [*own_programs(), *(program for path in options.corpus for program in corpus_programs(path))]
    count, findings = fuzz(programs, Random(options.seed), 60 * options.minutes)
    if options.save is not None:
        options.save.mkdir(parents=True, exist_ok=True)
        for index, finding in enumerate(findings.values()):
            (options.save / f"{index:03}.txt").write_text(str(finding), encoding="utf-8", errors="backslashreplace")
    print(f"{count} mutants of {len(programs)} programs, {len(findings)} kinds of findings")
    for kind in findings:
        print(f"  {kind}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
