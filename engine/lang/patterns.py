"""Regular expressions that are compiled when they are first used.

In: the text of an expression.  Out: what `re.compile` gives, made with the first match: most modules that are loaded
for an answer read none of the texts that their expressions are for, and to compile one takes a tenth of a millisecond.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from re import compile as pattern_of
else:

    class _Pattern:
        """The methods of the compiled expression, each kept here once it is asked for."""

        def __init__(self, text: str | bytes, flags: int = 0) -> None:
            self._made = text, flags

        def __getattr__(self, name: str) -> Any:
            found = getattr(re.compile(*self._made), name)
            setattr(self, name, found)
            return found

    pattern_of = _Pattern

__all__ = ["pattern_of"]
