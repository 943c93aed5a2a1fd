"""Pygments lexers for graphs, instructions, trees, shell entries, and what kernels are compiled to.

In: text.  Out: tokens; `palette.role_of` says what each means.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer, bygroups, default, inherit, using
from pygments.lexers.python import PythonLexer
from pygments.token import (
    Comment,
    Generic,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)

_NUMBER = r"-?(?:\d+\.\d*(?:e[+-]?\d+)?|\.\d+|\d+(?:e[+-]?\d+)?)j?|-?\binf\b|\bnan\b"
_STRING = r'"(?:\\.|[^"\\])*"' + r"|'(?:\\.|[^'\\])*'"

Tokens = dict[str, list[Any]]


class IRLexer(RegexLexer):  # type: ignore[misc]  # pygments has no types
    """Graphs in their canonical text."""

    name = "TorchScript IR"
    aliases: ClassVar[list[str]] = ["torchscript-ir"]
    tokens: ClassVar[Tokens] = {
        "root": [
            (r"#.*$", Comment),
            (r"\s+", Whitespace),
            (
                r"(%)([\w.]+)(\s*)(:)(\s*)",
                bygroups(Name.Variable, Name.Variable, Whitespace, Punctuation, Whitespace),
                "type",
            ),
            (r"%[\w.]+", Name.Variable),
            (r"\b(graph|return|block\d+|with)\b", Keyword),
            (r"[A-Za-z_]\w*(?:::[\w.]+)+", Name.Function),
            (r"\[", Punctuation, "attributes"),
            (r"->", Keyword),
            (_STRING, String),
            (_NUMBER, Number),
            (r"\^[\w.]+", Name.Function),
            (r"[(){}\],=:]", Punctuation),
            (r"[\w.]+", Text),
            (r".", Text),
        ],
        "attributes": [
            (r"\]", Punctuation, "#pop"),
            (r"(\w+)(=)", bygroups(Name.Attribute, Punctuation)),
            (r"\[", Punctuation, "#push"),
            (_STRING, String),
            (_NUMBER, Number),
            (r"<[^>\n]*>", Number),
            (r"[\w.]+", Number),
            (r"\s+", Whitespace),
            (r".", Punctuation),
        ],
        "type": [
            (r"\(", Keyword.Type, "inside-type"),
            (r"\[\]|[?]", Keyword.Type),
            (r"[\w.<>*]+", Keyword.Type),
            default("#pop"),
        ],
        "inside-type": [
            (r"\(", Keyword.Type, "#push"),
            (r"\)", Keyword.Type, "#pop"),
            (r"[^()]+", Keyword.Type),
        ],
    }


class InstructionsLexer(RegexLexer):  # type: ignore[misc]  # pygments has no types
    """Listings of the interpreter: `8 = t move(3)`."""

    name = "TorchScript instructions"
    aliases: ClassVar[list[str]] = ["torchscript-instructions"]
    tokens: ClassVar[Tokens] = {
        "root": [
            (r"#.*$", Comment),
            (r"@\d+:?|->", Keyword),
            (r"^(\s*)((?:\d+(?:,\s*)?)*)(\s*)(=)(\s*)([\w:.]+)",
             bygroups(Whitespace, Name.Variable, Whitespace, Operator, Whitespace, Name.Function)),
            (r"\b(move)(\()(\d+)(\))", bygroups(Keyword, Punctuation, Name.Variable, Punctuation)),
            (_STRING, String),
            (r"[A-Za-z_][\w:.]*", Name.Function),
            (r"\d+", Name.Variable),
            (r"\s+", Whitespace),
            (r".", Punctuation),
        ]
    }  # fmt: skip


class LLVMLexer(RegexLexer):  # type: ignore[misc]  # pygments has no types
    """LLVM's IR, of which the operations and types stand out: its values are nearly all of the rest."""

    name = "LLVM for TorchScript"
    aliases: ClassVar[list[str]] = ["torchscript-llvm"]
    tokens: ClassVar[Tokens] = {
        "root": [
            (r";.*$", Comment),
            (r'^("[^"\n]*"|[\w.$-]+)(:)', bygroups(Name.Function, Punctuation)),
            (r"^[a-z][\w.]*", Keyword),
            (r'^([^\S\n]+)((?:%(?:"[^"\n]*"|[\w.$-]+)\s*=\s*)?)([a-z]\w*)', bygroups(Whitespace, Text, Name.Function)),
            (r"\b(?:i\d+|half|bfloat|float|double|ptr|void|label|metadata)\b", Keyword.Type),
            (r'@(?:"[^"\n]*"|[\w.$-]+)', Name.Function),
            (r'%(?:"[^"\n]*"|[\w.$-]+)', Text),
            (r"![\w.]*", Comment),
            (_STRING, String),
            (r"0x[0-9A-Fa-f]+|-?\b\d+(?:\.\d+(?:e[+-]?\d+)?)?\b|\b(?:true|false|undef|poison|null)\b", Number),
            (r"\n|[^\S\n]+|[\w.]+|.", Text),  # a line begins behind a newline of its own
        ]
    }


class AssemblyLexer(RegexLexer):  # type: ignore[misc]  # pygments has no types
    """Assembly of hosts, PTX, and what GPUs run: operations, registers and numbers."""

    name = "assembly for TorchScript"
    aliases: ClassVar[list[str]] = ["torchscript-assembly"]
    tokens: ClassVar[Tokens] = {
        "root": [
            (r"(?:#|//).*$|/\*.*?\*/", Comment),
            (r"^([\w.$@]+)(:)", bygroups(Name.Function, Punctuation)),
            (r"^([^\S\n]*)(\.[A-Za-z_][\w.]*)", bygroups(Whitespace, Keyword)),
            (r"^([^\S\n]+)((?:@!?%?\w+\s+)?)([A-Za-z][\w.]*)", bygroups(Whitespace, Text, Name.Function)),
            (r"%\w[\w.]*", Keyword.Type),
            (r"\$?-?\b(?:0[xX][0-9A-Fa-f]+|0[fF][0-9A-Fa-f]{8}|\d+(?:\.\d+)?)\b", Number),
            (r"\.[A-Za-z_][\w.]*", Keyword),
            (_STRING, String),
            (r"\n|[^\S\n]+|[\w$@]+|.", Text),
        ]
    }


class TreeLexer(RegexLexer):  # type: ignore[misc]  # pygments has no types
    """Syntax trees as s-expressions: the word after a bracket is the kind."""

    name = "TorchScript tree"
    aliases: ClassVar[list[str]] = ["torchscript-tree"]
    tokens: ClassVar[Tokens] = {
        "root": [
            (r"(\()(ident)(\s+)([^\s()]+)", bygroups(Punctuation, Comment, Whitespace, Name.Variable)),
            (r"(\()([^\s()]+)", bygroups(Punctuation, Name.Function)),
            (_STRING, String),
            (_NUMBER, Number),
            (r"\s+", Whitespace),
            (r"[()]", Punctuation),
            (r"[^\s()]+", Text),
        ]
    }


class EntryLexer(PythonLexer):  # type: ignore[misc]  # pygments has no types
    """Lexer for entries at the prompt: TorchScript, or a command."""

    name = "TorchScript entry"
    aliases: ClassVar[list[str]] = ["torchscript-entry"]
    tokens: ClassVar[Tokens] = {
        "root": [
            (r"^(\s*)(%\w*)(.*\n?)", bygroups(Whitespace, Generic.Emph, using(PythonLexer))),
            (r"\b(torch|math)\b", Name.Builtin),
            (r"\b(Tensor|List|Dict|Optional|Tuple|Union|Future)\b", Keyword.Type),
            inherit,
        ]
    }
