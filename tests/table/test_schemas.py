"""The operators that exported programs and TorchScript text use are in the table, with the schemas they are known by.

`schemas.txt` has one line for each: a schema's text; `name out=` where some form must write its result into a given
tensor; a bare name where some form of it must be there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.aten.dispatch import table
from engine.lang.schema_parser import parse_schema

WANTED = (Path(__file__).parent / "schemas.txt").read_text().splitlines()
SCHEMAS = [line for line in WANTED if "(" in line]
OUT_FORMS = [line.removesuffix(" out=") for line in WANTED if line.endswith(" out=")]
NAMES = [line for line in WANTED if "(" not in line and not line.endswith(" out=")]


def qualified_name(text: str) -> str:
    return text.partition("(")[0]


@pytest.mark.parametrize("text", SCHEMAS, ids=qualified_name)
def test_the_schema_is_in_the_table(text: str) -> None:
    entry = table.find(qualified_name(text))
    assert entry is not None, f"{text} is missing"
    assert str(entry.schema) == str(parse_schema(text))


@pytest.mark.parametrize("name", OUT_FORMS)
def test_a_form_writes_its_result_into_a_given_tensor(name: str) -> None:
    assert any(a.is_write and a.kwarg_only for op in table.overloads(name) for a in op.schema.arguments)


@pytest.mark.parametrize("name", NAMES)
def test_the_name_is_in_the_table(name: str) -> None:
    assert table.overloads(name)


def test_what_an_operator_writes_is_known_of_its_text() -> None:
    entries = table.entries()
    assert len(entries) > 2000
    assert [op.text for op in entries if op.is_mutable != op.schema.is_mutable] == []
