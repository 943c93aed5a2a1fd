"""Mutated archives: each is loaded, or refused with ArchiveError; nothing else may happen.

    python -m tests.fuzz.archives [--count 20000] [--seed 1] FOLDER_OR_FILE ...

In: archives.  Out: how the mutants end, the errors that name no place, and what broke, each with the seed that makes it
again.  A mutant is changed bytes, a cut or a repeated piece of the file, or a changed record in a file that is whole
otherwise, so that checksums do not hide what lies behind them.  Each is loaded in a process of limited memory and time,
which compiles and prints all of its code, looks at every tensor and at the original sources.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import resource
import signal
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.unit.serialize.model_files import ARCHIVES, without_code

MEMORY: Final = 1 << 30
SECONDS: Final = 10
BATCH: Final = 100
"""Mutants that one process takes, if it lives."""
_LAST: Final = 300
_INTERESTING: Final = (*(bytes([code]) for code in b"\0\xff\x7f\x80(.RbQcqh"), b"\xff" * 4)
_FLATBUFFER: Final = b"PTMF"
_WORDS: Final = (
    *b"while True:\n|[0]|Tensor|List[int]|-1|9223372036854775807|torch.|ops.|self|None|CONSTANTS.c0".split(b"|"),
    *b"\n|  |\"|annotate(|def |class | = |1e999|__torch__".split(b"|"), b"(" * 50,
)  # fmt: skip


# -- mutants


def mutant(archives: Sequence[bytes], random: Random) -> bytes:
    """A changed copy of one of the archives."""
    data = random.choice(archives)
    if data[4:8] == _FLATBUFFER:
        return _changed(data, random, _INTERESTING) if random.random() < 0.3 else _with_changed_numbers(data, random)
    return _changed(data, random, _INTERESTING) if random.random() < 0.3 else _with_changed_record(data, random)


def _with_changed_record(data: bytes, random: Random) -> bytes:
    """The archive with one record changed, dropped, doubled in length or exchanged, and checksums that are right."""
    with zipfile.ZipFile(io.BytesIO(data)) as source:
        contents = {name: source.read(name) for name in source.namelist()}
    small = [name for name in contents if "/data/" not in name and "/extra/" not in name] or list(contents)
    victim = random.choice(small)
    way = random.random()
    if way < 0.04:
        del contents[victim]
    elif way < 0.08:
        contents[victim] = contents[random.choice(list(contents))]
    else:
        words = _WORDS if victim.endswith((".py", "version", "byteorder", ".json")) else _INTERESTING
        contents[victim] = _changed(contents[victim], random, words)
    file = io.BytesIO()
    method = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(file, "w", method) as target:
        for name, content in contents.items():
            target.writestr(name, content)
    return file.getvalue()


def _with_changed_numbers(data: bytes, random: Random) -> bytes:
    """A flatbuffer in which some numbers are others: counts, references, distances, numbers of values."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4, 8))):
        size = random.choice((1, 2, 4, 4, 4, 8))
        at = random.randrange(0, len(changed) - 8) // size * size
        old = int.from_bytes(changed[at : at + size], "little")
        other = random.randrange(0, len(changed) - 8) // size * size
        near = old + random.choice((-8, -4, -2, -1, 1, 2, 4, 8, 100))
        new = random.choice((near, near, 0, 1, random.randrange(64), -1, (1 << 8 * size - 1) - 1, len(changed), -at,
                             int.from_bytes(changed[other : other + size], "little")))  # fmt: skip
        changed[at : at + size] = (new % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(changed)


def _changed(data: bytes, random: Random, words: Sequence[bytes]) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4, 8))):
        at = random.randrange(len(changed) + 1)
        size = random.choice((1, 1, 2, 4, 16, 100))
        way = random.randrange(7)
        if way == 0:
            changed[at : at + 1] = bytes([random.randrange(256)])
        elif way == 1 and at < len(changed):
            changed[at] ^= 1 << random.randrange(8)
        elif way == 2:
            del changed[at : at + size]
        elif way == 3:
            changed[at:at] = changed[at : at + size] * random.choice((1, 2, 50))
        elif way == 4:
            changed[at:at] = random.choice(words)
        elif way == 5:
            other = random.randrange(len(changed) + 1)
            changed[at : at + size] = changed[other : other + size]
        elif random.random() < 0.3:
            del changed[at:]
    return bytes(changed)


# -- one mutant


def outcome(data: bytes) -> str:
    """How it ends: "loaded", "refused", "refused without a place: ...", or what broke."""
    from engine.lang.errors import ArchiveError

    try:
        _look_at_all(data)
    except ArchiveError as error:
        placed = error.record is not None or error.offset is not None
        return "refused" if placed else f"refused without a place: {error.message}"
    except Exception as error:
        return f"broke: {type(error).__name__}: {error}"
    return "loaded"


def _look_at_all(data: bytes) -> None:
    from engine.aten.values.tensor import Tensor
    from engine.executor.interpreter.budget import Budget, BudgetedRunner
    from engine.ir.unit import Function
    from engine.lang.errors import CompileError
    from engine.serialize.archive import load_archive
    from engine.serialize.code.source_export import function_code

    module = load_archive(io.BytesIO(data), run=BudgetedRunner(Budget(steps=20_000, nbytes=1 << 28, seconds=2)))
    for method in _functions(module):
        assert isinstance(method, Function)
        with contextlib.suppress(CompileError):  # a method that cannot be compiled for want of an operator says so
            function_code(method)
            for node in method.graph.all_nodes():
                if node.range is not None:
                    node.range.original()
    for slot in module.slots:
        if isinstance(slot, Tensor):
            slot.array.tobytes()


def _functions(module: Any) -> Iterator[Any]:
    """The methods and hooks of the module and of all in it."""
    from engine.aten.values.ivalue import Object

    waiting, seen = [module], set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, Object) and id(each) not in seen:
            seen.add(id(each))
            yield from (*each.type.methods.values(), *each.type.forward_hooks, *each.type.forward_pre_hooks)
            waiting += each.slots


# -- many, each in a process that may die


@dataclass(slots=True)
class Report:
    """What became of the mutants."""

    counts: Counter[str] = field(default_factory=Counter)
    without_place: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def add(self, seed: str, text: str) -> None:
        kind = text.partition(":")[0]
        self.counts[kind] += 1
        if kind == "refused without a place":
            self.without_place.append(f"{seed} {text}")
        elif kind not in ("loaded", "refused"):
            self.broken.append(f"{seed} {text}")

    @property
    def placed(self) -> float:
        """The share of the errors that name a place."""
        refused = self.counts["refused"] + self.counts["refused without a place"]
        return self.counts["refused"] / max(1, refused)


def fuzz(archives: Sequence[bytes], seed: int, count: int) -> Report:
    """Load so many mutants; the mutant `seed:index` is always the same."""
    report, index = Report(), 0
    while index < count:
        for done, text in _batch(archives, seed, index, min(BATCH, count - index)):
            report.add(f"{seed}:{done}", text)
            index = done + 1
    return report


def _batch(archives: Sequence[bytes], seed: int, first: int, count: int) -> Iterator[tuple[int, str]]:
    """What becomes of some mutants, up to the first that ends its process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(archives, seed, first, count, writing)
    os.close(writing)
    done = 0
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            yield first + done, line.rstrip("\n")
            done += 1
    _, status = os.waitpid(child, 0)
    if done < count:
        killed = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status}"
        yield first + done, f"died: {killed}"


def _in_child(archives: Sequence[bytes], seed: int, first: int, count: int, writing: int) -> None:
    code = 1
    with contextlib.suppress(BaseException):
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MEMORY,) * 2)
        for index in range(first, first + count):
            data = mutant(archives, Random(f"{seed}:{index}"))
            signal.alarm(SECONDS)
            text = outcome(data)
            signal.alarm(0)
            os.write(writing, (text.replace("\n", " ")[:_LAST] + "\n").encode(errors="replace"))
        code = 0
    os._exit(code)


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def own_archives() -> list[bytes]:
    """The archives of the tests."""
    flatbuffer = (ARCHIVES / "mobile.ff").read_bytes()
    return [*(path.read_bytes() for path in sorted(ARCHIVES.glob("*.pt"))), flatbuffer, without_code(flatbuffer)]


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted((*path.glob("*.pt"), *path.glob("*.ff"))) if path.is_dir() else (path,)


def main() -> int:
    parser = argparse.ArgumentParser(description="load mutated archives")
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", metavar="SEED:INDEX=FILE", help="write one mutant and load nothing")
    options = parser.parse_args()
    archives = [path.read_bytes() for path in _files(options.paths)] or own_archives()
    if options.save:
        name, _, path = options.save.partition("=")
        Path(path).write_bytes(mutant(archives, Random(name)))
        return 0
    outcome(archives[0])  # what is imported now need not be imported in each process
    report = fuzz(archives, options.seed, options.count)
    for line in (*report.broken, *report.without_place[:20]):
        print(line)
    print(f"{dict(report.counts)}, {report.placed:.1%} of the errors name a place")
    return 1 if report.broken or report.placed < 0.95 else 0


if __name__ == "__main__":
    sys.exit(main())
