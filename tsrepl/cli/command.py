"""The command `tsrepl`.

In: arguments, standard input.  Out: results on standard output, errors on standard error, and the exit status: 0 when
all went well, 1 when the program or file failed, 2 when the command line is wrong.  `check`, `ops` and `diff` have
statuses of their own, which their help tells.
"""

from __future__ import annotations

import gc
import io
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from engine.lang.deferred import deferred, left_out
from engine.lang.interpreter_settings import loading
from tsrepl.cli import FAILED, INTERRUPTED, files
from tsrepl.cli.typed_ahead import unseen

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from tsrepl.cli import arguments
    from tsrepl.render import plain, progress, terminal
    from tsrepl.session.replies import ErrorReply, Reply
    from tsrepl.session.session import Session
else:
    arguments = deferred("tsrepl.cli.arguments")
    plain, progress = deferred("tsrepl.render.plain"), deferred("tsrepl.render.progress")
    terminal = deferred("tsrepl.render.terminal")

OK, USAGE = 0, 2
_STATUSES: Final = {"Usage": USAGE, "Interrupted": INTERRUPTED}

_AS_TORCH: Final = ["run", "--as-torch"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of these arguments; returns the exit status."""
    _say_what_can_be_said()
    words = sys.argv[1:] if argv is None else argv
    if [*words[:2]] == _AS_TORCH:  # the words behind are the script's own
        return _run_as_torch(words[2:])
    try:
        return _run_words(words)
    except BrokenPipeError:  # the reader of our output has seen enough
        _write_no_more()
        return OK
    except OSError as error:  # what is read is guarded: the output cannot be written
        _write_no_more()
        with suppress(OSError):
            sys.stderr.write(f"tsrepl: error: the output cannot be written: {error.strerror or error}\n")
        return FAILED
    finally:
        if argv is None:  # the process ends, and Python would look through all that it holds for garbage
            gc.freeze()


def _write_no_more() -> None:
    """Let what is left of the output go nowhere: Python would complain when it flushes at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run_words(words: Sequence[str]) -> int:
    """The two forms that a person waits for need no parser, which takes a while to make."""
    match words:
        case []:
            return _talk()
        case ["-c", text] if not text.startswith("-"):
            return _run_text(text, "-c", stop=True)
        case _:
            return _dispatch(arguments.parsed(words))


def _say_what_can_be_said() -> None:
    """A terminal that is not of UTF-8 gets question marks for what it cannot show, and no error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def _dispatch(options: argparse.Namespace) -> int:
    if any(word == "-" for word in _paths_of(options)):
        return _print_all([_no_dash()])
    if (given := getattr(options, "operators", None)) and (status := _load_operators(given)):
        return status
    if options.action == "run":
        return _run(options)
    if options.action == "show":
        return _show(options)
    if options.action in files.BY_NAME:
        return _file_command(options)
    first = ""
    if options.action == "open":
        first = f"{'%run' if _is_text(options.file) else '%load'} {shlex.quote(options.file)}"
    if options.command is None:
        return _talk(first)
    entries = "\n".join(options.command)
    return _talk(first, entries) if options.stay else _run_text(entries, "-c", stop=True, first=first)


def _is_text(path: str) -> bool:
    from tsrepl.session.programs import is_text

    return is_text(path)


def _talk(*first: str) -> int:
    """Run the first entries, then the shell, or what comes in where standard input is no terminal."""
    if not sys.stdin.isatty():
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
        return _run_text(text, "stdin", stop=False, first="\n".join(first))
    with unseen(), loading(), left_out("ssl"):  # asyncio takes it along; a prompt makes no connections
        from tsrepl.shell import new_shell  # only the shell needs prompt_toolkit

        shell = new_shell()
    return shell.run(*first)


def _load_operators(paths: Sequence[str]) -> int:
    """Run the files that give operators; the exit status."""
    from tsrepl.session.given_operators import load_all

    return _print_all(load_all(paths))


def _paths_of(options: argparse.Namespace) -> Iterator[str]:
    """The paths on the command line."""
    given = vars(options)
    yield from (given[name] for name in ("file", "output") if given.get(name))
    yield from given.get("files") or ()


def _no_dash() -> Reply:
    from tsrepl.session.failures import CommandLineError, error_reply

    return error_reply(
        CommandLineError(
            "'-' stands for no file here: standard input and output hold no archives",
            hints=("give a path (./- for a file of that name)",),
        )
    )


def _run_text(text: str, name: str, *, stop: bool, first: str = "") -> int:
    """Run the first entry, then those of the text; with `stop`, none after one that failed."""
    with loading():
        from tsrepl.session.session import Session

        session = Session()
    return _print_all(_replies(session, text, name, stop=stop, first=first))


def _replies(session: Session, text: str, name: str, *, stop: bool, first: str) -> Iterator[Reply]:
    """The replies to the first entry and to those of the text; lines for the system's shell are run in between."""
    from tsrepl.session.replies import ErrorReply, LeaveReply, SystemReply

    has_failed = False
    for reply in session.run_text(first):
        has_failed = has_failed or isinstance(reply, ErrorReply)
        yield reply
    if has_failed and stop:
        return
    for reply in session.run_text(text, name, stop=stop):
        if isinstance(reply, SystemReply):
            sys.stdout.flush()
            subprocess.run(reply.command, shell=True, check=False)
        elif not isinstance(reply, LeaveReply):
            yield reply


def _run(options: argparse.Namespace) -> int:
    with loading():
        from engine.executor.plans.switches import leaving
        from tsrepl.session.programs import run_program

    with leaving():
        return _print_all(run_program(options.file, options.method, options.input, options.output, options.grad))


def _run_as_torch(words: Sequence[str]) -> int:
    """Run a Python script whose `torch` is the engine's, in this process."""
    from engine.torch.running import run_as_torch

    trouble = run_as_torch(words)
    if isinstance(trouble, str):
        sys.stderr.write(f"{trouble}\n")
        return USAGE
    return trouble


def _show(options: argparse.Namespace) -> int:
    with loading():
        from tsrepl.session.programs import show_program

    return _print_all(show_program(options.file, options.view, options.method))


def _file_command(options: argparse.Namespace) -> int:
    from tsrepl.session.failures import guarded

    command = files.BY_NAME[options.action]
    replies = guarded(command.run(options))
    if getattr(options, "json", False):
        replies = _errors_as_data(replies)
    # Git takes any other status of its driver for a reason to show no more files.
    return _print_all(replies, OK if getattr(options, "git", False) else command.trouble)


def _errors_as_data(replies: Iterable[Reply]) -> Iterator[Reply]:
    """The replies, with each error also as JSON data."""
    from tsrepl.session.replies import DataReply, ErrorReply

    for reply in replies:
        if isinstance(reply, ErrorReply):
            yield DataReply({"error": {"kind": reply.kind, "message": reply.message, "hints": list(reply.hints)}})
        yield reply


def _print_all(replies: Iterable[Reply], trouble: int = FAILED) -> int:
    """Show each reply as it comes: results on standard output, errors on standard error."""
    with loading():
        from tsrepl.session.replies import DataReply, ErrorReply, ReportReply

        out, err = _Stream(), _Stream(stderr=True)
    status = OK
    with err.bars():
        for reply in replies:
            failed = isinstance(reply, ErrorReply)
            out.file.flush()
            # There is no prompt at which to ask for the rest of an error.
            (err if failed else out).show(replace(reply, is_whole=True) if isinstance(reply, ErrorReply) else reply)
            if isinstance(reply, ErrorReply):
                status = _status(reply, trouble)
            elif isinstance(reply, (DataReply, ReportReply)):
                status = status or reply.status
    out.file.flush()
    return status


_SPOKEN: Final = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""Where the environment says what a terminal is, rich reads it."""


class _Stream:
    """Standard output or error: a terminal, or a pipe or file, which needs nothing of what draws on terminals."""

    def __init__(self, *, stderr: bool = False) -> None:
        self._is_error = stderr
        self.file = sys.stderr if stderr else sys.stdout
        # Git's pager is a terminal too, though it is read through a pipe.
        self._is_paged = os.environ.get("GIT_PAGER_IN_USE") == "true" and not stderr
        self._is_plain = not (self._is_paged or self.file.isatty() or any(name in os.environ for name in _SPOKEN))

    @cached_property
    def _console(self) -> Console:
        """The terminal, in the reader's theme."""
        theme = _theme() if self._is_paged or self.file.isatty() else ""
        return terminal.new_console(theme, stderr=self._is_error, force_terminal=True if self._is_paged else None)

    def show(self, reply: Reply) -> None:
        if self._is_plain:
            self.file.write(plain.to_text(reply))
        else:
            terminal.print_reply(reply, self._console)

    def bars(self) -> AbstractContextManager[None]:
        """Bars are shown there for long loads and saves."""
        return nullcontext() if self._is_plain else progress.progress_bars(lambda: self._console)


def _theme() -> str:
    """The theme of the settings, for terminals; the shell says so if there is a mistake in them."""
    from tsrepl.render.palette import chosen_theme
    from tsrepl.render.settings import read_settings

    return chosen_theme(read_settings().theme)


def _status(reply: ErrorReply, trouble: int) -> int:
    return _STATUSES.get(reply.kind, trouble)
