"""Differences between two model files: code, attributes, weights by tensor.

In: two paths.  Out: a `Comparison`.  Programs are compared by the paths of their modules, so that classes may have
other numbers in their names; functions by their code, and where that differs by their graphs without names.  Weights
may also be compared between files that hold nothing else, or with those of a program.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np

from engine.aten.values import xp
from engine.aten.values.ivalue import CustomObject, EnumValue, Object
from engine.aten.values.quantizer import integers_of
from engine.aten.values.submodules import joined
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import Array
from engine.ir.clone import copy_graph
from engine.ir.unit import Function
from engine.lang.counts import counted
from engine.lang.errors import EngineError
from engine.lang.records import dataclass
from engine.serialize.code.source_export import function_code
from engine.serialize.identify.identify import Identity, identify
from engine.serialize.inspect.survey import Survey, numbers_of, survey
from engine.serialize.inspect.weights import Weight, open_weights

_MANGLED: Final = re.compile(r"\b___torch_mangle_\d+\.")
LONGEST_PART: Final = 2000
"""Characters of a value inside another."""


@dataclass(frozen=True, slots=True)
class CodeChange:
    """A function that differs; `paths` are all the places where the same change stands.

    `before` or `after` is None where only one file has it; `same_graph` tells that nothing but names differs.
    """

    paths: tuple[str, ...]
    before: str | None
    after: str | None
    same_graph: bool = False


@dataclass(frozen=True, slots=True)
class ValueChange:
    """An attribute, constant or fact; None where a file has it not."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class WeightChange:
    """A tensor that differs: `before` and `after` are dtype and shape, None where a file has it not.

    `most` is the largest absolute difference of two numbers, `different` how many of the `count` numbers differ.
    """

    path: str
    before: str | None
    after: str | None
    most: float | None = None
    different: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    before: Identity
    after: Identity
    facts: tuple[ValueChange, ...]
    code: tuple[CodeChange, ...]
    values: tuple[ValueChange, ...]
    weights: tuple[WeightChange, ...]
    compared: int = 0
    """Number of tensors in both files."""

    @property
    def is_same(self) -> bool:
        return not (self.facts or self.code or self.values or self.weights)


def compare(before: str | os.PathLike[str], after: str | os.PathLike[str]) -> Comparison:
    """The differences of `after` from `before`.  Raises ArchiveError for a file that cannot be compared."""
    with _opened(before) as a, _opened(after) as b:
        kinds = [ValueChange("kind of file", a.identity.title, b.identity.title)]
        facts = kinds if a.identity.title != b.identity.title else []
        codes = _code_changes(a.functions(), b.functions()) if a.seen and b.seen else []
        values = list(_value_changes(a.values(), b.values())) if a.seen and b.seen else []
        weights = list(_weight_changes(a.weights, b.weights))
        both = len(a.weights.keys() & b.weights.keys())
        return Comparison(a.identity, b.identity, tuple(facts), tuple(codes), tuple(values), tuple(weights), both)


@dataclass(slots=True, eq=False)
class _Side:
    """One of the two files: tensors by name, and the program if it is one."""

    identity: Identity
    weights: dict[str, tuple[str, Callable[[], Array]]]
    seen: Survey | None = None
    close: Callable[[], object] = lambda: None

    def __enter__(self) -> _Side:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def functions(self) -> dict[str, Function]:
        """Every method by the path of its module, and every function by its name."""
        assert self.seen is not None
        found: dict[str, Function] = {}
        methods: set[int] = set()
        for path, module in self.seen.modules():
            for name, method in module.type.methods.items():
                if isinstance(method, Function):
                    found[joined(path, name)] = method
                    methods.add(id(method))
        rest = [function for function in self.seen.functions if id(function) not in methods]
        return found | {_plain(function.qualname): function for function in rest}

    def values(self) -> dict[str, str]:
        """Attributes that are no tensors and no modules, constants, and the types of modules, by path."""
        assert self.seen is not None
        found: dict[str, str] = {}
        for path, module in self.seen.modules():
            found[joined(path, "(class)")] = _plain(module.type.qualname)
            found |= {joined(path, name): _shown(value) for name, value in module.type.constants.items()}
            for attribute, value in zip(module.type.attributes, module.slots, strict=False):
                if not isinstance(value, Tensor) and not (isinstance(value, Object) and value.type.is_module):
                    found[joined(path, attribute.name)] = _shown(value)
        extra = {name: counted(size, "byte") for name, size in self.seen.records.items() if name.startswith("extra/")}
        return found | extra


def _opened(path: str | os.PathLike[str]) -> _Side:
    found = identify(path)
    if not found.is_program:
        weights = open_weights(path)
        entries = {n: (f"{w.dtype} {_sizes(w.shape)}", _numbers_of(w)) for n, w in weights.entries.items()}
        return _Side(found, entries, close=weights.close)
    seen = survey(path)
    tensors: _Entries = {
        path: (f"{t.dtype.name} {_sizes(t.shape)}", partial(numbers_of, path, t) if not t.is_meta else _none)
        for path, _, t in seen.tensors()
    }
    return _Side(found, tensors, seen)


def _numbers_of(weight: Weight) -> Callable[[], Array]:
    """A function that reads its numbers; a tensor on the device meta has none."""
    return weight.array if weight.has_numbers else _none


def _none() -> Array:
    return np.empty(0)


def _sizes(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "scalar"


def _plain(text: str) -> str:
    """Without the numbers that keep classes of one name apart."""
    return _MANGLED.sub("", text)


def _shown(value: Any) -> str:
    """The value on one line, the same for equal values."""
    return _Texts().of(value)


@dataclass(slots=True, eq=False)
class _Texts:
    """Texts of values; a shared one is written once, and a long one that is part of another by its checksum."""

    known: dict[int, str] = field(default_factory=dict)

    def of(self, value: Any) -> str:
        if not isinstance(value, (list, tuple, dict, Object, Tensor)):
            return f"{_plain(value.type.qualname)}.{value.name}" if isinstance(value, EnumValue) else repr(value)
        if id(value) not in self.known:
            self.known[id(value)] = "…"  # an object may hold itself
            self.known[id(value)] = self._text(value)
        return self.known[id(value)]

    def _text(self, value: Any) -> str:
        if isinstance(value, Tensor):
            return _tensor_text(value)
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self._part(k)}: {self._part(v)}" for k, v in value.items()) + "}"
        if isinstance(value, CustomObject):
            return f"{value.type.name}({self._part(value.state)})"
        if isinstance(value, Object):
            pairs = zip(value.type.attributes, value.slots, strict=False)
            inside = ", ".join(f"{attribute.name}={self._part(each)}" for attribute, each in pairs)
            return f"{value.type.name}({inside})"
        marks = "[]" if isinstance(value, list) else ("(", ",)" if len(value) == 1 else ")")
        return marks[0] + ", ".join(map(self._part, value)) + marks[1]

    def _part(self, value: Any) -> str:
        text = self.of(value)
        return text if len(text) <= LONGEST_PART else f"{text[:40]}… #{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _tensor_text(tensor: Tensor) -> str:
    """Its first numbers, and the sum of all; a view may show the same ones any number of times."""
    if tensor.is_meta:
        return f"{tensor.dtype.name} {_sizes(tuple(tensor.shape))} on meta"
    first = ", ".join(str(each) for each in islice(integers_of(tensor.array).flat, 4))
    numbers = min(tensor.array, tensor.memory.flat(), key=lambda each: int(each.size))
    digest = hashlib.sha256(np.ascontiguousarray(numbers).tobytes()).hexdigest()
    more = ", …" if tensor.numel() > 4 else ""
    return f"{tensor.dtype.name} {_sizes(tuple(tensor.shape))} [{first}{more}] #{digest[:8]}"


# -- code


def _code_changes(before: dict[str, Function], after: dict[str, Function]) -> list[CodeChange]:
    """Functions that differ; the same change in several places is one."""
    found: dict[tuple[str | None, str | None, bool], list[str]] = {}
    for path in [*before, *(path for path in after if path not in before)]:
        old, new = (_text_of(side.get(path)) for side in (before, after))
        if old == new:
            continue
        same = old is not None and new is not None and _graph_of(before[path]) == _graph_of(after[path])
        found.setdefault((old, new, same), []).append(path)
    return [CodeChange(tuple(paths), old, new, same) for (old, new, same), paths in found.items()]


def _text_of(function: Function | None) -> str | None:
    if function is None:
        return None
    try:
        return _plain(function_code(function))
    except EngineError as error:
        return f"(does not compile: {str(error).splitlines()[0]})\n"


def _graph_of(function: Function) -> str:
    """The graph's text, values called by their numbers."""
    try:
        graph = copy_graph(function.graph)
    except EngineError as error:
        return str(error)
    values = [*graph.inputs, *(value for node in graph.all_nodes() for value in node.outputs)]
    values += [value for node in graph.all_nodes() for block in node.blocks for value in block.inputs]
    for value in values:
        value.name = ""
    renumbered: dict[str, str] = {}
    # Numbers tell the order in which values were made; what counts is the order in which they stand.
    return re.sub(r"%\d+", lambda m: renumbered.setdefault(m[0], f"%v{len(renumbered)}"), _plain(str(graph)))


# -- values and weights


def _value_changes(before: dict[str, str], after: dict[str, str]) -> Iterator[ValueChange]:
    for path in [*before, *(path for path in after if path not in before)]:
        if before.get(path) != after.get(path):
            yield ValueChange(path, before.get(path), after.get(path))


_Entries = dict[str, tuple[str, Callable[[], Array]]]


def _weight_changes(before: _Entries, after: _Entries) -> Iterator[WeightChange]:
    for path in [*before, *(path for path in after if path not in before)]:
        old, new = before.get(path), after.get(path)
        if old is None or new is None:
            yield WeightChange(path, old[0] if old else None, new[0] if new else None)
            continue
        a, b = old[1](), new[1]()
        if a.shape != b.shape:
            yield WeightChange(path, old[0], new[0])
            continue
        different = _differing(a, b)
        if old[0] != new[0] or different.any():
            yield WeightChange(path, old[0], new[0], _largest(a, b, different), int(different.sum()), int(a.size))


def _differing(a: Array, b: Array) -> Array:
    """A mask of the positions that differ; NaN equals NaN, so that a file equals itself."""
    with np.errstate(all="ignore"):
        return np.asarray((a != b) & ~((a != a) & (b != b)))


def _largest(a: Array, b: Array, different: Array) -> float:
    """The largest distance of two numbers that differ: NaN where one of them is NaN, 0 where none do."""
    a, b = a[different], b[different]
    if not a.size:
        return 0.0
    if a.dtype == b.dtype and a.dtype in xp.INTEGERS:
        # Floats would take near numbers of 64 bits for equal.
        return float((np.maximum(a, b).astype(np.uint64) - np.minimum(a, b).astype(np.uint64)).max())
    wide: Any = np.complex128 if not xp.COMPLEX.isdisjoint((a.dtype, b.dtype)) else np.float64
    with np.errstate(all="ignore"):
        return float(np.abs(a.astype(wide) - b.astype(wide)).max())
