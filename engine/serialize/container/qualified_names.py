"""Qualified names such as `__torch__.foo.Bar`: the records of their code, and mangling for uniqueness.

In: names.  Out: prefixes, record paths, and names that are unique in one archive.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import field
from typing import Final

from engine.lang.records import dataclass

ROOT: Final = "__torch__"
CODE_FOLDER: Final = "code/"
_MANGLE: Final = "___torch_mangle_"
_MANGLED_PART: Final = re.compile(rf"{_MANGLE}\d+")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_identifier(text: str) -> bool:
    return _IDENTIFIER.fullmatch(text) is not None


def is_qualified(text: str) -> bool:
    return all(map(is_identifier, text.split(".")))


def prefix_of(qualname: str) -> str:
    """`__torch__.foo` of `__torch__.foo.Bar`; "" when there is none."""
    return qualname.rpartition(".")[0]


def name_of(qualname: str) -> str:
    return qualname.rpartition(".")[2]


def record_of(prefix: str) -> str:
    """`code/__torch__/foo.py` holds everything that is named `__torch__.foo.…`."""
    return f"{CODE_FOLDER}{prefix.replace('.', '/')}.py"


@dataclass(slots=True, eq=False)
class TypeNames:
    """Names of classes and functions in one archive: their own, mangled where taken."""

    _names: dict[Hashable, str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    _count: int = 0

    def unique(self, owner: Hashable, qualname: str) -> str:
        """The name of `owner` in this archive; the same at every call."""
        known = self._names.get(owner)
        if known is None:
            known = self._names[owner] = self._free(below_root(qualname))
            self._used.add(known)
        return known

    def _free(self, qualname: str) -> str:
        parts = qualname.split(".")
        while (candidate := ".".join(parts)) in self._used:
            mangle = f"{_MANGLE}{self._count}"
            self._count += 1
            at = next((i for i, part in enumerate(parts) if _MANGLED_PART.fullmatch(part)), None)
            if at is None:
                parts.insert(len(parts) - 1, mangle)
            else:
                parts[at] = mangle
        return candidate


def below_root(qualname: str) -> str:
    """The name below `__torch__`, where archives keep everything; one that is there already is unchanged."""
    return qualname if qualname.partition(".")[0] == ROOT else f"{ROOT}.{qualname}"
