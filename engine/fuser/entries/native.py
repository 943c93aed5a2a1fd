"""Operators that are called often get native entries, compiled while the program goes on, which take their slots.

In: operators of the table with a native form, as they are first used (`HOOKS.native`).  Out: at first an implementation
that counts calls; after `SETTINGS.threshold` of them all overloads of the name are compiled in a thread of their own.
Then builtins take `Op.impl`, `Op.body` and methods of `Tensor` (`engine.aten.python.binding`); they call the Python
function for arguments they are not made for (see `engine.fuser.entries.entry`).

A kind of element is left out where it gives another result than the Python function for some samples.  Where the
process is not as native code expects (`cpython_abi`), or llvmlite is missing, everything stays as it is: `refused()`
says why.  `TSREPL_NATIVE=0` in the environment, or `SETTINGS.enabled = False`, keeps native entries off;
`TSREPL_NATIVE_CALLS=0` compiles whatever is used.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any, Final, NamedTuple

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.python import binding
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.fuser import cpython_abi, machine, tiering
from engine.fuser.cpython_abi import AbiError
from engine.fuser.entries import entry, process, samples
from engine.fuser.entries.entry import Form
from engine.fuser.entries.forms import Watched, form_of, has_form, kind_of_call, methods_of, rows_given
from engine.fuser.expression import KINDS, Unsupported


@dataclass(slots=True)
class Settings:
    """`threshold` calls of an operator make it worth compiling; at 0 that happens at once, before the first call."""

    enabled: bool = os.environ.get("TSREPL_NATIVE", "1") != "0"
    threshold: int = int(os.environ.get("TSREPL_NATIVE_CALLS", "200"))


SETTINGS: Final = Settings()


def may_compile() -> bool:
    """True unless settings keep native entries off."""
    return SETTINGS.enabled and tiering.mode() != "off"


class Compiled(NamedTuple):
    """The native code of the operators of one name: the overloads with their kinds of element, the methods of
    tensors, the kinds that were asked for, and LLVM's text."""

    name: str
    overloads: dict[str, tuple[str, ...]]
    methods: tuple[str, ...]
    tried: frozenset[str]
    text: str


_compiled: Final[dict[str, Compiled]] = {}
_refused: Final[dict[str, str]] = {}
_watched: Final[dict[str, Watched]] = {}
_BUSY: Final = "being compiled"
_lock = threading.RLock()
"""Lock of the state in this module, held for a moment."""


def compiled() -> list[Compiled]:
    """Operators compiled so far, in order."""
    return list(_compiled.values())


def refused() -> dict[str, str]:
    """Why operators of these names have no native entry."""
    return dict(_refused)


def request(op: Op, kind: str) -> None:
    """Have the operator compiled for this kind of element, without waiting unless everything is compiled at once."""
    if SETTINGS.threshold == 0:
        compile_name(op.name, (kind,))
        return
    with _lock:
        known = _compiled.get(op.name)
        is_possible = may_compile() and _refused.get(op.name, _BUSY) == _BUSY
        if is_possible and (known is None or kind not in known.tried):
            _compile_later(op.name, kind)


def entry_of(op: Op, kind: str) -> Callable[..., Any] | None:
    """The native entry without a look at the hooks, if there is one for this kind of element."""
    with _lock:
        known = _compiled.get(op.name)
        is_there = known is not None and kind in known.overloads.get(op.qualified_name, ())
        return _watched[op.qualified_name].native if is_there else None


def remove(name: str) -> None:
    """Let Python's functions do again what native entries of `aten::name` did."""
    with _lock:
        gone = _compiled.pop(name, None)
        if gone is None:
            return
        for overload in gone.overloads:
            _uninstall(_watched[overload])
        for method in gone.methods:
            binding.give_back(method)


# ------------------------------------------------------------------ which operators, and when


def watch(op: Op) -> None:
    """Count calls of an operator that native code may do, until there are enough of them."""
    python = op.compiled
    if not may_compile() or python.written is None or not has_form(op):
        return
    watched = Watched(op, python.run, python.body, max(SETTINGS.threshold, 1), _note)
    _watched[op.qualified_name] = watched
    if SETTINGS.threshold > 0:
        _count(watched, SETTINGS.threshold)
    elif op.name not in _compiled:
        op.inline = None
        compile_name(op.name, KINDS)


def _count(watched: Watched, calls: int) -> None:
    """Let an implementation that counts its calls take the operator; at the last one see what they were."""
    op, plain, left = watched.op, watched.plain, repeat(None, calls)
    place, once = rows_given(op), repeat(None, 1)

    def counting(*args: Any) -> Any:
        if op.impl is not counting:  # another has taken the slot, and the caller holds on to this function
            return op.impl(*args)
        if place is not None and (size := args[place].array.size) > entry.LONGEST:  # much work counts as several calls
            [*islice(left, size // entry.LONGEST)]
        for _ in left:
            return plain(*args)
        for _ in once:
            _often(watched, calls, args)
            return plain(*args)
        return plain(*args)

    op.take(counting)


def _often(watched: Watched, calls: int, args: tuple[Any, ...]) -> None:
    """The operator has been called often: have it compiled, if that is how it can be called natively."""
    with _lock:
        if not _note(watched, args):
            _count(watched, 4 * calls)
        elif watched.op.name not in _compiled:
            watched.op.take(watched.plain)


def _note(watched: Watched, args: tuple[Any, ...]) -> bool:
    """Have the operator compiled for such arguments; False where that was done before, or does not help."""
    kind = kind_of_call(watched.op, args)
    with _lock:
        if kind is None or kind in watched.kinds or watched.op.name in _refused:
            return False
        watched.kinds.add(kind)
        _compile_later(watched.op.name, kind)
        return True


def _compile_later(name: str, kind: str) -> None:
    def compile_or_refuse() -> None:
        try:
            compile_name(name, (kind,))
        except Exception as error:  # nobody waits for it, and Python's functions do the work as before
            _refused[name] = f"{type(error).__name__}: {error}"

    tiering.in_background(compile_or_refuse)


def _forked() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


# ------------------------------------------------------------------ compiling


def compile_name(name: str, kinds: Iterable[str] = KINDS) -> None:
    """Give all overloads of `aten::name` native entries for these kinds of element (and those that they have already);
    what stands in the way is noted."""
    with tiering.compiling():
        _compile_missing(name, kinds)


def _compile_missing(name: str, kinds: Iterable[str]) -> None:
    with _lock:
        known = _compiled.get(name)
        wanted = {*kinds, *(kind for each in (known.overloads.values() if known else ()) for kind in each)}
        if not may_compile() or name in _refused or (known is not None and wanted <= known.tried):
            return
        _refused[name] = _BUSY
    try:
        _compile(name, wanted)
        del _refused[name]
    except (AbiError, Unsupported, machine.MachineError) as error:
        _refused[name] = str(error)


def _compile(name: str, kinds: Collection[str]) -> None:
    at = process.layout()
    found = [(w, form) for w in map(_watch_of, _formed(name)) if (form := form_of(w, kinds)) is not None]
    if not found:
        if set(KINDS) <= set(kinds):
            raise Unsupported("no form that native code has")
        return
    forms = [form for _, form in found]
    methods = list(methods_of(name, [watched.op for watched, _ in found], forms))
    text = entry.module_text(at, forms, methods, process.row_function)
    code = machine.compiled(text, entry.exported(forms, methods))
    differing = {kind: form.name for form in forms for kind in _differing(form, code)}
    if differing:
        _refused.update({f"{each} of {kind}": "other results on samples" for kind, each in differing.items()})
        _compile(name, {*kinds} - differing.keys())
        return
    overloads = {form.name: form.kinds for form in forms}
    with _lock:
        for watched, form in found:
            _install(watched, form, code)
        for method in methods:
            binding.take(method.name, cpython_abi.method(Tensor, method.name, code[f"method.{method.name}"], ""))
        _compiled[name] = Compiled(name, overloads, tuple(m.name for m in methods), frozenset(kinds), text)


def _differing(form: Form, code: dict[str, int]) -> list[str]:
    """The kinds of element for which the entry does something else than the Python function."""
    body = cpython_abi.builtin(form.name, code[f"entry.{form.name}.body"], "")
    return [kind for kind in form.kinds if not samples.agree(form, kind, body)]


def _formed(name: str) -> list[Op]:
    return [op for op in table.overloads(name) if has_form(op)]


def _watch_of(op: Op) -> Watched:
    if op.qualified_name not in _watched:
        watch(op)  # unless it was, when its functions were made
    if op.qualified_name not in _watched:
        raise Unsupported(f"{op.qualified_name} is no function of Python")
    return _watched[op.qualified_name]


def _install(watched: Watched, form: Form, code: dict[str, int]) -> None:
    """Let the native entry take the operator."""
    op = watched.op
    doc = f"{op.text}\n\nCompiled for {', '.join(form.kinds)}."
    run = cpython_abi.builtin(form.name, code[f"entry.{form.name}"], doc)
    body = cpython_abi.builtin(form.name, code[f"entry.{form.name}.body"], doc)
    watched.kinds |= set(form.kinds)
    watched.native = body
    op.take(run, body if op.python is None else None)  # else calls of others are what is recorded


def _uninstall(watched: Watched) -> None:
    watched.op.give_back()
    watched.op.inline = None
    watched.native = None
    watched.kinds.clear()


HOOKS.native = watch
