"""Output that is longer than the screen, in a pager.

In: replies, as they are made, and a console.  Out: text on the terminal, at once as long as it fits; what does not fit
opens the pager, which fills up while the rest is computed.  What comes to a pipe is never paged, and neither are
errors, but those that are shown whole because they were asked for.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from itertools import chain
from threading import Thread
from typing import Final

from rich.console import Console

from tsrepl.render.blocks import Block, Line, Span, least_lines
from tsrepl.render.layout import blocks_of
from tsrepl.render.outline import Item, outline
from tsrepl.render.terminal import PROMPT_LINES, fitting, lines_of, print_blocks, print_reply
from tsrepl.session.replies import ErrorReply, Reply
from tsrepl.shell.pager import Make as MakeItems
from tsrepl.shell.pager import Pager

_LESS: Final = "FRX"
"""Options of less, if the reader has none: leave at once if all fits, show colours, keep the screen."""
MakePager = Callable[[Callable[[], None]], Pager]
"""(what stops the computation) -> a pager."""
_GUTTER: Final = 8


def show(replies: Iterable[Reply], console: Console, make: MakePager | None = None) -> None:
    """Show the replies as they come, in a pager once they are longer than the screen; without `make` never there."""
    coming, used, shown = iter(replies), 0, list[Reply]()
    for reply in coming:
        room = console.height - PROMPT_LINES - used
        blocks = list(fitting(blocks_of(reply), console.width, console.height - PROMPT_LINES))
        is_paged = make is not None and console.is_terminal and not _is_error(reply)
        if make is not None and is_paged and not _fits(blocks, console.width, room):
            _page(shown, chain([reply], coming), console, make)
            return
        print_reply(reply, console)
        shown.append(reply)
        used += len(lines_of(blocks, console.width)) if is_paged else 0


def _is_error(reply: Reply) -> bool:
    """True for an error that nobody has asked to see whole."""
    return isinstance(reply, ErrorReply) and not reply.is_whole


def _fits(blocks: list[Block], width: int, room: int) -> bool:
    return sum(map(least_lines, blocks)) <= room and len(lines_of(blocks, width)) <= room


def _page(shown: list[Reply], replies: Iterator[Reply], console: Console, make: MakePager) -> None:
    """Show the replies in the pager, in a thread of its own; what they began with stays on the terminal after it.

    Those that were `shown` already stand in the pager, too, and are on the terminal as it is.
    """
    pager = make(lambda: os.kill(os.getpid(), signal.SIGINT))
    screen = Thread(target=pager.run, name="tsrepl-pager")
    kept, errors = list[MakeItems](), list[Reply]()
    screen.start()
    try:
        for reply in shown:
            pager.add(_making(reply, console))
        with redirect_stdout(_Printed(pager)):
            for reply in replies:
                items = _making(reply, console)
                if _is_error(reply):
                    errors.append(reply)
                else:
                    kept.append(items)
                pager.add(items)
    except KeyboardInterrupt:
        pager.add(_making_text("stopped"))
    pager.finish()
    screen.join()
    _keep([item for items in kept for item in items(console.width)], console)
    for reply in errors:
        print_reply(reply, console)


def _making(reply: Reply, console: Console) -> MakeItems:
    """The function that makes the reply's items for a page."""
    return lambda width: outline(
        fitting(blocks_of(reply), width - _GUTTER, console.height - PROMPT_LINES), width - _GUTTER
    )


def _making_text(text: str) -> MakeItems:
    return lambda _: outline([Line((Span(text),))], 0)


def _keep(items: list[Item], console: Console) -> None:
    """Print the outermost lines, at most half a screen of them."""
    most = console.height // 2
    for item in items[:most]:
        print_blocks([Line(item.paint())], console)
    if len(items) > most:
        print_blocks([Line((Span(f"… {len(items) - most:,} more lines", "muted"),))], console)


class _Printed(StringIO):
    """A stream for programs that print while the pager is open: their lines stand in it."""

    def __init__(self, pager: Pager) -> None:
        super().__init__()
        self._pager = pager

    def write(self, text: str) -> int:
        *lines, rest = (self.getvalue() + text).split("\n")
        self.seek(0)
        self.truncate()
        super().write(rest)
        for line in lines:
            self._pager.add(_making_text(line))
        return len(text)


def in_program(replies: Iterable[Reply], console: Console, command: str) -> None:
    """Show the replies in a program like less; on the terminal where it does not run."""
    every = list(replies)
    with console.capture() as captured:
        for reply in every:
            print_reply(reply, console)
    text = captured.get()
    is_short = text.count("\n") <= console.height - PROMPT_LINES or any(map(_is_error, every))
    if is_short or not console.is_terminal or not _run(command, text):
        console.file.write(text)
        console.file.flush()


def _run(command: str, text: str) -> bool:
    try:
        words = shlex.split(os.path.expandvars(command))
        done = subprocess.run(words, input=text.encode(), env={"LESS": _LESS, **os.environ}, check=False)
    except OSError:
        return False
    return done.returncode == 0
