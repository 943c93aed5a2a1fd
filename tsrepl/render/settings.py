"""The reader's settings for terminals.

In: `config.toml` in the folder that the system has for settings.  Out: `Settings`, and a warning for what is wrong.
The rows of `SETTINGS` say what it may hold.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from engine.lang.deferred import deferred
from engine.lang.records import dataclass
from tsrepl.render.palette import AUTO, CHOICES, VARIABLE
from tsrepl.session.settings import SETTINGS, settings_path

if TYPE_CHECKING:
    import tomllib
else:
    tomllib = deferred("tomllib")  # most readers have no such file

EDITING_MODES: Final = ("emacs", "vi")
_NAMES: Final = tuple(each.name for each in SETTINGS)
_MODE, _PAGER, _THEME = _NAMES


@dataclass(frozen=True, slots=True)
class Settings:
    """The way in which keys are read, whether long output is paged, and the colours; `warning` names a mistake in the
    file, "" for none."""

    editing_mode: str = EDITING_MODES[0]
    warning: str = ""
    pager: bool | str = True
    theme: str = AUTO


def read_settings() -> Settings:
    """The settings; where there is no file, and where it is wrong, those that there are without it."""
    path = settings_path()
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except FileNotFoundError:
        values = {}
    except (OSError, ValueError) as error:
        return Settings(warning=f"{path}: {error}")
    wrong = _mistake(values)
    if wrong:
        return Settings(warning=f"{path}: {wrong}")
    mode, pager = values.get(_MODE, EDITING_MODES[0]), values.get(_PAGER, True)
    return Settings(mode, _mistaken_variable(), pager, values.get(_THEME, AUTO))


def _mistake(values: Mapping[str, Any]) -> str:
    """The first thing that is wrong with the values; "" for nothing."""
    unknown = next((name for name in values if name not in _NAMES), None)
    if unknown is not None:
        return f"there is no setting '{unknown}', only {', '.join(_NAMES)}"
    mode, pager, theme = values.get(_MODE, EDITING_MODES[0]), values.get(_PAGER, True), values.get(_THEME, AUTO)
    if mode not in EDITING_MODES:
        return f"{_MODE} is {' or '.join(EDITING_MODES)}, not {mode!r}"
    if not isinstance(pager, (bool, str)):
        return f"{_PAGER} is true, false or a command, not {pager!r}"
    return "" if theme in CHOICES else f"{_THEME} is {', '.join(CHOICES[:-1])} or {CHOICES[-1]}, not {theme!r}"


def _mistaken_variable() -> str:
    named = os.environ.get(VARIABLE, AUTO)
    return "" if named in CHOICES else f"{VARIABLE} is {', '.join(CHOICES[:-1])} or {CHOICES[-1]}, not {named!r}"
