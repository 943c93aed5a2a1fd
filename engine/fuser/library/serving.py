"""Operators and methods that the library serves.

In: operators as they are first called (`HOOKS.native`), and members of `Tensor` as they are first used
(`HOOKS.native_member`).  Out: builtins of the library's stubs in their slots, one for each form of call, which hand
what they do not take to the next and the last to the function in Python; that one is compiled when it is first needed.
In mode "off" the functions in Python serve.  Plans ask for the builtins of operators on bare arrays (`array_entry`).

While the library is being made, what it has so far serves; operators that were called before follow as parts come.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from types import FunctionType
from typing import Any, Final

from engine.aten.dispatch import overload_cache, table
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.results import python_result
from engine.aten.python import binding
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.fuser.backend import tiering
from engine.fuser.backend.cpython_abi import AbiError
from engine.fuser.backend.symbols import PARALLEL, MachineError, address_of
from engine.fuser.images.objects import ImageError
from engine.fuser.library import forms as of_forms
from engine.fuser.library import image_files, key, store
from engine.fuser.library.descriptors import Recorded, Words, builtin, descriptor, of_method, process_words
from engine.fuser.library.forms import LINES, Form, Given
from engine.fuser.library.histories import fill, recorded
from engine.fuser.library.words import CONVERSIONS, DIMENSIONS, PIECES, PROCESS, TYPES
from engine.fuser.stubs.methods import Method, method
from engine.lang.records import dataclass

Function = Callable[..., Any]
Described = Sequence[tuple[Form, Words]]
"""Forms, and the words that stubs read of them."""


@dataclass(slots=True)
class _Parts:
    """The parts so far: their lines by operator, and what was read there of operators, by what asked.

    `described`: with hooks, on bare arrays.  `entries`: builtins on bare arrays, by what they hand calls on to.
    """

    lines: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    forms: dict[Op, Sequence[Form]] = field(default_factory=dict)
    described: dict[tuple[Op, bool, bool], Described] = field(default_factory=dict)
    entries: dict[tuple[Op, Function], Function] = field(default_factory=dict)


@dataclass(slots=True)
class _State:
    """`begun`: operators that were called, by name; `methods`: those that take the place of members of tensors."""

    begun: dict[str, Op] = field(default_factory=dict)
    methods: dict[str, Method] = field(default_factory=dict)
    known: _Parts = field(default_factory=_Parts)
    parts: int = 0
    """The number of parts when the lines were read."""
    watcher: threading.Thread | None = None
    has_all: bool = False
    """True once no more parts come."""


_STATE: Final = _State()

# ------------------------------------------------------------------ operators


def serve(op: Op) -> bool:
    """Let the library serve calls of the operator; false where it cannot."""
    _STATE.begun[op.qualified_name] = op
    if tiering.mode() == "off":
        return False
    try:
        take_parts()
        return _serve(op)
    except (AbiError, MachineError, ImageError):
        return False


def _serve(op: Op) -> bool:
    """The same; raises AbiError or MachineError where there are no stubs to be had."""
    if not _forms(op):
        return False

    def chained(following: Function) -> Function:
        return _chained(op.name, _known(op, is_hooked=True), following)

    def python(*args: Any) -> Any:
        """The first call that is Python's, which compiles its function."""
        made = op.compiled
        if tiering.mode() != "off":
            op.take(chained(made.run))
        return made.run(*args)

    def body(*args: Any) -> Any:
        return op.compiled.body(*args)

    is_made_of_others = op.python is not None or op.is_composed  # which look at hooks themselves
    op.take(chained(python), body if is_made_of_others else _BelowHooks(op, body))
    return True


@dataclass(eq=False, slots=True)
class _BelowHooks:
    """Calls of an operator below hooks, which most programs make none of, until their builtins are made."""

    op: Op
    following: Function

    def made(self) -> Function:
        """The builtins."""
        return _chained(self.op.name, _known(self.op, is_hooked=False), self.following)

    def __call__(self, *args: Any) -> Any:
        made = self.made()
        if self.op.body is self:
            self.op.body = made
        return made(*args)


def _chained(name: str, described: Described, following: Function) -> Function:
    """Builtins of these forms, the first of which hands on what it does not take, and at last to `following`."""
    for form, words in reversed(described):
        following = builtin(name.removeprefix("aten::"), _address(form.stub), words, following)
    return following


def _described(op: Op, forms: Sequence[Form], *, is_hooked: bool, is_bare: bool = False) -> Described:
    def words(form: Form, how: Recorded | None, pair: Sequence[Words] = ()) -> Words:
        return descriptor(form, _address, how, target=_target(op), is_hooked=is_hooked, is_bare=is_bare, pair=pair)

    def of_pair(form: Form) -> list[Words]:
        """The words of both operators, which nothing records."""
        return [words(_as_called(op, form, _entry(name)), None) for name in form.pair]

    return [(form, words(form, _recorded(op, form) if is_hooked else None, pair=of_pair(form))) for form in forms]


def _recorded(op: Op, form: Form) -> Recorded | None:
    return recorded(_entry(form.first_of) if form.first_of else op, form)


def _as_called(op: Op, form: Form, other: Op) -> Form:
    """The form of another operator that takes the arguments of this form, as far as it has them."""
    names = [a.name for a in op.schema.arguments]
    for each in _forms(other):
        theirs = dict(zip((a.name for a in other.schema.arguments), each.given, strict=True))
        both = [(given, theirs[name]) for name, given in zip(names, form.given, strict=True) if name in theirs]
        if all(a == b or "SAME" not in (a.kind, b.kind) for a, b in both):
            given = tuple(theirs.get(name, Given("UNREAD")) for name in names)
            return replace(each, given=given, fewest=form.fewest)
    raise ImageError(f"the library has no {other.qualified_name} for {op.qualified_name}")


def _known(op: Op, *, is_hooked: bool, is_bare: bool = False) -> Described:
    """The operator's forms, and their words, which all its builtins share."""
    known, key = _STATE.known.described, (op, is_hooked, is_bare)
    if key not in known:
        known[key] = _described(op, _forms(op), is_hooked=is_hooked, is_bare=is_bare)
        _take_functions()
    return known[key]


def _take_functions() -> None:
    """Let stubs convert, share long work among threads, and poll for interrupts, once the library has what does so:
    that is with the part of the stubs."""
    words = process_words()
    if words[PROCESS["PARALLEL"]] or any(store.address(symbol) is None for symbol in PIECES.values()):
        return
    for word, symbol in PIECES.items():
        words[PROCESS[word]] = _address(symbol)
    for (source, target), symbol in CONVERSIONS.items():
        place = TYPES.index(source) * len(TYPES) + TYPES.index(target)
        words[PROCESS["CONVERSIONS"] + place] = _address(symbol)
    words[PROCESS["PARALLEL"]] = address_of(PARALLEL) or 0  # last, and of its owner, which starts the threads


# ------------------------------------------------------------------ bare arrays


def array_entry(op: Op, following: Function) -> Function | None:
    """A builtin that computes an operator from bare arrays, with all arguments of the schema in order, as generated
    code calls it; its result is an array, also without dimensions.

    What it does not take goes to `following`, and so does everything in mode "off".  None in that mode, and where the
    library has nothing for the operator.
    """
    if tiering.mode() == "off":
        return None
    try:
        take_parts()
        described = [] if op.functional is not None or _shows(op) else _known(op, is_hooked=False, is_bare=True)
        if not described:
            return None
        known, key = _STATE.known.entries, (op, following)
        if key not in known:
            known[key] = _chained(op.name, described, following)
        return known[key]
    except (AbiError, MachineError, ImageError):
        return None


def _shows(op: Op) -> bool:
    """True if the result is a view, which stubs make of tensors alone: of an array numpy makes them as quickly."""
    return any(each.stub in SHOWING for each in _forms(op))


def record(op: Op) -> None:
    """Let stubs record the operator, too."""
    if isinstance(op.body, _BelowHooks):
        op.body = op.body.made()
    fill(op, _forms(op))


def _address(symbol: str) -> int:
    """Where a function of the library is; raises ImageError where its image is of no use after all."""
    found = store.address(symbol)
    if found is None:
        raise ImageError(f"the library has no {symbol}")
    return found


def _forms(op: Op) -> Sequence[Form]:
    """The forms that the library has of the operator; for one that writes, of that which computes what it writes."""
    known = _STATE.known
    if op not in known.forms:
        known.forms[op] = _read(op, known.lines)
    return known.forms[op]


def _read(op: Op, lines: Mapping[str, Sequence[bytes]]) -> Sequence[Form]:
    found = of_forms.read(lines.get(op.qualified_name, ()))
    firsts = _firsts(op, _entry(f"aten::{op.recorded_as}"), lines) if op.recorded_as else []
    own = [form for form in found if all(_forms(_entry(each)) for each in form.pair)]
    return [*own, *firsts, *_writing(op, op.functional, lines)]


def _writing(op: Op, functional: Op | None, lines: Mapping[str, Sequence[bytes]]) -> list[Form]:
    """The forms that an operator which writes has of the one that computes what it writes."""
    target = _target(op)
    if functional is None or target < 0:
        return []
    known = of_forms.read(lines.get(functional.qualified_name, ()))
    if target > 0:
        return [_into(each) for each in known if each.stub == WRITING]
    return [each for each in known if each.stub == WRITING or (each.given and each.given[0].kind == "CHANGED")]


def _firsts(op: Op, other: Op, lines: Mapping[str, Sequence[bytes]]) -> list[Form]:
    """The forms of the operator that another one is recorded as, where it begins with the same arguments."""
    names = [[a.name for a in each.schema.arguments] for each in (op, other)]
    if names[0][: len(names[1])] != names[1]:
        return []
    rest = [Given("UNREAD")] * (len(names[0]) - len(names[1]))
    known = of_forms.read(lines.get(other.qualified_name, ()))
    return [replace(each, given=(*each.given, *rest), first_of=other.qualified_name) for each in known]


def _entry(name: str) -> Op:
    found = table.find(name)
    assert found is not None, f"no operator {name}"
    return found


def _into(form: Form) -> Form:
    """The form of the operator that writes to one more argument, the last."""
    given = (*form.given, Given("TARGETS"))
    return replace(form, given=given, fewest=len(given))


WRITING, SHOWING = "serve_pointwise", ("serve_shown", "serve_parted")
"""The stub that writes to an argument; those that make views."""


def _target(op: Op) -> int:
    """The place of the only argument that is written, the first or the last; -1 for none, or any other."""
    if not op.is_mutable:
        return -1
    places = [i for i, each in enumerate(op.schema.arguments) if each.is_write]
    return places[0] if len(places) == 1 and places[0] in (0, len(op.schema.arguments) - 1) else -1


# ------------------------------------------------------------------ methods

_SPECIAL: Final[dict[str, tuple[str, ...]]] = {
    "add": ("__add__", "__radd__"), "sub": ("__sub__",), "rsub": ("__rsub__",), "mul": ("__mul__", "__rmul__"),
    "div": ("__truediv__",), "floor_divide": ("__floordiv__",), "remainder": ("__mod__",), "pow": ("__pow__",),
    "eq": ("__eq__",), "ne": ("__ne__",), "lt": ("__lt__",), "le": ("__le__",), "gt": ("__gt__",), "ge": ("__ge__",),
    "neg": ("__neg__",), "matmul": ("__matmul__",), "abs": ("__abs__",), "add_": ("__iadd__",), "sub_": ("__isub__",),
    "mul_": ("__imul__",), "div_": ("__itruediv__",),
}  # fmt: skip
"""Python's operators that are nothing but an operator of the table."""
_NAMED: Final = {special: name for name, specials in _SPECIAL.items() for special in specials}


def serve_member(name: str, python: Any) -> Any:
    """The method of tensors that serves in place of this member; None where the library has nothing for it."""
    if tiering.mode() == "off" or not isinstance(python, FunctionType):
        return None
    following: Function = python
    try:
        take_parts()
        for op in reversed(table.overloads(f"aten::{_NAMED.get(name, name)}")):
            if python_result(op) is None:  # else Python makes of the result what programs in Python get
                following = _chained(name, [*_positional(op, _known(op, is_hooked=True))], following)
        if following is python:
            return None
        if name in _STATE.methods:
            _STATE.methods[name].call(following)
        else:
            _STATE.methods[name] = method(Tensor, name, following)
        return _STATE.methods[name].descriptor
    except (AbiError, MachineError, ImageError):
        return None


def _positional(op: Op, described: Described) -> Iterator[tuple[Form, Words]]:
    """The forms for calls that give arguments by position alone, less those of which one has to be named."""
    places = sum(not each.kwarg_only for each in op.schema.arguments)
    for form, words in described:
        if form.given[places - 1].kind == "MANYINTS":
            yield form, of_method(words, places - 1 + DIMENSIONS, is_spread=True)
        elif form.fewest <= places:
            is_called_so = len(form.given) <= places and all(each.kind != "NUMBERED" for each in form.given)
            yield form, words if is_called_so else of_method(words, min(places, len(form.given)))


# ------------------------------------------------------------------ modes, and parts that come

_PATIENCE: Final = 20.0
"""Seconds in which a process that was started to build says so."""


def take_parts() -> bool:
    """Read the lines of parts that are new; false where there are none.  Somebody looks for more."""
    count = store.parts_found()
    _look_for_more()
    return _take_in(count)


def take_parts_that_are_there() -> None:
    """The same, but that nobody builds or looks for more: for those who will call operators later."""
    if tiering.mode() != "off":
        _take_in(store.parts_there())


def _take_in(count: int) -> bool:
    if count == _STATE.parts:
        return False
    _STATE.known, _STATE.parts = _Parts(of_forms.lines_of(map(store.text, store.offered(LINES)))), count
    return True


def _look_for_more() -> None:
    """Let a thread look for parts, as long as more may come."""
    if _STATE.has_all or (_STATE.watcher is not None and _STATE.watcher.is_alive()):
        return
    _STATE.has_all = not _may_come(0.0)
    if not _STATE.has_all:
        _STATE.watcher = threading.Thread(target=_watch, name="parts of the library", daemon=True)
        with suppress(RuntimeError):  # there are no more threads to be had, or Python ends
            _STATE.watcher.start()


def _watch() -> None:
    """Let operators that were called before follow the parts that come."""
    start = time.monotonic()
    while not _STATE.has_all and tiering.mode() != "off":
        _STATE.has_all = not _may_come(time.monotonic() - start)
        time.sleep(store.INTERVAL)
        if store.parts_found() > _STATE.parts:
            begin_anew()


def _may_come(waited: float) -> bool:
    """True while somebody builds, or may be about to: whoever was started needs some seconds to say so."""
    try:
        room = image_files.folder()
        found = None if room is None else image_files.state(key.current(), room)
    except ImageError:  # there is no library for this process
        return False
    if room is None or (found is None and waited > _PATIENCE):
        return False
    return found is None or found.words.startswith(image_files.BUILDING)


def begin_anew() -> None:
    """Let all operators that were called begin anew, with the functions that there are now."""
    overload_cache.forget_plans()
    for op in [*_STATE.begun.values()]:
        op.give_back()
    for name, python in binding.written().items():
        if (native := serve_member(name, python)) is not None:
            binding.take(name, native)
        else:
            binding.give_back(name)


def _follow() -> None:
    """Let what the compile mode asks for serve operators and methods."""
    HOOKS.python_only = tiering.mode() == "off"
    begin_anew()


tiering.when_mode_changes(_follow)
HOOKS.native, HOOKS.native_member, HOOKS.native_recorder = serve, serve_member, record
