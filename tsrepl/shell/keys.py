"""Key bindings while an entry is typed.

In: nothing.  Out: the key bindings of the prompt: Enter runs an entry that is complete and goes on with one that is
not, Tab indents at the start of a line and completes elsewhere, Backspace takes back a whole step of indent.  Pasted
text loses the prompts that it was copied with, and keeps its own indentation where the terminal does not mark it as
pasted.  While the history is searched, Enter takes what is found, and keys that move the cursor do, too.
"""

from __future__ import annotations

import select
import sys
from typing import Final

from prompt_toolkit.application import get_app
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_completions, has_focus, has_selection, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.search import accept_search

from tsrepl.session.entries import is_complete, next_indent, without_prompts

INDENT = "    "


_TAKES: Final = ("tab", "c-j")
"""Keys that take what a search of the history has found, as Enter does."""
_MOVES: Final = ("left", "right", "home", "end", "c-a", "c-e")
"""Keys that take it, as readline has it, and then do what they always do."""
_typing = has_focus(DEFAULT_BUFFER)


def key_bindings() -> KeyBindings:
    """The bindings, to be added to prompt_toolkit's own."""
    keys = KeyBindings()
    typed = _TypedAhead()
    keys.add("enter", filter=_typing & ~_choosing)(typed.enter)
    keys.add("enter", filter=_typing & _choosing)(_take_completion)
    keys.add("escape", "enter", filter=_typing)(_new_line)
    keys.add("tab", filter=_typing & _before_text & ~has_completions)(_indent)
    keys.add("backspace", filter=_typing & _in_indent & ~has_selection)(_unindent)
    keys.add(Keys.BracketedPaste, filter=_typing)(_paste)
    for key in _TAKES:
        keys.add(key, filter=is_searching, eager=True)(_take_found)
    for key in _MOVES:
        keys.add(key, filter=is_searching, eager=True)(_take_found_and_move)
    return keys


def ends_entry(document: Document) -> bool:
    """True if Enter runs the text typed, rather than starting a new line."""
    text = document.text
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


class _TypedAhead:
    """Enter, where more keys have come already: lines typed ahead are indented, pasted ones have their own indentation.

    Lines that begin with blanks, and those behind them, are pasted.
    """

    def __init__(self) -> None:
        self._indents = True

    def enter(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        begins = _next_key(event)
        if begins in (" ", "\t") and not _stands_alone(buffer.document.text):
            self._indents = False
            buffer.insert_text("\n")
        elif ends_entry(buffer.document):
            self._indents = True
            buffer.validate_and_handle()
        elif begins and not self._indents:
            buffer.insert_text("\n")
        else:
            self._indents = True
            _new_line(event)


def _stands_alone(text: str) -> bool:
    """True for a line to which none behind it may belong."""
    return "\n" not in text and is_complete(text)


def _next_key(event: KeyPressEvent) -> str:
    """The character that begins the next line that is not empty, if it has come already; else ""."""
    processor, source = event.key_processor, event.app.input
    if not processor.input_queue and sys.platform != "win32" and select.select([source.fileno()], [], [], 0)[0]:
        processor.feed_multiple(source.read_keys())
    passed = (Keys.CPRResponse, Keys.Enter, Keys.ControlJ)
    come = next((each for each in processor.input_queue if each.key not in passed), None)
    return "" if come is None else "\t" if come.key == Keys.Tab else come.data


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
