"""Trees and their views."""

import pytest

from engine.frontend.syntax.parser import parse_def, parse_expression, parse_statements
from engine.frontend.syntax.tree import BINARY_KINDS, UNARY_KINDS, Tree, list_of, option_of
from engine.frontend.syntax.views import (
    Apply,
    Assign,
    AugAssign,
    ClassDef,
    Const,
    Def,
    For,
    Global,
    If,
    Param,
    Select,
    SliceExpr,
    StringLiteral,
    Subscript,
    Var,
    With,
)
from engine.lang.errors import ParseError
from engine.lang.interpreter_settings import MAX_HEIGHT
from engine.lang.source import Source

SOURCE = Source("x + 1")


def test_the_s_expression() -> None:
    difference, call, total = (
        "(- {} {})",
        "(apply (. (variable (ident z)) (ident sigmoid)) (list) (list))",
        "(+ (variable (ident x)) (variable (ident y)))",
    )
    assert str(parse_expression(Source("z.sigmoid() - (x + y)"))) == difference.format(call, total)


def test_strings_are_quoted() -> None:
    assert str(parse_expression(Source("'a\\n(b'"))) == "(string_literal 'a\\n(b')"


def test_height_counts_levels_and_has_an_end() -> None:
    leaf = Tree("pass", (), SOURCE.whole())
    assert (leaf.height, Tree("list", (leaf, "text"), SOURCE.whole()).height) == (1, 2)
    while leaf.height < MAX_HEIGHT:
        leaf = Tree("list", (leaf,), SOURCE.whole())
    with pytest.raises(ParseError, match="nested too deeply"):
        Tree("list", (leaf,), SOURCE.whole())
    assert len(str(leaf)) > MAX_HEIGHT


def test_lists_and_options_have_the_range_of_what_they_hold() -> None:
    tree = parse_expression(SOURCE)
    assert list_of(tree.trees, SOURCE.whole()).range.text == "x + 1"
    assert list_of(tree.trees[1:], SOURCE.whole()).range.text == "1"
    assert option_of(tree.trees[0], SOURCE.whole()).range.text == "x"
    assert option_of(None, SOURCE.whole()).children == ()


def test_a_view_refuses_another_kind() -> None:
    with pytest.raises(AssertionError, match="variable"):
        Var(parse_expression(Source("1")))


def test_expression_views() -> None:
    call = Apply(parse_expression(Source("a.f(x, *y, k=1)[1:, ::2]")).child(0))
    assert (Select(call.callee).name, Var(Select(call.callee).value).name) == ("f", "a")
    assert [tree.kind for tree in call.inputs] == ["variable", "starred"]
    assert [(attribute.name, Const(attribute.value).value) for attribute in call.attributes] == [("k", 1)]
    slices = [SliceExpr(part) for part in Subscript(parse_expression(Source("a[1:, ::2]"))).subscripts]
    assert [str(part.start) for part in slices] == ["(const 1)", "None"]
    assert [part.end for part in slices] == [None, None]
    assert [str(part.step) for part in slices] == ["None", "(const 2)"]
    assert StringLiteral(parse_expression(Source("'a' \"b\""))).text == "ab"


def test_statement_views() -> None:
    text = "x = y = 1\nz: int = 2\na.b **= 3\nglobal p, q\nif x:\n  pass\nelif y:\n  pass\nfor i, j in k:\n  break\n"
    trees = parse_statements(Source(text + "with a as b, c:\n  pass\n"))
    chained, typed, augmented = Assign(trees[0]), Assign(trees[1]), AugAssign(trees[2])
    assert ([Var(target).name for target in chained.targets], chained.annotation) == (["x", "y"], None)
    assert (str(typed.value), str(typed.annotation)) == ("(const 2)", "(variable (ident int))")
    assert (augmented.operator, augmented.target.kind, Const(augmented.value).value) == ("**", ".", 3)
    assert Global(trees[3]).names == ("p", "q")
    (inner,) = If(trees[4]).false_branch
    assert If(inner).false_branch == ()
    assert (For(trees[5]).targets[0].kind, len(For(trees[5]).iterables)) == ("tuple_literal", 1)
    assert [item.target and Var(item.target).name for item in With(trees[6]).items] == ["b", None]


def test_definition_views() -> None:
    function = Def(parse_def(Source("def f(a, b: int = 1, *, c) -> str:\n  return a\n")))
    assert (function.name, str(function.decl.returns), len(function.body)) == ("f", "(variable (ident str))", 1)
    assert [param.name for param in function.decl.params] == ["a", "b", "c"]
    assert [param.kwarg_only for param in function.decl.params] == [False, False, True]
    assert [str(param.default) for param in function.decl.params] == ["None", "(const 1)", "None"]
    (tree,) = parse_statements(Source("class A(B):\n  x : int\n  def f(self):\n    pass\n"))
    assert (ClassDef(tree).name, str(ClassDef(tree).superclass)) == ("A", "(variable (ident B))")
    assert [part.kind for part in ClassDef(tree).body] == ["assign", "def"]


def test_make_builds_what_the_view_reads() -> None:
    range, name = SOURCE.whole(), Tree("ident", ("p",), SOURCE.whole())
    for part in (name, "p"):
        param = Param(Param.make(range, part, None, Const.make(range, "1"), True))
        assert (param.name, param.annotation, str(param.default), param.kwarg_only) == ("p", None, "(const 1)", True)


@pytest.mark.parametrize("text", ["9223372036854775808", "--8"])
def test_a_const_that_is_no_value_says_where(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        _ = Const(Const.make(SOURCE.whole(), text)).value
    assert caught.value.line == 1


def test_operators_are_told_by_their_kind() -> None:
    assert parse_expression(Source("a is not b")).kind in BINARY_KINDS
    assert parse_expression(Source("not a")).kind in UNARY_KINDS
    assert parse_expression(Source("-a")).kind in UNARY_KINDS
