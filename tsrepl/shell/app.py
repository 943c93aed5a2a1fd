"""The shell's loop: read an entry, run it, show the replies.

In: keys.  Out: text on the terminal.  The prompt stands before the engine and what draws answers are loaded: a thread
loads both while the first entry is typed.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final

import platformdirs
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.formatted_text import FormattedText, StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.lexers import Lexer, PygmentsLexer
from prompt_toolkit.output import Output
from prompt_toolkit.shortcuts import print_formatted_text
from prompt_toolkit.styles import Style

from engine.lang.deferred import deferred, load
from engine.lang.interpreter_settings import loading
from tsrepl.render.palette import MENUS, chosen_theme, prompt_styles
from tsrepl.render.settings import Settings, read_settings
from tsrepl.session.entries import LEAVE, without_prompts
from tsrepl.session.version import __version__
from tsrepl.shell.keys import key_bindings
from tsrepl.shell.toolbar import signature_text, toolbar_text

if TYPE_CHECKING:
    from rich.console import Console

    from engine.fuser.backend import threads
    from engine.lang import counts
    from tsrepl.render import lexers, progress, terminal
    from tsrepl.session import complete, replies, session, signatures
    from tsrepl.session.replies import Candidate, Reply
    from tsrepl.session.session import Session
    from tsrepl.shell import pager, paging
    from tsrepl.shell.pager import Pager
else:
    threads, counts = deferred("engine.fuser.backend.threads"), deferred("engine.lang.counts")
    session, replies = deferred("tsrepl.session.session"), deferred("tsrepl.session.replies")
    complete, signatures = deferred("tsrepl.session.complete"), deferred("tsrepl.session.signatures")
    lexers, terminal = deferred("tsrepl.render.lexers"), deferred("tsrepl.render.terminal")
    progress = deferred("tsrepl.render.progress")
    pager, paging = deferred("tsrepl.shell.pager"), deferred("tsrepl.shell.paging")

PROMPT = "ts> "
CONTINUATION = "... "
RESET = "%reset"
_EDITING_MODES: Final = {"emacs": EditingMode.EMACS, "vi": EditingMode.VI}


class EntryCompleter(Completer):
    """Asks `candidates(text before the cursor)`; the session may still be loading when it is made."""

    def __init__(self, candidates: Callable[[str], list[Candidate]]) -> None:
        self._candidates = candidates

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        found = self._candidates(before)
        typed = before[len(before) - found[0].replaces :] if found else ""
        if len(found) == 1 and not found[0].text.startswith(typed):
            yield Completion(typed, -len(typed), display_meta="as typed")  # no name with other letters takes its place
        for candidate in found:
            yield Completion(candidate.text, -candidate.replaces, display=candidate.shown, display_meta=candidate.kind)


class EntryColours(Lexer):
    """The colours of an entry; the lexer behind them is made when there is something to colour."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        return _entry_lexer().lex_document(document) if document.text else lambda line: []


@cache
def _entry_lexer() -> Lexer:
    return PygmentsLexer(lexers.EntryLexer)


class Shell:
    """One dialogue.  `input` and `output` replace the terminal in tests."""

    def __init__(
        self,
        session: Session | None = None,
        *,
        input: Input | None = None,
        output: Output | None = None,
        console: Console | None = None,
        history: History | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._settings = settings or Settings(pager=False)
        self._theme = chosen_theme(self._settings.theme)
        self._console = console
        self._to_edit: str | None = None
        self._has_left = False
        self._begun: Future[Session] | None = _ready(session) if session else None
        self._prompt: PromptSession[str] = PromptSession(
            PROMPT,
            multiline=True,
            prompt_continuation=_continuation,
            lexer=EntryColours(),
            completer=EntryCompleter(self._candidates),
            complete_in_thread=True,
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            history=history or saved_history(),
            key_bindings=key_bindings(),
            bottom_toolbar=self._toolbar,
            style=shell_style(self._theme),
            include_default_pygments_style=False,
            editing_mode=_EDITING_MODES[self._settings.editing_mode],
            enable_open_in_editor=True,
            tempfile_suffix=".py",
            enable_suspend=True,
            input=input,
            output=output,
        )
        self._prompt.app.after_render += self._load

    @property
    def console(self) -> Console:
        """The terminal, for answers."""
        self._console = self._console or terminal.new_console(self._theme)
        return self._console

    @property
    def _loading(self) -> Future[Session]:
        """The session, or what loads it: begun when it is first asked for."""
        self._begun = self._begun or _load_in_background()
        return self._begun

    def _load(self, _: object) -> None:
        """Begin to load the session: the prompt stands, which that would have held up."""
        self._begun = self._loading

    @property
    def session(self) -> Session:
        """The session; waits until it is loaded."""
        return self._loading.result()

    def _is_loaded(self) -> bool:
        return self._begun is not None and self._begun.done() and self._begun.exception() is None

    def run(self, *first: str) -> int:
        """Run the first entries, then talk until the reader leaves; the exit status."""
        for text in banner():
            self._say(text, "muted")
        if self._settings.warning:
            self._say(self._settings.warning, "warning")
        for entry in filter(None, first):
            self.run_entry(entry)
        while not self._has_left:
            self._talk()
        return 0

    def _talk(self) -> None:
        """Read an entry and run it; Ctrl-C gives it up, Ctrl-D leaves the dialogue that is under way."""
        try:
            text = self._read()
        except KeyboardInterrupt:
            return
        except EOFError:
            text = "exit"
        if text.strip() in LEAVE and not self._dialogue():
            self._has_left = True
        else:
            self.run_entry(without_prompts(text).rstrip())

    def run_entry(self, text: str) -> None:
        """Run one entry and show what it answers."""
        if (not text.strip() and not self.session.prompt) or (text.strip() == RESET and not self._may_forget()):
            return
        try:
            with progress.progress_bars(lambda: self.console):
                self._show(self._for_reading(self.session.run_text(text)))
        except KeyboardInterrupt:
            # Only showing can be interrupted here: the session itself answers an interrupt with a reply.
            self._say("(output stopped)", "muted")

    def _may_forget(self) -> bool:
        """The reader's answer to the question whether everything may be forgotten; True where there is nothing."""
        names = len(self.session.bindings())
        if not names:
            return True
        question = f"forget {counts.counted(names, 'name')}? [y/N] "
        try:
            answer = PromptSession[str](input=self._prompt.input, output=self._prompt.output).prompt(question)
        except (KeyboardInterrupt, EOFError):
            return False
        return answer.strip().lower() in ("y", "yes")

    def _for_reading(self, every: Iterable[Reply]) -> Iterator[Reply]:
        """The replies that are shown; the others are done: texts to be edited wait for the next prompt."""
        for reply in every:
            if isinstance(reply, replies.EditReply):
                self._to_edit = reply.text
            elif isinstance(reply, replies.SystemReply):
                run_in_system(reply.command)
            elif isinstance(reply, replies.LeaveReply):
                self._has_left = True
            else:
                yield reply

    def _say(self, text: str, role: str) -> None:
        output, style = self._prompt.output, self._prompt.style
        for line in textwrap.wrap(text, output.get_size().columns):
            styled = FormattedText([(f"class:{role}", line)])
            print_formatted_text(styled, style=style, output=output, include_default_pygments_style=False)

    def _show(self, every: Iterable[Reply]) -> None:
        """Show the replies as they come, in the pager that the reader wants."""
        if isinstance(self._settings.pager, str):
            paging.in_program(every, self.console, self._settings.pager)
        else:
            paging.show(every, self.console, self._pager if self._settings.pager else None)

    def _pager(self, interrupt: Callable[[], None]) -> Pager:
        prompt = self._prompt
        return pager.Pager(input=prompt.input, output=prompt.output, style=prompt.style, interrupt=interrupt)

    def _read(self) -> str:
        """The next entry.  Raises KeyboardInterrupt, and EOFError at the end."""
        try:
            question = self._dialogue() or PROMPT
            if self._to_edit is None:
                return self._prompt.prompt(question)
            return self._prompt.prompt(question, default=self._to_edit, pre_run=_open_editor)
        finally:
            self._to_edit = None

    def _dialogue(self) -> str:
        """The prompt of the dialogue within the session, "" without one."""
        return self.session.prompt if self._is_loaded() else ""

    def _candidates(self, before_cursor: str) -> list[Candidate]:
        return self.session.complete(before_cursor)

    def _toolbar(self) -> StyleAndTextTuples:
        ready = self._is_loaded()
        width = self._prompt.output.get_size().columns
        hint = self.session.signature(self._prompt.default_buffer.document.text_before_cursor) if ready else None
        if hint is not None:
            return signature_text(hint, width)
        return toolbar_text(self.session.bindings() if ready else (), width)


def new_shell() -> Shell:
    """The shell on the real terminal."""
    return Shell(settings=read_settings())


def shell_style(theme: str) -> Style:
    """The looks of the prompt, its toolbar and menu, and the pager."""
    roles, (text, background) = prompt_styles(theme), MENUS[theme]
    menu = f"fg:{text} bg:{background}"
    return Style.from_dict(
        {
            **roles,
            "prompt": roles["command"],
            "prompt-continuation": roles["muted"],
            "bottom-toolbar": f"noreverse {roles['muted']}",
            "signature": "noreverse",
            "argument": f"{roles['title']} underline",
            "auto-suggestion": roles["muted"],
            "completion-menu": menu,
            "completion-menu.completion": menu,
            "completion-menu.completion.current": f"{menu} reverse",
            "completion-menu.meta.completion": menu,
            "completion-menu.meta.completion.current": f"{menu} reverse",
        }
    )


def run_in_system(command: str) -> None:
    """Run a line in the system's shell, on the terminal of this one."""
    with suppress(KeyboardInterrupt):
        subprocess.run(command, shell=True, check=False)


def banner() -> tuple[str, ...]:
    """The shell's first lines."""
    return (
        f"tsrepl {__version__}: TorchScript, without PyTorch (Python {sys.version.partition(' ')[0]})",
        "Type TorchScript. %help shows the commands, Tab completes, Ctrl-D leaves.",
    )


def saved_history() -> History:
    """The entries of earlier dialogues; forgotten at the end where they cannot be kept."""
    try:
        folder = platformdirs.user_state_path("tsrepl", ensure_exists=True)
        path = folder / "history"
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _open_editor() -> None:
    """Open the editor on what stands at the prompt; what comes back is run."""
    get_app().current_buffer.open_in_editor(validate_and_handle=True)


def _continuation(width: int, line_number: int, is_soft_wrap: int) -> str:
    return "" if is_soft_wrap else CONTINUATION


def _load_in_background() -> Future[Session]:
    executor = ThreadPoolExecutor(1, thread_name_prefix="tsrepl-load")
    try:
        return executor.submit(_new_session)
    finally:
        executor.shutdown(wait=False)


def _ready(session: Session) -> Future[Session]:
    future: Future[Session] = Future()
    future.set_result(session)
    return future


def _new_session() -> Session:
    """A session, with all that shows what it answers."""
    with loading():
        _entry_lexer()
        made = session.Session()
        load(terminal, progress, paging, complete, signatures)
    threads.wake_blas()
    return made
