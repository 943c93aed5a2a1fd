"""Key bindings while an entry is typed.

In: nothing.  Out: the key bindings of the prompt: Enter runs an entry that is complete and goes on with one that is
not, Tab indents at the start of a line and completes elsewhere, Backspace takes back a whole step of indent.  Pasted
text loses the prompts that it was copied with.
"""

from __future__ import annotations

from prompt_toolkit.application import get_app
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions, has_selection
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from tsrepl.session.entries import is_complete, next_indent, without_prompts

INDENT = "    "


def key_bindings() -> KeyBindings:
    """The bindings, to be added to prompt_toolkit's own."""
    keys = KeyBindings()
    keys.add("enter", filter=~_choosing)(_enter)
    keys.add("enter", filter=_choosing)(_take_completion)
    keys.add("escape", "enter")(_new_line)
    keys.add("tab", filter=_before_text & ~has_completions)(_indent)
    keys.add("backspace", filter=_in_indent & ~has_selection)(_unindent)
    keys.add(Keys.BracketedPaste)(_paste)
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


def _enter(event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    if ends_entry(buffer.document):
        buffer.validate_and_handle()
    else:
        _new_line(event)


def _new_line(event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    buffer.insert_text("\n" + next_indent(buffer.document.text_before_cursor))


def _paste(event: KeyPressEvent) -> None:
    text = event.data.replace("\r\n", "\n").replace("\r", "\n")
    event.current_buffer.insert_text(without_prompts(text))


def _take_completion(event: KeyPressEvent) -> None:
    event.current_buffer.complete_state = None


def _indent(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text(INDENT)


def _unindent(event: KeyPressEvent) -> None:
    event.current_buffer.delete_before_cursor(len(INDENT))
