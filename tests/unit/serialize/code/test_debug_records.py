"""Debug records: from offsets of an archive's code to the author's text."""

import io
import pickle

import pytest

from engine.frontend.compilation.compile import compile_source
from engine.lang.source import Source, SourceRange
from engine.serialize.archive import load_archive, save_archive
from engine.serialize.code.debug_records import DebugWriter, lazy_finder
from engine.serialize.pickling.unpickle import unpickle

SOURCE = Source("def f(x):\n    return x + 1\n", "model.py", 10)


def test_what_is_written_is_found_again():
    marks = [(0, None), (20, SourceRange(SOURCE, 14, 20)), (30, SourceRange(SOURCE, 21, 26))]
    find = lazy_finder(lambda: DebugWriter().record(marks), "code/a.py.debug_pkl")
    assert find(5) is None
    assert find(20).text == "return"
    assert find(29).text == "return"
    found = find(1000)
    assert (found.text, found.filename, found.line, found.column) == ("x + 1", "model.py", 11, 11)


def test_the_record_has_pytorchs_form():
    record = DebugWriter().record([(0, None), (7, SourceRange(SOURCE, 0, 3))])
    head, strings, entries = unpickle(record, "x")
    assert head == "FORMAT_WITH_STRING_TABLE"
    assert strings == ("", "def f(x):\n", "    return x + 1\n", "model.py")
    assert entries == ((0, (([], 0, 0), 0, 0), 0), (7, (([1, 2, 0], 3, 10), 0, 3), 1))


def test_equal_ranges_share_their_tag_in_all_records():
    writer = DebugWriter()
    writer.record([(0, SourceRange(SOURCE, 0, 3))])
    _, _, entries = unpickle(writer.record([(0, SourceRange(SOURCE, 4, 5)), (9, SourceRange(SOURCE, 0, 3))]), "x")
    assert [entry[2] for entry in entries] == [2, 1]


def test_offsets_count_bytes():
    source = Source("é = 1", "é.py")
    record = DebugWriter().record([(0, SourceRange(source, 4, 5))])
    assert unpickle(record, "x")[2][0][1][1:] == (5, 6)
    assert lazy_finder(lambda: record, "x")(0).text == "1"


def test_code_that_was_loaded_points_at_its_first_author():
    generated = Source("return torch.add(x, 1)", original=lambda offset: SourceRange(SOURCE, 21, 26))
    record = DebugWriter().record([(0, SourceRange(generated, 0, 6))])
    assert lazy_finder(lambda: record, "x")(0).text == "x + 1"


def test_records_without_a_table_of_strings():
    old = pickle.dumps(((0, (("text\n", "old.py", 3), 0, 4)), (8, ((None, None, 0), 0, 0))), protocol=2)
    find = lazy_finder(lambda: old, "x")
    assert (find(0).text, find(0).filename, find(0).line) == ("text", "old.py", 3)
    assert find(9) is None


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"junk",
        pickle.dumps(None, 2),
        pickle.dumps((), 2),
        pickle.dumps((1, 2, 3), 2),
        pickle.dumps(("FORMAT_WITH_STRING_TABLE", ("a",), ((0, (([7], 0, 0), 0, 0), 0),)), 2),
        pickle.dumps(("FORMAT_WITH_STRING_TABLE",), 2),
        pickle.dumps(("FORMAT_WITH_STRING_TABLE", 1, 2), 2),
    ],
)
def test_a_record_that_makes_no_sense_tells_nothing(value):
    assert lazy_finder(lambda: value, "x")(0) is None


def test_the_record_is_read_when_first_asked_for():
    reads = []
    find = lazy_finder(lambda: reads.append(1) or b"", "x")
    assert not reads
    find(0)
    find(1)
    assert len(reads) == 1


SHARED = """
def pad(x, sizes: List[int], value: Optional[float] = None):
    return x.new_full(sizes, 0.0 if value is None else value)

def forward(x, n: int):
    first = torch.sum(
        x, [1])
    y = pad(x, [0, n],
            None)
    z = torch.cat([y.sum([0]).view(-1), torch.sum(x, [1], False, dtype=None).view(-1)])
    return z, first, pad(z, [n])
"""


def test_saved_again_the_places_are_the_same():
    """Lists on the way into calls, and constants that stand for defaults, too."""
    function = compile_source(SHARED).functions["forward"]
    first, second = io.BytesIO(), io.BytesIO()
    save_archive(function, first)
    save_archive(load_archive(io.BytesIO(first.getvalue())), second)
    assert first.getvalue() == second.getvalue()
