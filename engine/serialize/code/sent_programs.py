"""Archives in a process that makes plans of them for others: code without modules.

In: what `ArchivedProgram.sent` gives, as plain data.  Out: an importer of the same code, and functions of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from engine.ir.flat import NotPlain
from engine.ir.flat_program import tensor_of
from engine.ir.unit import Function
from engine.lang.errors import ArchiveError
from engine.lang.records import dataclass
from engine.serialize.code.kept_graphs import KeptGraphs
from engine.serialize.code.source_import import SourceImporter
from engine.serialize.container.qualified_names import prefix_of, record_of


def received(
    key: str, version: int, constants: Iterable[tuple[Any, ...]], texts: Iterable[tuple[str, bytes]]
) -> SourceImporter:
    """The importer of such code, which finds its own key."""
    found = [tensor_of(*each) for each in constants]
    records = _Texts(dict(texts))
    importer = SourceImporter(records, lambda: found, version)
    importer.graphs = KeptGraphs(lambda: records.texts.items())
    return importer


def function_of(importer: SourceImporter, qualname: str) -> Function:
    """The function or method of that name.  Raises NotPlain where there is none, ArchiveError where its code cannot be
    read."""
    importer.find_type(prefix_of(qualname))
    found = importer.find_function(qualname)
    if found is None:
        raise NotPlain(qualname)
    return found


@dataclass(frozen=True, slots=True)
class _Texts:
    """Records of code by name; nobody asks where the author wrote something."""

    texts: Mapping[str, bytes]

    def text(self, prefix: str) -> tuple[str, None] | None:
        record = record_of(prefix)
        found = self.texts.get(record)
        try:
            return None if found is None else (found.decode(), None)
        except UnicodeDecodeError as error:
            raise ArchiveError("the code is not UTF-8", record=record, offset=error.start) from None
