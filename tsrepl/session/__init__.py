"""Sessions: `Session().execute(text)` gives replies.

Nothing is loaded until it is asked for: entries.py and replies.py are light, and a prompt needs only these to stand.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsrepl.session.session import Session as Session


def __getattr__(name: str) -> Any:
    if name != "Session":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return import_module("tsrepl.session.session").Session
