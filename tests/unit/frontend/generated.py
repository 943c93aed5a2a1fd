"""Programs made up by hypothesis.

In: nothing.  Out: strategies for trees (any shape that the grammar allows, meaningless) and for whole functions (typed,
that end, whose meaning TorchScript and Python share: no overflow, no chained comparison, no division by zero).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from hypothesis import strategies as st

from engine.frontend.syntax import views
from engine.frontend.syntax.tree import BINARY_KINDS, UNARY_KINDS, Tree
from engine.lang.source import Source, SourceRange

HERE: Final = SourceRange(Source(""), 0, 0)
NAMES: Final = st.sampled_from(["a", "b", "value", "torch", "_x1"])
TEXTS: Final = st.text(st.characters(codec="utf-8"), max_size=6)

Strategy = st.SearchStrategy[Tree]

# --- trees of any shape ---

QUARTERS = st.integers(-200, 200).map(lambda quarters: quarters / 4)
"""Floats with exact remainders: `%` of a tiny one rounds in PyTorch, and so here, but not in Python."""


def make(view: type[views.View], *parts: st.SearchStrategy[object]) -> Strategy:
    return st.tuples(*parts).map(lambda found: view.make(HERE, *found))  # type: ignore[arg-type]


def node(kinds: Sequence[str], *children: Strategy) -> Strategy:
    return st.tuples(st.sampled_from(sorted(kinds)), *children).map(lambda found: Tree(found[0], found[1:], HERE))


def lists(of: st.SearchStrategy[Tree], least: int = 0) -> st.SearchStrategy[list[Tree]]:
    return st.lists(of, min_size=least, max_size=3)


VARIABLES: Final = make(views.Var, NAMES)
NUMBERS: Final = st.one_of(
    st.integers(0, 2**63 - 1), st.floats(0, allow_nan=False, allow_infinity=False), st.just(2.5j)
).map(lambda value: views.Const.make(HERE, repr(value)))  # fmt: skip
LEAVES: Final = st.one_of(
    VARIABLES, NUMBERS, make(views.StringLiteral, TEXTS), node(["True", "False", "None", "dots"])
)  # fmt: skip


def _compound(inner: Strategy) -> Strategy:
    elements = lists(st.one_of(inner, make(views.Starred, inner)))
    bounds = st.one_of(st.none(), inner)
    index = inner.filter(lambda tree: tree.kind != "tuple_literal")
    subscripts = st.one_of(index, make(views.SliceExpr, *[bounds] * 3))
    targets = st.one_of(VARIABLES, make(views.TupleLiteral, lists(VARIABLES, 1)))
    # Text reads `[[i for i in x]]` as `[i for i in x]`, and a lone `{1: [i for i in x]}` as a comprehension, too.
    plain = inner.filter(lambda tree: tree.kind != "list_comp")
    pairs = st.lists(st.tuples(inner, plain), max_size=3)
    return st.one_of(
        node(list(BINARY_KINDS), inner, inner),
        node(list(UNARY_KINDS), inner),
        make(views.Select, inner, NAMES),
        make(views.Apply, inner, elements, lists(make(views.Attribute, NAMES, inner))),
        make(views.Subscript, inner, lists(subscripts, 1)),
        make(views.ListLiteral, lists(plain)),
        make(views.TupleLiteral, elements),
        pairs.map(lambda found: views.DictLiteral.make(HERE, [k for k, _ in found], [v for _, v in found])),
        make(views.ListComp, inner, targets, inner),
        make(views.DictComp, inner, inner, targets, inner),
        make(views.TernaryIf, inner, inner, inner),
    )


EXPRESSIONS: Final = st.recursive(LEAVES, _compound, max_leaves=12)
_PLACES: Final = st.one_of(
    VARIABLES, make(views.Select, VARIABLES, NAMES), make(views.Subscript, VARIABLES, lists(VARIABLES, 1))
)
_OPERATORS: Final = st.sampled_from(["+", "-", "*", "/", "%", "**", "|", "&", "^", "<<", ">>"])
_MAYBE: Final = st.one_of(st.none(), EXPRESSIONS)
_SIMPLE: Final = st.one_of(
    make(views.Assign, lists(_PLACES, 1), EXPRESSIONS, st.none()),
    make(views.Assign, VARIABLES.map(lambda tree: [tree]), EXPRESSIONS, VARIABLES),
    make(views.AugAssign, _PLACES, _OPERATORS, EXPRESSIONS),
    make(views.ExprStmt, make(views.Apply, VARIABLES, lists(EXPRESSIONS), st.just([]))),
    make(views.Return, EXPRESSIONS),
    make(views.Raise, EXPRESSIONS),
    make(views.Assert, EXPRESSIONS, _MAYBE),
    make(views.Delete, lists(_PLACES, 1)),
    node(["pass", "break", "continue"]),
)


def _blocks(inner: Strategy) -> Strategy:
    body = lists(inner, 1)
    # Python takes the brackets of `with (a, b):` for its own.
    contexts = EXPRESSIONS.filter(lambda tree: tree.kind != "tuple_literal")
    return st.one_of(
        make(views.If, EXPRESSIONS, body, lists(inner)),
        make(views.While, EXPRESSIONS, body),
        make(views.For, VARIABLES.map(lambda tree: [tree]), EXPRESSIONS.map(lambda tree: [tree]), body),
        make(views.With, lists(make(views.WithItem, contexts, st.one_of(st.none(), VARIABLES)), 1), body),
    )


STATEMENTS: Final = st.recursive(_SIMPLE, _blocks, max_leaves=5)


@st.composite
def functions(draw: st.DrawFn) -> Tree:
    """A `def` of no meaning; parameters with a default come last, as Python wants it."""
    names = draw(st.lists(NAMES, unique=True, max_size=4))
    defaults = draw(st.integers(0, len(names)))
    params = []
    for index, name in enumerate(names):
        default = draw(LEAVES) if index >= defaults else None
        params.append(views.Param.make(HERE, name, draw(st.one_of(st.none(), VARIABLES)), default, False))
    decl = views.Decl.make(HERE, params, draw(st.one_of(st.none(), VARIABLES)))
    return views.Def.make(HERE, draw(NAMES), decl, draw(lists(STATEMENTS, 1)))


# --- functions with a meaning, as text ---

PARAMETERS: Final = "i: int, j: int, x: float, y: float, p: bool, q: bool, v: List[int], w: List[int]"
RESULT: Final = "i, j, x, y, p, q, v, w"
VALUES: Final = st.tuples(
    *[st.integers(-50, 50)] * 2, *[QUARTERS] * 2, *[st.booleans()] * 2,
    *[st.lists(st.integers(-9, 9), max_size=4)] * 2,
)  # fmt: skip
"""Arguments for the parameters."""
_ORDER: Final = ["<", "<=", ">", ">=", "==", "!="]
_VARIABLES: Final = {"int": "ij", "float": "xy", "bool": "pq", "list": "vw"}


class _Writer:
    """Draws the text of one function; `depth` bounds how far expressions and blocks nest."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.loops = 0

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def expression(self, type: str, depth: int) -> str:
        if depth == 0 or self.draw(st.integers(0, 3)) == 0:
            return self.pick(*_VARIABLES[type], self.literal(type))
        return _FORMS[type][self.draw(st.integers(0, len(_FORMS[type]) - 1))](self, depth - 1)

    def literal(self, type: str) -> str:
        drawn = {"int": st.integers(-9, 9), "float": QUARTERS, "bool": st.booleans(),
                 "list": st.lists(st.integers(-9, 9), min_size=1, max_size=3)}  # fmt: skip
        text = repr(self.draw(drawn[type]))
        return f"({text})" if text[0] == "-" else text

    def block(self, depth: int) -> list[str]:
        return [line for _ in range(self.draw(st.integers(1, 4))) for line in self.statement(depth)]

    def statement(self, depth: int) -> list[str]:
        kind = self.draw(st.integers(0, 9 if depth else 4))
        if kind <= 4:
            return [self.assignment()]
        if kind <= 6:
            other = ["else:", *self.inside(depth)] if self.draw(st.booleans()) else []
            return [f"if {self.expression('bool', 2)}:", *self.inside(depth), *other]
        if kind == 7:
            return [f"for {self.pick('i', 'j', 'k')} in {self.pick('range(3)', 'v', 'range(1, 6, 2)')}:",
                    *self.inside(depth), *self.way_out()]  # fmt: skip
        if kind == 8:
            self.loops += 1
            count = f"n{self.loops}"
            return [f"{count} = 0", f"while {count} < 3 and {self.expression('bool', 1)}:", f"    {count} += 1",
                    *self.inside(depth), *self.way_out()]  # fmt: skip
        return [f"if {self.expression('bool', 1)}:", f"    return {RESULT}"]

    def inside(self, depth: int) -> list[str]:
        return ["    " + line for line in self.block(depth - 1)]

    def way_out(self) -> list[str]:
        if self.draw(st.booleans()):
            return []
        return [f"    if {self.expression('bool', 1)}:", f"        {self.pick('break', 'continue')}"]

    def assignment(self) -> str:
        type = self.pick(*_VARIABLES)
        name = self.pick(*_VARIABLES[type])
        value = self.expression(type, 3)
        if type == "int":
            return self.pick(f"{name} = ({value}) % 1009", f"{name} = min(max({value}, -99), 99)")
        if type == "float":
            return f"{name} = min(max({value}, -1000.0), 1000.0)"
        return f"{name} = {value}" if type == "bool" else f"{name} = ({value})[:6]"


Form = Callable[[_Writer, int], str]


def _binary(type: str, *operators: str) -> Form:
    return lambda w, depth: f"({w.expression(type, depth)} {w.pick(*operators)} {w.expression(type, depth)})"


def _item(w: _Writer, depth: int) -> str:
    name = w.pick("v", "w")
    return f"({name}[{w.expression('int', depth)} % len({name})] if len({name}) > 0 else {w.literal('int')})"


def _choice(type: str) -> Form:
    def write(w: _Writer, depth: int) -> str:
        first, second = w.expression(type, depth), w.expression(type, depth)
        return f"({first} if {w.expression('bool', depth)} else {second})"

    return write


_FORMS: Final[dict[str, tuple[Form, ...]]] = {
    "int": (
        _binary("int", "+", "-", "*"), _choice("int"), _item,
        lambda w, d: f"({w.expression('int', d)} {w.pick('//', '%')} {w.pick('7', '(-3)', '2')})",
        lambda w, d: f"{w.pick('abs', 'int')}({w.expression('int', d)})",
        lambda w, d: f"len({w.expression('list', d)})",
        lambda w, d: f"int({w.expression('float', d)} % 97.0)",
        lambda w, d: f"(- {w.pick('i', 'j', 'len(v)')})",
    ),
    "float": (
        _binary("float", "+", "-", "*"), _choice("float"),
        lambda w, d: f"({w.expression('float', d)} {w.pick('/', '//', '%')} {w.pick('2.5', '(-0.75)', '3')})",
        lambda w, d: f"float({w.expression('int', d)})",
        lambda w, d: f"({w.expression('int', d)} {w.pick('/', '*')} {w.pick('8.0', '3.0')})",
        lambda w, d: f"abs({w.expression('float', d)})",
    ),
    "bool": (
        _binary("bool", "and", "or"), _binary("bool", "==", "!="), _choice("bool"),
        _binary("int", *_ORDER), _binary("float", *_ORDER), _binary("list", "==", "!="),
        lambda w, d: f"(not {w.expression('bool', d)})",
        lambda w, d: f"({w.expression('int', d)} {w.pick('in', 'not in')} {w.pick('v', 'w')})",
    ),
    "list": (
        _binary("list", "+"), _choice("list"),
        lambda w, d: f"[{w.expression('int', d)} % 50, {w.expression('int', d)} % 50]",
        lambda w, d: f"[k % 11 + {w.expression('int', 0)} for k in {w.pick('v', 'w')}]",
        lambda w, d: f"({w.pick('v', 'w')})[{w.pick('1:', ':-1', '::2', '-2:')}]",
        lambda w, d: f"sorted({w.pick('v', 'w')})",
    ),
}  # fmt: skip


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The text of a function `f` that changes its parameters and returns them all."""
    writer = _Writer(draw)
    lines = ["k = 0", *writer.block(2), f"return {RESULT}"]
    return f"def f({PARAMETERS}):\n" + "".join(f"    {line}\n" for line in lines)
