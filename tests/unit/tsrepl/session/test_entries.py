"""Where entries end."""

import pytest

from tsrepl.session.entries import Entry, is_complete, next_indent, split_entries, without_prompts

COMPLETE = [
    "", "x = 1", "f(1,\n  2)", "a = 1)", "%graph f", "# only a remark", "x = 1 +", "x = 'abc",
    "def f(x):\n    return x\n", "if a:\n  b = 1\nelse:\n  b = 2\n", "def f(x):\n    return x\n\n", "x = 1\r\n",
]  # fmt: skip
OPEN = [
    "def f(x):", "def f(x):\n    return x", "f(1,", "x = (", "x=1\ndef g(y):\n", '"""abc', "@foo", "@foo\ndef f():",
    "x = \\", "for i in range(3):\n    print(i)", "d = {1: [2,\n",
]  # fmt: skip


@pytest.mark.parametrize("text", COMPLETE)
def test_complete(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize("text", OPEN)
def test_open(text: str) -> None:
    assert not is_complete(text)


def test_each_statement_is_an_entry_with_its_line() -> None:
    text = "x = 1\n\n# remark\ndef f(x):\n    y = (\n1)\n\n    return y\ny = 2\n%graph f\n"
    assert split_entries(text) == [
        Entry("x = 1", 1),
        Entry("def f(x):\n    y = (\n1)\n\n    return y", 4),
        Entry("y = 2", 9),
        Entry("%graph f", 10),
    ]


def test_a_definition_ends_an_entry_whose_bracket_is_open() -> None:
    text = "def a(x\n    return x\ndef b(x):\n    return x\ny = (1,\n@c\ndef d():\n    pass\n"
    assert [entry.line for entry in split_entries(text)] == [1, 3, 5, 6]
    assert [entry.defined_names() for entry in split_entries(text)] == [["a"], ["b"], [], ["d"]]
    assert len(split_entries('x = """\ndef f(\n"""\ny = [\n1]\n')) == 2


def test_else_belongs_to_its_if() -> None:
    text = "if x:\n  y = 1\nelse:\n  y = 2\n\nz = 3"
    assert [entry.text for entry in split_entries(text)] == ["if x:\n  y = 1\nelse:\n  y = 2", "z = 3"]


def test_a_decorator_belongs_to_its_def() -> None:
    assert [entry.line for entry in split_entries("@a\ndef f(x):\n    return x\nf(1)")] == [1, 4]


def test_a_wrong_line_does_not_swallow_the_next() -> None:
    assert [entry.text for entry in split_entries("bad ) bad\nz = 1")] == ["bad ) bad", "z = 1"]


def test_a_string_over_lines_is_one_entry() -> None:
    assert len(split_entries('s = """a\nb\n"""\nt = 1')) == 2


def test_tabs_and_form_feeds_in_strings_stay() -> None:
    assert split_entries("s = 'a\tb\x0cc'")[0].text == "s = 'a\tb\x0cc'"


@pytest.mark.parametrize(
    ("text", "indent"),
    [
        ("def f(x):", "    "),
        ("    if x:", "        "),
        ("    y = 1", "    "),
        ("        return y", "    "),
        ("x = 1", ""),
    ],
)
def test_next_indent(text: str, indent: str) -> None:
    assert next_indent(text) == indent


@pytest.mark.parametrize(
    ("pasted", "expected"),
    [
        (">>> x = 1\n>>> x\n", "x = 1\nx\n"),
        (">>> def f(x):\n...     return x\n...\n", "def f(x):\n    return x\n\n"),
        ("In [12]: def f(x):\n    ...:     return x\n", "def f(x):\n    return x\n"),
        ("ts> x\n", "x\n"),
        (">>> x + 1\ntensor([2.,\n        3.])\n>>> x", "x + 1\nx"),
        ("In [1]: x\nOut[1]: 5\n\nIn [2]: y", "x\n\ny"),
        ("def f(x):\n    return x\n", "def f(x):\n    return x\n"),
        ("y = x[0]\n...", "y = x[0]\n..."),
    ],
)
def test_prompts_that_were_copied_are_left_out(pasted: str, expected: str) -> None:
    assert without_prompts(pasted) == expected


def test_a_line_for_the_system_is_complete() -> None:
    assert is_complete("!ls (")
