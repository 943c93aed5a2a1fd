"""Trees of code records, which archives with the same records share."""

import pytest

from engine.frontend.syntax.views import ClassDef
from engine.lang.errors import ArchiveError
from engine.serialize.code.parsed_code import ParsedCode
from engine.serialize.container.read import DEFLATED, STORED, ArchiveRecord, StoredRecord

TEXT = "class M(Module):\n  x : int\n  def f(self, y: int) -> int:\n    return y\n"


def stored(data: bytes) -> StoredRecord:
    return StoredRecord(ArchiveRecord("m.debug_pkl", STORED, None, len(data), len(data), 0), data)


def test_the_same_records_have_the_same_trees() -> None:
    parsed = ParsedCode(1000)
    trees = parsed.definitions(TEXT, "m.py", stored(b"N."))
    assert parsed.definitions("".join([*TEXT]), "m.py", stored(b"N.")) is trees
    assert ClassDef(trees["M"]).name == "M"


@pytest.mark.parametrize(
    ("text", "record", "debug"),
    [(TEXT + "\n", "m.py", b"N."), (TEXT, "other.py", b"N."), (TEXT, "m.py", b"K\x01."), (TEXT, "m.py", None)],
)
def test_other_records_have_trees_of_their_own(text: str, record: str, debug: bytes | None) -> None:
    parsed = ParsedCode(1000)
    trees = parsed.definitions(TEXT, "m.py", stored(b"N."))
    assert parsed.definitions(text, record, None if debug is None else stored(debug)) is not trees


def test_what_was_used_least_recently_goes_first() -> None:
    parsed = ParsedCode(2 * len(TEXT))
    first, second = (parsed.definitions(TEXT, name, None) for name in ("1.py", "2.py"))
    assert parsed.definitions(TEXT, "1.py", None) is first
    parsed.definitions(TEXT, "3.py", None)
    assert parsed.definitions(TEXT, "1.py", None) is first
    assert parsed.definitions(TEXT, "2.py", None) is not second


def test_what_is_larger_than_the_limit_is_not_kept() -> None:
    parsed = ParsedCode(len(TEXT) - 1)
    assert parsed.definitions(TEXT, "m.py", None) is not parsed.definitions(TEXT, "m.py", None)


def test_a_record_with_a_mistake_is_refused_each_time() -> None:
    parsed = ParsedCode(1000)
    for _ in range(2):
        with pytest.raises(ArchiveError, match="the code cannot be read"):
            parsed.definitions("class C(Module)\n", "m.py", None)


def test_a_record_apart_from_its_file_is_checked_when_it_is_read() -> None:
    assert stored(b"N.").read() == b"N."
    damaged = StoredRecord(ArchiveRecord("m", DEFLATED, 0, 2, 5, 0), b"no")
    with pytest.raises(ArchiveError):
        damaged.read()
