"""The command `tsrepl`.

In: arguments, standard input.  Out: results on standard output, errors on standard error, and the exit status: 0 when
all went well, 1 when the program or file failed, 2 when the command line is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from tsrepl.version import __version__

if TYPE_CHECKING:
    from tsrepl.session.replies import ErrorReply, Reply

OK, FAILED, USAGE = 0, 1, 2
INTERRUPTED: Final = 130
_STATUSES: Final = {"Usage": USAGE, "Interrupted": INTERRUPTED}

_ABOUT = "TorchScript at the prompt: compile, run, look inside, save and load, without PyTorch."
_EXAMPLES = """\
examples:
  tsrepl                                         the shell
  tsrepl -c 'x = torch.ones(2, 3); x @ x.t()'    run an entry
  echo 'torch.arange(5) ** 2' | tsrepl           run what comes in
  tsrepl run model.pt --input x='randn(1, 8)'    run an archive
  tsrepl show model.pt                           look into an archive
"""
_RUN_ABOUT = (
    "Run an archive's method, or a TorchScript text file: its statements, then its function 'main' if it has one."
)
_RUN_EXAMPLES = """\
examples:
  tsrepl run model.pt --input image.npy
  tsrepl run model.pt --input x='randn(2, 3)' --input n=4 --output out.npz
  tsrepl run model.pt --method encode --input batch.npz
  tsrepl run program.py --method f --input 'torch.eye(3)'

inputs:
  image.npy       an array, for the next argument
  batch.npz       several arrays, for the arguments of their names
  x='randn(2,3)'  a TorchScript expression, for the argument x
  'randn(2,3)'    a TorchScript expression, for the next argument
"""
_SHOW_ABOUT = "Look into an archive or a TorchScript text file without running it."
_SHOW_EXAMPLES = """\
examples:
  tsrepl show model.pt
  tsrepl show model.pt --code
  tsrepl show model.pt --graph --method forward
  tsrepl show program.py --tree
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the arguments say; the exit status."""
    options = _parser().parse_args(argv)
    try:
        return _dispatch(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has left; Python would complain when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _dispatch(options: argparse.Namespace) -> int:
    if options.action == "run":
        return _run(options)
    if options.action == "show":
        return _show(options)
    if options.command is not None:
        return _run_text(options.command, "-c", stop=True)
    if not sys.stdin.isatty():
        return _run_text(sys.stdin.buffer.read().decode("utf-8", "replace"), "stdin", stop=False)
    from tsrepl.shell import run_shell  # only the shell needs prompt_toolkit

    return run_shell()


def _run_text(text: str, name: str, *, stop: bool) -> int:
    """Run the entries of the text; with `stop`, none after one that failed."""
    from tsrepl.session.session import Session

    return _print_all(Session().run_text(text, name, stop=stop))


def _run(options: argparse.Namespace) -> int:
    from tsrepl.session.programs import run_program

    return _print_all(run_program(options.file, options.method, options.input, options.output))


def _show(options: argparse.Namespace) -> int:
    from tsrepl.session.programs import show_program

    return _print_all(show_program(options.file, options.view, options.method))


def _print_all(replies: Iterable[Reply]) -> int:
    """Show each reply as it comes: results on standard output, errors on standard error."""
    from rich.console import Console

    from tsrepl.render.terminal import print_reply
    from tsrepl.session.replies import ErrorReply

    out, err = Console(highlight=False), Console(highlight=False, stderr=True)
    status = OK
    for reply in replies:
        failed = isinstance(reply, ErrorReply)
        out.file.flush()
        print_reply(reply, err if failed else out)
        if isinstance(reply, ErrorReply):
            status = _status(reply)
    out.file.flush()
    return status


def _status(reply: ErrorReply) -> int:
    return _STATUSES.get(reply.kind, FAILED)


def _parser() -> argparse.ArgumentParser:
    parser = _new_parser(argparse.ArgumentParser, _ABOUT, _EXAMPLES, prog="tsrepl")
    parser.add_argument("--version", action="version", version=f"tsrepl {__version__}")
    parser.add_argument("-c", dest="command", metavar="TEXT", help="run these entries and leave")
    actions = parser.add_subparsers(dest="action", title="commands", metavar="COMMAND")
    run = _new_parser(actions.add_parser, _RUN_ABOUT, _RUN_EXAMPLES, name="run", help="run an archive or a text file")
    run.add_argument("file", metavar="FILE", help="an archive (.pt) or TorchScript text (.py)")
    run.add_argument("--method", metavar="NAME", help="what to call (default: forward; of a text file, main)")
    run.add_argument(
        "--input", metavar="INPUT", nargs="+", action="extend", default=[], help="see below; may be repeated"
    )
    run.add_argument("--output", metavar="OUT", help="keep the result in a .npz or .npy file instead of printing it")
    show = _new_parser(actions.add_parser, _SHOW_ABOUT, _SHOW_EXAMPLES, name="show", help="look into a file")
    show.add_argument("file", metavar="FILE", help="an archive (.pt) or TorchScript text (.py)")
    show.add_argument("--method", metavar="NAME", help="only this method or function")
    views = show.add_mutually_exclusive_group()
    for view, help_text in _VIEWS.items():
        views.add_argument(f"--{view}", dest="view", action="store_const", const=view, help=help_text)
    return parser


_VIEWS: Final = {
    "code": "Python text printed from the graphs",
    "graph": "the graphs",
    "tree": "the modules inside an archive; the syntax tree of a text file",
    "constants": "the constants that the code refers to",
}


def _new_parser(
    make: Callable[..., argparse.ArgumentParser], about: str, examples: str, **options: str
) -> argparse.ArgumentParser:
    return make(
        description=about, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False, **options,
    )  # fmt: skip
