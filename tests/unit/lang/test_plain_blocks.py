"""What plain blocks are, and that the parser finds no mistake in any of them."""

import random
import re

import pytest

from engine.frontend.syntax.parser import parse_program
from engine.frontend.syntax.tree import UnreadList
from engine.frontend.syntax.views import Def
from engine.lang.errors import ParseError
from engine.lang.lexer import Lexer, pattern_for
from engine.lang.plain_blocks import BLOCKS, WORDS, plain_block_end
from engine.lang.source import Source

BODY = """\
    _0 = torch.slice(x, 0, 0, 9223372036854775807)
    weight, bias, = (self.layer).weight, annotate(Optional[Tensor], None)
    y : Tensor = torch.add(x, y=-1., alpha=1.0000000000000001e-05)
    if torch.__is__(y, None):
      _1, _2 = [1, 2, ], {"a\\n": (x, ), 'b': ()}
    elif not x and y is not None:
      pass
    else:
      for i in range(torch.len(x)):
        z = x[0][i, 1:2] if y else (self.layers.a).forward(x, )[:, ::2]
        while True:
          break
    with torch.no_grad() as a, b:
      assert x not in y, "no {}".format(x)
      raise AssertionError("\\303\\251")
    x[0] = y ** -2 <= ~z // 3
    del x, y
    return (_0, a.b(c)(d).e.f[1].g)
"""
PIECES = tuple(
    sorted({*re.findall(r"\w+|[^\w\s]+|\n *| +", BODY), "'", '"', "#", "\\", "lambda", "1e", "08", "not index", "  "})
)


def is_plain(body: str) -> bool:
    return plain_block_end(body, 0, len(body), pattern_for(False, True)) == len(body.rstrip())


def source_of(body: str) -> Source:
    return Source(f"def f(self, x):\n{body}\ndef g():\n    pass\n", is_generated=True)


def trees_of(body: str, *, lazy: bool) -> list[str]:
    return [str(tree) for tree in parse_program(source_of(body), lazy=lazy)]


def test_a_plain_body_is_read_when_it_is_looked_at() -> None:
    function, _ = parse_program(source_of(BODY), lazy=True)
    body = Def(function).tree.children[Def.body.index]
    assert isinstance(body, UnreadList)
    assert Def(function).docstring == ""
    eager, _ = parse_program(source_of(BODY))
    assert (function.range.start, function.range.end) == (eager.range.start, eager.range.end)
    assert str(function) == str(eager)
    ranges = [(each.range.start, each.range.end, each.range.last) for each in Def(eager).body]
    assert [(each.range.start, each.range.end, each.range.last) for each in Def(function).body] == ranges


def test_a_body_is_one_token() -> None:
    lexer, kinds = Lexer(source_of(BODY), blocks=True), []
    while lexer.cur.kind != "eof":
        kinds.append(lexer.next().kind)
    assert kinds[8:13] == ["indent", "block", "newline", "dedent", "def"]


NOT_PLAIN = (
    '"a docstring"\n    return x',
    "x = 1\n\n    # two",
    "x =",
    "x = y z",
    '"" + x',
    'x = "a"y',
    'x = "a" "b"',
    "x = 08",
    "x = y.1",
    'x = y."a"',
    "x = f(1=2)",
    "x = f(not y=2)",
    "x = f(y.z=2)",
    "x = f((y=2))",
    "x = {1: 2, }",
    "x = {1}",
    "x = y[]",
    "x = y[,]",
    "x = (y",
    "x = y)",
    "x = [y)",
    "x = lambda",
    "def = 1",
    "def g():\n      pass",
    "x = not index",
    'x = "\\x41"',
    "x = é",
    "x = 9223372036854775809",
    "for x.y in z:\n      pass",
    "for x in y: pass",
    "x = y if z",
    "x = y else z",
    "x = [i for i in y]",
    "x += 1",
    "x: int: y",
    "x, y: int",
    "if x: y",
    "if x:\n    y = 2",
    "else:\n      x",
    "if x:\n      y\n    z\n    else:\n      y",
    "if x:\n      y\n     z",
    "pass + 1",
    "pass, x",
    "*x = y",
    "with x as y.z:\n      pass",
    "return return",
    "x = f(y\n    )",
    "while x:\n      y\n    else:\n      z",
    "x.",
    "x[0",
    f"x = {' + '.join('y' * WORDS)}",
    "\n".join(f"{'    ' * bool(at)}{' ' * at}if x:" for at in range(BLOCKS + 1)) + f"\n    {' ' * (BLOCKS + 1)}pass",
)


@pytest.mark.parametrize("body", NOT_PLAIN)
def test_what_is_not_plain_is_read_at_once(body: str) -> None:
    assert not is_plain(f"    {body}")


def test_all_of_a_body_is_plain() -> None:
    assert is_plain(BODY)
    assert all(is_plain(line) for line in BODY.splitlines() if line.startswith(("    _0", "    x")))


@pytest.mark.parametrize("seed", range(40))
def test_the_parser_refuses_no_plain_body(seed: int) -> None:
    chosen, plain = random.Random(seed), 0
    for _ in range(60):
        pieces = re.findall(r"\w+|[^\w\s]+|\n *| +", BODY)
        for _ in range(chosen.randint(1, 3)):
            at = chosen.randrange(len(pieces))
            pieces[at : at + chosen.randint(0, 2)] = chosen.choices(PIECES, k=chosen.randint(0, 2))
        body = "    " + "".join(pieces).strip()
        if is_plain(body):
            plain += 1
            try:
                assert trees_of(body, lazy=True) == trees_of(body, lazy=False)
            except ParseError as error:
                pytest.fail(f"plain, but refused: {error}\n{body}")
    assert plain


@pytest.mark.parametrize(
    "statement",
    [
        f"x = {'f(' * (WORDS // 3 - 1)}y{')' * (WORDS // 3 - 1)}",
        f"x = y{'[:z' * (WORDS // 5)}{']' * (WORDS // 5)}",
        f"x = {'-' * (WORDS - 4)}y",
        f"x = y{'.a' * (WORDS // 2 - 2)}",
        f"x = y{' ** y' * (WORDS // 2 - 2)}",
        f"x = y{' if y else y' * (WORDS // 4 - 2)}",
    ],
)
def test_the_limits_of_plain_bodies_are_within_those_of_trees(statement: str) -> None:
    blocks = [f"{' ' * (4 + at)}while x:" for at in range(BLOCKS)]
    body = "\n".join([*blocks, f"{' ' * (4 + BLOCKS)}{statement}"])
    assert is_plain(body)
    assert trees_of(body, lazy=True) == trees_of(body, lazy=False)
