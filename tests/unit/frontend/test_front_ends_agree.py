"""Text and Python's parser give one tree for one program."""

from pathlib import Path

import pytest

from engine.frontend.python.trees import trees_from_text
from engine.frontend.syntax.parser import parse_program
from engine.frontend.syntax.tree import PythonDefault, Tree
from engine.frontend.syntax.views import Const
from engine.lang.errors import NotSupportedError, ParseError
from engine.lang.source import Source

PROGRAMS = Path(__file__).with_name("programs.txt").read_text(encoding="utf-8").split("---\n")
PYTHON_ONLY = ("1_000", "f'{x}", "for k, v in x", "@decorated")


def normal(tree: Tree) -> Tree:
    """The tree with the signs of literals folded and docstrings dropped, as only one front end does; with None where
    that of Python evaluates it as the default of a tensor."""
    if isinstance(tree, PythonDefault) and tree.value is None:
        return Tree("None", (), tree.range)
    children = tuple(normal(child) if isinstance(child, Tree) else child for child in tree.children)
    if tree.kind == "unary_minus" and str(children[0]).startswith("(const"):
        return Const.make(tree.range, "-" + Tree("list", children, tree.range).child(0).text)
    if tree.kind == "list":
        children = tuple(child for child in children if not str(child).startswith("(expression_statement (string_lit"))
    return Tree(tree.kind, children, tree.range)


@pytest.mark.parametrize("text", PROGRAMS[:-1])
@pytest.mark.parametrize("extended", [False, True])
def test_the_same_tree(text: str, extended: bool) -> None:
    python = [str(normal(tree)) for tree in trees_from_text(Source(text))]
    if not extended and any(sign in text for sign in PYTHON_ONLY):
        with pytest.raises(ParseError):
            parse_program(Source(text))
        return
    assert [str(normal(tree)) for tree in parse_program(Source(text), extended=extended)] == python


NO_TEXT_OF_THEIR_OWN = ("list", "option", "decl")


@pytest.mark.parametrize("text", PROGRAMS[:-1])
def test_the_same_ranges(text: str) -> None:
    def ranges(tree: Tree) -> list[tuple[str, int, int]]:
        inner = [found for child in tree.trees for found in ranges(child)]
        return inner if tree.kind in NO_TEXT_OF_THEIR_OWN else [(tree.kind, tree.range.start, tree.range.end), *inner]

    if "f'{" in text:
        return  # Python before 3.12 does not tell where the parts of an f-string stand
    by_text = [ranges(normal(tree)) for tree in parse_program(Source(text), extended=True)]
    by_python = [ranges(normal(tree)) for tree in trees_from_text(Source(text))]
    assert by_text == by_python


def test_both_refuse_what_neither_has() -> None:
    with pytest.raises(ParseError):
        parse_program(Source(PROGRAMS[-1]), extended=True)
    with pytest.raises(NotSupportedError):
        trees_from_text(Source(PROGRAMS[-1]))
