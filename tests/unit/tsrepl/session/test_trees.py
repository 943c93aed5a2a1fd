"""How trees print."""

from engine.frontend.syntax.parser import parse_statements
from engine.lang.source import Source
from tsrepl.session.trees import tree_text


def test_a_short_tree_is_one_line() -> None:
    (tree,) = parse_statements(Source("x + 1"))
    assert tree_text(tree) == "(expression_statement (+ (variable (ident x)) (const 1)))"


def test_a_long_tree_is_broken_and_loses_nothing() -> None:
    (tree,) = parse_statements(Source("def f(a, b):\n    return a + b * (a - b)\n"))
    for width in (20, 40, 80):
        text = tree_text(tree, width)
        assert " ".join(text.split()) == str(tree)
        assert text.startswith("(def (ident f)\n")
