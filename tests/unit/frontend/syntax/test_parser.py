"""Text to trees: what is accepted, as what, and how the rest is refused."""

import random

import pytest

from engine.frontend.syntax.parser import parse_def, parse_expression, parse_program, parse_statements
from engine.frontend.syntax.tree import Tree
from engine.lang.errors import CompileError, NotSupportedError, ParseError
from engine.lang.source import Source
from tests.timing import within


def plain(tree: Tree) -> str:
    """The s-expression, variables written by their name alone."""
    if tree.kind in ("variable", "const"):
        return plain(tree.child(0)) if tree.kind == "variable" else tree.text
    if tree.kind == "ident":
        return tree.text
    children = [plain(child) if isinstance(child, Tree) else repr(child) for child in tree.children]
    return f"({' '.join([tree.kind, *children])})"


def expression(text: str, *, extended: bool = False) -> str:
    return plain(parse_expression(Source(text), extended=extended))


def statements(text: str, *, extended: bool = False) -> str:
    return " ".join(plain(tree) for tree in parse_statements(Source(text), extended=extended))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c", "(+ a (* b c))"),
        ("a - b - c", "(- (- a b) c)"),
        ("a ** b ** c", "(** a (** b c))"),
        ("-a ** b", "(unary_minus (** a b))"),
        ("a ** -b", "(** a (unary_minus b))"),
        ("-a * b", "(* (unary_minus a) b)"),
        ("not a == b", "(not (== a b))"),
        ("not a in b", "(not (in a b))"),
        ("a not in b", "(not (in a b))"),
        ("a is not b", "(isnot a b)"),
        ("a is None", "(is a (None))"),
        ("1 + not a", "(+ 1 (not a))"),
        ("a | b ^ c & d << e + f", "(| a (^ b (& c (<< d (+ e f)))))"),
        ("a @ b // c % d", "(% (// (@ a b) c) d)"),
        ("a if b else c if d else e", "(if_expr b a (if_expr d c e))"),
        ("a.b.c(d)[e](f)", "(apply (subscript (apply (. (. a b) c) (list d) (list)) (list e)) (list f) (list))"),
        ("f(a, *b, c=d,)", "(apply f (list a (starred b)) (list (attribute c d)))"),
        ("(f)(x, )", "(apply f (list x) (list))"),
        ("x[1]", "(subscript x (list 1))"),
        ("x[a, b,]", "(subscript x (list a b))"),
        ("x[(a, b)]", "(subscript x (list (tuple_literal (list a b))))"),
        ("x[:]", "(subscript x (list (slice_expr (option) (option) (option))))"),
        ("x[1:2:3]", "(subscript x (list (slice_expr (option 1) (option 2) (option 3))))"),
        ("x[::a]", "(subscript x (list (slice_expr (option) (option) (option a))))"),
        ("x[..., None, a:]", "(subscript x (list (dots) (None) (slice_expr (option a) (option) (option))))"),
        ("x[Ellipsis, 0]", "(subscript x (list (dots) 0))"),
        ("()", "(tuple_literal (list))"),
        ("(a,)", "(tuple_literal (list a))"),
        ("a, b", "(tuple_literal (list a b))"),
        ("((a))", "a"),
        ("[]", "(list_literal (list))"),
        ("[a, b,]", "(list_literal (list a b))"),
        ("{}", "(dict_literal (list) (list))"),
        ("{a: b, c: d}", "(dict_literal (list a c) (list b d))"),
        ("[a for b in c]", "(list_comp a b c)"),
        ("{a: b for c in d}", "(dict_comp a b c d)"),
        ("f(a for b in c)", "(apply f (list (list_comp a b c)) (list))"),
        ("'a' 'b'", "(string_literal 'ab')"),
        ("'a'.upper()", "(apply (. (string_literal 'a') upper) (list) (list))"),
        ("True, False, None", "(tuple_literal (list (True) (False) (None)))"),
        ("-1", "-1"),
        ("-(1)", "-1"),
        ("--1.5", "--1.5"),
        ("0xff + 017 + 1e2 + .5 + 2j", "(+ (+ (+ (+ 255 15) 100.0) 0.5) 2j)"),
        ("1.0.real", "(. 1.0 real)"),
    ],
)
def test_expressions(text: str, expected: str) -> None:
    assert expression(text) == expected


@pytest.mark.parametrize(
    ("text", "as_text", "in_a_cell"),
    [
        ("a or b and c", "(and (or a b) c)", "(and (or a b) c)"),
        ("~a + b", "(~ (+ a b))", "(~ (+ a b))"),
        ("a < b < c", "(< (< a b) c)", "(< (< a b) c)"),
        ("017", "15", "15"),
        (
            "[a if b else c for d in e]",
            "(list_literal (list (if_expr b a (list_comp c d e))))",
            "(list_comp (if_expr b a c) d e)",
        ),
        ("[a for b in c or d]", "(list_comp a b (or c d))", "(list_comp a b (or c d))"),
    ],
)
def test_the_two_grammars(text: str, as_text: str, in_a_cell: str) -> None:
    assert (expression(text), expression(text, extended=True)) == (as_text, in_a_cell)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+a", "a"),
        ("1_000 + 0b11 + 2J", "(+ (+ 1000 3) 2j)"),
        (r"'\x41' r'\d' u'b'", r"(string_literal 'A\\db')"),
        ("f'{a}b{c + 1}'", "(apply (. (string_literal '{}b{}') format) (list a (+ c 1)) (list))"),
        ("f'{{}}'", "(string_literal '{}')"),
        ("'a' f'{b}' \"c\"", "(apply (. (string_literal 'a{}c') format) (list b) (list))"),
        (
            "f'{a[\"k\"]}'",
            "(apply (. (string_literal '{}') format) (list (subscript a (list (string_literal 'k')))) (list))",
        ),
        ("f'{a != b}'", "(apply (. (string_literal '{}') format) (list (!= a b)) (list))"),
        ("{a: b for c, d in e}", "(dict_comp a b (tuple_literal (list c d)) e)"),
        ("{a: b,}", "(dict_literal (list a) (list b))"),
        ("-(-1)", "(unary_minus -1)"),
        ("größe", "größe"),
    ],
)
def test_extended_expressions(text: str, expected: str) -> None:
    assert expression(text, extended=True) == expected
    if text != "-(-1)":  # which text reads as one literal
        with pytest.raises(ParseError):
            expression(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", "(expression_statement x)"),
        ("x = 1", "(assign (list x) (option 1) (option))"),
        ("x = y = 1", "(assign (list x y) (option 1) (option))"),
        ("a, b, = f()", "(assign (list (tuple_literal (list a b))) (option (apply f (list) (list))) (option))"),
        ("a, *b = c", "(assign (list (tuple_literal (list a (starred b)))) (option c) (option))"),
        ("x: int = 1", "(assign (list x) (option 1) (option int))"),
        ("x : Final[int] = 6", "(assign (list x) (option 6) (option (subscript Final (list int))))"),
        ("x: int", "(assign (list x) (option) (option int))"),
        ("x[0] = a, b", "(assign (list (subscript x (list 0))) (option (tuple_literal (list a b))) (option))"),
        ("x += 1", "(aug_assign x '+' 1)"),
        ("x.y **= a, b", "(aug_assign (. x y) '**' (tuple_literal (list a b)))"),
        ("x <<= 1", "(aug_assign x '<<' 1)"),
        ("return", "(return (None))"),
        ("return a, b", "(return (tuple_literal (list a b)))"),
        ("raise E('m')", "(raise (apply E (list (string_literal 'm')) (list)))"),
        ("assert a", "(assert a (option))"),
        ("assert a, 'm'", "(assert a (option (string_literal 'm')))"),
        ("del a, b[0]", "(delete (list a (subscript b (list 0))))"),
        ("global a, b", "(global (list a b))"),
        ("pass\nbreak\ncontinue", "(pass) (break) (continue)"),
        ("if a:\n  b\n", "(if a (list (expression_statement b)) (list))"),
        (
            "if a:\n  pass\nelif b:\n  pass\nelse:\n  break",
            "(if a (list (pass)) (list (if b (list (pass)) (list (break)))))",
        ),
        ("while a:\n  pass\n", "(while a (list (pass)))"),
        ("for i in a:\n  pass\n", "(for (list i) (list a) (list (pass)))"),
        ("for i, j in a:\n  pass\n", "(for (list (tuple_literal (list i j))) (list a) (list (pass)))"),
        ("for i, in a:\n  pass\n", "(for (list (tuple_literal (list i))) (list a) (list (pass)))"),
        ("for i in a, b:\n  pass\n", "(for (list i) (list a b) (list (pass)))"),
        (
            "with a as b, c:\n  pass\n",
            "(with (list (with_item a (option b)) (with_item c (option))) (list (pass)))",
        ),
        ("def f(): return 1\n", "(def f (decl (list) (option)) (list (return 1)))"),
        ("if a:\n  def f():\n    pass\n", "(if a (list (def f (decl (list) (option)) (list (pass)))) (list))"),
    ],
)  # fmt: skip
def test_statements(text: str, expected: str) -> None:
    assert statements(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1; y;", "(assign (list x) (option 1) (option)) (expression_statement y)"),
        ("if a: b; c\nelse: pass", "(if a (list (expression_statement b) (expression_statement c)) (list (pass)))"),
        ("x //= 2", "(assign (list x) (option (// x 2)) (option))"),
        ("x @= y", "(assign (list x) (option (@ x y)) (option))"),
        ("for i in a, b: pass", "(for (list i) (list (tuple_literal (list a b))) (list (pass)))"),
        ("x = []  # type: List[int]", "(assign (list x) (option (list_literal (list))) (option))"),
        ("@torch.jit.script\n@other(1)\ndef f(): pass", "(def f (decl (list) (option)) (list (pass)))"),
        ("class A: pass", "(class_def A (option) (list (pass)) (list))"),
        ("with (a, b as c,): pass", "(with (list (with_item a (option)) (with_item b (option c))) (list (pass)))"),
        ("with (a).b as c: pass", "(with (list (with_item (. a b) (option c))) (list (pass)))"),
        (
            "def f(a,  # type: int\n      b=2  # type: List[int]\n      ): pass",
            "(def f (decl (list (param a (option int) (option) (False)) (param b (option (subscript List (list int))) "
            "(option 2) (False))) (option)) (list (pass)))",
        ),
    ],
)
def test_extended_statements(text: str, expected: str) -> None:
    assert statements(text, extended=True) == expected
    if not text.startswith("for"):
        with pytest.raises(ParseError):
            parse_program(Source(text))


def test_parameters() -> None:
    tree = parse_def(Source("def f(a, b: int, c: str = 'x', *, d: float = -1., e) -> List[int]:\n    pass\n"))
    assert plain(tree.child(1)) == (
        "(decl (list (param a (option) (option) (False)) (param b (option int) (option) (False)) "
        "(param c (option str) (option (string_literal 'x')) (False)) (param d (option float) (option -1.0) (True)) "
        "(param e (option) (option) (True))) (option (subscript List (list int))))"
    )


def test_a_type_comment_completes_the_signature() -> None:
    text = "def f(a, b=1):\n    # type: (int, List[str]) -> Tuple[int, str]\n    return a\n"
    assert plain(parse_def(Source(text)).child(1)) == (
        "(decl (list (param a (option int) (option) (False)) (param b (option (subscript List (list str))) (option 1) "
        "(False))) (option (subscript Tuple (list int str))))"
    )


def test_a_method_s_type_comment_leaves_out_self() -> None:
    (tree,) = parse_program(Source("class A:\n    def f(self, a):\n        # type: (int) -> int\n        return a\n"))
    assert "(param (ident self) (option) (option) (False)) (param (ident a) (option (variable (ident int)))" in str(
        tree
    )


ARCHIVE = """class Color(Enum):
  RED = 1
class Point(NamedTuple):
  x : int
  y : Tensor
class M(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
  training : bool
  size : Final[int] = 6
  __annotations__["0"] = __torch__.torch.nn.modules.linear.Linear
  fc1 : __torch__.torch.nn.modules.linear.___torch_mangle_0.Linear
  def forward(self: __torch__.M,
    x: Tensor,
    k: Optional[int]=None) -> Tensor:
    _0 = annotate(List[int], [])
    for i in range(torch.len(_0)):
      x = torch.add_(x, CONSTANTS.c0, alpha=1)
    a, b, = (self.fc1).forward(x, )
    if torch.__is__(k, None):
      _1 = ops.prim.NumToTensor(1)
    else:
      pass
    return torch.mul(a, -1)
def helper(x: Tensor) -> None:
  def __forked():
    return (x).t()
  return None
"""


def test_the_text_of_archives() -> None:
    trees = parse_program(Source(ARCHIVE))
    assert [tree.kind for tree in trees] == ["class_def", "class_def", "class_def", "def"]
    assert "(annotate)" not in str(trees)
    assert parse_program(Source("")) == parse_program(Source("\n# nothing\n")) == []


def test_properties() -> None:
    text = "class A:\n  @property\n  def x(self): return 1\n  @x.setter\n  def x(self, v): pass\n  def f(self): pass\n"
    (tree,) = parse_statements(Source(text), extended=True)
    assert [str(method.child(0)) for method in tree.child(2).trees] == ["(ident f)"]
    (found,) = tree.child(3).trees
    assert [str(part.child(0)) for part in (found.child(1), found.child(2).child(0))] == [
        "(ident __x_getter)",
        "(ident __x_setter)",
    ]


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("return +a", 2, "expected ident but found '+' here"),
        ("return [x for x in a if x > 1]", 2, "expected else but found ']' here"),
        ("return [i for i, s in a]", 2, "expected in but found ',' here"),
        ("a = []  # type: List[int]", 2, "expected newline but found 'type comment' here"),
        ("a //= 2", 2, "expected ident but found '=' here"),
        ("x = a; y = x", 2, "expected a valid token but found ';' here"),
        ("return {1, 2}", 2, "expected : but found ',' here"),
        ("return {1: 2,}", 2, "expected ident but found '}' here"),
        ("import math", 2, "expected ident but found 'import' here"),
        ("if (y := x) > 0:\n        pass", 2, "expected ) but found ':' here"),
        ("return f'{x}'", 2, "expected newline but found 'string_literal' here"),
        ("return b'a'", 2, "expected newline but found 'string_literal' here"),
        ("return 1_000", 2, "expected newline but found 'ident' here"),
        ("y = (x + 1\n    return y", 3, "expected ) but found 'return' here"),
        ("y = x +\n    return y", 3, "expected ident but found 'newline' here"),
        ("y = x * / 2", 2, "expected ident but found '/' here"),
        ("for = 3", 2, "expected ident but found '=' here"),
        ("y = x ? 1", 2, "expected newline but found '?' here"),
        ("else:\n        x", 2, "expected ident but found 'else' here"),
        ("class A:\n        pass", 2, "expected ident but found 'class' here"),
        ("if a: pass", 2, "expected indent but found 'pass' here"),
        ("if a:\n    pass", 3, "expected indent but found 'newline' here"),
        ("x = 1\n      y = 2", 3, "expected newline but found 'indent' here"),
        ("x y", 2, "expected newline but found 'ident' here"),
        ("x, y += 1", 2, "augmented assignment can only have one LHS expression"),
        ("x: int = y = 1", 2, "Annotated multiple assignment is not supported in python"),
        ("return [x, x for x in a]", 2, "expected a single list comprehension within '[' , ']'"),
        ("return a[]", 2, "an index is missing"),
        ("return '\\x41'", 2, "unsupported hex specifier"),
        ("return 99999999999999999999", 2, "Integral constant out of range"),
        ("with a as b.c:\n        pass", 2, "expected : but found '.' here"),
        ("raise", 3, "expected ident but found 'newline' here"),
        ("del", 3, "expected ident but found 'newline' here"),
        ("return a.if", 2, "expected ident but found 'if' here"),
        ("return f(a b)", 2, "expected ) but found 'ident' here"),
        ("return f(**a)", 2, "expected ident but found 'pow operator' here"),
        ("x = [a)", 2, "expected ] but found ')' here"),
        ("return a)", 2, "expected newline but found ')' here"),
    ],
)
def test_refusals_of_statements(body: str, line: int, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_program(Source(f"def f(x):\n    {body}\n"))
    assert (caught.value.message[: len(message)], caught.value.line) == (message, line)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("def f(x: int)\n    return x\n", 2, "expected : but found 'indent' here"),
        ("def f(x: int):\n\ndef g():\n    pass\n", 3, "expected ident but found 'newline' here"),
        ("def f(*x: int):\n    return x\n", 1, "expected ) but found 'ident' here"),
        ("def f(x, **y):\n    return x\n", 1, "expected ident but found 'pow operator' here"),
        ("def f(x, /):\n    return x\n", 1, "expected ident but found '/' here"),
        ("def f(x y):\n    return x\n", 1, "expected ) but found 'ident' here"),
        ("def f(x, y):\n    # type: (int) -> int\n    return x\n", 1, "Number of type annotations (1) did not match"),
        ("def f(x):\n    # type: int -> int\n    return x\n", 2, "expected ( but found 'ident' here"),
        ("def f(x):\n    y = 1\n    # type: (int) -> int\n", 3, "expected ident but found 'type comment' here"),
        ("x = 1\n", 1, "expected def but found 'ident' here"),
        ("@foo\ndef f():\n    pass\n", 1, "expected def but found '@' here"),
        ("def f():\n    pass\n)\n", 3, "expected def but found ')' here"),
        ("def f():\n        if x:\n            y = 1\n      return x\n", 4, "invalid indent level 6"),
        ("class A(B, C):\n    pass\n", 1, "expected ) but found ',' here"),
    ],
)
def test_refusals_of_definitions(text: str, line: int, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_program(Source(text))
    assert (caught.value.message[: len(message)], caught.value.line) == (message, line)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f'{x!r}'", "an f-string takes no conversion and no format"),
        ("f'{x:3}'", "an f-string takes no conversion and no format"),
        ("f'{x=}'", "an f-string takes no conversion and no format"),
        ("b'a'", "bytes literals are not supported"),
        ("[a for a in b if c]", "comprehensions have one `for` and no `if`"),
        ("x[0] //= 1", "'//=' takes a variable on its left"),
    ],
)
def test_what_extended_text_does_not_have(text: str, message: str) -> None:
    with pytest.raises(NotSupportedError, match=message.replace("[", r"\[")) as caught:
        parse_statements(Source(text), extended=True)
    assert caught.value.range is not None
    assert caught.value.hints


@pytest.mark.parametrize("text", ["f'{x'", "f'}'", "f'{}'", "f'{a b}'", "f'{a)}'", "018", "1__0", "'\\x4'"])
def test_extended_text_that_is_wrong(text: str) -> None:
    with pytest.raises(ParseError):
        parse_statements(Source(text), extended=True)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("return lambda x: x", "lambda"),
        ("try:\n        pass", "try"),
        ("x = yield 1", "yield"),
        ("await x", "await"),
        ("from a import b", "from"),
        ("import a", "import"),
        ("nonlocal x", "nonlocal"),
        ("async def g(): pass", "async"),
    ],
)
def test_hints_name_what_python_has_besides(text: str, word: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_program(Source(f"def f(x):\n    {text}\n"))
    assert any(hint.startswith(f"'{word}' is not supported") for hint in caught.value.hints)


def test_lines_are_those_of_the_file() -> None:
    with pytest.raises(ParseError) as caught:
        parse_program(Source("def f():\n    x y\n", "m.py", first_line=40))
    assert 'File "m.py", line 41' in str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind", "wanted"),
    [
        ("r = (a + b) * c", "*", "(a + b) * c"),
        ("r = a.b(c)[d]", "subscript", "a.b(c)[d]"),
        ("r = (a.b)(c)", "apply", "(a.b)(c)"),
        ("r = -1", "const", "-1"),
        ("r = not a", "not", "not a"),
        ("r = (a, b)", "tuple_literal", "(a, b)"),
        ("r = a, b", "tuple_literal", "a, b"),
        ("r = [x for x in y]", "list_comp", "[x for x in y]"),
        ("r = {a: b}", "dict_literal", "{a: b}"),
        ("r = 'a'  'b'", "string_literal", "'a'  'b'"),
        ("f(k = 1 )", "attribute", "k = 1"),
        ("f(k = 1 )", "expression_statement", "f(k = 1 )"),
        ("x[a : b]", "slice_expr", "a : b"),
        ("assert a , b  # note", "assert", "assert a , b"),
        ("if a:\n  b\nelse:\n  c\n\n", "if", "if a:\n  b\nelse:\n  c"),
        ("def f(a: int = 1):\n  return a\n\n# end", "def", "def f(a: int = 1):\n  return a"),
        ("def f(a: int = 1):\n  return a", "param", "a: int = 1"),
    ],
)
def test_ranges_span_exactly_the_text(text: str, kind: str, wanted: str) -> None:
    def find(tree: Tree) -> Tree | None:
        if tree.kind == kind:
            return tree
        return next((found for child in tree.trees if (found := find(child)) is not None), None)

    found = next(filter(None, map(find, parse_statements(Source(text)))))
    assert found.range.text == wanted


DEEP = [
    "(" * 5000, "[" * 5000, "{1:" * 5000, "f(" * 5000, "a[" * 5000, "-" * 5000 + "a", "not " * 5000 + "a",
    "a" + "+a" * 5000, "a" + ".b" * 5000, "a" + "(0)" * 5000, "a" + "**a" * 5000, "a" + " if a else a" * 5000,
    "x = " + "(1, " * 5000, "if a:\n pass\n" + "elif a:\n pass\n" * 5000,
    "".join(" " * i + "if a:\n" for i in range(1000)) + " " * 1000 + "pass\n",
    "".join(" " * i + "def f():\n" for i in range(1000)) + " " * 1000 + "pass\n",
]  # fmt: skip


@pytest.mark.parametrize("text", DEEP)
@pytest.mark.parametrize("extended", [False, True])
def test_deep_nesting_is_refused(text: str, extended: bool) -> None:
    with pytest.raises(ParseError, match="nested too deeply"):
        parse_statements(Source(text), extended=extended)


def test_what_people_nest_is_not_deep() -> None:
    for text in (
        "(" * 150 + "a,)" + ")" * 149,
        "(1+" * 150 + "a" + ")" * 150,
        "a" + " + a" * 500,
        "f(" * 90 + ")" * 90,
        "a" + ".b()" * 250,
    ):
        assert parse_expression(Source(text)).range.end > len(text) / 2


WORDS = [
    *["def f(x):\n    ", "# type: (int) -> int", "\n", "\n    ", "\n  ", "\n\t", " ", "\\\n", "{x!r}", "\0", "\r"],
    *"def f ( ) : if else elif while for in is not and or class with as return raise assert del global pass".split(),
    *"x 1 2.5 'a' \"b\" f'{x}' f' ''' { } [ ] , . = == += //= ** * + - ~ -> ... @ ; := 0x 1j $ ? ! \\ é".split(),
]


def damaged(rnd: random.Random) -> str:
    """Random words, or the text of an archive with something amiss."""
    if rnd.random() < 0.5:
        return rnd.choice(["", " "]).join(rnd.choice(WORDS) for _ in range(rnd.randint(1, 20)))
    text = ARCHIVE
    for _ in range(rnd.randint(1, 5)):
        at = rnd.randrange(len(text) + 1)
        text = text[:at] + rnd.choice(["", rnd.choice(WORDS)]) + text[at + rnd.randint(0, 6) :]
    return text


@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_text_nothing_but_a_refusal_comes_out(seed: int) -> None:
    rnd = random.Random(seed)
    refusals: list[CompileError] = []
    for _ in range(400):
        source = Source(damaged(rnd))
        for extended in (False, True):
            try:
                trees = parse_statements(source, extended=extended)
            except (ParseError, NotSupportedError) as error:
                refusals.append(error)
                continue
            assert all(0 <= tree.range.start <= tree.range.end <= len(source.text) for tree in trees)
    assert all(error.line and error.message for error in refusals)


def test_a_long_program_is_fast() -> None:
    body = "    x = foo(a + 1, b['k'], c=2.5)  # note\n    if x is not None:\n        y = [1, 2, 3]\n"
    with within(2):
        parse_program(Source("def f(a, b):\n" + body * 700))
