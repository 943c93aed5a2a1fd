"""From text to trees: statements, functions, classes.

In: a `Source`.  Out: the trees of what it defines.  The grammar is that of TorchScript's text (archives,
`CompilationUnit`); with `extended` it takes further syntax of Python that gives the same trees as `python.trees`
makes: decorators (dropped), one-line blocks, `;`, f-strings, `//=`.  Every error is a ParseError or
NotSupportedError with its range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from keyword import iskeyword
from typing import Final, TypeVar

from engine.frontend.syntax.desugar import add_property, augmented
from engine.frontend.syntax.expressions import Expressions
from engine.frontend.syntax.tree import Tree, UnreadList
from engine.frontend.syntax.type_comments import merge_types, with_type
from engine.frontend.syntax.views import (
    Assert,
    Assign,
    ClassDef,
    Decl,
    Def,
    Delete,
    ExprStmt,
    For,
    Global,
    If,
    Param,
    Raise,
    Return,
    Var,
    While,
    With,
    WithItem,
)
from engine.lang.deferred import pattern_of
from engine.lang.errors import ParseError, together
from engine.lang.interpreter_settings import MAX_PARAMETERS, collecting_rarely, deep_recursion
from engine.lang.lexer import Lexer, check_length, definition_starts
from engine.lang.source import Source, SourceRange

AUGMENTED: Final = {
    "+=": "+", "-=": "-", "*=": "*", "/=": "/", "%=": "%", "|=": "|", "&=": "&", "^=": "^",
    "<<=": "<<", ">>=": ">>", "**=": "**", "//=": "//", "@=": "@",
}  # fmt: skip
UNSUPPORTED: Final = {
    "lambda": "write a function of its own",
    "try": "check before, errors cannot be caught",
    "except": "check before, errors cannot be caught",
    "finally": "check before, errors cannot be caught",
    "yield": "collect the values in a list and return it",
    "async": "call the function with torch.jit.fork",
    "await": "use torch.jit.wait",
    "nonlocal": "return the value instead",
    "from": "import outside of the compiled text",
    "import": "import outside of the compiled text",
    "match": "use if and elif",
}
"""Words that begin syntax that Python has and TorchScript does not -> what to do instead."""

MAX_SYNTAX_ERRORS: Final = 10
"""Errors reported at once: each costs reading the rest of the text once more."""

_T = TypeVar("_T")


def parse_program(source: Source, *, extended: bool = False, lazy: bool = False) -> list[Tree]:
    """The functions and classes of a program, in order; with `lazy`, plain bodies are read when they are looked at."""
    return _read_all(source, extended, Parser.program, lazy=lazy)


def parse_methods(source: Source) -> list[Tree]:
    """The methods that a text has without their class, in order: type comments leave out their first parameter."""
    return _read_all(source, False, Parser.methods)


def parse_def(source: Source, *, extended: bool = False) -> Tree:
    """The one function that the source holds."""
    return _read(source, extended, Parser.function)


def parse_statements(source: Source, *, extended: bool = False) -> list[Tree]:
    """Statements, functions and classes, as they are typed at a prompt."""
    return _read_all(source, extended, Parser.top_statements)


def parse_expression(
    source: Source, *, extended: bool = False, begin: int = 0, end: int | None = None, rows: bool = True
) -> Tree:
    """The one expression that the source holds, or its part from `begin` to `end`; without `rows` all its literals are
    trees of their own."""
    return _read(source, extended, Parser.expression, begin, end, rows=rows)


def parse_type_comment(source: Source, begin: int, end: int) -> Tree:
    """`(int, str) -> float` in a part of the source, as a declaration whose parameters have no names."""
    return _read(source, False, Parser.type_comment, begin, end)


def _read(
    source: Source,
    extended: bool,
    rule: Callable[[Parser], _T],
    begin: int = 0,
    end: int | None = None,
    *,
    rows: bool = True,
    lazy: bool = False,
) -> _T:
    """The result of the rule, which must read the whole source, or its part from `begin` to `end`."""
    with deep_recursion(), collecting_rarely():
        parser = Parser(source, extended=extended, begin=begin, end=end, rows=rows, lazy=lazy)
        try:
            found = rule(parser)
            parser.lexer.expect("eof")
        except ParseError as error:
            error.hints = parser.hints() or error.hints
            raise
    return found


def _read_all(source: Source, extended: bool, rule: Callable[[Parser], _T], *, lazy: bool = False) -> _T:
    """The result of the rule for the whole source.  Raises the first error of each definition, together."""
    check_length(source)
    try:
        return _read(source, extended, rule, lazy=lazy)
    except ParseError as error:
        further = _further_errors(source, extended, rule, error)
        raise together([error, *islice(further, MAX_SYNTAX_ERRORS - 1)]) from error.__cause__


def _further_errors(
    source: Source, extended: bool, rule: Callable[[Parser], object], error: ParseError
) -> Iterator[ParseError]:
    """The errors in the definitions after the one that failed: parsing starts again with the next."""
    starts = definition_starts(source, extended)
    at = -1
    while error.range is not None:
        at = max(at + 1, error.range.start)
        begin = next((start for start in starts if start >= at), None)
        if begin is None:
            return
        try:
            _read(source, extended, rule, begin)
            return
        except ParseError as another:
            yield another
            error, at = another, begin


class Parser:
    """Reads statements from the lexer, expressions through `Expressions`."""

    def __init__(
        self,
        source: Source,
        *,
        extended: bool = False,
        begin: int = 0,
        end: int | None = None,
        rows: bool = True,
        lazy: bool = False,
    ) -> None:
        self.lexer = Lexer(source, extended=extended, begin=begin, end=end, rows=rows, blocks=lazy)
        self.extended = extended
        self.expressions = Expressions(self.lexer, extended=extended)
        self._begin = self.lexer.cur

    def hints(self) -> tuple[str, ...]:
        """Hints what to do instead, if the parser stopped at syntax that TorchScript does not have."""
        words = dict.fromkeys([self._begin.text, self.lexer.last.text, self.lexer.cur.text])
        return tuple(f"'{word}' is not supported: {UNSUPPORTED[word]}" for word in words if word in UNSUPPORTED)

    # --- whole sources ---

    def program(self) -> list[Tree]:
        found: list[Tree] = []
        while self.lexer.cur.kind != "eof":
            found.append(self._definition() if self._at_definition() else self.function())
        return found

    def methods(self) -> list[Tree]:
        found: list[Tree] = []
        while self.lexer.cur.kind != "eof":
            found.append(self.function(is_method=True))
        return found

    def top_statements(self) -> list[Tree]:
        found: list[Tree] = []
        while self.lexer.cur.kind != "eof":
            if self._at_definition():
                found.append(self._definition())
            else:
                found += self._statements()
        return found

    def expression(self) -> Tree:
        tree = self.expressions.parse_tuple()
        self.lexer.next_if("newline")
        return tree

    # --- definitions ---

    def _at_definition(self) -> bool:
        return self.lexer.cur.kind in ("def", "class") or (self.extended and self.lexer.cur.kind == "@")

    def _definition(self) -> Tree:
        self._decorators()
        return self._class() if self.lexer.cur.kind == "class" else self.function()

    def _decorators(self) -> list[Tree]:
        found: list[Tree] = []
        while self.extended and self.lexer.next_if("@"):
            found.append(self.expressions.parse())
            self.lexer.expect("newline")
        return found

    def function(self, *, is_method: bool = False) -> Tree:
        start = self.lexer.expect("def").start
        self.expressions.enter()
        name = self.expressions.ident()
        decl = self._decl()
        self.lexer.expect(":")
        if self.lexer.next_if("indent"):
            if self.lexer.next_if("type_comment"):
                decl = merge_types(decl, self.type_comment(), is_method=is_method, extended=self.extended)
            body = self._unread_block() if self.lexer.cur.kind == "block" else self._until_dedent()
        else:
            body = self._statements()
        self.expressions.leave()
        return Def.make(self._through(start, body), name, decl, body)

    def _unread_block(self) -> UnreadList:
        range = self.lexer.next().range
        self.lexer.expect("newline")
        self.lexer.expect("dedent")
        source, extended = range.source, self.extended
        begin = range.start - range.column
        return UnreadList(range, lambda: _read(source, extended, Parser.top_statements, begin, range.end))

    def _decl(self) -> Tree:
        start = self.lexer.expect("(").start
        params: list[Tree] = []
        kwarg_only = False
        while self.lexer.cur.kind != ")":
            if self.lexer.next_if("*"):
                kwarg_only = True
                if self.lexer.cur.kind not in (",", ")"):
                    raise self.lexer.unexpected(")")
            elif len(params) == MAX_PARAMETERS:
                raise ParseError(f"a function has at most {MAX_PARAMETERS:,} parameters", self.lexer.cur.range)
            else:
                params.append(self._param(kwarg_only))
            goes_on = self.lexer.next_if(",")
            if self.extended and params:
                params[-1] = self._with_comment(params[-1])
            if not goes_on:
                break
        self.lexer.expect(")")
        returns = self.expressions.parse() if self.lexer.next_if("->") else None
        return Decl.make(self.expressions.since(start), params, returns)

    def _with_comment(self, param: Tree) -> Tree:
        """The parameter with the type of a comment `# type: int` after it, if there is one."""
        source, begin = self.lexer.source, param.range.end
        found = _PARAMETER_COMMENT.match(source.text, begin, self.lexer.cur.start)
        if found is None:
            return param
        return with_type(param, parse_expression(source, extended=True, begin=found.start(1), end=found.end(1)))

    def _param(self, kwarg_only: bool) -> Tree:
        name = self.expressions.ident()
        annotation = self.expressions.parse() if self.lexer.next_if(":") else None
        default = self.expressions.parse() if self.lexer.next_if("=") else None
        return Param.make(self.expressions.since(name.range.start), name, annotation, default, kwarg_only)

    def type_comment(self) -> Tree:
        """`(int, str) -> float` as a declaration whose parameters have no names."""
        start = self.lexer.expect("(").start
        types = self.expressions.items(")", self.expressions.parse)
        returns = self.expressions.parse() if self.lexer.next_if("->") else None
        range = self.expressions.since(start)
        self.lexer.expect("newline")
        return Decl.make(range, [Param.make(type.range, "", type, None, False) for type in types], returns)

    def _class(self) -> Tree:
        start = self.lexer.expect("class").start
        self.expressions.enter()
        name = self.expressions.ident()
        superclass = None
        if self.lexer.next_if("("):
            superclass = self.expressions.parse() if self.lexer.cur.kind != ")" else None
            self.lexer.expect(")")
        self.lexer.expect(":")
        if not self.extended or self.lexer.cur.kind == "indent":
            self.lexer.expect("indent")
            body, properties = self._class_body()
        else:
            body, properties = self._statements(), []
        self.expressions.leave()
        return ClassDef.make(self._through(start, [*body, *properties]), name, superclass, body, properties)

    def _class_body(self) -> tuple[list[Tree], list[Tree]]:
        """The statements and the properties of a class."""
        body: list[Tree] = []
        properties: dict[str, Tree] = {}
        while not self.lexer.next_if("dedent"):
            decorators = self._decorators()
            if self.lexer.cur.kind != "def":
                body += self._statements()
                continue
            method = self.function(is_method=True)
            if not add_property(properties, decorators, method):
                body.append(method)
        return body, list(properties.values())

    # --- blocks ---

    def _block(self) -> list[Tree]:
        """The statements after a `:`."""
        self.expressions.enter()
        if self.extended and self.lexer.cur.kind != "indent":
            found = self._statements()
        else:
            self.lexer.expect("indent")
            found = self._until_dedent()
        self.expressions.leave()
        return found

    def _until_dedent(self) -> list[Tree]:
        found = self._statements()
        while not self.lexer.next_if("dedent"):
            found += self._statements()
        return found

    def _statements(self) -> list[Tree]:
        """The next statement; several when `;` stands between them."""
        compound = _COMPOUND.get(self.lexer.cur.kind)
        if compound is not None:
            return [compound(self)]
        found = [self._simple()]
        while self.extended and self.lexer.next_if(";"):
            if self.lexer.cur.kind == "newline":
                break
            found.append(self._simple())
        self.lexer.expect("newline")
        return found

    def _simple(self) -> Tree:
        self._begin = self.lexer.cur
        start = self._begin.range.start
        word = self._begin.text  # a name for the lexer, so that what is behind it would be blamed
        if self._begin.kind == "ident" and word in UNSUPPORTED and iskeyword(word):
            raise ParseError(f"there is no '{word}' in TorchScript", self._begin.range)
        read = _SIMPLE.get(self._begin.kind)
        return read(self, start) if read is not None else self._expression_statement(start)

    def _word(self, start: int) -> Tree:
        """`pass`, `break` or `continue`."""
        token = self.lexer.next()
        return Tree(token.kind, (), token.range)

    def _return(self, start: int) -> Tree:
        token = self.lexer.next()
        if self.lexer.cur.kind in _ENDS:
            return Return.make(token.range, Tree("None", (), token.range))
        value = self.expressions.parse_tuple()
        return Return.make(self.expressions.since(start), value)

    def _raise(self, start: int) -> Tree:
        self.lexer.next()
        value = self.expressions.parse()
        return Raise.make(self.expressions.since(start), value)

    def _assert(self, start: int) -> Tree:
        self.lexer.next()
        condition = self.expressions.parse()
        message = self.expressions.parse() if self.lexer.next_if(",") else None
        return Assert.make(self.expressions.since(start), condition, message)

    def _delete(self, start: int) -> Tree:
        self.lexer.next()
        targets = [self.expressions.parse()]
        while self.lexer.next_if(","):
            targets.append(self.expressions.parse())
        return Delete.make(self.expressions.since(start), targets)

    def _global(self, start: int) -> Tree:
        self.lexer.next()
        names = [self.expressions.ident()]
        while self.lexer.next_if(","):
            names.append(self.expressions.ident())
        return Global.make(self.expressions.since(start), names)

    def _expression_statement(self, start: int) -> Tree:
        """An expression, or an assignment to it."""
        left = self.expressions.parse_tuple()
        kind = self.lexer.cur.kind
        if kind in AUGMENTED:
            return self._augmented(start, left)
        if kind == ":":
            return self._annotated(start, left)
        if kind == "=":
            return self._assignment(start, left)
        return ExprStmt.make(self.expressions.since(start), left)

    def _augmented(self, start: int, target: Tree) -> Tree:
        if target.kind == "tuple_literal":
            raise ParseError(
                "augmented assignment can only have one LHS expression",
                target.range,
                hints=("write one statement for each",),
            )
        operator = AUGMENTED[self.lexer.next().kind]
        value = self.expressions.parse_tuple()
        return augmented(self.expressions.since(start), target, operator, value)

    def _annotated(self, start: int, target: Tree) -> Tree:
        self.lexer.next()
        annotation = self.expressions.parse()
        value = self.expressions.parse_tuple() if self.lexer.next_if("=") else None
        if self.lexer.cur.kind == "=":
            raise ParseError(
                "Annotated multiple assignment is not supported in python",
                annotation.range,
                hints=("write one statement for each",),
            )
        return Assign.make(self.expressions.since(start), [target], value, annotation)

    def _assignment(self, start: int, first: Tree) -> Tree:
        parts = [first]
        while self.lexer.next_if("="):
            parts.append(self.expressions.parse_tuple())
        *targets, value = parts
        return Assign.make(self.expressions.since(start), targets, value, None)

    # --- statements with blocks ---

    def _if(self) -> Tree:
        """An `if` or `elif` with all that belongs to it."""
        start = self.lexer.next().start
        condition = self.expressions.parse()
        self.lexer.expect(":")
        true_branch, false_branch = self._block(), list[Tree]()
        if self.lexer.cur.kind == "elif":
            false_branch = [self._if()]
        elif self.lexer.next_if("else"):
            self.lexer.expect(":")
            false_branch = self._block()
        return If.make(self._through(start, false_branch or true_branch), condition, true_branch, false_branch)

    def _while(self) -> Tree:
        start = self.lexer.next().start
        condition = self.expressions.parse()
        self.lexer.expect(":")
        body = self._block()
        return While.make(self._through(start, body), condition, body)

    def _for(self) -> Tree:
        start = self.lexer.next().start
        target = self.expressions.parse_tuple_target()
        self.lexer.expect("in")
        iterables = self._iterables()
        self.lexer.expect(":")
        body = self._block()
        return For.make(self._through(start, body), [target], iterables, body)

    def _iterables(self) -> list[Tree]:
        if self.extended:
            return [self.expressions.parse_tuple()]
        iterables = [self.expressions.parse()]
        while self.lexer.next_if(",") and self.lexer.cur.kind != ":":
            iterables.append(self.expressions.parse())
        return iterables

    def _with(self) -> Tree:
        start = self.lexer.next().start
        if self.extended and self.lexer.cur.kind == "(" and self.lexer.closed_before(":"):
            self.lexer.next()
            items = self.expressions.items(")", self._with_item)
        else:
            items = [self._with_item()]
            while self.lexer.next_if(","):
                items.append(self._with_item())
        self.lexer.expect(":")
        body = self._block()
        return With.make(self._through(start, body), items, body)

    def _with_item(self) -> Tree:
        start = self.lexer.cur.start
        value = self.expressions.parse()
        target = None
        if self.lexer.next_if("as"):
            name = self.expressions.ident()
            target = Var.make(name.range, name)
        return WithItem.make(self.expressions.since(start), value, target)

    def _through(self, start: int, block: list[Tree] | UnreadList) -> SourceRange:
        """From offset `start` to the end of the block's last statement."""
        last = block if isinstance(block, UnreadList) else block[-1] if block else None
        return SourceRange(self.lexer.source, start, start if last is None else last.range.end)


_PARAMETER_COMMENT: Final = pattern_of(r",?[ \t]*# type:[ \t]*(?!\(|ignore\b)([^#\n]+)")
_ENDS: Final = ("newline", ";", "eof")
_COMPOUND: Final[dict[str, Callable[[Parser], Tree]]] = {
    "if": Parser._if,
    "while": Parser._while,
    "for": Parser._for,
    "with": Parser._with,
    "def": Parser.function,
}
_SIMPLE: Final[dict[str, Callable[[Parser, int], Tree]]] = {
    **dict.fromkeys(("pass", "break", "continue"), Parser._word),
    "return": Parser._return,
    "raise": Parser._raise,
    "assert": Parser._assert,
    "del": Parser._delete,
    "global": Parser._global,
}
