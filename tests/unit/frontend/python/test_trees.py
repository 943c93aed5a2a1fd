"""Python functions and classes to trees."""

import ast
from pathlib import Path

import pytest

import engine
from engine.frontend.python.trees import tree_from_class, tree_from_function, trees_from_text
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import ClassDef, Def
from engine.lang.errors import CompileError, NotSupportedError, ParseError
from engine.lang.interpreter_settings import MAX_HEIGHT
from engine.lang.source import Source

from . import python_samples as samples

LINES = Path(samples.__file__).read_text(encoding="utf-8").splitlines()


def signature(tree: Tree) -> list[str]:
    decl = Def(tree).decl
    return [f"{p.name}: {p.annotation} = {p.default}" for p in decl.params] + [f"-> {decl.returns}"]


def test_a_plain_function() -> None:
    tree = tree_from_function(samples.plain)
    assert str(tree) == (
        "(def (ident plain) (decl (list (param (ident x) (option) (option) (False)) "
        "(param (ident y) (option (variable (ident int))) (option (const 3)) (False)) "
        "(param (ident z) (option) (option) (True))) (option (subscript (variable (ident List)) "
        "(list (variable (ident int)))))) (list (return (+ (variable (ident x)) (variable (ident y))))))"
    )


def test_places_are_those_of_the_file() -> None:
    tree = tree_from_function(samples.plain)
    value = Def(tree).body[0].child(0)
    assert (value.range.text, LINES[value.range.line - 1].strip()) == ("x + y", "return x + y")
    assert value.range.filename.endswith("python_samples.py")
    assert tree.range.text.startswith("def plain(x, y")


def test_columns_count_characters() -> None:
    assignment = Def(tree_from_function(samples.unicode)).body[0]
    assert assignment.range.text == 'größe = "äöü" + é'
    assert assignment.child(1).child(0).child(1).range.text == "é"


def test_type_comments() -> None:
    pair = "(subscript (variable (ident Tuple)) (list (variable (ident int)) (variable (ident str))))"
    strings = "(subscript (variable (ident List)) (list (variable (ident str))))"
    tree = tree_from_function(samples.comment)
    assert signature(tree) == ["x: (variable (ident int)) = None", f"y: {strings} = (const 1)", f"-> {pair}"]
    annotation = Def(tree).decl.params[1].annotation
    assert annotation is not None
    assert annotation.range.text == "List[str]"
    assert Def(tree).body[0].range.text == "values = []"


def test_type_comments_on_lines_of_their_own() -> None:
    maybe = "(subscript (variable (ident Optional)) (list (variable (ident str))))"
    table = "(subscript (variable (ident Dict)) (list (variable (ident str)) (variable (ident int))))"
    tree = tree_from_function(samples.long_comment)
    assert signature(tree) == ["x: (variable (ident int)) = None", f"y: {maybe} = (const 2)", f"-> {table}"]


def test_a_wrong_type_comment() -> None:
    with pytest.raises(ParseError, match=r"Number of type annotations \(1\) did not match") as caught:
        tree_from_function(samples.wrong_comment)
    assert caught.value.line is not None
    assert LINES[caught.value.line - 1] == "def wrong_comment(x, y):"


def test_defaults_have_the_values_that_they_have_in_python() -> None:
    assert [text.split(" = ")[1] for text in signature(tree_from_function(samples.defaults))[:-1]] == [
        "(const 7)",
        "(unary_minus (const 1))",
        "(const 3.141592653589793)",
        "(tuple_literal (list (const 1) (string_literal 'x')))",
        "(string_literal 's')",
        "(variable (ident opaque))",
    ]


def test_annotations_in_quotes() -> None:
    tree = tree_from_function(samples.quoted)
    assert signature(tree)[1] == "-> (variable (ident int))"
    annotation = Def(tree).decl.params[0].annotation
    assert annotation is not None
    assert annotation.range.text == '"Optional[List[int]]"'
    with pytest.raises(ParseError, match="this annotation is no type"):
        tree_from_function(samples.badly_quoted)


def test_docstrings_and_decorators_go() -> None:
    assert Def(tree_from_function(samples.documented)).body == ()
    decorated = tree_from_function(samples.decorated.__func__)
    assert (Def(decorated).name, decorated.range.text) == ("decorated", "def decorated(x): return x")


def test_an_indented_function() -> None:
    tree = tree_from_function(samples.inner)
    assert signature(tree) == ["self: None = None", "x: (variable (ident int)) = None", "-> (variable (ident int))"]
    assert [LINES[statement.range.line - 1].strip() for statement in Def(tree).body] == [
        'y = f"{x}a{x + 1}"',
        "return y",
    ]


REFUSALS = {
    "star": "Compiled functions can't take variable number of arguments",
    "double_star": "Compiled functions can't take variable number of arguments",
    "kwarg_default": "keyword-only arguments with defaults",
    "use_lambda": "lambdas aren't supported",
    "use_try": "try blocks aren't supported",
    "use_yield": "generators aren't supported",
    "use_import": "import statements aren't supported",
    "use_global": "global variables aren't supported",
    "use_nested": "function definitions aren't supported",
    "use_class": "class definitions aren't supported",
    "use_walrus": "assignment expressions aren't supported",
    "use_set": "sets aren't supported",
    "use_bytes": "bytes literals aren't supported",
    "use_dict_star": "Dict expansion",
    "use_kwargs": "keyword-arg expansion is not supported",
    "use_comp_if": "Comprehension ifs are not supported yet",
    "use_comp_two": "Only a single generator is currently supported",
    "use_format": "an f-string takes no conversion and no format",
    "use_conversion": "an f-string takes no conversion and no format",
    "use_while_else": "else branches of while loops aren't supported",
    "use_for_else": "else branches of for loops aren't supported",
    "use_bare_raise": "raise needs an exception",
    "use_bare_annotation": "annotated assignments without assigned value aren't supported",
    "use_late_attribute": "Type annotations on instance attributes must be declared in __init__",
    "use_with_tuple": "what stands after `as` must be a name",
    "use_match": "match statements aren't supported",
    "use_reserved": "names that start with __jit are reserved",
    "use_delayed": "'//=' takes a variable on its left",
    "use_async": "async function definitions aren't supported",
    "lambda_": "lambdas aren't supported",
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_name_the_place_and_the_reason(name: str) -> None:
    with pytest.raises(NotSupportedError) as caught:
        tree_from_function(getattr(samples, name))
    error = caught.value
    assert REFUSALS[name] in error.message
    assert error.line is not None
    first = next(i for i, line in enumerate(LINES, 1) if line.startswith((f"def {name}(", f"async def {name}(", name)))
    assert first <= error.line <= first + 4


def test_an_integer_that_is_too_large() -> None:
    with pytest.raises(ParseError, match="Integral constant out of range"):
        tree_from_function(samples.use_big)


def test_a_class() -> None:
    view = ClassDef(tree_from_class(samples.Counter))
    assert (view.name, view.superclass) == ("Counter", None)
    assert [str(part.child(0)) for part in view.body] == [
        "(list (variable (ident step)))", "(list (variable (ident names)))", "(ident __init__)", "(ident add)",
    ]  # fmt: skip
    (found,) = view.properties
    assert (found.name, found.getter.name, found.setter and Def(found.setter).name) == (
        "value", "__value_getter", "__value_setter",
    )  # fmt: skip
    assert signature(view.body[3])[1:] == ["n: (variable (ident int)) = None", "-> (variable (ident int))"]


def test_a_class_with_a_base() -> None:
    assert str(ClassDef(tree_from_class(samples.Child)).superclass) == "(variable (ident Counter))"
    with pytest.raises(CompileError, match="cannot be derived from 'Counter'"):
        engine.script(samples.Two)


def test_a_method() -> None:
    assert signature(tree_from_function(samples.Counter.add))[0] == "self: None = None"


NOWHERE = eval(compile("lambda x: x", "<nowhere>", "eval"))


@pytest.mark.parametrize("thing", [len, NOWHERE, Path.exists.__code__.co_code])
def test_what_has_no_source(thing: object) -> None:
    with pytest.raises(CompileError, match="cannot read the source"):
        tree_from_function(thing)  # type: ignore[arg-type]


def test_a_class_that_has_no_source() -> None:
    with pytest.raises(CompileError, match="cannot read the source of 'int'"):
        tree_from_class(int)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("x = 1\ny = = 2", 2, "invalid syntax"),
        ("def f(:\n    pass", 1, "invalid syntax"),
        ("x = 'a", 1, "invalid syntax"),
        ("if x:\n        y\n    z", 3, "invalid syntax"),
        ("x = (1,", 1, "invalid syntax"),
        ("x\0", 1, "null bytes"),
        ("a" + "+a" * (MAX_HEIGHT + 1), 1, "nested too deeply"),
        ("a" + ".b" * 20_000, 1, "nested too deeply"),
        ("-" * 20_000 + "a", 1, ""),
        ("(" * 1000, 1, "invalid syntax"),
    ],
)
def test_text_that_is_no_python(text: str, line: int, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        trees_from_text(Source(text))
    assert message in caught.value.message
    assert caught.value.line == line


def test_python_text() -> None:
    trees = trees_from_text(Source("x = 1\r\ndef f(a):\r\n    return a\r\nclass A:\n    pass"))
    assert [tree.kind for tree in trees] == ["assign", "def", "class_def"]


def test_every_expression_of_python_is_known_or_refused() -> None:
    from_python = {name for name, kind in vars(ast).items() if isinstance(kind, type) and issubclass(kind, ast.expr)}
    for text in ("(await x)", "(yield)", "(yield from x)", "{1}", "{a for a in b}", "lambda: 1", "(a := 1)"):
        assert type(ast.parse(text, mode="eval").body).__name__ in from_python
        with pytest.raises(NotSupportedError) as caught:
            trees_from_text(Source(f"async def g():\n    pass\nx = {text}" if "yield" not in text else f"x = {text}"))
        assert caught.value.hints


def test_a_default_without_a_type_has_to_be_a_tensor() -> None:
    def f(x, y=3):  # type: ignore[no-untyped-def]
        return x

    with pytest.raises(CompileError, match=r'Expected a default value of type Tensor .* on parameter "y"') as error:
        tree_from_function(f)
    assert error.value.hints == ("write its type: `y: int = …`",)
