"""Qualified names such as `__torch__.foo.Bar`: the records of their code, and mangling for uniqueness.

In: names.  Out: prefixes, record paths, and names that are unique in one archive.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field
from typing import Final

from engine.lang.deferred import pattern_of
from engine.lang.records import dataclass
from engine.lang.tokens import KEYWORDS

ROOT: Final = "__torch__"
HOLDER: Final = f"{ROOT}.PlaceholderModule"
"""The class of the module that holds a function which was saved by itself; its flag `training` means nothing."""
CODE_FOLDER: Final = "code/"
MODEL: Final = "model.json"
"""The record that describes a program before PyTorch 1.3."""
_MANGLE: Final = "___torch_mangle_"
_MANGLED_PART: Final = pattern_of(rf"{_MANGLE}\d+")
_IDENTIFIER: Final = pattern_of(r"[A-Za-z_][A-Za-z0-9_]*")


def is_identifier(text: str) -> bool:
    """True if PyTorch's parser, too, reads the name after a dot."""
    return _IDENTIFIER.fullmatch(text) is not None and text not in KEYWORDS


def is_name(text: str) -> bool:
    """True if the parser of archives reads the name."""
    return text.isidentifier() and text not in KEYWORDS


def is_qualified(text: str) -> bool:
    return all(map(is_name, text.split(".")))


def prefix_of(qualname: str) -> str:
    """`__torch__.foo` of `__torch__.foo.Bar`; "" when there is none."""
    return qualname.rpartition(".")[0]


def name_of(qualname: str) -> str:
    return qualname.rpartition(".")[2]


def record_of(prefix: str) -> str:
    """`code/__torch__/foo.py` holds everything that is named `__torch__.foo.…`."""
    return f"{CODE_FOLDER}{prefix.replace('.', '/')}.py"


def prefix_of_record(record: str) -> str:
    """`__torch__.foo` of `code/__torch__/foo.py`; "" of a record that holds no code."""
    is_code = record.startswith(CODE_FOLDER) and record.endswith(".py")
    return record[len(CODE_FOLDER) : -len(".py")].replace("/", ".") if is_code else ""


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
            known = self._names[owner] = self._free(below_root(".".join(map(_as_name, qualname.split(".")))))
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


def _as_name(part: str) -> str:
    """The part with every character replaced that no name holds."""
    if is_name(part):
        return part
    text = "".join(char if f"_{char}".isidentifier() else "_" for char in part)
    return text if is_name(text) else f"_{text}"


def below_root(qualname: str) -> str:
    """The name below `__torch__`, where archives keep everything; one that is there already is unchanged."""
    return qualname if qualname.partition(".")[0] == ROOT else f"{ROOT}.{qualname}"
