"""The commands of the command line that look at files, compare them and make new ones.

In: the parser to add them to, or parsed arguments.  Out: the replies of the session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import argparse

    from tsrepl.session.replies import Reply


class FileCommand(NamedTuple):
    """`arguments` are for the parser, `run` gives the replies; `trouble` is the exit status of an error."""

    name: str
    about: str
    details: str
    arguments: tuple[tuple[tuple[str, ...], dict[str, Any]], ...]
    run: Callable[[argparse.Namespace], Iterator[Reply]]
    trouble: int = 1


def _identify(options: argparse.Namespace) -> Iterator[Reply]:
    from tsrepl.session.archives import identify_files

    return identify_files(options.files, as_data=options.json)


def _ops(options: argparse.Namespace) -> Iterator[Reply]:
    from tsrepl.session.archives import operators

    return operators(options.file, as_data=options.json)


def _check(options: argparse.Namespace) -> Iterator[Reply]:
    from tsrepl.session.archives import check

    return check(options.file, as_data=options.json)


def _diff(options: argparse.Namespace) -> Iterator[Reply]:
    from tsrepl.session.differences import diff

    return diff(options.files, git=options.git, as_data=options.json)


def _extract(options: argparse.Namespace) -> Iterator[Reply]:
    from tsrepl.session.changes import extract

    return extract(options.file, options.output, force=options.force)


def _report(options: argparse.Namespace) -> Iterator[Reply]:
    from tsrepl.render.report_page import report_program

    return report_program(options.file, options.method, options.input, options.output, options.grad)


def _fix(options: argparse.Namespace) -> Iterator[Reply]:
    from tsrepl.session.changes import fix

    return fix(options.file, options.device, options.output, force=options.force)


def _repack(options: argparse.Namespace) -> Iterator[Reply]:
    from tsrepl.session.changes import repacked

    return repacked(options.file, options.output, force=options.force)


def _cache(options: argparse.Namespace) -> Iterator[Reply]:
    from tsrepl.session.native_code import cache

    return cache(options.what, as_data=options.json)


def _warm(options: argparse.Namespace) -> Iterator[Reply]:
    from tsrepl.session.native_code import warm

    return warm(options.file, options.method, options.input, options.grad, as_data=options.json)


_FILE: Final = (("file",), {"metavar": "FILE", "help": "an archive (.pt)"})
_JSON: Final = (("--json",), {"action": "store_true", "help": "print JSON"})
_OUT: Final = (("-o", "--output"), {"metavar": "OUT", "required": True, "help": "the new archive"})

_CALL: Final = (
    (("--method",), {"metavar": "NAME", "help": "what to call: forward (default); of a text file, main"}),
    (("--input",), {"metavar": "INPUT", "nargs": "+", "action": "extend", "default": [],
                    "help": "as for tsrepl run; may be repeated"}),
)  # fmt: skip
GRAD: Final[tuple[tuple[tuple[str, ...], dict[str, Any]], ...]] = (
    (("--grad",), {"action": "store_true", "default": None,
                   "help": "record gradients in the call, as is done for text files"}),
    (("--no-grad",), {"dest": "grad", "action": "store_false", "default": None,
                      "help": "record none, as is done for archives"}),
)  # fmt: skip
_FORCE: Final = (("--force",), {"action": "store_true", "help": "overwrite the file if there is one"})

_IDENTIFY_DETAILS = """\
The contents decide, never the name: TorchScript archives of every age, state
dicts, pickled models, mobile and .pt2 files, safetensors, ONNX, GGUF, Keras and
NumPy files, cut-off downloads, saved web pages and more.
"""
_OPS_DETAILS = """\
exit status:
  0  all operators are known
  3  some are missing (the archive loads; calling one of them fails)
  1  no program
"""
_CHECK_DETAILS = """\
exit status:
  0  nothing suspicious
  3  something suspicious: operators that are not known, code that does not
     compile, code that runs while loading, records that no program reads,
     endless loops, huge tensors
  1  the file is refused or is no TorchScript archive
"""
_DIFF_DETAILS = """\
exit status: 0 no differences, 1 differences, 2 trouble

in git, to see what changed inside archives:
  git config diff.torchscript.command 'tsrepl diff --git'
  echo '*.pt diff=torchscript' >> .gitattributes
  git diff
"""
_EXTRACT_DETAILS = """\
examples:
  tsrepl extract model.pt weights.safetensors    the weights
  tsrepl extract model.pt weights.npz            the same for NumPy, with
                                                 float32 for bfloat16
  tsrepl extract model.pt folder                 code, constants, extra files and
                                                 weights, into a new folder
"""
_REPACK_DETAILS = """\
examples:
  tsrepl repack old.pt -o new.pt
  tsrepl repack model.pt -o model.ptl            with bytecode, for phones
  tsrepl repack model.pt -o model.ff             the same as a flatbuffer
"""
_FIX_DETAILS = """\
examples:
  tsrepl fix --device cpu gpu_model.pt -o model.pt
"""
_REPORT_DETAILS = """\
examples:
  tsrepl report model.pt --input 'randn(1, 3, 64, 64)' -o out.html
  tsrepl report program.py --method f --input 'ones(2)' -o out.html

The page stands alone; wherever it names a line, it links to the source.
"""

_CACHE_DETAILS = """\
what:
  list     the library of operators, plans and kernels of programs by kind:
           sizes, ages, what is stale (default)
  verify   read all of it; exit status 3 if something is not as it was written
  clear    remove it; it is made again when it is needed
"""
_WARM_DETAILS = """\
examples:
  tsrepl warm                       the library of native operators
  tsrepl warm model.pt --input 'randn(1, 3, 64, 64)'
                                    and all that is compiled for such a call

Programs run on NumPy until the library is there.  It is built once for each
machine, beside the first program that needs it; this builds it now.  With a
file, the call is made, as tsrepl run makes it, and its plan and kernels are
kept: programs that make such calls find them, and compile nothing.
"""

COMMANDS: Final[tuple[FileCommand, ...]] = (
    FileCommand("identify", "say what a file is and what to do with it", _IDENTIFY_DETAILS,
                ((("files",), {"metavar": "FILE", "nargs": "+", "help": "any file"}), _JSON), _identify),
    FileCommand("check", "say what a program can do and what is suspicious about it", _CHECK_DETAILS,
                (_FILE, _JSON), _check),
    FileCommand("ops", "list a program's operators and those that are missing", _OPS_DETAILS, (_FILE, _JSON), _ops),
    FileCommand("diff", "compare two model files: code, attributes, weights", _DIFF_DETAILS,
                ((("files",), {"metavar": "FILE", "nargs": "+", "help": "two files: programs or weights"}), _JSON,
                 (("--git",), {"action": "store_true", "help": "read the arguments that git gives a diff driver"})),
                _diff, 2),
    FileCommand("extract", "take weights, code and constants out of a model file", _EXTRACT_DETAILS,
                ((("file",), {"metavar": "FILE", "help": "an archive or a file of weights"}),
                 (("output",), {"metavar": "OUT", "help": "a .safetensors or .npz file, or a new folder"}), _FORCE),
                _extract),
    FileCommand("fix", "change the devices that an archive names", _FIX_DETAILS,
                ((("--device",), {"metavar": "NAME", "default": "cpu", "help": "cpu (default), cuda, cuda:1"}),
                 _FILE, _OUT, _FORCE), _fix),
    FileCommand("report", "write a page: source, graph, passes that ran, guards, kernels, profile", _REPORT_DETAILS,
                ((("file",), {"metavar": "FILE", "help": "an archive (.pt) or TorchScript text (.py)"}),
                 *_CALL, *GRAD,
                 (("-o", "--output"), {"metavar": "OUT", "required": True, "help": "the page to write (.html)"})),
                _report),
    FileCommand("repack", "write an old archive as archives are written today", _REPACK_DETAILS, (_FILE, _OUT, _FORCE),
                _repack),
    FileCommand("cache", "show, check or remove plans and machine code that are kept on disk", _CACHE_DETAILS,
                ((("what",), {"metavar": "WHAT", "nargs": "?", "default": "list",
                              "choices": ["list", "verify", "clear"], "help": "list, verify or clear"}), _JSON),
                _cache),
    FileCommand("warm", "compile now what programs need: native operators, and all of a call", _WARM_DETAILS,
                ((("file",), {"metavar": "FILE", "nargs": "?",
                              "help": "an archive (.pt) or TorchScript text (.py); none: operators alone"}),
                 *_CALL, *GRAD, _JSON), _warm),
)  # fmt: skip
BY_NAME: Final = {command.name: command for command in COMMANDS}


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands; `add` makes a parser of a name, a line of help, a description and an epilog."""
    for command in COMMANDS:
        about = command.about[0].upper() + command.about[1:] + "."
        parser = add(about, command.details, name=command.name, help=command.about)
        for flags, settings in command.arguments:
            parser.add_argument(*flags, **settings)
