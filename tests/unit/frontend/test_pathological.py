"""Programs that nobody should write: each ends, soon, in a compiled unit or in a clear error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import pytest

from engine.frontend.compilation.compile import compile_source
from engine.frontend.python.trees import trees_from_text
from engine.frontend.syntax.parser import parse_statements
from engine.ir.clone import copy_graph
from engine.ir.parser import parse_ir
from engine.ir.verify import verify
from engine.lang.errors import CompileError, EngineError, ParseError
from engine.lang.interpreter_settings import deep_recursion
from engine.lang.source import Source
from tests.timing import within
from tsrepl.session.session import Session

MANY = 10_000
SLOW = 10.0


def returning(expression: str, parameters: str = "x: int") -> str:
    return f"def f({parameters}):\n    return {expression}\n"


def nested(head: str, depth: int) -> str:
    lines = [" " * (level + 1) + head for level in range(depth)]
    return "\n".join(["def f(x: int):", *lines, " " * (depth + 1) + "x = 1", " return x", ""])


def early_returns(count: int) -> str:
    ifs = "".join(f"    if x == {i}:\n        return {i}\n" for i in range(count))
    return f"def f(x: int):\n{ifs}    return 1\n"


COMPILES = {
    "statements": "def f(x: int):\n" + "    x = x + 1\n" * MANY + "    return x\n",
    "variables": "def f(x: int):\n" + "".join(f"    x{i} = x + {i}\n" for i in range(MANY)) + "    return x9999\n",
    "list": returning(f"[{', '.join(map(str, range(MANY)))}]"),
    "list of one value": returning(f"[{', '.join(['x'] * MANY)}]"),
    "tuple": returning(f"({', '.join(['1'] * MANY)})"),
    "dict": returning("{" + ", ".join(f"{i}: {i}" for i in range(MANY)) + "}"),
    "long string": returning("'" + "a" * 1_000_000 + "'"),
    "long comment": returning("x  # " + "a" * 1_000_000),
    "blanks": returning("x" + " " * 1_000_000),
    "strings": returning(" ".join(["'a'"] * MANY)),
    "parameters": f"def f({', '.join(f'x{i}: int = {i}' for i in range(1000))}):\n    return x999\n",
    "arguments": f"def g({', '.join(f'x{i}: int' for i in range(1000))}):\n    return x999\n"
    + returning(f"g({', '.join(f'x{i}=x' for i in range(1000))})"),
    "long names": f"def {'f' * 100_000}({'x' * 100_000}: int):\n    return {'x' * 100_000}\n",
    "functions": "".join(f"def f{i}(x: int):\n    return x + {i}\n" for i in range(1000)),
    "calls of calls": "def f0(x: int):\n    return x\n"
    + "".join(f"def f{i}(x: int):\n    return f{i - 1}(x)\n" for i in range(1, 1000)),
    "loops": nested("while x > 0:", 150),
    "for loops": nested("for i in range(x):", 150),
    "ifs": nested("if x > 0:", 150),
    "early returns": early_returns(200),
    "results of many ifs": "def f(x: int):\n    y = 0\n"
    + "".join(f"    if x == {i}:\n        y = {i}\n" for i in range(1000)) + "    return y\n",
    "nested types": f"def f(x: {'List[' * 90}int{']' * 90}):\n    return x\n",
    "carriage returns": returning("x").replace("\n", "\r\n"),
    "lone surrogate in a string": returning("'\ud800'"),
    "int's limits": returning("(9223372036854775807, -9223372036854775808)"),
    "infinity": returning("1e" + "9" * MANY),
    "empty": "",
    "blank": "  \t \n\n \f",
    "comments": "# a\n   # b\n#",
}  # fmt: skip

REFUSED = {
    "sum": (returning("+".join(["x"] * MANY)), "nested too deeply"),
    "sum of half a megabyte": (returning("+".join(["x"] * 250_000)), "nested too deeply"),
    "brackets": (returning("(" * MANY + "x" + ")" * MANY), "nested too deeply"),
    "open brackets": (returning("(" * MANY), "nested too deeply"),
    "lists": (returning("[" * MANY + "x" + "]" * MANY), "nested too deeply"),
    "dicts": (returning("{1:" * MANY + "x" + "}" * MANY), "nested too deeply"),
    "minus": (returning("- " * MANY + "x"), "nested too deeply"),
    "not": (returning("not " * MANY + "x"), "nested too deeply"),
    "powers": (returning("**".join(["x"] * MANY)), "nested too deeply"),
    "ternaries": (returning("x if x else " * MANY + "x"), "nested too deeply"),
    "attributes": (returning("x" + ".x" * MANY), "nested too deeply"),
    "calls": (returning("x" + "()" * MANY), "nested too deeply"),
    "calls in calls": (returning("abs(" * MANY + "x" + ")" * MANY), "nested too deeply"),
    "subscripts": (returning("x[" * MANY + "0" + "]" * MANY), "nested too deeply"),
    "types": (f"def f(x: {'List[' * MANY}int{']' * MANY}):\n    return x\n", "nested too deeply"),
    "type comments": (f"def f(x):\n    # type: ({'List[' * MANY}int{']' * MANY}) -> int\n    return 1\n", "deeply"),
    "if blocks": (nested("if x > 0:", 1000), "nested too deeply"),
    "elifs": ("def f(x: int):\n    if x == 0:\n        return 0\n"
              + "".join(f"    elif x == {i}:\n        return {i}\n" for i in range(1, MANY)) + "    return 1\n",
              "nested too deeply"),
    "early returns": (early_returns(2000), "nests more than"),
    "tuples of tuples": ("def f(x: int):\n    a0 = (x, x)\n"
                         + "".join(f"    a{i + 1} = (a{i}, a{i})\n" for i in range(40)) + "    return a40\n", "parts"),
    "calls ahead": ("".join(f"def f{i}(x: int):\n    return f{i + 1}(x)\n" for i in range(2000)), "too long a chain"),
    "recursion": (returning("f(x)"), "recursive"),
    "NUL": ("def f(x: int):\0\n    return x\n", "valid token"),
    "byte order mark": ("\ufeff" + returning("x"), "valid token"),
    "surrogate": ("def \ud800(x):\n    return x\n", "valid token"),
    "tabs and spaces": ("def f(x: int):\n\tif x > 0:\n        return 1\n\treturn 2\n", "tabs and spaces"),
    "open string": (returning("'abc"), "does not end"),
    "open long string": (returning('"""' + "a\n" * MANY), "does not end"),
    "open string with a backslash": (returning("'abc\\"), "does not end"),
    "int": (returning("9" * MANY), "64 bit"),
    "megabyte of an int": (returning("9" * 1_000_000), "64 bit"),
    "hexadecimal int": (returning("0x" + "f" * MANY), "64 bit"),
    "first int too big": (returning("9223372036854775808"), "64 bit"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPILES)
def test_what_compiles(name: str) -> None:
    with within(SLOW):
        unit = compile_source(COMPILES[name])
    for function in unit.functions.values():
        assert function.graph.return_node is not None


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    text, message = REFUSED[name]
    with within(SLOW), pytest.raises(CompileError, match=message) as caught:
        compile_source(text)
    assert len(caught.value.told_alone()) < 3000
    assert len(caught.value.others) <= 2


@pytest.mark.parametrize("around", [nullcontext, deep_recursion])
@pytest.mark.parametrize("name", [*COMPILES, *REFUSED])
def test_other_readers_end_in_trees_or_errors(name: str, around: Callable[[], AbstractContextManager[None]]) -> None:
    """Whatever Python's recursion limit is: a thread that compiles raises it for all."""
    text = COMPILES.get(name) or REFUSED.get(name, ("", ""))[0]
    with within(2 * SLOW), around():
        for read in (lambda: parse_statements(Source(text), extended=True), lambda: trees_from_text(Source(text))):
            with suppress(EngineError):
                read()


@pytest.mark.parametrize(
    "text", ["@a\n" * MANY, '"""' + "a\n" * MANY, "x = 1;" * 1000, "x = [\n" + "1,\n" * MANY + "]"]
)
def test_a_session_answers_soon(text: str) -> None:
    with within(SLOW):
        assert not [reply for reply in Session().execute(text) if "Internal" in getattr(reply, "title", "")]


@pytest.mark.parametrize("name", ["loops", "ifs", "early returns"])
def test_what_nests_deeply_can_be_printed_read_copied_and_run(name: str) -> None:
    function = compile_source(COMPILES[name]).functions["f"]
    verify(function.graph)
    assert str(parse_ir(str(function.graph))) == str(copy_graph(function.graph))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "bad.ts"
    path.write_bytes(b"def f(x: int):\n    return '\xff\xfe'\n")
    (reply, *_) = Session().execute(f"%load {path}")
    assert "Internal" not in getattr(reply, "title", "")


def test_the_extended_grammar_tells_a_list_of_a_comprehension_from_the_comprehension() -> None:
    (nested,) = parse_statements(Source("[[i for i in x]]\n"), extended=True)
    (plain,) = parse_statements(Source("[i for i in x]\n"), extended=True)
    inner = str(plain).removeprefix("(expression_statement ")[:-1]
    assert str(nested) == f"(expression_statement (list_literal (list {inner})))"
    with pytest.raises(ParseError, match="single list comprehension"):
        parse_statements(Source("[i for i in x, 1]\n"), extended=True)
