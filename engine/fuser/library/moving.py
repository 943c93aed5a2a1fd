"""Operators that move elements as they are, of which the stubs alone know how.

In: nothing.  Out: the forms of their calls; there is a row for each operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.fuser.library.forms import Form, Given

_JOINED: Final = (Given("LISTS"), Given("AXIS"))
_OTHERS: Final = (Given("UNREAD"),) * 3
MOVING: Final[Mapping[str, Form]] = {
    "aten::cat": Form(_JOINED, 1, (), {}, "serve_joined"),
    "aten::concat": Form(_JOINED, 1, (), {}, "serve_joined"),
    "aten::concatenate": Form(_JOINED, 1, (), {}, "serve_joined"),
    "aten::stack": Form(_JOINED, 1, (), {}, "serve_joined", is_stacked=True),
    "aten::embedding": Form((Given("TABLES"), Given("INDICES"), *_OTHERS), 2, (), {}, "serve_looked_up"),
}
