"""Key bindings while an entry is typed.

In: nothing.  Out: the key bindings of the prompt: Enter runs an entry that is complete and goes on with one that is
not, Tab indents at the start of a line and completes elsewhere, Backspace takes back a whole step of indent.  Pasted
text loses the prompts that it was copied with.  Blanks at the beginning of a line stand for the indentation that is
offered there, so that text keeps its own where the terminal does not mark it as pasted.  While the history is searched,
Enter takes what is found, and keys that move the cursor do, too.
"""

from __future__ import annotations

import select
import sys
from time import monotonic
from typing import Final

from prompt_toolkit.application import get_app
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import (
    Condition,
    emacs_insert_mode,
    has_completions,
    has_focus,
    has_selection,
    is_searching,
    vi_insert_mode,
)
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.search import accept_search

from tsrepl.session.entries import is_complete, next_indent, without_prompts

INDENT = "    "
_PASTING: Final = 0.05
"""Seconds for the next piece of a text that is being pasted: terminals hand it over in pieces."""

_TAKES: Final = ("tab", "c-j")
"""Keys that take what a search of the history has found, as Enter does."""
_MOVES: Final = ("left", "right", "home", "end", "c-a", "c-e")
"""Keys that take it, as readline has it, and then do what they always do."""
_PASSED: Final = (Keys.CPRResponse, Keys.Enter, Keys.ControlJ)
_typing = has_focus(DEFAULT_BUFFER)


def key_bindings() -> KeyBindings:
    """The bindings, to be added to prompt_toolkit's own."""
    keys = KeyBindings()
    typed = _Lines()
    keys.add("enter", filter=_typing & ~_choosing)(typed.enter)
    offered = _typing & Condition(typed.is_offered) & (emacs_insert_mode | vi_insert_mode)
    keys.add(" ", filter=offered)(typed.indent)
    keys.add("enter", filter=_typing & _choosing)(_take_completion)
    keys.add("escape", "enter", filter=_typing)(_new_line)
    keys.add("tab", filter=_typing & _before_text & ~has_completions)(_indent)
    keys.add("tab", filter=offered)(typed.indent)
    keys.add("backspace", filter=_typing & _in_indent & ~has_selection)(_unindent)
    keys.add(Keys.BracketedPaste, filter=_typing)(_paste)
    for key in _TAKES:
        keys.add(key, filter=is_searching, eager=True)(_take_found)
    for key in _MOVES:
        keys.add(key, filter=is_searching, eager=True)(_take_found_and_move)
    return keys


def ends_entry(document: Document) -> bool:
    """True if Enter runs the text typed, rather than starting a new line."""
    text = without_prompts(document.text)
    if not text.strip():
        return True
    if document.text_after_cursor.strip():
        # In the middle of several lines Enter makes room; in the middle of one line it runs the line.
        return "\n" not in text and is_complete(text)
    lines = text.split("\n")
    if not lines[-1].strip():
        lines[-1] = ""
    return is_complete("\n".join(lines))


@Condition
def _choosing() -> bool:
    state = get_app().current_buffer.complete_state
    return state is not None and state.current_completion is not None


@Condition
def _before_text() -> bool:
    return not get_app().current_buffer.document.current_line_before_cursor.strip()


@Condition
def _in_indent() -> bool:
    before = get_app().current_buffer.document.current_line_before_cursor
    return bool(before) and not before.strip() and len(before) % len(INDENT) == 0


class _Lines:
    """Enter and the blanks behind it.  Lines are offered an indentation, but not in an entry whose lines bring blanks
    of their own, as pasted ones do."""

    def __init__(self) -> None:
        self._own = False
        self._offered: str | None = None
        """The whole entry as it is while nothing has been typed behind an indentation that was offered."""

    def enter(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text
        self._own = (self._own and "\n" in text) or without_prompts(text) != text
        begins = _next_key(event, _PASTING if self._own else 0)
        if begins in (" ", "\t") and not _stands_alone(text):
            self._own = True
            buffer.insert_text("\n")
        elif ends_entry(buffer.document):
            buffer.validate_and_handle()
        elif self._own:
            buffer.insert_text("\n")
        else:
            _new_line(event)
            self._offered = buffer.text

    def is_offered(self) -> bool:
        """True where the cursor stands behind an indentation that was offered, and nothing has been typed."""
        document = get_app().current_buffer.document
        return document.text == self._offered and document.is_cursor_at_the_end and document.text.endswith(" ")

    def indent(self, event: KeyPressEvent) -> None:
        """The blank or tab that is typed, in place of the indentation that was offered."""
        buffer = event.current_buffer
        buffer.delete_before_cursor(len(buffer.document.current_line_before_cursor))
        buffer.insert_text(" " if event.data == " " else INDENT)
        self._own = True


def _stands_alone(text: str) -> bool:
    """True for a line to which none behind it may belong."""
    return "\n" not in text and is_complete(without_prompts(text))


def _next_key(event: KeyPressEvent, seconds: float) -> str:
    """The character that begins the next line that is not empty, if it comes within so many seconds; else ""."""
    processor, source = event.key_processor, event.app.input
    until = monotonic() + seconds
    while True:
        come = next((each for each in processor.input_queue if each.key not in _PASSED), None)
        if come is not None:
            return "\t" if come.key == Keys.Tab else come.data
        left = max(0.0, until - monotonic())
        if sys.platform == "win32" or source.closed or not select.select([source.fileno()], [], [], left)[0]:
            return ""
        if not (more := source.read_keys()):
            return ""
        processor.feed_multiple(more)


def _new_line(event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    buffer.insert_text("\n" + next_indent(buffer.document.text_before_cursor))


def _paste(event: KeyPressEvent) -> None:
    text = event.data.replace("\r\n", "\n").replace("\r", "\n")
    event.current_buffer.insert_text(without_prompts(text))


def _take_found(event: KeyPressEvent) -> None:
    accept_search()


def _take_found_and_move(event: KeyPressEvent) -> None:
    accept_search()
    event.key_processor.feed_multiple(event.key_sequence, first=True)


def _take_completion(event: KeyPressEvent) -> None:
    event.current_buffer.complete_state = None


def _indent(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text(INDENT)


def _unindent(event: KeyPressEvent) -> None:
    event.current_buffer.delete_before_cursor(len(INDENT))
