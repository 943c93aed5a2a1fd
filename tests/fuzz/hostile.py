"""Files changed at the places where their formats mean something, looked at through every door.

    python -m tests.fuzz.hostile [--count 2000] [--seed 1] [--door load] [--family pickle]

In: the small files of the tests.  Out: how each mutant ends at each door; whatever is neither an answer nor an error of
`engine.lang.errors` with a place, takes long or much memory, or touches anything else, is a finding, which the name
`file/family/number` makes again.  A family changes one kind of thing: every value of every pickle becomes one of
another type, every token of the code goes or becomes another, every record goes, comes twice, is empty or another's,
every number of the zip's directory lies, the file ends early or goes on, code is encoded otherwise, every value of
`model.json` and every field of a tar file's headers is another.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import io
import itertools
import os
import pickle
import pickletools
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import engine
import engine.torch as torch
from engine.lang.errors import ArchiveError, EngineError
from tests.unit.serialize.hostile_archives import archive, tensor, text
from tests.unit.serialize.inspect.tar_files import members as tar_members
from tests.unit.serialize.inspect.tar_files import tarred
from tests.unit.serialize.legacy.model_json_files import archive as json_archive
from tests.unit.serialize.legacy.model_json_files import model as json_model
from tests.unit.serialize.model_files import ARCHIVES, FILES, HERE, without_code
from tsrepl.cli import main as tsrepl

PREPACKED, QUANTIZED = HERE / "mobile" / "prepacked", HERE / "quantized"
SECONDS: Final = 3.0
MEMORY: Final = 128 << 20
BATCH: Final = 40
_WAIT: Final = 20
"""Seconds of the wall clock until a mutant is killed: other processes may have the processors meanwhile."""

CODE: Final = b"""class M(Module):
  __parameters__ = ["w", ]
  __buffers__ = []
  training : bool
  w : Tensor
  names : Dict[str, List[int]]
  def forward(self : __torch__.M, x : Tensor, n : int=3) -> Tensor:
    a = annotate(List[Tensor], [])
    for i in range(n):
      if bool(torch.gt(torch.sum(x), 0.5)):
        x0 = torch.add(x, self.w, alpha=i)
      else:
        x0 = torch.mul(x, CONSTANTS.c0)
      _0 = torch.append(a, x0)
    b, c, = (self).pair(torch.stack(a), "text", )
    while torch.lt(c, 3):
      c = torch.add(c, 1)
    d = b[0]
    assert c is not None, "never"
    return torch.neg(d)
  def pair(self : __torch__.M, x : Tensor, s : str) -> Tuple[Tensor, int]:
    return (x, -8 if s == "a" else 1)
"""


def own_archive() -> bytes:
    state = text(b"training") + b"\x88" + text(b"w") + tensor() + text(b"names") + b"}" + text(b"a") + b"]K\1as"
    return archive(
        **{
            "data.pkl": b"\x80\2c__torch__\nM\n)\x81}(" + state + b"ub.",
            "data/0": struct.pack("<4f", 1, 2, 3, 4),
            "constants.pkl": b"\x80\2" + tensor().replace(b"ctorch\nFloat", b"ctorch\nFloat") + b"\x85.",
            "constants/0": struct.pack("<4f", 1, 2, 3, 4),
            "code/__torch__.py": CODE,
            "byteorder": b"little",
            "traced_inputs.pkl": b"\x80\2}" + text(b"forward") + b"(" + tensor() + b"K\3ls.",
            "extra/notes.txt": b"notes",
            ".data/serialization_id": b"1" * 40,
        }
    )


def sources() -> dict[str, bytes]:
    """The files that mutants are made of, by name."""
    found = {
        path.name: path.read_bytes()
        for path in sorted((*FILES.glob("*.p*"), *FILES.glob("*.ff"), *ARCHIVES.glob("*.pt"), ARCHIVES / "mobile.ff"))
        if path.suffix != ".py"
    }
    layers = {path.name: path.read_bytes() for path in (PREPACKED / "linears.ptl", PREPACKED / "branches.ff")}
    return {
        "own": own_archive(),
        **found,
        **layers,
        "bare.ff": without_code(layers["branches.ff"]),
        "quantized.pt": (QUANTIZED / "dynamic.pt").read_bytes(),
        "model.json": json_archive(json_model()).getvalue(),
        "tar": tarred(tar_members()),
    }


# -- mutants

Mutant = Callable[[], bytes]

WRONG: Final[Mapping[str, bytes]] = {
    "None": b"N",
    "bool": b"\x88",
    "int": b"K\5",
    "negative": b"J\xff\xff\xff\xff",
    "huge": b"\x8a\x08" + b"\xff" * 7 + b"\x7f",
    "float": b"G" + struct.pack(">d", float("nan")),
    "str": text(b"cpu"),
    "no UTF-8": text(b"\xff\xed\xa0\x80"),
    "empty": text(b""),
    "list": b"]",
    "filled list": b"(K\1K\2l",
    "dict": b"}",
    "filled dict": b"(K\1K\2d",
    "tuple": b")",
    "pair": b"K\1K\2\x86",
    "storage": b"ctorch\nFloatStorage\n",
    "class": b"c__torch__\nM\n",
    "call": b"ccollections\nOrderedDict\n)R",
    "size": b"ctorch\nSize\n)R",
    "numpy": b"cnumpy.core.multiarray\n_reconstruct\n",
    "system": b"cos\nsystem\n",
    "id": text(b"x") + b"Q",
    "id list": b"]Q",
    "tensor": tensor(),
    "itself": b"]q\x77h\x77a",
}


def _values(data: bytes, start: int = 0) -> Iterator[int]:
    """The offsets behind the opcodes that leave a value, of all the pickles one after the other."""
    while start < len(data) and data[start : start + 1] == b"\x80":
        stream, at = io.BytesIO(data[start:]), 0
        with contextlib.suppress(Exception):
            for opcode, _, at in pickletools.genops(stream):
                if at and opcode.stack_after and opcode.stack_after[-1] is not pickletools.markobject:
                    yield start + at  # before this opcode stands what the one before it left
        if not at:
            return
        start += at + 1


def _pickles(data: bytes) -> Iterator[bytes]:
    for at in [*_values(data)][1:]:
        for wrong in WRONG.values():
            yield data[:at] + wrong + data[at:]
            yield data[:at] + b"0" + wrong + data[at:]


_TOKENS: Final = (
    b"",
    b"(",
    b")",
    b"[",
    b"self",
    b"x",
    b"torch",
    b"None",
    b"1",
    b"99999999999999999999",
    b"1e999",
    b'"',
    b"-",
    b"lambda",
    b"\xff",
    b"\0",
    b"(" * 2000,
    b"x." * 3000 + b"x",
    b"CONSTANTS.c9",
    b"__torch__.N",
    b"List[List",
    b"\n",
    b"\n\t",
    b"=",
    b"ops.foo.bar(1)",
    b"__import__",
    b"eval",
    b"annotate(",
    b"unchecked_cast(int, ",
    b"x" * 100_000,
)


def _code(data: bytes) -> Iterator[bytes]:
    import re

    for found in re.finditer(rb"\w+|\n +|[^\w\s]", data):
        for token in _TOKENS:
            yield data[: found.start()] + token + data[found.end() :]


_ENCODINGS: Final[tuple[Callable[[bytes], bytes], ...]] = (
    lambda code: code.replace(b"\n", b"\r\n"),
    lambda code: code.replace(b"\n", b"\r"),
    lambda code: code.replace(b"\n", b"\r\n", code.count(b"\n") // 2),
    lambda code: code.replace(b"\n", b"\n\n\x0c"),
    lambda code: code.replace(b"\n", b"\xe2\x80\xa8"),
    lambda code: code.replace(b"\n", b"\\\n"),
    lambda code: code.replace(b"\n", b"  # \xe9\n"),
    lambda code: code.replace(b"\n", "  # \u20ac\n".encode()),
    lambda code: code.replace(b"\n", b"\0\n"),
    lambda code: code.replace(b"\n", b"\n" * 5000, 3),
    lambda code: code.replace(b"  ", b"\t"),
    lambda code: code.replace(b"  ", "\u00a0 ".encode()),
    lambda code: b"\xef\xbb\xbf" + code,
    lambda code: code + b"\xef\xbb\xbf",
    lambda code: b"\xff\xfe" + code.decode(errors="replace").encode("utf-16-le"),
    lambda code: code.decode(errors="replace").encode("utf-16-be"),
    lambda code: code.rstrip() + b"\x1a",
    lambda code: b"op_version_set = 1\nimport __torch__.x\n" + code,
    lambda code: b"# -*- coding: latin-1 -*-\n" + code,
    lambda code: code + code,
    lambda code: code * 200,
    lambda code: b'"""' + code,
    lambda code: b"    " + code.replace(b"\n", b"\n    "),
)
"""The same code as other programs would write it, and as none would."""


def _encodings(data: bytes) -> Iterator[bytes]:
    for change in _ENCODINGS:
        yield change(data)


_JSON: Final = (
    b"", b"null", b"-1", b"1e999", b"NaN", b"99999999999999999999", b'""', b'"x"', b"[]", b"{}", b"[[[]]]", b"true",
    b"[" * 3000, b'"\\ud800"', b'"../../x"', b"[" + b"0," * 70 + b"0]", b'["9223372036854775807", "2"]',
)  # fmt: skip


def _json(data: bytes) -> Iterator[bytes]:
    """Every value becomes another, every key another's."""
    import re

    for found in re.finditer(rb'"[^"]*"|-?[0-9.]+|true|false|null|\[\]|\{\}', data):
        for other in _JSON:
            yield data[: found.start()] + other + data[found.end() :]


_FIELDS: Final = ((0, 100), (124, 12), (148, 8), (156, 1), (257, 8), (345, 155))
"""Offset and length of what a header of a tar file says: name, size, checksum, type, format, folder."""
_SAID: Final = (
    b"", b"-1", b"12x", b"7" * 12, b"\xff" * 12, b"\x80" + b"\xff" * 11, b"\x80" + bytes(11), b"0" * 11, b"1", b"2",
    b"L", b"K", b"x", b"g", b"S", b"D", b"V", b"../x", b"pickle", b"storages", b"\xff\xfe", b"x" * 200,
)  # fmt: skip


def _of_tar(data: bytes) -> Iterator[Mutant]:
    """Lies in the headers of a tar file."""
    for block in range(0, len(data) if data[257:262] == b"ustar" else 0, 512):
        if data[block + 257 : block + 262] == b"ustar":
            for (offset, length), said in itertools.product(_FIELDS, _SAID):
                at = block + offset
                yield partial(bytes, data[:at] + said[:length].ljust(length, b"\0") + data[at + length :])


_TEXTS: Final = (
    b"",
    b"0",
    b"-1",
    b"999999999999",
    b"3.5",
    b"three",
    b"\xff\xfe",
    b"3" * 1_000_000,
    b"\0",
    b"big",
    b"little\n",
    b"middle",
    b"{}",
    b"[]",
    b"null",
    b"\xef\xbb\xbf3",
)


def _texts(data: bytes) -> Iterator[bytes]:
    yield from _TEXTS


def _records_of(data: bytes) -> dict[str, bytes] | None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            return {name: file.read(name) for name in file.namelist()}
    except zipfile.BadZipFile:
        return None


def _zipped(entries: Mapping[str, bytes] | list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    import warnings

    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as target:
        warnings.simplefilter("ignore")
        for name, content in entries.items() if isinstance(entries, Mapping) else entries:
            target.writestr(name, content)
    return file.getvalue()


def _inside(data: bytes, wanted: Callable[[str], bool], change: Callable[[bytes], Iterator[bytes]]) -> Iterator[Mutant]:
    records = _records_of(data)
    if records is None:
        return
    for name in filter(wanted, records):
        for content in change(records[name]):
            yield partial(_zipped, {**records, name: content})


def _of_pickles(data: bytes) -> Iterator[Mutant]:
    if _records_of(data) is None:
        yield from (partial(bytes, each) for each in _pickles(data))
    yield from _inside(data, lambda name: name.endswith("pkl"), _pickles)


def _of_code(data: bytes) -> Iterator[Mutant]:
    yield from _inside(data, lambda name: name.endswith(".py"), _code)


def _of_encodings(data: bytes) -> Iterator[Mutant]:
    yield from _inside(data, lambda name: name.endswith((".py", "version", "byteorder")), _encodings)


def _of_json(data: bytes) -> Iterator[Mutant]:
    yield from _inside(data, lambda name: name.endswith(".json"), _json)


def _of_texts(data: bytes) -> Iterator[Mutant]:
    yield from _inside(data, lambda name: not name.endswith((".py", ".pkl")), _texts)
    yield from _inside(data, lambda name: name.endswith((".py", ".pkl")), _texts)


_NAMES: Final = (
    "../x",
    "/etc/passwd",
    "x",
    "m/../../x",
    "m\\x",
    "m/" + "a/" * 2000 + "x",
    "m/\0x",
    "m/\x1b[2Jx",
    "m/\u202ex",
    "m//x",
)


def _of_records(data: bytes) -> Iterator[Mutant]:
    """Records that are missing, there twice, empty, huge, another's, or named otherwise."""
    records = _records_of(data) or {}
    for name, content in records.items():
        others = {other: records[other] for other in records if other != name}
        yield partial(_zipped, others)
        yield partial(_zipped, [*records.items(), (name, content)])
        yield partial(_zipped, [*records.items(), (name, b"other")])
        yield partial(_zipped, {**others, name: bytes(100 << 20)}, zipfile.ZIP_DEFLATED)
        for other in _NAMES:
            yield partial(_zipped, {**others, other: content})
        yield partial(_zipped, {**records, f"{name}/x": b""})
        yield partial(_zipped, {**records, name.upper(): content})
        for other in others.values():
            yield partial(_zipped, {**others, name: other})
    if records:
        yield partial(_zipped, {name.partition("/")[2] or name: content for name, content in records.items()})
        yield partial(_zipped, {f"deep/er/{name}": content for name, content in records.items()})
        yield partial(_zipped, {**records, **{f"m{n}/x": b"" for n in range(3000)}})


_LIES: Final = (0, 1, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)


def _of_numbers(data: bytes) -> Iterator[Mutant]:
    """Lies in the zip's headers; in the numbers of a flatbuffer; anywhere at the start of another file."""
    signs = (b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\7\\8")
    heads = [at for at in range(len(data)) if data[at : at + 4] in signs]
    for at in heads:
        for offset in range(4, 46, 2):
            for lie in _LIES:
                size = 4 if lie > 0xFFFF else 2
                yield partial(bytes, data[: at + offset] + lie.to_bytes(size, "little") + data[at + offset + size :])
    for at in range(0, min(len(data), 1500) if not heads else 0, 1 if len(data) < 800 else 2):
        for lie in _LIES:
            size = 4 if lie > 0xFFFF else 2 if lie > 0xFF else 1
            yield partial(bytes, data[:at] + lie.to_bytes(size, "little") + data[at + size :])


def _of_ends(data: bytes) -> Iterator[Mutant]:
    for n in range(64):
        yield partial(bytes, data[: len(data) * n // 64])
        yield partial(bytes, data[len(data) * n // 64 :])
        yield partial(bytes, data[: len(data) - n])
        yield partial(bytes, data[n:])
    for more in (b"\0", b"x" * 1000, b"PK\5\6" + bytes(18), data, b"\n"):
        yield partial(bytes, data + more)
        yield partial(bytes, more + data)


FAMILIES: Final[Mapping[str, Callable[[bytes], Iterator[Mutant]]]] = {
    "pickle": _of_pickles,
    "code": _of_code,
    "text": _of_texts,
    "record": _of_records,
    "number": _of_numbers,
    "end": _of_ends,
    "encoding": _of_encodings,
    "json": _of_json,
    "tar": _of_tar,
}


# -- doors


def _engine_load(path: str) -> None:
    from tests.unit.serialize.model_files import compiled

    compiled(engine.load(path))


def _traced(path: str) -> None:
    torch.jit.load(path, _restore_shapes=True)


def _command(*words: str) -> Callable[[str], None]:
    def run(path: str) -> None:
        said = io.StringIO()
        out = os.path.join(os.path.dirname(path), "out")
        given = [word.replace("FILE", path).replace("OUT", out) for word in words]
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = tsrepl([given[0], path, *given[1:]])
        text = said.getvalue()
        if "Internal error" in text or "Traceback" in text or (not text.strip() and status):
            raise AssertionError(f"said {text[-300:]!r}")
        for place in Path(path).parent.iterdir():
            if place.name.startswith("out"):
                _removed(place)

    return run


def _removed(place: Path) -> None:
    if place.is_dir():
        for each in place.iterdir():
            _removed(each)
        place.rmdir()
    else:
        place.unlink()


DOORS: Final[Mapping[str, Callable[[str], object]]] = {
    "engine.load": _engine_load,
    "torch.jit.load": _traced,
    "torch.load": torch.load,
    "load_weights": engine.load_weights,
    "identify": _command("identify"),
    "identify --json": _command("identify", "--json"),
    "show": _command("show"),
    "show --code": _command("show", "--code"),
    "check": _command("check"),
    "ops": _command("ops"),
    "diff": _command("diff", "FILE"),
    "extract": _command("extract", "OUT/all"),
    "repack": _command("repack", "-o", "OUT.pt"),
    "fix": _command("fix", "--device", "cpu", "-o", "OUT.pt"),
    "run": _command("run", "--input", "x=torch.ones(4)"),
    "report": _command("report", "--input", "x=torch.ones(4)", "-o", "OUT.html"),
}


def outcome(door: str, path: str) -> str:
    """ "answered", "refused", or what is wrong with how it ended."""
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        DOORS[door](path)
        text = "answered"
    except EngineError as error:
        text = "refused" if _has_place(error) else f"broke: no place: {error!s:.200}"
    except Exception as error:
        text = f"broke: {type(error).__name__}: {error!s:.300} {_where(error)}"
    took, grown = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if took > SECONDS:
        return f"broke: took {took:.1f} s, {text}"
    return f"broke: took {grown >> 10} MiB, {text}" if grown << 10 > MEMORY + os.path.getsize(path) else text


def _where(error: BaseException) -> str:
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return "" if at is None else f"{at.tb_frame.f_code.co_filename.rpartition('/')[2]}:{at.tb_lineno}"


def _has_place(error: EngineError) -> bool:
    """A byte or record of the file, or a line of its code; the file as a whole where it is none of a known kind."""
    if isinstance(error, ArchiveError):
        return error.record is not None or error.offset is not None or bool(error.hints)
    return error.range is not None or bool(error.frames) or bool(error.hints)


# -- many, in processes that may die


class Trial(NamedTuple):
    """One mutant at one door."""

    file: str
    family: str
    number: int
    door: str

    def __str__(self) -> str:
        return f"{self.file}/{self.family}/{self.number} {self.door}"


def all_trials(families: Mapping[str, Any] = FAMILIES, doors: Mapping[str, Any] = DOORS) -> Iterator[Trial]:
    """Every mutant at every door."""
    for name, data in sources().items():
        for family in families:
            for number, _ in enumerate(FAMILIES[family](data)):
                yield from (Trial(name, family, number, door) for door in doors)


_ONLY: Final = {"json": "model.json", "tar": "tar"}
"""Families that one file alone has."""


def sampled(
    seed: int, count: int, families: Mapping[str, Any] = FAMILIES, doors: Mapping[str, Any] = DOORS
) -> list[Trial]:
    """So many of them, as many of each family and door."""
    draw, files = Random(seed), sources()
    sizes: dict[tuple[str, str], int] = {}
    found: list[Trial] = []
    while len(found) < count:
        family = draw.choice([*families])
        file = _ONLY.get(family) or draw.choice([*files])
        if (file, family) not in sizes:
            sizes[file, family] = sum(1 for _ in FAMILIES[family](files[file]))
        if sizes[file, family]:
            found.append(Trial(file, family, draw.randrange(sizes[file, family]), draw.choice([*doors])))
    return sorted(found)


def tried(trials: list[Trial], folder: Path) -> Iterator[tuple[Trial, str]]:
    """How each ends."""
    at = 0
    while at < len(trials):
        for said in _batch(trials[at : at + BATCH], folder):
            yield trials[at], said
            at += 1


def _batch(trials: list[Trial], folder: Path) -> Iterator[str]:
    """How some of them end, up to the first that ends its process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(trials, folder, writing)
    os.close(writing)
    done = 0
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            yield line.rstrip("\n")
            done += 1
    _, status = os.waitpid(child, 0)
    if done < len(trials):
        yield f"broke: died: {signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f'exit {status}'}"


def _in_child(trials: list[Trial], folder: Path, writing: int) -> None:
    code = 1
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        place = folder / f"m{os.getpid()}"
        place.mkdir()
        os.chdir(place)
        _forbid()
        files, path = sources(), place / "model.pt"
        known: tuple[tuple[str, str], Iterator[tuple[int, Mutant]], tuple[int, Mutant]] | None = None
        for trial in trials:
            key = trial.file, trial.family
            if known is None or known[0] != key or known[2][0] > trial.number:
                coming = enumerate(FAMILIES[trial.family](files[trial.file]))
                known = key, coming, next(coming)
            while known[2][0] < trial.number:
                known = key, known[1], next(known[1])
            path.write_bytes(known[2][1]())
            signal.alarm(_WAIT)
            said = outcome(trial.door, str(path))
            signal.alarm(0)
            strangers = {each.name for each in place.iterdir()} - {"model.pt"}
            if strangers and said.startswith(("answered", "refused")):
                said = f"broke: left {strangers}"
            for each in strangers:
                _removed(place / each)
            os.write(writing, (said.replace("\n", " ") + "\n").encode(errors="replace"))
        code = 0
        _removed(place)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(writing, f"broke: the fuzzer: {error!r}\n".encode())
    os._exit(code)


def _forbid() -> None:
    """Nothing that an archive might want done is done."""

    def done(*args: object, **options: object) -> None:
        raise AssertionError(f"it was done: {args}")

    for owner, name in (
        (os, "system"),
        (os, "popen"),
        (subprocess, "Popen"),
        (pickle, "loads"),
        (pickle, "load"),
        (builtins, "input"),
        (socket, "socket"),
    ):
        setattr(owner, name, done)


def main() -> int:
    parser = argparse.ArgumentParser(description="look at changed files through every door")
    parser.add_argument("--count", type=int, default=2000, help="0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--door", choices=[*DOORS], action="append")
    parser.add_argument("--family", choices=[*FAMILIES], action="append")
    parser.add_argument("--save", metavar="FILE/FAMILY/NUMBER=PATH", help="write one mutant")
    options = parser.parse_args()
    if options.save:
        name, _, path = options.save.partition("=")
        file, family, number = name.rsplit("/", 2)
        Path(path).write_bytes([*FAMILIES[family](sources()[file])][int(number)]())
        return 0
    import tempfile

    families = dict.fromkeys(options.family or FAMILIES)
    doors = dict.fromkeys(options.door or DOORS)
    trials = sampled(options.seed, options.count, families, doors) if options.count else [*all_trials(families, doors)]
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        warm(place)
        for trial, said in tried(trials, place):
            counts[said.partition(":")[0]] += 1
            if said.startswith("broke"):
                print(f"{trial}: {said}", flush=True)
    print(dict(counts))
    return 1 if counts["broke"] else 0


def warm(folder: Path) -> None:
    """Import what all doors need once, before processes part."""
    path = folder / "model.pt"
    path.write_bytes(sources()["own"])
    for door in DOORS:
        print(door, outcome(door, str(path))) if __name__ == "__main__" else outcome(door, str(path))
    for each in folder.iterdir():
        _removed(each)


if __name__ == "__main__":
    sys.exit(main())
