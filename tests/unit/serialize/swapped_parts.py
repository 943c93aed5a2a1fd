"""Every way in which one part of a file is of another type than its reader expects.

In: pickles, JSON.  Out: copies, each with one value in the place of another, and what was put where.
"""

from __future__ import annotations

import json
import pickletools
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

PICKLED: Final = {
    "None": b"N", "True": b"\x88", "-1": b"J\xff\xff\xff\xff", "2**63": b"\x8a\t\0\0\0\0\0\0\0\x80\0",
    "1.5": b"G?\xf8\0\0\0\0\0\0", "nan": b"G\x7f\xf8\0\0\0\0\0\0", "'zz'": b"X\2\0\0\0zz", "''": b"X\0\0\0\0",
    "[]": b"]", "{}": b"}", "()": b")", "(None,)": b"N\x85", "{0: 0}": b"}K\0K\0s", "[[]]": b"]]a",
    "OrderedDict": b"ccollections\nOrderedDict\n", "OrderedDict()": b"ccollections\nOrderedDict\n)R",
}  # fmt: skip
"""Values as a pickle pushes them."""
_PUSHES: Final = frozenset(
    "NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINUNICODE EMPTY_LIST EMPTY_DICT EMPTY_TUPLE GLOBAL "
    "BINGET LONG_BINGET SHORT_BINUNICODE BINSTRING SHORT_BINSTRING".split()
)
_WRAPS: Final = frozenset(
    "TUPLE TUPLE1 TUPLE2 TUPLE3 REDUCE BUILD BINPERSID NEWOBJ APPENDS APPEND SETITEM SETITEMS".split()
)
_JSON: Final = (None, True, -1, 2**70, 1.5, float("nan"), "zz", "", [], {}, [None], [[]], {"a": []}, "9" * 30, "-0")


def pickles(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Copies of a pickle: each value that it pushes is another, or what it makes of values is replaced."""
    places = [(opcode.name, at) for opcode, _, at in pickletools.genops(data)]
    ends = [at for _, at in places[1:]] + [len(data)]
    for (name, start), end in zip(places, ends, strict=True):
        if name not in _PUSHES and name not in _WRAPS:
            continue
        # What wraps values is left to run, and its result dropped.
        kept = data[start:end] + b"0" if name in _WRAPS else b""
        for text, pushed in PICKLED.items():
            yield f"{name} at {start} is {text}", data[:start] + kept + pushed + data[end:]
        yield f"{name} at {start} is gone", data[:start] + data[end:]


def documents(value: Any) -> Iterator[tuple[str, str]]:
    """Copies of a JSON document: each value in it is another, or gone."""
    for path in _paths(value):
        for other in _JSON:
            changed: Any = deepcopy(value)
            if not path:
                yield f"all is {other!r:.20}", json.dumps(other)
                continue
            holder = changed
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = other
            yield f"{path} is {other!r:.20}", json.dumps(changed)
            if other is None:
                del holder[path[-1]]
                yield f"{path} is gone", json.dumps(changed)


def _paths(value: Any) -> Iterator[tuple[Any, ...]]:
    yield ()
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from ((key, *path) for path in _paths(inner))
