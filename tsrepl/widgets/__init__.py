"""Views of replies that one can take hold of, in notebooks.

In: a reply.  Out: an anywidget with its view.  `WIDGETS` has the widget for each kind of reply that has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

WIDGETS: Final[dict[type[Any], Callable[[Any], Any]]] = {}
