"""The pager: an outline on the whole screen, which may still grow.

In: what makes items for a page of some width, as it comes, and keys.  Out: the screen.  Only what is on the screen is
wrapped and coloured, so a key costs the same in ten lines and in ten thousand; a page of another width is made anew.

The items come from the thread that computes them, which is the main one, since Ctrl-C arrives there; the pager runs in
a thread of its own, and passes Ctrl-C on as `interrupt` while there is more to come.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

from prompt_toolkit.application import Application
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import HSplit, Layout, UIContent, UIControl, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.mouse_events import MouseEvent, MouseEventType
from prompt_toolkit.output import Output
from prompt_toolkit.styles import BaseStyle

from engine.lang.interpreter_settings import collecting_rarely
from engine.lang.records import dataclass
from tsrepl.render.blocks import Line, Span
from tsrepl.render.outline import Item, outline, wrapped

HELP: Final = ("q leave", "? help", "/ n N search", "Enter fold", "E C all", "← → views", "[ ] next")
"""Keys that the last line names, as many as it has room for."""
KEYS: Final = (
    ("q", "leave; what is still computed is stopped"),
    ("↓ ↑  j k", "a line down, up"),
    ("Space b  f  PageDown PageUp", "a screen down, up"),
    ("g G  Home End", "to the beginning, to the end"),
    ("/ text Enter", "search, in closed folds too; capital letters count where there are any"),
    ("n N", "the next place, the one before"),
    ("Enter  o", "open or close the fold here, or close the one around"),
    ("E C", "open all folds, close them"),
    ("← →  Tab", "the next view of a fold: graph, changes, text"),
    ("[ ]", "the section before, the next one"),
    ("Ctrl-C", "stop what is computed"),
    ("? h", "these keys; again, back"),
)
"""The keys, for readers."""
_WHEEL: Final = 3
_LOOKS: Final = 0.1
"""Seconds between looks at the terminal's size: a thread that is not the main one hears of no change."""
_HANG: Final = 4


Make = Callable[[int], Iterable[Item]]
"""Items for a page of so many columns."""


@dataclass(eq=False, slots=True)
class Section:
    """The items that `make` gave for a page of that width."""

    make: Make
    width: int
    items: list[Item] = field(init=False)

    def __post_init__(self) -> None:
        self.items = [*self.make(self.width)]

    def fit(self, width: int) -> None:
        """Make the items anew for such a page; the folds that were open are open again."""
        before, self.width = self.items, width
        self.items = [*self.make(width)]
        _reopen(before, self.items)


class Row(NamedTuple):
    """An item that is in view, unless a fold around it is closed: its indent, and the row of the item that it is in."""

    item: Item
    indent: int
    above: Row | None


class Pager:
    """One look at an outline; `is_done` says that nothing is to come."""

    def __init__(
        self, title: str = "", *, input: Input | None = None, output: Output | None = None,
        style: BaseStyle | None = None, interrupt: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self.title, self.is_done, self.message, self.pattern = title, False, "", ""
        self.sections: list[Section] = []
        self.cursor = self.top = 0
        self.typed: str | None = None
        self._read: tuple[list[Section], int, int] | None = None
        self._rows: list[Row] | None = None
        self._size = (80, 24)
        self._interrupt = interrupt
        status = Window(FormattedTextControl(self.status), height=1, style="class:bottom-toolbar", wrap_lines=False)
        self.app: Application[None] = Application(
            Layout(HSplit([Window(_Page(self)), status])),
            key_bindings=_bindings(self), full_screen=True, mouse_support=True, style=style, input=input, output=output,
            terminal_size_polling_interval=_LOOKS,
        )  # fmt: skip

    # -- what comes in

    @collecting_rarely()  # a line is some objects, and none of them is garbage
    def add(self, make: Make) -> None:
        """Append what it makes; from any thread."""
        shown = self.sections if self._read is None else self._read[0]
        shown.append(Section(make, self.app.output.get_size().columns))
        self._rows = None
        self.app.invalidate()

    def finish(self) -> None:
        """Nothing else comes; from any thread."""
        self.is_done = True
        self.app.invalidate()

    def help(self) -> None:
        """Show the keys; then what was shown before."""
        if self._read is None:
            width = max(len(keys) for keys, _ in KEYS)
            lines = [Line((Span(f"{keys:<{width}}  ", "command"), Span(meaning))) for keys, meaning in KEYS]
            self._read = self.sections, self.cursor, self.top
            self.sections = [Section(lambda _: outline(lines, 0), self._size[0])]
            self.cursor = self.top = 0
        else:
            (self.sections, self.cursor, self.top), self._read = self._read, None
        self._rows = None

    def run(self) -> None:
        """Show it until the reader leaves."""
        self.app.run(handle_sigint=False)

    def leave(self) -> None:
        """End it, or the help; what is still computed is stopped."""
        if self._read is not None:
            self.help()
            return
        if not self.is_done:
            self._interrupt()
        self.app.exit()

    def stop(self) -> None:
        """Stop what is computed, or leave if nothing is."""
        if self.is_done:
            self.app.exit()
        else:
            self._interrupt()

    # -- rows

    @property
    def items(self) -> list[Item]:
        """The outermost items."""
        return [item for section in self.sections for item in section.items]

    def _fit(self, width: int) -> None:
        """Make what was made for another width anew; the cursor stays in its part of its section."""
        old = [section for section in self.sections if section.width != width]
        if not old:
            return
        row = self._around(lambda item: item in self.items)
        here = next((each for each in self.sections if row is not None and row.item in each.items), None)
        part = here.items.index(row.item) / len(here.items) if here is not None and row is not None else 0.0
        depth, lines = 0 if row is None else self.cursor - self.rows.index(row), self.cursor - self.top
        for section in old:
            section.fit(width)
        self._rows = None
        if here is not None and here.items:
            self._go_to(here.items[int(part * len(here.items))])
            self.cursor += depth
        self.top = max(0, self.cursor - lines)

    @property
    def rows(self) -> list[Row]:
        """The rows whose folds are open."""
        if self._rows is None:
            self._rows = list(_flat(list(self.items)))
        return self._rows

    def screen(self, width: int, height: int) -> list[StyleAndTextTuples]:
        """The lines from the top row on."""
        self._size = (width, height)
        self._fit(width)
        rows, digits = self.rows, len(str(len(self.rows)))
        if not rows:
            return []
        self.cursor = max(0, min(self.cursor, len(rows) - 1))
        self.top = self._top(width - digits - 1, height)
        lines: list[StyleAndTextTuples] = []
        for number in range(self.top, len(rows)):
            if len(lines) >= height:
                break
            lines += self._lines(number, digits, width)
        return lines[:height]

    def _top(self, width: int, height: int) -> int:
        """The first row of a screen that holds the cursor, near the one before."""
        lowest, room = self.cursor, height - len(self._wrapped(self.cursor, width))
        while lowest > 0 and (room := room - len(self._wrapped(lowest - 1, width))) >= 0:
            lowest -= 1
        return min(self.cursor, max(self.top, lowest))

    def _wrapped(self, number: int, width: int) -> list[list[Span]]:
        row = self.rows[number]
        mark = " " if not row.item.views else "▾" if row.item.is_open else "▸"
        lead = Span(f"{mark} {' ' * row.indent}", "muted")
        code = len(row.item.text) - len(row.item.text.lstrip(" +-…"))
        hang = min(len(lead.text) + code + _HANG, width // 2)
        return wrapped((lead, *row.item.paint()), width, hang)

    def _lines(self, number: int, digits: int, width: int) -> Iterator[StyleAndTextTuples]:
        here = " reverse" if number == self.cursor else ""
        for at, spans in enumerate(self._wrapped(number, width - digits - 1)):
            label = str(number + 1) if at == 0 else ""
            gutter = (f"class:muted{here}", f"{label:>{digits}}")
            yield [gutter, ("", " "), *self._marked(spans)]

    def _marked(self, spans: Sequence[Span]) -> Iterator[tuple[str, str]]:
        """The spans in their colours, what is searched for reversed."""
        text = "".join(span.text for span in spans)
        places = [found.span() for found in self._search.finditer(text)] if self.pattern else []
        start = 0
        for piece, role in spans:
            style = f"class:{role}"
            cuts = {start, start + len(piece)} | {at for place in places for at in place}
            inside = sorted(at for at in cuts if start <= at <= start + len(piece))
            for a, b in pairwise(inside):
                found = any(begin <= a and b <= end for begin, end in places)
                yield f"{style} reverse" if found else style, text[a:b]
            start += len(piece)

    @property
    def _search(self) -> re.Pattern[str]:
        """The text that is searched for; capital letters count where there are any."""
        return _compiled(self.pattern)

    def status(self) -> StyleAndTextTuples:
        """The last line."""
        if self.typed is not None:
            return [("", f"/{self.typed}")]
        going = "" if self.is_done else " · computing, Ctrl-C stops"
        views = self._views()
        text = f" {self.cursor + 1:,} of {len(self.rows):,}{going}{views}"
        for each in (self.message,) if self.message else HELP:
            if self.message or len(text) + 2 + len(each) <= self._size[0]:
                text += f"  {each}"
        return [("", text[: self._size[0]])]

    def _views(self) -> str:
        row = self._around(lambda item: len(item.views) > 1)
        if row is None:
            return ""
        names = [f"[{name}]" if i == row.item.shown else name for i, (name, _) in enumerate(row.item.views)]
        return f" · {' '.join(names)}"

    # -- moving

    def move(self, by: int) -> None:
        self.cursor = max(0, min(len(self.rows) - 1, self.cursor + by))
        self.message = ""

    def page(self, pages: int) -> None:
        """Up or down by screens, one line of which stays; the last one is full."""
        by = pages * max(1, self._size[1] - 1)
        self.top = max(0, min(self.top + by, self._last_top()))
        self.move(by)

    def _last_top(self) -> int:
        """The first row of the last screen."""
        width, height = self._size
        top = len(self.rows)
        while top > 0 and (height := height - len(self._wrapped(top - 1, width - len(str(len(self.rows))) - 1))) >= 0:
            top -= 1
        return top

    def _around(self, wanted: Callable[[Item], bool]) -> Row | None:
        """The innermost row around the cursor, itself included, whose item is wanted."""
        row = self.rows[self.cursor] if self.rows else None
        while row is not None and not wanted(row.item):
            row = row.above
        return row

    def toggle(self) -> None:
        """Open or close the fold here, or close the one around."""
        row = self._around(lambda item: bool(item.views))
        if row is not None:
            row.item.is_open = not row.item.is_open
            self._go_to(row.item)

    def turn(self, by: int) -> None:
        """Show the next view of the fold; where there is one only, open or close it."""
        row = self._around(lambda item: len(item.views) > 1) or self._around(lambda item: bool(item.views))
        if row is None:
            return
        item = row.item
        if len(item.views) == 1:
            item.is_open = by > 0
        elif not item.is_open:
            item.is_open = True
        else:
            item.shown = (item.shown + by) % len(item.views)
        self._go_to(item)

    def next_fold(self, by: int) -> None:
        """Go to the next or previous section; an open one is closed, and the other one opened in the same view."""
        row = self._around(lambda item: item in self.items)
        folds = [item for item in self.items if len(item.views) > 1] or [item for item in self.items if item.views]
        at = self.items.index(row.item) if row is not None else 0
        later = [item for item in folds if (self.items.index(item) - at) * by > 0]
        if not later:
            self.message = "no further section"
            return
        found = later[0 if by > 0 else -1]
        if row is not None and row.item in folds and row.item.is_open:
            row.item.is_open, found.is_open = False, True
            found.shown = min(row.item.shown, len(found.views) - 1)
        self._go_to(found)
        self.top = self.cursor

    def open_all(self, is_open: bool) -> None:
        """Open or close every fold."""
        here = self._around(lambda item: item in self.items)
        for item in _every(self.items):
            if item.views:
                item.is_open = is_open
        self._rows = None
        if here is not None:
            self._go_to(here.item)

    def _go_to(self, item: Item) -> None:
        self._rows = None
        self.cursor = next(i for i, row in enumerate(self.rows) if row.item is item)

    # -- searching

    def find(self, by: int) -> None:
        """Go to the next or previous place with the text that was searched for, in closed folds too."""
        rows, here = self.rows, self.cursor
        if not self.pattern or not rows:
            return
        for step in range(len(rows) + 1):
            path = self._found(rows[(here + by * step) % len(rows)].item, by, is_start=step == 0)
            if path:
                self._show(path)
                return
        self.message = f"'{self.pattern}' is nowhere"

    def _found(self, item: Item, by: int, *, is_start: bool) -> list[Item]:
        """The items from this one to the first that has the text: itself, or what is in it and not in view."""
        own = [item] if not is_start and self._search.search(item.text) else []
        inside = [] if item.is_open or not item.views or (is_start and by < 0) else self._inside(item, by)
        return own or inside if by > 0 else inside or own

    def _inside(self, item: Item, by: int) -> list[Item]:
        """The items from this one to the first inside it that has the text; empty where none has it."""
        for each in item.inside[::by]:
            if self._search.search(each.text):
                return [item, each]
            if each.views and (path := self._inside(each, by)):
                return [item, *path]
        return []

    def _show(self, path: Sequence[Item]) -> None:
        for item in path[:-1]:
            item.is_open = True
        self._go_to(path[-1])

    def type(self, text: str) -> None:
        self.typed = (self.typed or "") + text

    def rub_out(self) -> None:
        self.typed = self.typed[:-1] if self.typed else None

    def search(self) -> None:
        """Search for what was typed; for nothing, for the same again."""
        self.pattern, self.typed = self.typed or self.pattern, None
        self.message = ""
        self.find(1)

    def give_up(self) -> None:
        self.typed = None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern), re.IGNORECASE if pattern.islower() else 0)


def _flat(items: Iterable[Item], indent: int = 0, above: Row | None = None) -> Iterator[Row]:
    for item in items:
        row = Row(item, indent + item.indent, above)
        yield row
        if item.is_open:
            yield from _flat(item.inside, row.indent, row)


def _reopen(before: Iterable[Item], after: Iterable[Item]) -> None:
    """Let the folds of `after` stand open as the same ones of `before` did."""
    for old, new in zip(_folds(before), _folds(after), strict=False):
        new.is_open, new.shown = old.is_open, min(old.shown, len(new.views) - 1)
        if old.is_open:  # what is inside a closed one is made when it is opened
            _reopen(old.inside, new.inside)


def _folds(items: Iterable[Item]) -> Iterator[Item]:
    return (item for item in items if item.views)


def _every(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        yield from _every(item.inside)


class _Page(UIControl):
    """All but the last line of the screen."""

    def __init__(self, pager: Pager) -> None:
        self._pager = pager

    def create_content(self, width: int, height: int) -> UIContent:
        lines = self._pager.screen(width, height)
        return UIContent(lambda i: lines[i], len(lines), show_cursor=False)

    def is_focusable(self) -> bool:
        return True

    def mouse_handler(self, mouse_event: MouseEvent) -> None:
        wheel = {MouseEventType.SCROLL_DOWN: _WHEEL, MouseEventType.SCROLL_UP: -_WHEEL}
        self._pager.move(wheel.get(mouse_event.event_type, 0))


def _bindings(pager: Pager) -> KeyBindings:
    keys = KeyBindings()
    typing = Condition(lambda: pager.typed is not None)
    for names, act in _commands(pager).items():
        for name in names.split():
            keys.add(name, filter=~typing)(_calling(act))
    for name, act in {
        "enter": pager.search,
        "backspace": pager.rub_out,
        "c-c": pager.give_up,
        "escape": pager.give_up,
    }.items():
        keys.add(name, filter=typing)(_calling(act))
    keys.add(Keys.Any, filter=typing)(lambda event: pager.type(event.data))
    return keys


def _commands(pager: Pager) -> dict[str, Callable[[], None]]:
    """The keys, several to a row, and what they do."""
    return {
        "q Q": pager.leave,
        "c-c": pager.stop,
        "down j": lambda: pager.move(1),
        "up k": lambda: pager.move(-1),
        "space pagedown f": lambda: pager.page(1),
        "b pageup": lambda: pager.page(-1),
        "g home": lambda: pager.move(-len(pager.rows)),
        "G end": lambda: pager.move(len(pager.rows)),
        "enter o": pager.toggle,
        "right tab": lambda: pager.turn(1),
        "left s-tab": lambda: pager.turn(-1),
        "] s-down": lambda: pager.next_fold(1),
        "[ s-up": lambda: pager.next_fold(-1),
        "E": lambda: pager.open_all(True),
        "C": lambda: pager.open_all(False),
        "/": lambda: pager.type(""),
        "n": lambda: pager.find(1),
        "N": lambda: pager.find(-1),
        "? h": pager.help,
    }


def _calling(act: Callable[[], None]) -> Callable[[KeyPressEvent], None]:
    return lambda event: act()
