"""Families are imported for the names that are asked for, and the table is the same in whatever order that happens."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from engine.aten.dispatch import families, table
from engine.lang.errors import SchemaError

ROWS = """
import sys
from engine.aten.dispatch import table
for name in sys.argv[1].split():
    table.overloads(name)
early = {name.rpartition(".")[2] for name in sys.modules if name.startswith("engine.aten.ops.")}
rows = [f"{op.text} {op.family} {op.dtype} {len(op.refuses)} {op.alias_of} {op.check}".partition(" at 0x")[0]
        for name in table.names() for op in table.overloads(name)]
print(*sorted(early), *rows, sep="\\n")
"""


def rows(names: str) -> tuple[set[str], list[str]]:
    """The families that were imported for these names, and then the whole table."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", ROWS, names]
    lines = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.splitlines()
    first = next(at for at, line in enumerate(lines) if "::" in line)
    return set(lines[:first]), lines[first:]


def test_only_families_that_have_rows_of_the_name_are_imported() -> None:
    rows("aten::mul")  # keeps the index
    early, _ = rows("aten::mul")
    assert early == {"pointwise", "lists", "scalars"}


def test_the_table_is_the_same_in_any_order() -> None:
    names = table.names()
    random.Random(0).shuffle(names)
    expected = [op.text for name in table.names() for op in table.overloads(name)]
    _, shuffled = rows(" ".join(names))
    _, ordered = rows("")
    assert shuffled == ordered
    assert [row.partition(" -> ")[0] for row in ordered] == [text.partition(" -> ")[0] for text in expected]


def test_facts_stand_in_a_family_that_has_rows_of_the_name() -> None:
    with pytest.raises(SchemaError, match="no operator aten::mul to describe"):
        table.describe("mul", exact=True)  # of no family, so that no index would lead here


def test_rows_of_one_name_stand_in_the_order_of_families() -> None:
    places = [op.family for op in table.overloads("aten::add")]
    assert places == sorted(places)
    assert len({*places}) > 1


def test_an_index_of_other_sources_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "_FILE", str(tmp_path / "index"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    index = families.Index({"aten::mul": [0]}, ["mul"])
    assert families.saved_index() is None
    families.save_index(index)
    assert families.saved_index() == index
    with monkeypatch.context() as other:
        other.setattr(families, "_sources", lambda: {"pointwise.py": (0, 0)})
        assert families.saved_index() is None
    (tmp_path / "index").write_bytes(b"\xff")
    assert families.saved_index() is None


def test_nothing_is_kept_where_no_bytecode_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "_FILE", str(tmp_path / "index"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    families.save_index(families.Index({}, []))
    assert not list(tmp_path.iterdir())
