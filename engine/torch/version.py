"""`torch.version`: the version of PyTorch that the engine stands for, and the toolkits it was built with (none)."""

from __future__ import annotations

import re
from typing import Any, Final

ENGINE: Final = "0.1.0"


class TorchVersion(str):
    """A version as text, which compares by its numbers: with texts, and with tuples of numbers."""

    __slots__ = ()

    @property
    def release(self) -> tuple[int, ...]:
        """The numbers before anything else: those of "2.13.0+tsrepl" are 2, 13 and 0."""
        return _release(self)

    def __lt__(self, other: Any) -> bool:
        return self.release < _release(other)

    def __le__(self, other: Any) -> bool:
        return self.release <= _release(other)

    def __gt__(self, other: Any) -> bool:
        return self.release > _release(other)

    def __ge__(self, other: Any) -> bool:
        return self.release >= _release(other)


def _release(version: Any) -> tuple[int, ...]:
    numbers = re.match(r"[\d.]*", version) if isinstance(version, str) else None
    parts = version if numbers is None else (part for part in numbers[0].split(".") if part)
    release = [int(part) for part in parts]
    while release and not release[-1]:
        release.pop()  # 2.1 and 2.1.0 are one
    return tuple(release)


__version__: Final = TorchVersion(f"2.13.0+tsrepl.{ENGINE}")
"""The release whose names and values are compared with, and after the plus sign who answers in its place."""
cuda = None
hip = None
xpu = None
debug = False
git_version = "unknown"
