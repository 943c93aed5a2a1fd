"""The families of operators, and which of them hold a name.

In: names of operators.  Out: the families imported that have rows of them, so that a program pays for what it uses.
Which those are stands in an index beside the bytecode of the families.  It is made and thrown away as bytecode is: when
the source of a family changed, or where it cannot be kept, all families are imported.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from importlib.util import cache_from_source
from types import FrameType
from typing import Any, Final, NamedTuple

from engine.lang.locks import callers

FAMILIES: Final[tuple[str, ...]] = (
    "pointwise",
    "matmul",
    "shape",
    "layout",
    "parts",
    "joining",
    "reductions",
    "comparison",
    "activations",
    "indexing",
    "scatter",
    "lookup",
    "sorting",
    "creation",
    "types",
    "random",
    "random_families",
    "normalization",
    "lists",
    "strings",
    "dicts",
    "scalars",
    "conversion",
    "attributes",
    "control",
    "convolution",
    "pooling",
    "resampling",
    "losses",
    "recurrent",
    "recurrent_layers",
    "elementwise",
    "special",
    "linalg",
    "norms",
    "products",
    "factorizations",
    "least_squares",
    "fft",
    "rearranging",
    "selection",
    "sequences",
    "statistics",
    "histograms",
    "margins",
    "grid_sample_sums",
    "sampling",
    "layers",
    "quantization",
    "quantized_layers",
    "quantized_pointwise",
    "quantized_recurrent",
    "observing",
    "prepacked",
    "vision",
    "regions",
    "audio",
    "registered",
    "aliases",
    "backward",
    "backward_selection",
    "backward_linalg",
    "gradients",
    "autograd",
)
"""Modules of `engine.aten.ops`, in the order in which their overloads are tried."""

LAST: Final = len(FAMILIES)
"""The place, behind those of all families, of operators that programs register."""
_PACKAGE: Final = "engine.aten.ops"
_PLACES: Final = {f"{_PACKAGE}.{family}": place for place, family in enumerate(FAMILIES)}
_FOLDER: Final = os.path.join(os.path.dirname(os.path.dirname(__file__)), "ops")
_FILE: Final = cache_from_source(os.path.join(_FOLDER, "index.py"))
_MAKERS: Final = (__file__, os.path.join(os.path.dirname(__file__), "table.py"))


class Index(NamedTuple):
    """The names of all families, each with the places of those that have rows of it, and the names of methods."""

    places: dict[str, list[int]]
    methods: list[str]


class Work(NamedTuple):
    """The family whose module this thread imports, by its place, or `LAST`; `names` are the globals of the module."""

    place: int
    names: dict[str, Any] | None = None


def family_at_work() -> Work:
    """The family whose module is being imported by this thread, if what it calls is not another module's import."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:  # and not `callers`: this is asked for each row
        if frame.f_code.co_name == "<module>":
            return Work(_PLACES.get(frame.f_globals.get("__name__", ""), LAST), frame.f_globals)
        frame = frame.f_back
    return Work(LAST)


def import_families(places: Iterable[int]) -> list[int]:
    """Import the families at these places; waits for those that another thread imports.

    Those that are complete, which are all but the ones whose imports ask for this.
    """
    wanted = [*places]
    for place in wanted:
        import_module(f"{_PACKAGE}.{FAMILIES[place]}")
    modules = [frame for frame in callers(sys._getframe(1)) if frame.f_code.co_name == "<module>"]
    at_work = {_PLACES.get(frame.f_globals.get("__name__", "")) for frame in modules}
    return [place for place in wanted if place not in at_work]


def saved_index() -> Index | None:
    """The index that fits the sources; None if there is none yet."""
    with suppress(OSError, ValueError, TypeError, EOFError):
        with open(_FILE, "rb") as file:
            sources, *index = marshal.load(file)
        if sources == _sources():
            return Index(*index)
    return None


def save_index(index: Index) -> None:
    """Keep the index for the next process, where bytecode is kept."""
    if sys.dont_write_bytecode:
        return
    unfinished = f"{_FILE}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(_FILE), exist_ok=True)
        with open(unfinished, "wb") as file:
            marshal.dump((_sources(), *index), file)
        os.replace(unfinished, _FILE)
    except OSError:
        return
    finally:
        with suppress(OSError):
            os.unlink(unfinished)


def _sources() -> dict[str, tuple[int, int]]:
    """Time and size of each source, by which Python tells of bytecode whether it fits."""
    with os.scandir(_FOLDER) as entries:
        families = {each.name: each.stat() for each in entries if each.name.endswith(".py")}
    found = families | {path: os.stat(path) for path in _MAKERS}
    return {name: (facts.st_mtime_ns, facts.st_size) for name, facts in found.items()}
