"""The reader's settings for the shell.

In: `config.toml` in the folder that the system has for settings.  Out: `Settings`, and a warning for what is wrong.

    editing_mode = "vi"      # or "emacs", which it is without this line
    pager = false            # true without this line: long output opens the shell's pager
    pager = "$PAGER"         # or any other command, as "less -R": long output goes to that program
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

import platformdirs
from prompt_toolkit.enums import EditingMode

from engine.lang.records import dataclass

EDITING_MODES: Final = {"emacs": EditingMode.EMACS, "vi": EditingMode.VI}
_MODE: Final = "editing_mode"
_PAGER: Final = "pager"


@dataclass(frozen=True, slots=True)
class Settings:
    """The way in which keys are read, and whether long output is paged; `warning` names a mistake in the file, "" for
    none."""

    editing_mode: EditingMode = EditingMode.EMACS
    warning: str = ""
    pager: bool | str = True


def settings_path() -> Path:
    """The path of the file of settings, which need not be there."""
    return platformdirs.user_config_path("tsrepl") / "config.toml"


def read_settings() -> Settings:
    """The settings; where there is no file, and where it is wrong, those that there are without it."""
    path = settings_path()
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError) as error:
        return Settings(warning=f"{path}: {error}")
    unknown = next((name for name in values if name not in (_MODE, _PAGER)), None)
    if unknown is not None:
        return Settings(warning=f"{path}: there is no setting '{unknown}', only {_MODE} and {_PAGER}")
    mode, pager = values.get(_MODE, "emacs"), values.get(_PAGER, True)
    if mode not in EDITING_MODES:
        return Settings(warning=f"{path}: {_MODE} is {' or '.join(EDITING_MODES)}, not {mode!r}")
    if not isinstance(pager, (bool, str)):
        return Settings(warning=f"{path}: {_PAGER} is true, false or a command, not {pager!r}")
    return Settings(EDITING_MODES[mode], pager=pager)
