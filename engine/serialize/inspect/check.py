"""Static check of a program: its capabilities, and findings that deserve a second look.

In: the path of an archive.  Out: a `Check`: numbers (classes, functions, weights, operators, loops) and findings, each
"suspicious" (it will fail, or do what models have no need to) or a "note" (good to know).  Every rule is one function.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from engine.ir.constants import constant_value
from engine.ir.graph import Node
from engine.ir.unit import Function
from engine.lang.counts import counted
from engine.lang.custom_classes import is_foreign
from engine.lang.records import dataclass
from engine.lang.scalars import DTYPE_BY_NUMBER
from engine.serialize.container.file_bytes import shell_word
from engine.serialize.inspect.modes import Modes, callee_of, mode_of
from engine.serialize.inspect.survey import LoopSite, Survey, place_of, survey

SUSPICIOUS: Final = "suspicious"
NOTE: Final = "note"
LARGE: Final = 1 << 30
"""Bytes of a tensor that the code itself asks for, beyond which it is suspicious."""
MOST_PLACES: Final = 5


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """Something about the file: what it is, and where (places, or names)."""

    level: str
    text: str
    where: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """`numbers` are (label, text) for people; `operators` and `loops` are the same facts for programs."""

    survey: Survey
    numbers: tuple[tuple[str, str], ...]
    operators: dict[str, int]
    loops: tuple[LoopSite, ...]
    findings: tuple[CheckFinding, ...]

    @property
    def mode(self) -> str:
        """The mode that the program was saved in, "" for one without."""
        return mode_of(self.survey)

    @property
    def is_suspicious(self) -> bool:
        return any(finding.level == SUSPICIOUS for finding in self.findings)


def check_archive(path: str | os.PathLike[str]) -> Check:
    """Look for everything the rules know.  Raises ArchiveError for what is refused, or is no program."""
    seen = survey(path)
    findings = [finding for rule in _RULES for finding in rule(seen)]
    ordered = sorted(findings, key=lambda finding: finding.level != SUSPICIOUS)
    return Check(seen, tuple(_numbers(seen)), dict(seen.operators()), tuple(seen.loops()), tuple(ordered))


def _numbers(seen: Survey) -> Iterator[tuple[str, str]]:
    modules = list(seen.modules())
    yield "file", f"{counted(seen.identity.size, 'byte')}, {counted(len(seen.records), 'record')}"
    classes = {module.type.qualname for _, module in modules}
    yield "modules", f"{len(modules):,} of {counted(len(classes), 'class', 'classes')}"
    nodes = sum(_length(function.graph.all_nodes()) for function in seen.functions)
    yield "functions", f"{len(seen.functions):,} with {counted(nodes, 'node')}"
    weights = [(kind, tensor) for _, kind, tensor in seen.tensors()]
    parameters = sum(tensor.numel() for kind, tensor in weights if kind == "parameter")
    size = sum(tensor.numel() * tensor.dtype.itemsize for _, tensor in weights)
    told = f"{counted(len(weights), 'tensor')}, {counted(parameters, 'parameter')}, {counted(size, 'byte')}"
    yield "weights", told if weights else "none"
    operators = seen.operators()
    yield "operators", f"{len(operators):,} in {counted(sum(operators.values()), 'call')}"
    yield "loops", _loops_told(seen.loops())


def _loops_told(loops: Sequence[LoopSite]) -> str:
    """The number of loops, and of those whose running time depends on the input."""
    by_data = sum(loop.kind != "counted" for loop in loops)
    if not by_data:
        return f"{len(loops):,}, with a fixed number of rounds" if loops else "none"
    how_many = "" if by_data == len(loops) else f"in {by_data:,} of them "
    return f"{len(loops):,}; {how_many}the number of rounds depends on the data"


def _length(items: Iterable[Any]) -> int:
    return sum(1 for _ in items)


# -- rules

Rule = Callable[[Survey], Iterator[CheckFinding]]


def _missing(seen: Survey) -> Iterator[CheckFinding]:
    missing = seen.missing()
    if missing:
        names = tuple(f"{name} ({count}×)" for name, count in missing.most_common())
        yield CheckFinding(SUSPICIOUS, "operators that are not known here; calling them fails", names)


_FILES: Final = frozenset({"aten::save", "aten::from_file"})


def _files(seen: Survey) -> Iterator[CheckFinding]:
    names = tuple(sorted(_FILES & seen.operators().keys()))
    if names:
        yield CheckFinding(SUSPICIOUS, "operators that read or write files; calling them is refused", names)


def _foreign(seen: Survey) -> Iterator[CheckFinding]:
    names = tuple(sorted({each.qualname for each in seen.classes if is_foreign(each)}))
    if names:
        yield CheckFinding(SUSPICIOUS, "classes that are not known here; their objects are kept as they are", names)


def _broken(seen: Survey) -> Iterator[CheckFinding]:
    for name, error in seen.broken:
        yield CheckFinding(SUSPICIOUS, f"{name} does not compile", (error.split("\n")[0],))


def _filled(seen: Survey) -> Iterator[CheckFinding]:
    """Classes with `__setstate__`; one that only unpacks its state, as quantized layers do, is nothing to look at."""
    by_name = {function.qualname: function for function in seen.functions}
    plain = [name for name in seen.filled if _only_unpacks(by_name.get(f"{name}.__setstate__"), set())]
    strange = tuple(name for name in seen.filled if name not in plain)
    if strange:
        yield CheckFinding(SUSPICIOUS, "code that runs while loading (__setstate__)", strange)
    if plain:
        yield CheckFinding(NOTE, "code that unpacks weights while loading (__setstate__)", _clipped(plain))


_UNPACKING: Final = frozenset(
    f"aten::{name}" for name in "eq ne __is__ __isnot__ __not__ __contains__ __getitem__ len format warn".split()
)


def _only_unpacks(function: object, known: set[int]) -> bool:
    """True if the code does no more than to take values apart, to store them, and to pack weights."""
    if not isinstance(function, Function):
        return False
    if id(function) in known:
        return True
    known.add(id(function))
    nodes = list(function.graph.all_nodes())
    calls = [node for node in nodes if node.kind in ("prim::CallMethod", "prim::CallFunction")]
    plain = all(node.kind in _UNPACKING or node.namespace in ("prim", "quantized") for node in nodes)
    loops = any(node.kind in ("prim::Loop", "prim::fork", "prim::Print") for node in nodes)
    return plain and not loops and all(_only_unpacks(callee_of(node), known) for node in calls)


def _loops(seen: Survey) -> Iterator[CheckFinding]:
    for kind, level, text in (
        ("endless", SUSPICIOUS, "loops that never end by themselves"),
        ("while", NOTE, "loops that run while a condition holds"),
        ("data", NOTE, "loops whose number of rounds depends on a value"),
    ):
        found = [loop.place or loop.function for loop in seen.loops() if loop.kind == kind]
        if found:
            yield CheckFinding(level, text, _clipped(found))


def _records(seen: Survey) -> Iterator[CheckFinding]:
    """Records that nothing reads: a place to hide things."""
    known = ("code/", "data/", "constants/", "tensors/", "extra/", ".data/", "libs/", "traced_inputs/")
    whole = {"data.pkl", "constants.pkl", "version", "byteorder", "model.json", "attributes.pkl", "bytecode.pkl"}
    whole |= {
        "libs.py",
        "libs.pkl",
        "traced_inputs.pkl",
        "mobile_debug_handles.pkl",
        ".format_version",
        ".storage_alignment",
    }
    strange = [name for name in seen.records if name not in whole and not name.startswith(known)]
    if strange:
        yield CheckFinding(SUSPICIOUS, "records that no program reads", _clipped(strange))
    extra = [name for name in seen.records if name.startswith("extra/")]
    if extra:
        yield CheckFinding(NOTE, "files that came along (extra files)", _clipped(extra))


def _rewrites(seen: Survey) -> Iterator[CheckFinding]:
    found = [
        f"{each.operator} is done by {each.upgrader}" + (f", {each.place}" if each.place else "")
        for each in seen.rewrites()
    ]
    if found:
        yield CheckFinding(NOTE, "operators that meant something else then, and keep that meaning", _clipped(found))


def _devices(seen: Survey) -> Iterator[CheckFinding]:
    found = seen.named_devices()
    if found:
        new = f"tsrepl fix --device cpu {shell_word(seen.identity.path)} -o cpu.pt"
        yield CheckFinding(NOTE, f"devices other than the CPU in the code; {new} changes them", _clipped(found))


def _large(seen: Survey) -> Iterator[CheckFinding]:
    """Tensors of a size that stands in the code, larger than any model needs."""
    found = []
    for kind in _MAKERS:
        for node in _nodes(seen, kind):
            size = _asked_for(node)
            if size > LARGE:
                found.append(f"{place_of(node)} {kind.partition('::')[2]} of {counted(size, 'byte')}".strip())
    if found:
        yield CheckFinding(SUSPICIOUS, "tensors larger than 1 GiB that the code asks for", _clipped(found))


_MAKERS: Final = tuple(f"aten::{name}" for name in "zeros ones empty full rand randn randint randperm arange".split())


def _asked_for(node: Node) -> int:
    """The bytes of the tensor, 0 where its size is no constant."""
    position = 1 if node.kind == "aten::randint" and len(node.inputs) > 6 else 0
    source = node.inputs[position].node if node.inputs else node
    if source.kind != "prim::ListConstruct":
        value = constant_value(node.inputs[position]) if node.inputs else None
        values = [value] if type(value) is int else list(value) if isinstance(value, (list, tuple)) else [None]
    else:
        values = [constant_value(each) for each in source.inputs]
    count = 1
    for each in values:
        count *= each if type(each) is int else 0
    dtype = next((DTYPE_BY_NUMBER.get(n) for n in map(constant_value, node.inputs[1:]) if type(n) is int), None)
    return count * (dtype.itemsize if dtype is not None else 4)


def _modes(seen: Survey) -> Iterator[CheckFinding]:
    """The effects of training mode, and chance where it is at work in the mode that the program is in."""
    modes = Modes(seen)
    active = [text for text, is_so in (("dropout is active", modes.dropping()),
                                       ("batch norm changes its statistics", modes.adapting())) if is_so]  # fmt: skip
    if active:
        training = mode_of(seen).startswith("training")
        heading = "training mode" if training else "trains in eval mode"
        yield CheckFinding(SUSPICIOUS if training else NOTE, f"{heading}: {', '.join(active)}")
    random = modes.random()
    if random:
        yield CheckFinding(NOTE, "results may differ from run to run (random operators)", _clipped(random))


def _numbers_that_are_none(seen: Survey) -> Iterator[CheckFinding]:
    """Weights that are broken, and those that hold infinity, as masks do."""
    broken, endless = [], []
    for path, _, tensor in seen.tensors():
        if tensor.dtype.category in ("float", "complex") and not tensor.is_meta:
            # A view may show the same numbers any number of times.
            array = min(tensor.array, tensor.memory.flat(), key=lambda each: int(each.size))
            if np.isnan(array).any():
                broken.append(path)
            elif np.isinf(array).any():
                endless.append(path)
    if broken:
        yield CheckFinding(SUSPICIOUS, "weights that hold NaN", _clipped(broken))
    if endless:
        yield CheckFinding(NOTE, "weights that hold infinity", _clipped(endless))


def _printing(seen: Survey) -> Iterator[CheckFinding]:
    found = [place_of(node) for kind in ("prim::Print", "aten::warn") for node in _nodes(seen, kind)]
    if found:
        yield CheckFinding(NOTE, "code that prints or warns", _clipped(found))


def _nodes(seen: Survey, kind: str) -> Iterator[Node]:
    for function in seen.functions:
        yield from function.graph.find_all_nodes(kind)


def _clipped(names: Iterable[str]) -> tuple[str, ...]:
    """The first few, each once."""
    every = list(dict.fromkeys(names))
    rest = len(every) - MOST_PLACES
    return (*every[:MOST_PLACES], *((f"and {rest} more",) if rest > 0 else ()))


_RULES: Final[tuple[Rule, ...]] = (
    _missing, _files, _foreign, _broken, _filled, _records, _large, _loops, _rewrites, _devices, _modes, _printing,
    _numbers_that_are_none,
)  # fmt: skip
