"""The file of the reader's settings: its path, and what may stand in it.

In: nothing.  Out: a path, and a row for each setting.  It stands alone because the prompt reads it before the session
is loaded, and help tells of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import platformdirs


class Setting(NamedTuple):
    """A line of the file, and its meaning."""

    name: str
    example: str
    meaning: str


SETTINGS: Final = (
    Setting("editing_mode", 'editing_mode = "vi"', 'or "emacs", which it is without this line'),
    Setting("pager", "pager = false", 'or a program, "less -R"; true without this line'),
    Setting("theme", 'theme = "light"', 'or "dark"; "auto" without this line: by COLORFGBG'),
)


def settings_path() -> Path:
    """The path of the file of settings, which need not be there."""
    return platformdirs.user_config_path("tsrepl") / "config.toml"
