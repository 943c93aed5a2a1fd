"""Archive versions: the operators that changed their meaning, with the version of the change.

In: qualified operator names.  Out: the least version an archive that uses them must say it has, so that
readers do not take it for an older one and change its calls.  Alone because the writer and the readers of records need
the numbers without the frontend that `upgraders.py` imports.
"""

from __future__ import annotations

from typing import Final

OLDEST: Final = 1
"""The version of operators whose meaning never changed, which programs for phones say they need."""
OLDEST_WRITTEN: Final = 3
NEWEST_READ: Final = 10
DATA_FOLDER_SINCE: Final = 6
"""From this version on the version record lies in `.data/`."""

_MODES: Final = ("Tensor", "Scalar", "Tensor_mode", "Scalar_mode")
_CHANGED_AT: Final[dict[str, int]] = {
    **dict.fromkeys((f"aten::{name}.{mode}" for name in ("div", "div_") for mode in _MODES), 4),
    "aten::div.out": 4, "aten::div.out_mode": 4,
    "aten::full": 5, "aten::full.out": 5,
    "aten::linspace": 8, "aten::linspace.out": 8,
    "aten::logspace": 9, "aten::logspace.out": 9,
    "aten::gelu": 10, "aten::gelu.out": 10,
}  # fmt: skip


def version_of(qualified_name: str) -> int:
    """The version at which the operator got its present meaning, 0 when it always had it."""
    return _CHANGED_AT.get(qualified_name, 0)
