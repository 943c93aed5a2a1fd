"""Operators that are called often get native entries: compiled while the program goes on, then put in Python's place.

In: operators of the table with a scalar expression, as they are first used (`HOOKS.native`).  Out: the same function,
which counts its calls at first; after `SETTINGS.threshold` of them all overloads of the name are compiled in a thread
of their own.  Then `Op.run`, the methods of `Tensor` and Python's operators are builtins, which call the Python
function for whatever they are not made for (see `engine.fuser.entries.entry`).

A kind of element is left out where it gives another result than the Python function for some samples.  Where the
process is not as native code expects (`cpython_abi`), or llvmlite is missing, everything stays as it is: `refused()`
says why.  `TSREPL_NATIVE=0` in the environment, or `SETTINGS.enabled = False`, keeps native entries off;
`TSREPL_NATIVE_CALLS=0` compiles whatever is used.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, repeat
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

from engine.aten.dispatch import op as table
from engine.aten.dispatch.body import safe
from engine.aten.dispatch.op import Op
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.fuser import cpython_abi, machine, process
from engine.fuser.cpython_abi import AbiError
from engine.fuser.entries import entry, samples
from engine.fuser.entries.entry import Form
from engine.fuser.entries.forms import REPLACED, Watched, form_of, has_form, kind_of_call, methods_of, rows_given
from engine.fuser.expression import KINDS, Unsupported


@dataclass(slots=True)
class Settings:
    """`threshold` calls of an operator make it worth compiling; at 0 that happens at once, before the first call."""

    enabled: bool = os.environ.get("TSREPL_NATIVE", "1") != "0"
    threshold: int = int(os.environ.get("TSREPL_NATIVE_CALLS", "200"))


SETTINGS: Final = Settings()


class Compiled(NamedTuple):
    """What was compiled for the operators of one name: the overloads with their kinds of element, the methods of
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
_waiting: Final[deque[tuple[str, str]]] = deque()
_tasks: Final[deque[Callable[[], None]]] = deque()
"""What others have compiled in the same thread."""
_lock = threading.RLock()
"""Held for a moment, to change what stands here."""
_compiling = threading.RLock()
"""Held by who compiles."""
_worker: threading.Thread | None = None


def compiled() -> list[Compiled]:
    """What there is so far, in the order in which it was made."""
    return list(_compiled.values())


def refused() -> dict[str, str]:
    """Why operators of these names have no native entry."""
    return dict(_refused)


def wait() -> None:
    """Until nothing is being compiled."""
    worker = _worker
    if worker is not None:
        worker.join()


def is_idle() -> bool:
    """Is nothing being compiled?"""
    return _worker is None


def request(op: Op, kind: str) -> None:
    """Have the operator compiled for this kind of element, without waiting unless everything is compiled at once."""
    if SETTINGS.threshold == 0:
        compile_name(op.name, (kind,))
        return
    with _lock:
        known = _compiled.get(op.name)
        is_possible = SETTINGS.enabled and _refused.get(op.name, _BUSY) == _BUSY
        if is_possible and (known is None or kind not in known.tried):
            _waiting.append((op.name, kind))
            _start()


def in_background(task: Callable[[], None]) -> None:
    """Let the thread that compiles do this when it is free."""
    with _lock:
        _tasks.append(task)
        _start()


def entry_of(op: Op, kind: str) -> Callable[..., Any] | None:
    """The native entry without a look at the hooks, if there is one for this kind of element."""
    with _lock:
        known = _compiled.get(op.name)
        is_there = known is not None and kind in known.overloads.get(op.qualified_name, ())
        return _watched[op.qualified_name].run.__globals__["body"] if is_there else None


def remove(name: str) -> None:
    """Let Python's functions do again what native entries of `aten::name` did."""
    with _lock:
        gone = _compiled.pop(name, None)
        if gone is None:
            return
        for overload in gone.overloads:
            _uninstall(_watched[overload])
        for method in gone.methods:
            setattr(Tensor, method, REPLACED[method])


# ------------------------------------------------------------------ forks

_PATIENCE: Final = 5.0
"""Seconds that a fork waits for what is being compiled; that takes a tenth of one."""
_forks = 0
"""How many threads are about to fork."""
_fork = threading.local()


def _before_fork() -> None:
    """Let nobody compile meanwhile: a child would find the locks of LLVM and of imports taken by a thread that it does
    not have."""
    global _forks
    with _lock:
        _forks += 1
        worker = _worker
    if worker is not None:
        worker.join(_PATIENCE)
        time.sleep(0.001)  # before 3.13 that is said a little before the thread is gone, and 3.12 warns of threads
    _fork.is_alone = _compiling.acquire(timeout=_PATIENCE)
    with _lock:
        _forget_waiting()


def _forget_waiting() -> None:
    """Let what waits be noticed again, when it is called again."""
    waiting = {*_waiting}
    _waiting.clear()
    for watched in _watched.values():
        kinds = {kind for name, kind in waiting if name == watched.op.name} & watched.kinds
        watched.kinds -= kinds
        if kinds and watched.op.name not in _compiled:
            _count(watched, max(SETTINGS.threshold, 1))


def _after_fork() -> None:
    global _forks
    if _fork.is_alone:
        _compiling.release()
    with _lock:
        _forks -= 1


def _forked() -> None:
    """A child has no worker; where its parent's was at work nevertheless, it compiles nothing more."""
    global _compiling, _lock, _worker, _forks
    _compiling, _lock, _worker, _forks = threading.RLock(), threading.RLock(), None, 0
    SETTINGS.enabled = SETTINGS.enabled and _fork.is_alone


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_forked)

# ------------------------------------------------------------------ which operators, and when


def watch(op: Op, run: Callable[..., Any]) -> Callable[..., Any] | None:
    """Notice calls of an operator by its function, which stays the same object; None for what is never native."""
    if not SETTINGS.enabled or not isinstance(run, FunctionType) or not has_form(op):
        return None
    watched = _watched[op.qualified_name] = Watched(op, run, _copy(run), _copy(run), max(SETTINGS.threshold, 1), set())
    run.__globals__.update(_plain=watched.plain, _body=run.__globals__["body"], _note=partial(_note, watched))
    given = _given(watched)
    noted = [f"_note(({given},))", f"return _plain({given})"]
    watched.noting.__code__ = _code(given, noted, op)
    if SETTINGS.threshold > 0:
        _count(watched, SETTINGS.threshold)
    elif op.name not in _compiled:
        op._run = run
        compile_name(op.name, KINDS)
    return op._run or run


def _copy(function: FunctionType) -> FunctionType:
    made = FunctionType(function.__code__, function.__globals__, function.__name__)
    made.__qualname__ = function.__qualname__
    return made


def _count(watched: Watched, calls: int) -> None:
    """Let the function do the same and count its calls; at the last one see what they were."""
    watched.run.__globals__["_calls"] = repeat(None, calls)
    watched.run.__globals__["_often"] = lambda *args: _often(watched, calls, args)
    given, rows = _given(watched), rows_given(watched.op)
    lines = [f"for _ in _calls: return _plain({given})", f"_often({given})", f"return _plain({given})"]
    if rows is not None:  # a call for much work counts as several
        watched.run.__globals__["_islice"] = islice
        more = f"[*_islice(_calls, {rows}.array.size // {entry.LONGEST})]"
        lines = [f"if {rows}.array.size > {entry.LONGEST}: {more}", *lines]
    watched.run.__code__ = _code(given, lines, watched.op)


def _given(watched: Watched) -> str:
    return ", ".join(safe(a.name) for a in watched.op.schema.arguments)


def _code(names: str, lines: Sequence[str], op: Op) -> CodeType:
    found: dict[str, Any] = {}
    text = "\n    ".join([f"def run({names}):", *lines])
    exec(compile(text, f"<{op.qualified_name}>", "exec"), found)
    code: CodeType = found["run"].__code__
    return code


def _often(watched: Watched, calls: int, args: tuple[Any, ...]) -> None:
    """The operator has been called often: have it compiled, if that is how it can be called natively."""
    with _lock:
        if not _note(watched, args):
            _count(watched, 4 * calls)
        elif watched.op.name not in _compiled:
            watched.run.__code__ = watched.plain.__code__


def _note(watched: Watched, args: tuple[Any, ...]) -> bool:
    """Have the operator compiled for such arguments; False where that was done before, or does not help."""
    kind = kind_of_call(watched.op, args)
    with _lock:
        if kind is None or kind in watched.kinds or watched.op.name in _refused:
            return False
        watched.kinds.add(kind)
        _waiting.append((watched.op.name, kind))
        _start()
        return True


def _start() -> None:
    global _worker
    if _forks == 0 and (_worker is None or not _worker.is_alive()):
        # no daemon: LLVM must not be at work when the process takes it down
        _worker = threading.Thread(target=_work, name="native entries")
        try:
            _worker.start()
        except RuntimeError:  # there are no more threads to be had, or Python ends: what waits goes on waiting
            _worker = None


def _work() -> None:
    """Compile what waits, until the program ends or forks."""
    global _worker
    while threading.main_thread().is_alive():
        with _lock:
            if not (_waiting or _tasks) or _forks > 0:
                _worker = None
                return
            name, kind = _waiting.popleft() if _waiting else ("", "")
            task = partial(compile_name, name, (kind,)) if name else _tasks.popleft()
        try:
            task()
        except Exception as error:  # nobody waits for this thread, and Python's functions do the work as before
            _refused[name] = f"{type(error).__name__}: {error}"


# ------------------------------------------------------------------ compiling


def compile_name(name: str, kinds: Iterable[str] = KINDS) -> None:
    """Give all overloads of `aten::name` native entries for these kinds of element (and those that they have already);
    what stands in the way is noted."""
    with _compiling:
        _compile_missing(name, kinds)


def _compile_missing(name: str, kinds: Iterable[str]) -> None:
    with _lock:
        known = _compiled.get(name)
        wanted = {*kinds, *(kind for each in (known.overloads.values() if known else ()) for kind in each)}
        if not SETTINGS.enabled or name in _refused or (known is not None and wanted <= known.tried):
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
            setattr(Tensor, method.name, cpython_abi.method(Tensor, method.name, code[f"method.{method.name}"], ""))
        _compiled[name] = Compiled(name, overloads, tuple(m.name for m in methods), frozenset(kinds), text)


def _differing(form: Form, code: dict[str, int]) -> list[str]:
    """The kinds of element for which the entry does something else than the Python function."""
    body = cpython_abi.builtin(form.name, code[f"entry.{form.name}.body"], "")
    return [kind for kind in form.kinds if not samples.agree(form, kind, body)]


def _formed(name: str) -> list[Op]:
    return [op for op in table.overloads(name) if has_form(op)]


def _watch_of(op: Op) -> Watched:
    run = op.run  # makes the function, which is watched from then on, unless that was before anybody watched
    if op.qualified_name not in _watched and watch(op, run) is None:
        raise Unsupported(f"{op.qualified_name} is no function of Python")
    return _watched[op.qualified_name]


def _install(watched: Watched, form: Form, code: dict[str, int]) -> None:
    """Put the native entry in the place of the Python function, wherever that is known."""
    op, environment = watched.op, watched.run.__globals__
    doc = f"{op.text}\n\nCompiled for {', '.join(form.kinds)}."
    run = cpython_abi.builtin(form.name, code[f"entry.{form.name}"], doc)
    body = cpython_abi.builtin(form.name, code[f"entry.{form.name}.body"], doc)
    watched.kinds |= set(form.kinds)
    if op.python is None:  # else calls of others are what is recorded
        if HOOKS.recorder is not None:
            environment["recorded"] = HOOKS.recorder(op, body, None)
        environment["body"] = body
    environment["_native"] = run
    given = _given(watched)
    watched.run.__code__ = _code(given, [f"return _native({given})"], op)
    op._run = run


def _uninstall(watched: Watched) -> None:
    op, environment = watched.op, watched.run.__globals__
    if HOOKS.recorder is not None:
        environment["recorded"] = HOOKS.recorder(op, watched.body, None)
    environment["body"] = watched.body
    watched.kinds.clear()
    watched.run.__code__ = watched.plain.__code__
    op._run = watched.run


HOOKS.native = watch
