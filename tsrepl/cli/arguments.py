"""The grammar of the command line: errors name the nearest valid word and the usage of the command.

In: the words behind `tsrepl`.  Out: what they say; or the program ends with status 2.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from textwrap import wrap
from typing import Any, Final, NoReturn

from engine.lang.errors import did_you_mean
from tsrepl.cli import files
from tsrepl.session.settings import SETTINGS, settings_path
from tsrepl.session.version import __version__

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
  tsrepl --operators my_ops.py run model.pt      with operators given in Python
  tsrepl model.pt -c 'model(torch.ones(1, 6))'   load a file, run an entry

-c may be repeated; the first entry that fails ends the command.  Of what comes
in on standard input the entries behind one that fails are run, as at a prompt.
The exit status is 1 in both cases.

settings:
  {path}
{rows}
"""
_OPEN_ABOUT = """\
Open the shell with a file loaded under the file's name; a text file is run.
'tsrepl FILE' is short for it.
"""
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


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Texts as they are written where the page has room for them; else paragraphs are filled, and what stands beside a
    row's beginning moves below it.  Commands stay whole, to be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines, width = text.splitlines(), width + _MARGIN
        if all(len(line) <= width for line in lines):
            return super()._fill_text(text, width, indent)
        parts = (group for _, group in groupby(lines, lambda line: not line or line[0] == " "))
        return "\n".join(line for part in parts for line in _narrowed([*part], width))


def _narrowed(lines: Sequence[str], width: int) -> Iterator[str]:
    """The lines of a paragraph, or rows, on a page of that width."""
    if lines[0][:1] not in ("", " "):
        yield from _fill(" ".join(lines), width)
        return
    rows: list[list[str]] = []
    for line in lines:
        rows[len(rows) - line.startswith(_CONTINUED) :] = [[*(rows[-1] if line.startswith(_CONTINUED) else ()), line]]
    for row in rows:
        yield from row if all(len(line) <= width for line in row) else _below(row, width)


def _fill(text: str, width: int, indent: int = 0) -> list[str]:
    blanks = " " * indent
    return wrap(
        text, width, initial_indent=blanks, subsequent_indent=blanks, break_long_words=False, break_on_hyphens=False
    )


def _below(row: Sequence[str], width: int) -> Iterator[str]:
    """A row whose explanation stands on lines of its own, if its beginning takes much of the page."""
    found = _ROW.fullmatch(row[0])
    begin, *explained = (found[1], found[2]) if found is not None else (row[0],)
    text = " ".join([*explained, *map(str.strip, row[1:])])
    beside = found.start(2) if found is not None else width
    if beside > width // 3:
        yield begin
        begin, beside = "", len(_CONTINUED) + 3
    for line in _fill(text, width, beside):
        yield begin + line[len(begin) :]
        begin = ""


_ROW: Final = re.compile(r"( *\S.*?) {2,}(\S.*)")
"""The beginning of a row, and what stands beside it."""
_CONTINUED: Final = " " * 3
"""The beginning of a line that goes on with the row above it."""
_MARGIN: Final = 2
"""Columns that argparse leaves free."""


class CommandParser(argparse.ArgumentParser):
    """A parser that says what was meant, perhaps."""

    def refuse(self, message: str, hints: Sequence[str] = ()) -> NoReturn:
        """End the program with the message, a hint on each line below it."""
        self.error("\n".join([message, *(f"hint: {hint}" for hint in hints)]))

    def flags(self) -> Iterator[str]:
        """The options of this parser."""
        for action in self._actions:
            yield from action.option_strings

    def commands(self) -> dict[str, CommandParser]:
        """The parsers of its commands, by name."""
        choices = (action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction))
        return next(choices, {})


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """The parsed arguments; a mistake ends the program with hints."""
    parser, words = _parser(), _with_open(list(words))
    commands = parser.commands()
    first = words[0] if words else "-"
    if not first.startswith("-") and first not in commands:
        parser.refuse(*_unknown(first, commands))
    options, rest = parser.parse_known_args(words)
    if rest:
        command = commands.get(options.action, parser)
        flag = next((word for word in rest if word.startswith("-")), None)
        what = "option" if flag else "place for"
        shown = (flag or rest[0]).partition("=")[0] if flag else rest[0]
        command.refuse(
            f"there is no {what} '{shown}'", did_you_mean(flag.partition("=")[0], command.flags()) if flag else ()
        )
    return options


def _with_open(words: Sequence[str]) -> Sequence[str]:
    """`tsrepl model.pt` is short for `tsrepl open model.pt`, also behind `--operators`."""
    at = 0
    while words[at : at + 1] == [OPERATORS]:
        at += 2
    is_file = len(words) > at and words[at] not in _NAMES and os.path.isfile(words[at])
    return [*words[:at], "open", *words[at:]] if is_file else words


def _unknown(word: str, commands: dict[str, CommandParser]) -> tuple[str, tuple[str, ...]]:
    """A message and hints for a first word that is no command and no file: a folder, a path, a view or a slip."""
    message = f"there is no command '{word}'"
    if os.path.isdir(word):
        return message, (f"'{word}' is a folder; give the path of a file in it",)
    if word in _VIEWS:
        return message, (f"write tsrepl show --{word} FILE",)
    if os.sep in word or os.path.splitext(word)[1]:
        message += ", and no file of that name"
    return message, did_you_mean(word, commands) or (f"the commands are {', '.join(commands)}",)


def _parser() -> CommandParser:
    rows = "\n".join(f"  {each.example:<22} {each.meaning}" for each in SETTINGS)
    parser = _new_parser(CommandParser, _ABOUT, _EXAMPLES.format(path=settings_path(), rows=rows), prog="tsrepl")
    parser.add_argument("--version", action="version", version=f"tsrepl {__version__}")
    _add_entries(parser)
    actions = parser.add_subparsers(dest="action", title="commands", metavar="COMMAND")
    opened = _new_parser(actions.add_parser, _OPEN_ABOUT, "", name="open", help="the shell with a file loaded")
    opened.add_argument("file", metavar="FILE", help="an archive (.pt), weights, arrays, or TorchScript text (.py)")
    _add_entries(opened, default=argparse.SUPPRESS)
    run = _new_parser(actions.add_parser, _RUN_ABOUT, _RUN_EXAMPLES, name="run", help="run an archive or a text file")
    run.add_argument("file", metavar="FILE", help="an archive (.pt) or TorchScript text (.py)")
    run.add_argument(
        "--method", metavar="NAME", help="what to call: forward (default), layer.forward; of a text file, main"
    )
    run.add_argument(
        "--input", metavar="INPUT", nargs="+", action="extend", default=[], help="see below; may be repeated"
    )
    for flags, settings in files.GRAD:
        run.add_argument(*flags, **settings)
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


def _add_entries(parser: CommandParser, **default: Any) -> None:
    """The options for entries that are run instead of a dialogue, or before one."""
    parser.add_argument(
        "-c", dest="command", metavar="TEXT", action="append", help="run these entries and leave; may be repeated",
        **default,
    )  # fmt: skip
    parser.add_argument("-i", dest="stay", action="store_true", help="after -c, go on in the shell", **default)


OPERATORS: Final = "--operators"
_VIEWS: Final = {
    "code": "Python text printed from the graphs",
    "graph": "the graphs",
    "tree": "the modules inside an archive; the syntax tree of a text file",
    "constants": "the constants that the code refers to",
    "bytecode": "the instructions for mobile devices in a .ptl file",
    "sources": "the author's own sources, as the archive's debug records keep them",
}


def _new_parser(make: Callable[..., CommandParser], about: str, examples: str, **options: str) -> CommandParser:
    parser = make(
        description=about, epilog=examples, formatter_class=_Formatter,
        allow_abbrev=False, **options,
    )  # fmt: skip
    parser.add_argument(
        OPERATORS, dest="operators", metavar="OPS", action="append", default=argparse.SUPPRESS,
        help="first run this Python file, which gives operators (torch.library); may be repeated",
    )  # fmt: skip
    return parser
