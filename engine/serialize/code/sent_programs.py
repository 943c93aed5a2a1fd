"""Archives in a process that makes plans of them for others: code without modules.

In: what `ArchivedProgram.sent` gives, as plain data.  Out: an importer of the same code, and functions of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from engine.aten.values import xp
from engine.aten.values.tensor import Tensor
from engine.ir.unit import Function
from engine.lang.records import dataclass
from engine.serialize.code.kept_graphs import KeptGraphs
from engine.serialize.code.source_import import SourceImporter
from engine.serialize.container.qualified_names import prefix_of, record_of


def received(version: int, constants: Iterable[tuple[Any, ...]], texts: Iterable[tuple[str, bytes]]) -> SourceImporter:
    """The importer of such code."""
    found = [_received(*each) for each in constants]
    records = _Texts(dict(texts))
    importer = SourceImporter(records, lambda: found, version)
    importer.graphs = KeptGraphs(lambda: records.texts.items())
    return importer


def _received(number: int, shape: tuple[int, ...], data: bytes, requires_grad: bool) -> Tensor:
    array = np.frombuffer(data, xp.numpy_dtype(number)).reshape(shape).copy()
    return Tensor(array, requires_grad=requires_grad)


def function_of(importer: SourceImporter, qualname: str) -> Function | None:
    """The function or method of that name; None where there is none."""
    importer.find_type(prefix_of(qualname))
    return importer.find_function(qualname)


@dataclass(frozen=True, slots=True)
class _Texts:
    """Records of code by name; nobody asks where the author wrote something."""

    texts: Mapping[str, bytes]

    def text(self, prefix: str) -> tuple[str, None] | None:
        found = self.texts.get(record_of(prefix))
        return None if found is None else (found.decode(), None)
