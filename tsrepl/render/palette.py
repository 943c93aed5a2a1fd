"""The colours, in one table, the themes, and what each lexer's tokens mean.

In: a role ("kind", "error") or a pygments token, and what the environment says of the terminal.  Out: the styles of
all roles in a theme, for rich and for prompt_toolkit; a pair of colours for web pages.  Every role is also told by
position or a sign, never by colour alone.

| theme | colours |
| --- | --- |
| dark, light | the palette's own, for such a background |
| terminal | the sixteen of the reader's own terminal, which suit its background, whatever that is |
| plain | none, and nothing is bold or dim |
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from pygments.token import Token

from engine.lang.deferred import deferred

if TYPE_CHECKING:
    from rich import theme as rich_themes
else:
    rich_themes = deferred("rich.theme")

AUTO: Final = "auto"
CHOICES: Final = ("dark", "light", AUTO)
"""The themes that a reader can choose."""
VARIABLE: Final = "TSREPL_THEME"
_DARK: Final = frozenset("01234568")
"""The numbers of the dark ones among a terminal's sixteen colours."""


class Colour(NamedTuple):
    """A role's looks: attributes, one of a terminal's sixteen colours or "dim", colours for light and dark pages.

    `either`, for both, has a contrast of 3.8 and more on white and on a notebook's dark background: 4.9 where a page
    mixes it with the colour of its text, see `mixed`.
    """

    attributes: str
    terminal: str
    light: str
    dark: str
    either: str


PALETTE: Final[dict[str, Colour]] = {
    "plain": Colour("", "", "inherit", "inherit", "inherit"),
    "keyword": Colour("", "magenta", "#6639ba", "#d2a8ff", "#9358e7"),
    "kind": Colour("", "blue", "#0550ae", "#79c0ff", "#1c77e6"),
    "type": Colour("", "cyan", "#0a6b76", "#76d7de", "#108693"),
    "value": Colour("bold", "", "#1f2328", "#f0f3f6", "inherit"),
    "constant": Colour("", "yellow", "#8a4b00", "#f0b72f", "#ae6a09"),
    "string": Colour("", "green", "#116329", "#7ee787", "#238b45"),
    "comment": Colour("", "dim", "#59636e", "#9198a1", "#717a84"),
    "command": Colour("bold", "magenta", "#6639ba", "#d2a8ff", "#9358e7"),
    "title": Colour("bold", "", "#1f2328", "#f0f3f6", "inherit"),
    "muted": Colour("", "dim", "#59636e", "#9198a1", "#717a84"),
    "good": Colour("", "green", "#116329", "#7ee787", "#238b45"),
    "warning": Colour("", "yellow", "#8a4b00", "#f0b72f", "#ae6a09"),
    "error": Colour("bold", "red", "#b3121d", "#ff9a94", "#e23832"),
    "added": Colour("", "green", "#116329", "#7ee787", "#238b45"),
    "removed": Colour("", "red", "#b3121d", "#ff9a94", "#e23832"),
}
EITHER: Final = tuple(dict.fromkeys(each.either for each in PALETTE.values() if each.either != "inherit"))
"""The colours for pages whose theme is not known."""
OWN: Final = 0.8
"""The part of a mixed colour that is the role's own."""
MENUS: Final = {
    "dark": ("#f0f3f6", "#30363d"),
    "light": ("#1f2328", "#d8dee4"),
    "terminal": ("#000000", "#bbbbbb"),
    "plain": ("default", "default"),
}
"""Text and background of completions; the chosen one is reversed."""

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


def mixed(colour: str) -> str:
    """A colour for pages whose theme is not known, as CSS: with some of the colour of the page's text, it is darker on
    light pages and lighter on dark ones."""
    return f"color-mix(in srgb,{colour} {OWN:.0%},currentcolor)"


def role_of(token: object) -> str:
    """The role of a pygments token: its own, or that of the nearest more general token."""
    while token not in _ROLES:
        parent = getattr(token, "parent", None)
        if parent is None:
            return "plain"
        token = parent
    return _ROLES[token]


def chosen_theme(wanted: str = AUTO) -> str:
    """The theme for this terminal.  `TSREPL_THEME` counts more than what is wanted; NO_COLOR (https://no-color.org) and
    terminals of sixteen colours more than both."""
    if os.environ.get("NO_COLOR"):
        return "plain"
    if not _has_many_colours():
        return "terminal"
    named = os.environ.get(VARIABLE, "")
    choice = named if named in CHOICES else wanted
    return _background() if choice == AUTO else choice


def _has_many_colours() -> bool:
    return "256" in os.environ.get("TERM", "") or bool(os.environ.get("COLORTERM"))


def _background() -> str:
    """The theme for the background that COLORFGBG tells, as "15;0"; where nothing does, the terminal's own."""
    number = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    if not number.isdecimal():
        return "terminal"
    return "dark" if number in _DARK else "light"


@cache
def rich_theme(theme: str) -> rich_themes.Theme:
    """Styles for rich, by role."""
    return rich_themes.Theme({role: _style(each, theme, each.terminal) for role, each in PALETTE.items()})


def prompt_styles(theme: str) -> dict[str, str]:
    """Styles for prompt_toolkit: of the classes named as the roles, and of those named as tokens of pygments."""
    roles = {role: _style(each, theme, _ansi(each.terminal)) for role, each in PALETTE.items()}
    tokens = {f"pygments.{str(token).partition('.')[2].lower()}": roles[role] for token, role in _ROLES.items()}
    return {**roles, **tokens}


def _ansi(name: str) -> str:
    """The name of a colour for prompt_toolkit, whose older versions show nothing dim."""
    return "ansibrightblack" if name == "dim" else name and f"ansi{name}"


def _style(colour: Colour, theme: str, terminal: str) -> str:
    if theme == "plain":
        return ""
    own = {"light": colour.light, "dark": colour.dark}.get(theme, terminal)
    return f"{colour.attributes} {own.replace('inherit', '')}".strip()
