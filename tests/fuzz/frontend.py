"""Breaks whatever reads text, if it can be broken.

    python -m tests.fuzz.frontend --minutes 30 --seed 0 [--corpus FILE.jsonl ...] [--save FOLDER]

In: programs (the sources of `tests/cases`, own ones, the `source`s of a corpus), graphs, schemas, types.  Out: what
went wrong with their mutants, each sort once.  A mutant goes through every door that its kind of text has (`doors`).
That may raise what `engine.lang.errors` defines and nothing else, in at most `SLOW` seconds; the error must print; what
comes out must be well made, and read back as it was printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from engine.lang.errors import EngineError
from tsrepl.session.failures import error_replies

from .doors import KINDS, own_programs
from .mutations import mutant

SLOW: Final = 10
WEIGHTS: Final = {"program": 84, "graph": 6, "schema": 5, "type": 5}
"""How often each kind of text gets its turn."""


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


def check(text: str, kind: str = "program") -> list[Finding]:
    """What the text breaks."""
    doors = KINDS[kind].doors.items()
    return [finding for door, enter in doors if (finding := _entered(door, enter, text))]


def _entered(door: str, enter: Callable[[str], object], text: str) -> Finding | None:
    try:
        with _time_limit(SLOW):
            enter(text)
    except EngineError as error:
        return _unprintable(door, text, error)
    except (Exception, Hang) as error:
        return Finding(door, text, error)
    return None


def _unprintable(door: str, text: str, error: EngineError) -> Finding | None:
    try:
        str(error), error.line, error_replies(error)
    except Exception as failure:
        return Finding(door, text, failure)
    return None


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


def corpus_programs(path: Path) -> list[str]:
    """The sources of a file with a JSON object on each line."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    cases = map(json.loads, text.splitlines())
    return [case["source"] for case in cases if case.get("source")]


def fuzz(programs: Sequence[str], random: Random, seconds: float) -> tuple[Counter[str], dict[str, Finding]]:
    """How many mutants of each kind were tried in that time; the findings, one of each sort (the shortest text)."""
    texts = {kind: each.texts() for kind, each in KINDS.items()} | {"program": programs}
    findings: dict[str, Finding] = {}
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        kind = random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        counts[kind] += 1
        for finding in check(mutant(texts[kind], random), kind):
            known = findings.get(finding.kind)
            if known is None:
                print(finding, flush=True)
            if known is None or len(finding.text) < len(known.text):
                findings[finding.kind] = finding
    return counts, findings


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
    counts, findings = fuzz(programs, Random(options.seed), 60 * options.minutes)
    if options.save is not None:
        options.save.mkdir(parents=True, exist_ok=True)
        for index, finding in enumerate(findings.values()):
            (options.save / f"{index:03}.txt").write_text(str(finding), encoding="utf-8", errors="backslashreplace")
    tried = ", ".join(f"{count} {kind}s" for kind, count in sorted(counts.items()))
    print(f"mutants: {tried} ({len(programs)} programs to begin with); {len(findings)} kinds of findings")
    for kind in findings:
        print(f"  {kind}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
