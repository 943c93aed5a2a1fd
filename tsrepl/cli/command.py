"""The command `tsrepl`.

In: arguments, standard input.  Out: results on standard output, errors on standard error, and the exit status: 0 when
all went well, 1 when the program or file failed, 2 when the command line is wrong.  `check`, `ops` and `diff` have
statuses of their own, which their help tells.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from engine.lang.interpreter_settings import loading
from tsrepl.cli import files
from tsrepl.cli.typed_ahead import unseen
from tsrepl.cli.words import CommandParser, parsed
from tsrepl.session.version import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from tsrepl.session.replies import ErrorReply, Reply

OK, FAILED, USAGE = 0, 1, 2
INTERRUPTED: Final = 130
_STATUSES: Final = {"Usage": USAGE, "Interrupted": INTERRUPTED}

_ABOUT = """\
TorchScript at the prompt: compile, run, look inside, save and load, without
PyTorch.
"""
_EXAMPLES = """\
examples:
  tsrepl                                         the shell
  tsrepl model.pt                                the shell, with a file loaded
  tsrepl -c 'x = torch.ones(2, 3); x @ x.t()'    run an entry
  echo 'torch.arange(5) ** 2' | tsrepl           run what comes in
  tsrepl run model.pt --input x='randn(1, 8)'    run an archive
  tsrepl show model.pt                           look into an archive
  tsrepl identify file.bin                       what is this file?
  tsrepl diff old.pt new.pt                      what changed
"""
_OPEN_ABOUT = """\
Open the shell with a file loaded under the file's name; a text file is run.
'tsrepl FILE' is short for it.
"""
_AS_TORCH: Final = ["run", "--as-torch"]
_NAMES: Final = frozenset({"open", "run", "show", *files.BY_NAME})
_RUN_ABOUT = """\
Run an archive's method, or a TorchScript text file: its statements, then its
function 'main' if it has one.
"""
_RUN_EXAMPLES = """\
examples:
  tsrepl run model.pt --input image.npy
  tsrepl run model.pt --input x='randn(2, 3)' --input n=4 --output out.npz
  tsrepl run model.pt --method encode --input batch.npz
  tsrepl run program.py --method f --input 'torch.eye(3)'
  tsrepl run --as-torch train.py --epochs 3
                      a script of Python, unchanged: its `import torch` is the
                      engine's, and what follows is for the script

inputs:
  image.npy       an array, for the next argument
  batch.npz       several arrays, for the arguments of their names
  x='randn(2,3)'  a TorchScript expression, for the argument x
  'randn(2,3)'    a TorchScript expression, for the next argument
"""
_SHOW_ABOUT = """\
Look into an archive, a file of weights or a TorchScript text file without
running anything.
"""
_SHOW_EXAMPLES = """\
examples:
  tsrepl show model.pt
  tsrepl show model.pt --code
  tsrepl show model.pt --graph --method forward
  tsrepl show model.pt --code --method layer1.0
  tsrepl show model.pt --sources
  tsrepl show weights.safetensors
  tsrepl show program.py --tree
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of these arguments; returns the exit status."""
    _say_what_can_be_said()
    words = _with_open(sys.argv[1:] if argv is None else argv)
    if [*words[:2]] == _AS_TORCH:  # the words behind are the script's own
        return _run_as_torch(words[2:])
    options = parsed(_parser(), words)
    try:
        return _dispatch(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has seen enough; Python would complain when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    finally:
        if argv is None:  # the process ends, and Python would look through all that it holds for garbage
            gc.freeze()


def _with_open(words: Sequence[str]) -> Sequence[str]:
    """`tsrepl model.pt` is short for `tsrepl open model.pt`."""
    return ["open", *words] if words and words[0] not in _NAMES and os.path.isfile(words[0]) else words


def _say_what_can_be_said() -> None:
    """A terminal that is not of UTF-8 gets question marks for what it cannot show, and no error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def _dispatch(options: argparse.Namespace) -> int:
    if any(word == "-" for word in _paths_of(options)):
        return _print_all([_no_dash()])
    if options.action == "run":
        return _run(options)
    if options.action == "show":
        return _show(options)
    if options.action in files.BY_NAME:
        return _file_command(options)
    if options.action == "open":
        return _talk(f"{'%run' if options.file.endswith('.py') else '%load'} {shlex.quote(options.file)}")
    if options.command is None or options.stay:
        return _talk(options.command or "")
    return _run_text(options.command, "-c", stop=True)


def _talk(first: str) -> int:
    """Run the first entry, then the shell, or what comes in where standard input is no terminal."""
    if not sys.stdin.isatty():
        return _run_text(sys.stdin.buffer.read().decode("utf-8", "replace"), "stdin", stop=False, first=first)
    with unseen(), loading():
        from tsrepl.shell import new_shell  # only the shell needs prompt_toolkit

        shell = new_shell()
    return shell.run(first)


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
    return _print_all(chain(session.run_text(first), session.run_text(text, name, stop=stop)))


def _run(options: argparse.Namespace) -> int:
    from tsrepl.session.programs import run_program

    return _print_all(run_program(options.file, options.method, options.input, options.output))


def _run_as_torch(words: Sequence[str]) -> int:
    """Run a Python script whose `torch` is the engine's, in this process."""
    from engine.torch.running import run_as_torch

    trouble = run_as_torch(words)
    if isinstance(trouble, str):
        sys.stderr.write(f"{trouble}\n")
        return USAGE
    return trouble


def _show(options: argparse.Namespace) -> int:
    from tsrepl.session.programs import show_program

    return _print_all(show_program(options.file, options.view, options.method))


def _file_command(options: argparse.Namespace) -> int:
    from tsrepl.session.programs import guarded

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
        from tsrepl.render.progress import progress_bars
        from tsrepl.render.terminal import print_reply
        from tsrepl.session.replies import DataReply, ErrorReply, ReportReply

    out, err = _console(), _console(stderr=True)
    status = OK
    with progress_bars(err):
        for reply in replies:
            failed = isinstance(reply, ErrorReply)
            out.file.flush()
            # There is no prompt at which to ask for the rest of an error.
            print_reply(
                replace(reply, is_whole=True) if isinstance(reply, ErrorReply) else reply, err if failed else out
            )
            if isinstance(reply, ErrorReply):
                status = _status(reply, trouble)
            elif isinstance(reply, (DataReply, ReportReply)):
                status = status or reply.status
    out.file.flush()
    return status


def _console(*, stderr: bool = False) -> Console:
    """The terminal, in the reader's theme; git's pager is one too, though it is read through a pipe."""
    from tsrepl.render.terminal import new_console

    paged = os.environ.get("GIT_PAGER_IN_USE") == "true" and not stderr
    is_terminal = paged or (sys.stderr if stderr else sys.stdout).isatty()
    return new_console(_theme() if is_terminal else "", stderr=stderr, force_terminal=True if paged else None)


def _theme() -> str:
    """The theme of the settings, for terminals; the shell says so if there is a mistake in them."""
    from tsrepl.render.palette import chosen_theme
    from tsrepl.render.settings import read_settings

    return chosen_theme(read_settings().theme)


def _status(reply: ErrorReply, trouble: int) -> int:
    return _STATUSES.get(reply.kind, trouble)


def _parser() -> CommandParser:
    parser = _new_parser(CommandParser, _ABOUT, _EXAMPLES, prog="tsrepl")
    parser.add_argument("--version", action="version", version=f"tsrepl {__version__}")
    parser.add_argument("-c", dest="command", metavar="TEXT", help="run these entries and leave")
    parser.add_argument("-i", dest="stay", action="store_true", help="after -c, go on in the shell")
    actions = parser.add_subparsers(dest="action", title="commands", metavar="COMMAND")
    opened = _new_parser(actions.add_parser, _OPEN_ABOUT, "", name="open", help="the shell with a file loaded")
    opened.add_argument("file", metavar="FILE", help="an archive (.pt), weights, arrays, or TorchScript text (.py)")
    run = _new_parser(actions.add_parser, _RUN_ABOUT, _RUN_EXAMPLES, name="run", help="run an archive or a text file")
    run.add_argument("file", metavar="FILE", help="an archive (.pt) or TorchScript text (.py)")
    run.add_argument(
        "--method", metavar="NAME", help="what to call: forward (default), layer.forward; of a text file, main"
    )
    run.add_argument(
        "--input", metavar="INPUT", nargs="+", action="extend", default=[], help="see below; may be repeated"
    )
    run.add_argument("--output", metavar="OUT", help="keep the result in a .npz or .npy file instead of printing it")
    show = _new_parser(actions.add_parser, _SHOW_ABOUT, _SHOW_EXAMPLES, name="show", help="look into a file")
    show.add_argument("file", metavar="FILE", help="an archive (.pt), weights, or TorchScript text (.py)")
    show.add_argument(
        "--method", metavar="NAME", help="only this one: a method, layer.forward of a module inside, a function"
    )
    views = show.add_mutually_exclusive_group()
    for view, help_text in _VIEWS.items():
        views.add_argument(f"--{view}", dest="view", action="store_const", const=view, help=help_text)
    files.add_commands(partial(_new_parser, actions.add_parser))
    return parser


_VIEWS: Final = {
    "code": "Python text printed from the graphs",
    "graph": "the graphs",
    "tree": "the modules inside an archive; the syntax tree of a text file",
    "constants": "the constants that the code refers to",
    "bytecode": "the instructions for mobile devices in a .ptl file",
    "sources": "the author's own sources, as the archive's debug records keep them",
}


def _new_parser(make: Callable[..., CommandParser], about: str, examples: str, **options: str) -> CommandParser:
    return make(
        description=about, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False, **options,
    )  # fmt: skip
