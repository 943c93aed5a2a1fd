"""Taps: the values inside a module while it runs, and stopping there.

In: a module and patterns.  Out: values.

    with m.tap("encoder.*", "decoder:h*", "model.py:42") as taps:
        m(x)
    taps.values["encoder.0"]        the last result of encoder.0 (taps.calls has all)
    m.run_until("encoder", x)       the same value, without running the rest of the call

Three kinds of patterns, in which `*` and `?` match as in file names:

- `encoder.*`: the results of `forward` of the submodules with these paths; `""` is the module itself, `encoder.mask()`
  another method of a submodule, `encoder.*()` all of them;
- `decoder:h*`: variables of the methods of a submodule, by name; `:x` is one of the module's own;
- `model.py:42`: the values computed in a line of the author's file, `model.py:*` in all lines; lines of the archive's
  own code are named by its record, `code/__torch__/model.py:42`.

Taps use the interpreter's hooks: while a tap is open, the calls of this thread are interpreted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Any, Final

from engine.aten.values.ivalue import Object
from engine.executor.bytecode.instructions import ASSIGN, CALL, FORK, LOAD, OPERATE, RETURN, WAIT, Instruction
from engine.executor.conversion.to_python import to_python
from engine.executor.debugging.evaluating import copied
from engine.executor.interpreter.interpreter import Frame, InterpreterState
from engine.executor.plans.switches import watching
from engine.ir.graph import Value
from engine.lang.counts import some_of
from engine.lang.errors import ArgumentError, did_you_mean
from engine.lang.records import dataclass
from engine.lang.types import TupleType, Type
from engine.serialize.container.qualified_names import CODE_FOLDER

_COMPUTE: Final = (OPERATE, CALL, ASSIGN, WAIT, FORK)
_NOTHING: Final = ("prim::Uninitialized",)
_MAIN: Final = "forward"
MOST_NAMED: Final = 8


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern: `path` of submodules; for variables also their `name`; for lines the `file` and the `line`."""

    text: str
    path: str = ""
    name: str = ""
    file: str = ""
    line: str = ""

    @staticmethod
    def of(text: str) -> Pattern:
        left, colon, right = text.rpartition(":")
        if not colon:
            return Pattern(text, path=text)
        if right.isdecimal() or left.endswith(".py"):
            return Pattern(text, file=left, line=right)
        return Pattern(text, path=left, name=right)

    @property
    def owner(self) -> str:
        """The path pattern of the submodules that are tapped."""
        return self.path.rpartition(".")[0] if self.path.endswith("()") else self.path

    def asks_for_result(self, place: str) -> bool:
        """True if the pattern taps results there; those of methods other than forward only if it says so: `*()`."""
        is_result = not self.name and not self.line and place.endswith("()") == self.path.endswith("()")
        return is_result and fnmatchcase(place, self.path)

    def asks_for_values(self, paths: Sequence[str]) -> bool:
        """True if the pattern taps variables or lines in methods of a module with these paths."""
        return bool(self.line) or (bool(self.name) and any(fnmatchcase(path, self.path) for path in paths))

    def place_of(self, value: Value, instruction: Instruction, path: str) -> str:
        """The name under which a value computed by the instruction is recorded; "" if the pattern does not match it."""
        name = value.variable_name
        if self.name:
            return f"{path}:{name}" if name and fnmatchcase(name, self.name) else ""
        node, range = instruction.node, instruction.range
        if node is None or range is None or node.kind in _NOTHING or not (name or instruction.opcode != ASSIGN):
            return ""
        place = range if self.file.startswith(CODE_FOLDER) else range.original()
        if not fnmatchcase(str(place.line), self.line) or not fnmatchcase(f"/{place.filename}", f"*/{self.file}"):
            return ""
        return f"{place.filename.rpartition('/')[2]}:{place.line} {name or node.kind}"


class _Reached(Exception):
    """Raised by a tap that stops the run."""


class Taps(AbstractContextManager["Taps"]):
    """The values recorded at the tapped places while it is open: `values` the last, `calls` all of each place.

    Tensors are copies, unless `copy` is False; then they are the program's own.  Values are converted to Python; with
    `raw` they are the program's values, and `types` has their types.
    """

    def __init__(
        self, root: Object, patterns: Sequence[str], *, copy: bool = True, stop: bool = False, raw: bool = False
    ) -> None:
        self.calls: dict[str, list[Any]] = {}
        self.types: dict[str, Type] = {}
        self._reached: set[str] = set()
        self._paths = paths_of(root)
        self._patterns = [Pattern.of(text) for text in patterns]
        self._copy, self._stop, self._raw = copy, stop, raw
        self._frames: dict[int, _TappedCall] = {}
        self._watching: AbstractContextManager[None] | None = None
        self._check()

    @property
    def values(self) -> dict[str, Any]:
        """Place -> its last value."""
        return {place: found[-1] for place, found in self.calls.items()}

    @property
    def unreached(self) -> list[str]:
        """The patterns without a value so far."""
        return [pattern.text for pattern in self._patterns if pattern.text not in self._reached]

    def __enter__(self) -> Taps:
        self._watching = watching(self._before_instruction)
        self._watching.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._watching is not None
        self._frames.clear()
        self._watching.__exit__(kind, error, traceback)

    def __repr__(self) -> str:
        listed = ", ".join(f"{place!r}: {len(found)}" for place, found in self.calls.items())
        return f"<Taps {listed or 'nothing yet'}>"

    def _check(self) -> None:
        """Raise ArgumentError for a path that no submodule has."""
        if not self._patterns:
            raise ArgumentError("say where to tap", hints=('m.tap("layer*") taps the submodules that match',))
        known = list(dict.fromkeys(path for paths in self._paths.values() for path in paths))
        for pattern in self._patterns:
            if not pattern.line and not any(fnmatchcase(path, pattern.owner) for path in known):
                raise ArgumentError(f"no submodule matches '{pattern.text}'", hints=_near(pattern.owner, known))

    # -- the hook

    def _before_instruction(self, state: InterpreterState) -> None:
        frame = state.frame
        instruction = frame.instruction
        if instruction.opcode == LOAD:
            self._begin(frame)
            return
        watched = self._frames.get(id(frame))
        if watched is None:
            return
        if watched.pending is not None:
            self._computed(state, watched, watched.pending)
            watched.pending = None
        if instruction.opcode == RETURN:
            self._returns(state, watched, instruction)
        elif watched.patterns and instruction.opcode in _COMPUTE:
            watched.pending = instruction

    def _begin(self, frame: Frame) -> None:
        """Determine the module of a method call that begins, and the patterns that match it."""
        paths = self._paths.get(id(_owner(frame)), [])
        method = "" if frame.code.name == _MAIN else f"{frame.code.name}()"
        places = [".".join(filter(None, (path, method))) for path in paths]
        place = next((each for each in places if any(p.asks_for_result(each) for p in self._patterns)), None)
        patterns = [pattern for pattern in self._patterns if pattern.asks_for_values(paths)]
        if place is not None or patterns:
            self._frames[id(frame)] = _TappedCall(frame, place, paths[0] if paths else "", patterns)

    def _returns(self, state: InterpreterState, watched: _TappedCall, instruction: Instruction) -> None:
        del self._frames[id(watched.frame)]
        if watched.place is None:
            return
        place, frame = watched.place, watched.frame
        self._reached.update(pattern.text for pattern in self._patterns if pattern.asks_for_result(place))
        values = [frame.registers[register] for register in instruction.inputs]
        types = [output.type for output in frame.code.graph.outputs]
        self._keep(state, place, values[0] if len(values) == 1 else tuple(values), types)

    def _computed(self, state: InterpreterState, watched: _TappedCall, instruction: Instruction) -> None:
        """Record the results of an executed instruction if a pattern matches them."""
        frame = watched.frame
        for register in instruction.outputs:
            value = frame.code.values[register]
            if value is not None:
                for pattern in watched.patterns:
                    place = pattern.place_of(value, instruction, watched.path)
                    if place:
                        self._reached.add(pattern.text)
                        self._keep(state, place, frame.registers[register], [value.type])

    def _keep(self, state: InterpreterState, place: str, value: Any, types: list[Type]) -> None:
        type = self.types[place] = types[0] if len(types) == 1 else TupleType(tuple(types))
        convert: Callable[[Any], Any] | None = None if self._raw else to_python(type)
        kept = copied(value) if self._copy else value
        self.calls.setdefault(place, []).append(convert(kept) if convert else kept)
        if self._stop:
            state.leave()
            raise _Reached


@dataclass(slots=True, eq=False)
class _TappedCall:
    """A tapped call in progress; its result is recorded under `place`."""

    frame: Frame
    place: str | None
    path: str
    patterns: list[Pattern] = field(default_factory=list)
    pending: Instruction | None = None


def _owner(frame: Frame) -> Object | None:
    """The module whose method the frame runs: functions, entries at a prompt among them, may take modules, too."""
    value = frame.registers[0] if frame.code.graph.inputs else None
    return value if isinstance(value, Object) and frame.code.name in value.type.methods else None


def paths_of(root: Object) -> dict[int, list[str]]:
    """Id of each module inside the root -> its paths; the root's is ""."""
    found: dict[int, list[str]] = {}

    def walk(module: Object, path: str) -> None:
        known = found.setdefault(id(module), [])
        known.append(path)
        if len(known) > 1:
            return  # the parts of a module with two paths are named after the first
        for name, inner in _submodules(module):
            walk(inner, f"{path}.{name}" if path else name)

    walk(root, "")
    return found


def _submodules(module: Object) -> Iterator[tuple[str, Object]]:
    for attribute, value in zip(module.type.attributes, module.slots, strict=False):
        if isinstance(value, Object) and value.type.is_module:
            yield attribute.name, value


def stopped_at(taps: Taps, pattern: str, call: Callable[[], object]) -> str:
    """Run the call until the first tapped value stops it, and return its place.  Raises ArgumentError if none does."""
    try:
        with taps:
            call()
    except _Reached:
        return next(iter(taps.calls))
    raise ArgumentError(
        f"the call ended and never came to '{pattern}'", hints=("a tap on '*' shows which submodules are called",)
    )


def _near(path: str, known: list[str]) -> tuple[str, ...]:
    """Hints with the most similar path, or else a few of the known ones."""
    outer = [each for each in known if each and each.count(".") < 2]
    return did_you_mean(path, known) or ((f"there is {some_of(outer, MOST_NAMED)}",) if outer else ())
