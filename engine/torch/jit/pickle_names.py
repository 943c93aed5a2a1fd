"""`torch.jit._pickle`: the functions that pickles of archives name.

In: what such a pickle holds.  Out: the plain value, for a program that reads the pickles with Python's own `pickle`;
archives are loaded without it (see `engine.serialize.pickling`).
"""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def _itself(data: T) -> T:
    """The list itself: its type was told apart for C++."""
    return data


build_intlist = build_tensorlist = build_doublelist = build_boollist = _itself


def restore_type_tag(value: T, type_str: str) -> T:
    """The value itself; the text of its type was kept for C++."""
    return value


def build_tensor_from_id(data: Any) -> int:
    """The number of the tensor, which a list beside the pickle has."""
    return int(data)
