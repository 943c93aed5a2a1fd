"""The colours, in one table, and what each lexer's tokens mean.

In: a role ("kind", "error") or a pygments token.  Out: a terminal style and a pair of web colours.  The terminal
styles are the sixteen of the reader's own theme, so they suit light and dark; every role is also told by
position or a sign, never by colour alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pygments.token import Token


class Colour(NamedTuple):
    """A role's looks: rich style, prompt_toolkit style, and CSS for light and dark pages, and for either.

    `either` has a contrast of 4.3 on white and on a notebook's dark background.
    """

    rich: str
    prompt: str
    light: str
    dark: str
    either: str


PALETTE: Final[dict[str, Colour]] = {
    "plain": Colour("none", "", "inherit", "inherit", "inherit"),
    "keyword": Colour("magenta", "ansimagenta", "#8250df", "#d2a8ff", "#9358e7"),
    "kind": Colour("blue", "ansiblue", "#0550ae", "#79c0ff", "#1c77e6"),
    "type": Colour("cyan", "ansicyan", "#0a6b76", "#76d7de", "#108693"),
    "value": Colour("bold", "bold", "#1f2328", "#f0f3f6", "inherit"),
    "constant": Colour("yellow", "ansiyellow", "#8a4b00", "#f0b72f", "#ae6a09"),
    "string": Colour("green", "ansigreen", "#116329", "#7ee787", "#238b45"),
    "comment": Colour("dim", "ansibrightblack", "#59636e", "#9198a1", "#717a84"),
    "command": Colour("bold magenta", "bold ansimagenta", "#8250df", "#d2a8ff", "#9358e7"),
    "title": Colour("bold", "bold", "#1f2328", "#f0f3f6", "inherit"),
    "muted": Colour("dim", "ansibrightblack", "#59636e", "#9198a1", "#717a84"),
    "good": Colour("green", "ansigreen", "#116329", "#7ee787", "#238b45"),
    "warning": Colour("yellow", "ansiyellow", "#8a4b00", "#f0b72f", "#ae6a09"),
    "error": Colour("bold red", "bold ansired", "#b3121d", "#ff9a94", "#e23832"),
    "added": Colour("green", "ansigreen", "#116329", "#7ee787", "#238b45"),
    "removed": Colour("red", "ansired", "#b3121d", "#ff9a94", "#e23832"),
}

SURFACES: Final[dict[str, tuple[str, str]]] = {
    "page": ("#fff", "#0d1117"),
    "panel": ("#f6f8fa", "#151b23"),
    "text": ("#1f2328", "#f0f3f6"),
    "line": ("#d1d9e0", "#3d444d"),
    "wire": ("#8c959f", "#6e7681"),
    "accent": ("#0969da", "#4493f8"),
    "mark": ("#fff3c2", "#4a3b0a"),
}
"""Colours of grounds and lines, on light and dark pages."""

_ROLES: Final = {
    Token.Keyword: "keyword",
    Token.Keyword.Type: "type",
    Token.Keyword.Constant: "constant",
    Token.Name.Function: "kind",
    Token.Name.Class: "type",
    Token.Name.Builtin: "kind",
    Token.Name.Variable: "value",
    Token.Name.Decorator: "command",
    Token.Name.Attribute: "muted",
    Token.Operator.Word: "keyword",
    Token.Number: "constant",
    Token.String: "string",
    Token.Comment: "comment",
    Token.Generic.Emph: "command",
    Token.Generic.Inserted: "added",
    Token.Generic.Deleted: "removed",
}


def role_of(token: object) -> str:
    """The role of a pygments token: its own, or that of the nearest more general token."""
    while token not in _ROLES:
        parent = getattr(token, "parent", None)
        if parent is None:
            return "plain"
        token = parent
    return _ROLES[token]


def prompt_style() -> dict[str, str]:
    """The pygments roles as prompt_toolkit class names -> styles."""
    rows = {}
    for token, role in _ROLES.items():
        name = "pygments." + ".".join(str(token).split(".")[1:]).lower()
        rows[name] = PALETTE[role].prompt
    return rows
