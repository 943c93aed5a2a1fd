"""Which names statements read and set."""

import pytest

from engine.frontend.syntax.name_uses import names_of
from engine.frontend.syntax.parser import parse_statements
from engine.lang.source import Source


def names(text: str) -> tuple[list[str], list[str], set[str]]:
    """Read, set somewhere, set on every path."""
    found = names_of(parse_statements(Source(text), extended=True))
    return list(found.reads), list(found.assigned), found.defined


@pytest.mark.parametrize(
    ("text", "reads", "assigned", "defined"),
    [
        ("x = y + 1", ["y"], ["x"], {"x"}),
        ("x = 1\ny = x", [], ["x", "y"], {"x", "y"}),
        ("x += y", ["x", "y"], ["x"], {"x"}),
        ("a, (b, *c) = d", ["d"], ["a", "b", "c"], {"a", "b", "c"}),
        ("x[i] = y", ["y", "x", "i"], [], set()),
        ("p.q = 1", ["p"], [], set()),
        ("if c:\n    x = 1\n    y = 1\nelse:\n    x = 2", ["c"], ["x", "y"], {"x"}),
        ("if c:\n    x = 1\nelse:\n    raise ValueError('no')", ["c", "ValueError"], ["x"], {"x"}),
        ("while c:\n    x = 1", ["c"], ["x"], set()),
        ("for i in r:\n    t = t + i", ["r", "t"], ["i", "t"], set()),
        ("z = [x * k for x in y]", ["y", "k"], ["z"], {"z"}),
        ("z = {k: v for k, v in d.items()}", ["d"], ["z"], {"z"}),
        ("with m() as f:\n    x = f", ["m"], ["f", "x"], {"f", "x"}),
        ("f(x, key=y)", ["f", "x", "y"], [], set()),
        ("x = 1\ndel x", [], [], set()),
        ("del d[k]", ["d", "k"], [], set()),
    ],
)
def test_names(text: str, reads: list[str], assigned: list[str], defined: set[str]) -> None:
    assert names(text) == (reads, assigned, defined)
