"""`torch.autograd.profiler`: what ran, how often and how long.

In: a `with` block.  Out: a `FunctionEvent` for each operator that ran in it, and for each block named by
`record_function`, with what ran inside of it; their averages; tables of these, and files for chrome://tracing.

An operator that others are made of is one event: what these others are is the engine's affair.
"""

from __future__ import annotations

import functools
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engine.aten.dispatch import table
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.lang.deferred import deferred
from engine.lang.errors import did_you_mean
from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.frontend.compilation import compile as compilation
    from engine.ir.unit import Function
    from engine.serialize.container import write
else:
    compilation = deferred("engine.frontend.compilation.compile")
    write = deferred("engine.serialize.container.write")

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time, in microseconds from the profile's beginning on."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        return self.end - self.start


@dataclass(eq=False, slots=True)
class FunctionEvent:
    """One run of an operator, or of a named block.  Times are microseconds, `start` from the profile's beginning on.

    `cpu_children` are the events inside, `cpu_parent` is the one around.  `input_shapes` are those of the tensors that
    an operator took, if they were asked for (`record_shapes`).
    """

    name: str
    start: float
    thread: int
    cpu_parent: FunctionEvent | None
    is_user_annotation: bool = False
    is_function: bool = False
    """True for a call of a script function that is not part of its caller's graph."""
    end: float = 0.0
    cpu_children: list[FunctionEvent] = field(default_factory=list)
    input_shapes: list[list[int]] = field(default_factory=list)
    count: int = 1

    @property
    def key(self) -> str:
        return self.name

    @property
    def cpu_time_total(self) -> float:
        return self.end - self.start

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """The time less that of the events inside."""
        return self.cpu_time_total - sum(each.cpu_time_total for each in self.cpu_children)

    @property
    def time_range(self) -> Interval:
        return Interval(self.start, self.end)

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name}: {_time(self.cpu_time_total)}>"


@dataclass(slots=True)
class FunctionEventAvg:
    """The runs of one name: how many, and their times in microseconds."""

    key: str
    input_shapes: list[list[int]]
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0

    def add(self, event: FunctionEvent) -> None:
        self.count += event.count
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total

    @property
    def cpu_time(self) -> float:
        """The time of one run, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0


_SORTED_BY: Final = ("cpu_time_total", "self_cpu_time_total", "cpu_time", "count")


class EventList(list[Any]):
    """Events in the order in which they began, or averages."""

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all that ran, each counted once."""
        return float(sum(each.self_cpu_time_total for each in self))

    def key_averages(self, group_by_input_shape: bool = False, **_: Any) -> EventList:
        """A `FunctionEventAvg` for each name, or for each name and shapes of inputs."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shape else []
            found.setdefault((event.key, str(shapes)), FunctionEventAvg(event.key, shapes)).add(event)
        return EventList(found.values())

    def total_average(self) -> FunctionEventAvg:
        """All events as one."""
        total = FunctionEventAvg("Total", [])
        for event in self:
            total.add(event)
        return total

    def table(self, sort_by: str | None = None, row_limit: int = 100, header: str | None = None, **_: Any) -> str:
        """A table with a line for each, the largest `sort_by` first: one of "cpu_time_total", "self_cpu_time_total",
        "cpu_time", "count"; by default in the order in which they began.  Raises ValueError for another."""
        if sort_by is not None and sort_by not in _SORTED_BY:
            hint = "".join(f"; {each}" for each in did_you_mean(sort_by, _SORTED_BY)) or f"; {', '.join(_SORTED_BY)}"
            raise ValueError(f"a table is not sorted by '{sort_by}'{hint}")
        order = self if sort_by is None else sorted(self, key=lambda each: -getattr(each, sort_by))
        return _table(order[: None if row_limit < 0 else row_limit], self.self_cpu_time_total, header)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events to a file that chrome://tracing and Perfetto show."""
        rows = [
            {"name": e.name, "ph": "X", "ts": e.start, "dur": e.cpu_time_total, "tid": e.thread, "pid": os.getpid(),
             "cat": "user_annotation" if e.is_user_annotation else "cpu_op",
             "args": {"Input Dims": e.input_shapes} if e.input_shapes else {}}
            for e in self
        ]  # fmt: skip
        write.replace_file(path, [json.dumps({"traceEvents": rows, "displayTimeUnit": "ms"}).encode()])

    def __str__(self) -> str:
        return self.table()


def _table(rows: Iterable[Any], total: float, header: str | None) -> str:
    titles = ("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls")
    cells = [titles]
    for each in rows:
        own, whole = each.self_cpu_time_total, each.cpu_time_total
        share, share_of_whole = (f"{100 * part / total if total else 0:.2f}%" for part in (own, whole))
        cells.append(
            (each.key, share, _time(own), share_of_whole, _time(whole), _time(whole / each.count), str(each.count))
        )
    widths = [max(len(row[i]) for row in cells) for i in range(len(titles))]
    lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells]
    rule = "  ".join("-" * width for width in widths)
    head = [header] if header else []
    return "\n".join([*head, rule, lines[0], rule, *lines[1:], rule, f"Self CPU time total: {_time(total)}"]) + "\n"


def _time(microseconds: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


class profile:
    """`with profile() as p:` records what runs inside; `p.key_averages().table()` shows it.

    `function_events` are there after the block.  With `record_shapes` they have the shapes of what operators took.
    """

    def __init__(self, enabled: bool = True, *, record_shapes: bool = False, **_: Any) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes
        self.function_events: EventList | None = None
        self._recorded: list[FunctionEvent] = []
        self._open = threading.local()
        self._blocks: dict[int, tuple[Any, AbstractContextManager[FunctionEvent]]] = {}
        """The `id` of a mark that entering a named block gave -> the mark, and the block, which is open."""
        self._begun = 0.0

    def __enter__(self) -> profile:
        if self.enabled:
            self._recorded, self._begun = [], time.perf_counter()
            HOOKS.step_in(self._timed)
            _UNDER_WAY.append(self)
            HOOKS.calls = self._called
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.enabled:
            _UNDER_WAY.remove(self)
            HOOKS.calls = _UNDER_WAY[-1]._called if _UNDER_WAY else None
            HOOKS.step_out(self._timed)
            for mark in [*reversed(self._blocks)]:
                self._leave(mark)
            self.function_events = EventList(self._recorded)

    @contextmanager
    def event(self, name: str, is_user_annotation: bool = False, is_function: bool = False) -> Iterator[FunctionEvent]:
        """An event that lasts as long as the block, which may end in another thread."""
        around: FunctionEvent | None = getattr(self._open, "event", None)
        made = FunctionEvent(name, self._now(), threading.get_ident(), around, is_user_annotation, is_function)
        self._recorded.append(made)
        self._open.event = made
        try:
            yield made
        finally:
            made.end = self._now()
            if getattr(self._open, "event", None) is made:
                self._open.event = around
            if around is not None:
                around.cpu_children.append(made)

    def _called(self, function: Function) -> AbstractContextManager[FunctionEvent | None]:
        """The event of a call; functions of the library are none of the program's, nor what a named block calls."""
        is_ours = function.qualname.startswith(_BLOCKS) or compilation.is_library(function)
        return nullcontext() if is_ours else self.event(function.name, is_function=True)

    def _leave(self, mark: int) -> None:
        """End the named block; one that was entered before the profile is not known."""
        if mark in self._blocks:
            self._blocks.pop(mark)[1].__exit__(None, None, None)

    def _now(self) -> float:
        return (time.perf_counter() - self._begun) * 1e6

    def _timed(self, op: Any, args: tuple[Any, ...], run: Callable[..., Any]) -> Any:
        if op.name in _ENTERING:
            mark, block = run(*args), self.event(args[0], is_user_annotation=True)
            self._blocks[id(mark)] = (mark, block)
            block.__enter__()
            return mark
        if op.name == _LEAVING:
            self._leave(id(args[0]))
            return run(*args)
        around: FunctionEvent | None = getattr(self._open, "event", None)
        if around is not None and not (around.is_user_annotation or around.is_function):
            return run(*args)
        with self.event(op.name) as made:
            if self.record_shapes:
                made.input_shapes = [list(each.shape) if isinstance(each, Tensor) else [] for each in args]
            return run(*args)

    def events(self) -> EventList:
        """The events.  Raises RuntimeError inside the block."""
        if self.function_events is None:
            raise RuntimeError("the profiler has not finished: ask behind its `with` block")
        return self.function_events

    def key_averages(self, group_by_input_shape: bool = False, **_: Any) -> EventList:
        return self.events().key_averages(group_by_input_shape)

    def total_average(self) -> FunctionEventAvg:
        return self.events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all that ran."""
        return self.events().self_cpu_time_total

    def table(self, sort_by: str | None = None, **options: Any) -> str:
        return self.events().table(sort_by, **options)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        self.events().export_chrome_trace(path)

    def __str__(self) -> str:
        return "<unfinished profile>" if self.function_events is None else str(self.function_events)


_UNDER_WAY: Final[list[profile]] = []
"""The profiles that have begun, which may end in any order; the last of them hears of calls."""
_BLOCKS: Final = "__torch__.torch.autograd.profiler."
"""The names of methods of named blocks in archives begin so."""
_ENTERING: Final = ("profiler::_record_function_enter_new", "profiler::_record_function_enter")
_LEAVING: Final = "profiler::_record_function_exit"


def _run(name: str, *args: Any) -> Any:
    """The result of the operator, which those see that step in around all operators."""
    op = table.find(name)
    assert op is not None, name
    return op.body(*args) if HOOKS.trace is None else HOOKS.trace(op, args, op.body)


class record_function:
    """`with record_function(name):`, or a decorator: an event of that name around what runs inside, also where this is
    traced or compiled."""

    torch_path = "torch.autograd.profiler.record_function"

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._entered: list[Any] = []

    def __enter__(self) -> record_function:
        self._entered.append(None if HOOKS.trace is None else _run(_ENTERING[0], self.name, self.args))
        return self

    def __exit__(self, *exception: Any) -> None:
        mark = self._entered.pop()
        if mark is not None:
            _run(f"{_LEAVING}._RecordFunction", mark)

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return called  # type: ignore[return-value]
