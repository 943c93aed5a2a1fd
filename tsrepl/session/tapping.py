"""Taps into a running module, stopping at a place in it, and cutting a part out.

In: a module, places (see `engine.torch.jit.probing.taps`), and for taps the expression that calls it.  Out: replies.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.lang.types import STR, TENSOR, DictType, OptionalType, TensorType
from engine.torch.jit.probing.cutting import cut as cut_out
from engine.torch.jit.probing.taps import Taps, stopped_at
from tsrepl.session.failures import UsageError
from tsrepl.session.files import words_of
from tsrepl.session.modules import module_node
from tsrepl.session.replies import Reply, TapReply, TapRow, TextReply
from tsrepl.session.values import RESULT, described
from tsrepl.session.workspace import LAST, Workspace

CALL: Final = "--"
ARROW: Final = "->"
PART: Final = "part"
"""The name of what is cut out, unless another is given."""


class _WatchedPlace(NamedTuple):
    """`m pattern ... -- call`, read."""

    module: Object
    patterns: tuple[str, ...]
    call: str


def tap(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%tap m pattern ... -- call`."""
    watched = _read(workspace, argument, "%tap m pattern ... -- m(x)")
    taps = Taps(watched.module, watched.patterns, raw=True)
    with taps:
        result, _ = workspace.evaluate(watched.call)
    rows = tuple(TapRow(place, len(found), described(found[-1])) for place, found in taps.calls.items())
    named = bool(rows) and all(value is None or isinstance(value, Tensor) for value in taps.values.values())
    if named:
        has_none = any(value is None for value in taps.values.values())
        element = OptionalType(TENSOR) if has_none else TENSOR
        workspace.bind(LAST, taps.values, DictType(STR, element))
    shown = "" if "" in taps.calls else described(result, RESULT)
    yield TapReply(watched.call, rows, shown, LAST if named else "", tuple(taps.unreached))


def run_until(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%run_until m pattern -- call`."""
    usage = "%run_until m pattern -- m(x)"
    watched = _read(workspace, argument, usage)
    if len(watched.patterns) != 1:
        raise UsageError("%run_until wants one place to stop at", hints=(f"write {usage}",))
    taps = Taps(watched.module, watched.patterns, raw=True, stop=True)
    place = stopped_at(taps, watched.patterns[0], lambda: workspace.evaluate(watched.call))
    value, type = taps.values[place], taps.types[place]
    kept = TENSOR if isinstance(type, TensorType) else type
    yield TextReply(f"stopped at {place}", "done")
    workspace.bind(LAST, value, kept)
    yield workspace.show(value, kept)


def cut(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%cut m [input ...] -> output ... [as name]`."""
    words, name = words_of(argument), PART
    if len(words) > 2 and words[-2] == "as":
        words, name = words[:-2], words[-1]
    if ARROW not in words or words.index(ARROW) in (0, len(words) - 1):
        raise UsageError(
            "%cut wants a module, and the places where the cut ends", hints=("write %cut m encoder -> decoder as part",)
        )
    if not name.isidentifier():
        raise UsageError(f"'{name}' cannot be a name")
    at = words.index(ARROW)
    part = cut_out(_module(workspace, words[0]), words[1:at], words[at + 1 :])
    workspace.bind(name, part, part.type)
    node = module_node(name, part)
    yield TextReply(f"cut {name} out of {words[0]}", "done")
    hint = f"type {name} to see it, %schema {name} for its arguments, %save {name} {name}.pt to keep it"
    yield TextReply(hint if node.parameters else f"it has no parameters; {hint}")


def _read(workspace: Workspace, argument: str, usage: str) -> _WatchedPlace:
    """Raises UsageError unless the argument is written as the usage says."""
    left, separator, call = f"{argument} ".partition(f" {CALL} ")
    words = words_of(left)
    if not separator or not call.strip():
        raise UsageError(f"say which call to watch, behind {CALL}", hints=(f"write {usage}",))
    if len(words) < 2:
        raise UsageError("name a module, then the places in it", hints=(f"write {usage}",))
    return _WatchedPlace(_module(workspace, words[0]), tuple(words[1:]), call.strip())


def _module(workspace: Workspace, path: str) -> Object:
    """The module `m` or `m.encoder`.  Raises UsageError."""
    value: Any = workspace.lookup(path)
    if not isinstance(value, Object) or not value.type.is_module:
        raise UsageError(f"'{path}' is no module", hints=("%load reads one from an archive",))
    return value
