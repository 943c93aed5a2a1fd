"""Taps: what comes out of the parts of a module while it runs, and stopping there.

In: a module and patterns.  Out: values.

    with m.tap("encoder.*", "decoder:h*", "model.py:42") as taps:
        m(x)
    taps.values["encoder.0"]        what encoder.0 gave (the last time; taps.calls has all)
    m.run_until("encoder", x)       the same, and the rest of the call does not run

Three kinds of patterns, of which `*` and `?` match what they match in file names:

- `encoder.*`: submodules by their paths, and what their `forward` returns; `""` is the module itself, `encoder.mask()`
  another method of a submodule;
- `decoder:h*`: variables of the methods of a submodule, by name; `:x` is one of the module's own;
- `model.py:42`: what is computed in a line of the author's file, `model.py:*` in all lines; lines of the archive's own
  code are asked for by its record, `code/__torch__/model.py:42`.

It works over the interpreter's hooks: while a tap is open, the calls of this thread are interpreted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Any, Final

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.executor.bytecode.instructions import ASSIGN, CALL, FORK, LOAD, OPERATE, RETURN, WAIT, Instruction
from engine.executor.calls.to_python import to_python
from engine.executor.interpreter.interpreter import Frame, InterpreterState
from engine.executor.plans.switches import watching
from engine.ir.graph import Value
from engine.lang.errors import ArgumentError, did_you_mean
from engine.lang.types import TupleType, Type
from engine.serialize.container.qualified_names import CODE_FOLDER
from engine.torch.modules import ScriptModule

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
        """The path of the submodules that it is about."""
        return self.path.rpartition(".")[0] if self.path.endswith("()") else self.path

    def asks_for_result(self, place: str) -> bool:
        return not self.name and not self.line and fnmatchcase(place, self.path)

    def asks_for_values(self, paths: Sequence[str]) -> bool:
        """Does it ask for something inside of a method of a module that has these paths?"""
        return bool(self.line) or (bool(self.name) and any(fnmatchcase(path, self.path) for path in paths))

    def place_of(self, value: Value, instruction: Instruction, path: str) -> str:
        """Under which name the value, computed by the instruction, is kept; "" if the pattern is not about it."""
        name = variable_name(value)
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
    """The values that came out at the tapped places, while it is open: `values` the last, `calls` all of each place.

    Tensors are copies that nothing later writes to, unless `copy` is False; then they are the program's own.  Values
    are as Python has them; with `raw`, as programs do, and `types` tells their types.
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
        self._frames: dict[int, _Watched] = {}
        self._watching: AbstractContextManager[None] | None = None
        self._check()

    @property
    def values(self) -> dict[str, Any]:
        """What came out at each place the last time."""
        return {place: found[-1] for place, found in self.calls.items()}

    @property
    def unreached(self) -> list[str]:
        """The patterns for which nothing has come yet."""
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
        """Raises ArgumentError for a path that no submodule has."""
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
        """Find out whose method is called, and which patterns are about it."""
        owner = frame.registers[0] if frame.code.graph.inputs else None
        paths = self._paths.get(id(owner), [])
        method = "" if frame.code.name == _MAIN else f"{frame.code.name}()"
        places = [".".join(filter(None, (path, method))) for path in paths]
        place = next((each for each in places if any(p.asks_for_result(each) for p in self._patterns)), None)
        patterns = [pattern for pattern in self._patterns if pattern.asks_for_values(paths)]
        if place is not None or patterns:
            self._frames[id(frame)] = _Watched(frame, place, paths[0] if paths else "", patterns)

    def _returns(self, state: InterpreterState, watched: _Watched, instruction: Instruction) -> None:
        del self._frames[id(watched.frame)]
        if watched.place is None:
            return
        place, frame = watched.place, watched.frame
        self._reached.update(pattern.text for pattern in self._patterns if pattern.asks_for_result(place))
        values = [frame.registers[register] for register in instruction.inputs]
        types = [output.type for output in frame.code.graph.outputs]
        self._keep(state, place, values[0] if len(values) == 1 else tuple(values), types)

    def _computed(self, state: InterpreterState, watched: _Watched, instruction: Instruction) -> None:
        """An instruction of the frame is done: keep its results if a pattern asks for them."""
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
        kept = _copied(value) if self._copy else value
        self.calls.setdefault(place, []).append(convert(kept) if convert else kept)
        if self._stop:
            state.leave()
            raise _Reached


@dataclass(slots=True, eq=False)
class _Watched:
    """A call under way that a tap is interested in; `place` is where its result is kept."""

    frame: Frame
    place: str | None
    path: str
    patterns: list[Pattern] = field(default_factory=list)
    pending: Instruction | None = None


def variable_name(value: Value) -> str:
    """The name its author gave a value, without the number that tells it from others; "" when it has none."""
    stem, dot, number = value.name.rpartition(".")
    return stem if dot and number.isdecimal() else value.name


def paths_of(root: Object) -> dict[int, list[str]]:
    """Every module inside, by identity, with its paths; the root's is "" ."""
    found: dict[int, list[str]] = {}

    def walk(module: Object, path: str) -> None:
        known = found.setdefault(id(module), [])
        known.append(path)
        if len(known) > 1:
            return  # what lies in a module that is in two places is named after the first
        for name, inner in _submodules(module):
            walk(inner, f"{path}.{name}" if path else name)

    walk(root, "")
    return found


def _submodules(module: Object) -> Iterator[tuple[str, Object]]:
    for attribute, value in zip(module.type.attributes, module.slots, strict=False):
        if isinstance(value, Object) and value.type.is_module:
            yield attribute.name, value


def _copied(value: Any) -> Any:
    """The value with its tensors copied."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, list):
        return [_copied(each) for each in value]
    if isinstance(value, tuple):
        return tuple(_copied(each) for each in value)
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return value


# -- what modules offer


def tap(module: ScriptModule, *patterns: str, copy: bool = True) -> Taps:
    """Taps to be opened with `with`; see the top of this file.  Raises ArgumentError for a path that is not there."""
    return Taps(module._ivalue, patterns, copy=copy)


def run_until(module: ScriptModule, pattern: str, *args: Any, **kwargs: Any) -> Any:
    """Call the module with the arguments, up to the first value at the tapped place, and return that.

    Raises ArgumentError when the call ends before it came there; what it did to the module until then is done.
    """
    taps = Taps(module._ivalue, (pattern,), stop=True)
    stopped_at(taps, pattern, lambda: module(*args, **kwargs))
    return next(iter(taps.values.values()))


def stopped_at(taps: Taps, pattern: str, call: Callable[[], object]) -> str:
    """Run the call up to the first value of the taps, which stop it; its place.  Raises ArgumentError without one."""
    try:
        with taps:
            call()
    except _Reached:
        return next(iter(taps.calls))
    raise ArgumentError(
        f"the call ended and never came to '{pattern}'", hints=("a tap on '*' shows which submodules are called",)
    )


def _near(path: str, known: list[str]) -> tuple[str, ...]:
    """The nearest path, or else a few of those that there are."""
    outer = [each for each in known if each and each.count(".") < 2][:MOST_NAMED]
    return did_you_mean(path, known) or ((f"there is {', '.join(outer)}",) if outer else ())
