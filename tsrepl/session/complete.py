"""Completion at the cursor.

In: the text before it.  Out: candidates: names of the session, operators after `torch.`, methods and attributes after a
value, commands after `%`, files where a command takes one.
"""

from __future__ import annotations

import builtins
import glob
import math
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Final

from engine.aten.dispatch import table
from engine.aten.values.ivalue import Object
from engine.frontend.names.namespaces import RENAMED, SPECIAL_FORMS, SUB_NAMESPACES
from engine.frontend.standard_library import library
from engine.lang.deferred import deferred
from engine.lang.errors import EngineError
from engine.lang.scalars import DTYPE_BY_NAME
from engine.lang.types import ClassType, EnumType, TensorType, TupleType, Type
from engine.passes.pipeline import names as pass_names
from engine.torch.namespace import functions
from tsrepl.session.commands import COMMANDS, Command, find_command
from tsrepl.session.entries import COMMAND, ends_in_text
from tsrepl.session.failures import UsageError
from tsrepl.session.module_methods import methods_of
from tsrepl.session.node_kinds import NODE_KINDS
from tsrepl.session.replies import Candidate
from tsrepl.session.signatures import keywords_at
from tsrepl.session.workspace import Workspace

if TYPE_CHECKING:
    from engine.torch.jit.probing import taps
    from tsrepl.session import debugging, module_classes
else:
    module_classes = deferred("tsrepl.session.module_classes")
    debugging = deferred("tsrepl.session.debugging")
    taps = deferred("engine.torch.jit.probing.taps")

MOST: Final = 400
_LEAST: Final = 3
"""Letters from which on names are found that have them at the beginnings of words; with more of them, anywhere."""
_WORDS: Final = "(?:.*_)?"
_NAME: Final = re.compile(r"(?:((?:[\w.)\]]|\[-?\d+\])*)\.)?(\w*)$")
_NAMES: Final = re.compile(r"[A-Za-z_][\w.]*")
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(?:\.\w+|\[-?\d+\])+")
_WORD: Final = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*(?:'|$)|"[^"]*(?:"|$))+""")
"""A word of a command; quotation marks may still be open at its end."""
_BUILTINS: Final = (
    "print", "range", "len", "int", "float", "bool", "str", "abs", "min", "max", "round", "zip", "enumerate", "sorted",
    "reversed", "isinstance", "hasattr", "getattr", "list", "tuple", "dict", "any", "all", "ord", "chr", "pow",
    "divmod", "sum", "hex", "bin", "oct", "hash", "type", "super", "complex",
)  # fmt: skip
_KEYWORDS: Final = (
    "def", "return", "if", "elif", "else", "for", "while", "in", "not", "and", "or", "is", "None", "True", "False",
    "break", "continue", "pass", "assert", "raise", "class", "with", "as", "del", "lambda", "import", "from",
)  # fmt: skip
_WITH_OPERATORS: Final = (
    "torch",
    "torch.nn.functional",
    "torch.linalg",
    "torch.special",
    "torch.fft",
    "torch.ops.aten",
)
"""Namespaces in which operators stand."""
_TYPES: Final = ("Tensor", "List", "Dict", "Optional", "Tuple", "Union")

Found = Iterable[tuple[str, str]]


def candidates(workspace: Workspace, before: str) -> list[Candidate]:
    """At most `MOST` candidates for the end of `before`, those of the session first."""
    line = before.rpartition("\n")[2]
    dialogue = workspace.partner
    if isinstance(dialogue, debugging.DebugDialogue) and not line.startswith(COMMAND):
        word, found, is_expression = debugging.completions(dialogue, line)
        rows = _matching(word, found)
        return rows or (_expression(workspace, line) if is_expression else [])
    if "\n" not in before.strip("\n") and line.lstrip().startswith(COMMAND):
        return _after_percent(workspace, line.lstrip())
    return [] if ends_in_text(before) else _code(workspace, line)


def _after_percent(workspace: Workspace, line: str) -> list[Candidate]:
    name, blank, argument = line[len(COMMAND) :].partition(" ")
    if not blank:
        return _matching(name, ((command.name, command.summary) for command in COMMANDS))
    try:
        kinds = find_command(name).argument.split()
    except UsageError:
        return []
    if not kinds:
        return []
    *before, last = argument.split(" ")
    if last.startswith("--"):
        return _matching(last, ((option, "option") for option in _options(find_command(name))))
    if before and before[-1] in _VALUED:
        return []
    position = len(argument.split()) - (not argument.endswith(" ") and bool(argument.split()))
    return _ARGUMENTS[kinds[min(position, len(kinds) - 1)]](workspace, argument)


_OPTION: Final = re.compile(r"--[a-z][\w-]*")
_VALUED: Final = ("--target", "--last", "--line")
"""Options behind which no name of the session stands."""


def _options(command: Command) -> Iterable[str]:
    """The options that a command's row mentions."""
    return dict.fromkeys(_OPTION.findall(f"{command.usage} {command.details} {' '.join(command.examples)}"))


def _expression(workspace: Workspace, text: str) -> list[Candidate]:
    return [] if ends_in_text(text) else _code(workspace, text)


def _code(workspace: Workspace, text: str) -> list[Candidate]:
    match = _NAME.search(text)
    assert match is not None
    base, prefix = match[1], match[2]
    if base is not None:
        return _matching(prefix, _members(workspace, base))
    keywords = [(f"{name}=", "argument") for name in keywords_at(workspace, text[: match.start(2)])]
    own = _matching(prefix, keywords, beginning=True)
    return own + (_matching(prefix, _names(workspace)) if prefix else [])


def _functions(workspace: Workspace, argument: str) -> list[Candidate]:
    if "." in argument or "(" in argument:
        return _expression(workspace, argument)
    first, blank, _ = argument.partition(" ")
    if blank and not first.startswith("-"):
        return _matching(argument.rpartition(" ")[2], ((name, "pass") for name in pass_names()))
    argument = argument.rpartition(" ")[2]
    return _matching(argument, ((b.name, b.kind) for b in workspace.bindings() if b.kind in ("function", "module")))


def _passes(workspace: Workspace, argument: str) -> list[Candidate]:
    """The names of passes behind a function or an expression; within its brackets, what an expression takes."""
    if argument.count("(") > argument.count(")"):
        return _expression(workspace, argument)
    return _matching(argument.split(" ")[-1], ((name, "pass") for name in pass_names()))


def _own_names(workspace: Workspace, argument: str) -> list[Candidate]:
    return _matching(argument.split(" ")[-1], ((b.name, b.kind) for b in workspace.bindings()))


def _commands(workspace: Workspace, argument: str) -> list[Candidate]:
    return _matching(argument, ((command.name, command.summary) for command in COMMANDS))


def _operators(workspace: Workspace, argument: str) -> list[Candidate]:
    return _matching(argument, ((name, "operator") for name in _torch_functions()))


def _places(workspace: Workspace, argument: str) -> list[Candidate]:
    """A module, then the submodules inside, then the call behind `--`."""
    before, separator, call = argument.partition(" -- ")
    if separator:
        return _expression(workspace, call)
    name, blank, _ = before.partition(" ")
    value = workspace.seen().get(name)
    if not blank:
        return _matching(name, ((b.name, b.kind) for b in workspace.bindings() if b.kind == "module"))
    if value is None or not isinstance(value.value, Object):
        return []
    paths = (path for found in taps.paths_of(value.value).values() for path in found if path)
    return _matching(before.split(" ")[-1], ((path, "submodule") for path in paths))


def _paths(workspace: Workspace, argument: str) -> list[Candidate]:
    written = _last_word(argument)
    typed = _without_quotes(written)
    found = sorted(glob.glob(glob.escape(os.path.expanduser(typed)) + "*"))[:MOST]
    home, tail = os.path.expanduser("~"), os.path.basename(typed)
    rows = []
    for path in found:
        shown = os.path.basename(path) + ("/" if os.path.isdir(path) else "")
        whole = path.replace(home, "~", 1) if typed.startswith("~") else path
        text = os.path.join(os.path.dirname(whole), shown) if os.path.dirname(whole) else shown
        rows.append(Candidate(_quoted(text, written), "folder" if shown.endswith("/") else "file", len(written), shown))
    return [row for row in rows if tail.startswith(".") or not row.label.startswith(".")]


def _last_word(argument: str) -> str:
    """The word at the end, as it was typed: blanks in quotation marks belong to it."""
    words = list(_WORD.finditer(argument))
    return words[-1][0] if words and words[-1].end() == len(argument) else ""


def _without_quotes(word: str) -> str:
    """The word without its quotation marks, the last of which may be missing."""
    for ending in ("", "'", '"'):
        try:
            return "".join(shlex.split(word + ending))
        except ValueError:
            continue
    return word


def _quoted(path: str, written: str) -> str:
    """The path as a command reads it; the quotation marks of a folder stay open for what is in it."""
    if written[:1] not in ("'", '"') and shlex.quote(path.replace("~", "_")) == path.replace("~", "_"):
        return path
    text = "'" + path.replace("'", "'\"'\"'") + "'"
    return text.removesuffix("'") if path.endswith("/") else text


def _documented(workspace: Workspace, argument: str) -> list[Candidate]:
    """All that `%doc` knows by a name alone."""
    if "." in argument:
        return _expression(workspace, argument)
    kinds = ((name, "node") for name in NODE_KINDS)
    return _matching(argument, chain(_names(workspace), ((name, "pass") for name in pass_names()), kinds))


_ARGUMENTS: Final[dict[str, Callable[[Workspace, str], list[Candidate]]]] = {
    "function": _functions,
    "documented": _documented,
    "expression": _expression,
    "operator": _operators,
    "pass": _passes,
    "path": _paths,
    "place": _places,
    "name": _own_names,
    "command": _commands,
    "number": lambda workspace, argument: [],
    "variable": lambda workspace, argument: _matching(argument, ((name, "variable") for name in os.environ)),
}


def _names(workspace: Workspace) -> Iterator[tuple[str, str]]:
    if workspace.partner is not None:
        yield from ((name, "variable") for name in workspace.partner.values())
    yield from ((binding.name, binding.kind) for binding in workspace.bindings())
    yield from ((name, "namespace") for name in ("torch", "math"))
    yield from ((name, path) for name, path in workspace.definitions.imports.items())
    yield from ((name, "builtin") for name in _BUILTINS)
    yield from ((name, "keyword") for name in _KEYWORDS)
    yield from ((name, "type") for name in _TYPES)
    yield from ((name, "operator") for name in _torch_functions())


def _members(workspace: Workspace, base: str) -> Found:
    """Names that may follow `base.`: for an expression that is not a plain path, the methods of a tensor."""
    path = base if base.partition(".")[0] in workspace.seen() else workspace.definitions.spelled(base)
    if path == "torch.nn":
        layers = ((name, "class") for name in module_classes.layer_names())
        return chain(layers, _namespace_names(path))
    if path == "torch" or path in SUB_NAMESPACES:
        return _namespace_names(path)
    if path == "math":
        return ((name, "function") for name in vars(math) if not name.startswith("_"))
    type = workspace.type_of_path(base) or _type_of_expression(workspace, base)
    is_class = path == base and base.partition(".")[0] not in workspace.seen() and workspace.type_of_path(base) == type
    if isinstance(type, EnumType):
        return [(name, "member") for name, _ in type.members] if is_class else [("name", "field"), ("value", "field")]
    if isinstance(type, ClassType):
        return _class_members(type)
    if isinstance(type, TupleType) and type.fields:
        return ((name, "field") for name in type.fields)
    if type is None or isinstance(type, TensorType):
        return ((name, "method") for name in _tensor_methods()) if type or not _NAMES.fullmatch(base) else ()
    return ((name, "method") for name in _container_methods(type))


def _class_members(type: ClassType) -> Iterator[tuple[str, str]]:
    yield from ((name, "method") for name in (*type.methods, *(methods_of(type) if type.is_module else ())))
    yield from ((a.name, "module" if isinstance(a.type, ClassType) else a.kind) for a in type.attributes)


def _type_of_expression(workspace: Workspace, base: str) -> Type | None:
    """The static type of `x.shape`, where the text is a whole path; None of others and of what does not compile."""
    if not _DOTTED.fullmatch(base):
        return None
    with suppress(EngineError):
        return workspace.compile_expression(base)[0].schema.returns[0].type
    return None


def _container_methods(type: Type) -> list[str]:
    """The methods of Python's type that TorchScript has, too: operators whose first argument is of the type."""
    kind = type.annotation_str.partition("[")[0]
    python = vars(getattr(builtins, {"str": "str", "List": "list", "Dict": "dict"}.get(kind, "object")))
    return [name for name in python if not name.startswith("_") and kind in _owners(name)]


def _owners(operator: str) -> set[str]:
    """The kinds of the first arguments of an operator's overloads."""
    schemas = (entry.schema.arguments for entry in table.overloads(f"aten::{operator}"))
    return {arguments[0].type.annotation_str.partition("[")[0] for arguments in schemas if arguments}


@cache
def _namespace_names(path: str) -> tuple[tuple[str, str], ...]:
    """The names of `torch` or a namespace in it, as `torch.nn.functional`: what programs find there."""
    operators = functions.known(path) if path in _WITH_OPERATORS else ()
    forms = [name.rpartition(".")[2] for name in (*SPECIAL_FORMS, *RENAMED) if name.rpartition(".")[0] == path]
    written = [name for name in library.names() if library.find(f"{path}.{name}")]
    public = dict.fromkeys(name for name in (*operators, *forms, *written) if not name.startswith("_"))
    inner = [name.rpartition(".")[2] for name in SUB_NAMESPACES if name.rpartition(".")[0] == path]
    dtypes = [(name, "dtype") for name in DTYPE_BY_NAME] if path == "torch" else []
    return (*((name, "operator") for name in public), *((name, "namespace") for name in sorted(inner)), *dtypes)


@cache
def _torch_functions() -> tuple[str, ...]:
    names = (name.partition("::")[2] for name in table.names() if name.startswith("aten::"))
    return tuple(name for name in names if name.isidentifier() and not name.startswith("_"))


@cache
def _tensor_methods() -> tuple[str, ...]:
    methods = {entry.name.partition("::")[2] for entry in table.entries() if "method" in entry.variants}
    return tuple(sorted({*methods, "shape", "dtype", "device", "requires_grad", "grad", "T", "ndim"}))


def _matching(prefix: str, found: Found, *, beginning: bool = False) -> list[Candidate]:
    """Those that begin so; unless the `beginning` has to fit, where none does, those with the same first letter and the
    others behind it: each of them next, or at the beginning of a word; only of longer texts anywhere."""
    known = {name: kind for name, kind in reversed(list(found)) if prefix.startswith("_") or not name.startswith("_")}
    rows = {name: kind for name, kind in reversed(known.items()) if name.startswith(prefix)}
    gaps = () if beginning or len(prefix) < _LEAST else (_WORDS, ".*") if len(prefix) > _LEAST else (_WORDS,)
    for gap in gaps:
        if not rows:
            letters = re.compile(gap.join(map(re.escape, prefix)))
            rows = {name: kind for name, kind in reversed(known.items()) if letters.match(name)}
    return [Candidate(name, kind, len(prefix)) for name, kind in list(rows.items())[:MOST]]
