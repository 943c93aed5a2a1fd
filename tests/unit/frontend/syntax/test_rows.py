"""Lists and dicts of many literals: one constant each, that means what the literals one by one mean; and programs that
are too long, refused before they are read."""

from __future__ import annotations

import io
import time

import pytest

import engine.torch as torch
from engine.frontend.syntax.parser import parse_program
from engine.frontend.syntax.unparse import unparse
from engine.lang import interpreter_settings, lexer
from engine.lang.errors import ArgumentError, CompileError, ParseError
from engine.lang.lexer import ROW
from engine.lang.source import Source

MANY = ROW + 44
KINDS = {
    "int": [str(n) for n in range(MANY)],
    "negative": [f"-{n}" for n in range(MANY)],
    "wide": [str(10**17 + n) for n in range(MANY)],
    "float": [f"{n}.5" for n in range(MANY)],
    "exponent": [f"{n}e-3" for n in range(MANY)],
    "point": [f"{n}." for n in range(MANY)],
    "str": [f'"w{n}"' for n in range(MANY)],
    "single quotes": [f"'w{n}'" for n in range(MANY)],
    "brackets": [f'"], {n}: ["' for n in range(MANY)],
    "escapes": [rf'"\n\"\\{n % 8}01é, {n}"' for n in range(MANY)],
    "bool": [("True", "False")[n % 2] for n in range(MANY)],
}
TYPES = {"int": "int", "negative": "int", "wide": "int", "float": "float", "exponent": "float", "point": "float",
         "bool": "bool"}  # fmt: skip
NOT_ROWS = {
    "int and float": ["1", "2.5"] * MANY,
    "octal": ["010"] * MANY,
    "hexadecimal": ["0x10"] * MANY,
    "of 64 bits": [str(2**63 - 1), str(-(2**63))] * MANY,
    "neighbours": ['"a" "b"'] * MANY,
    "complex": ["1j"] * MANY,
    "names": ["x"] * MANY,
    "sums": ["1 + 1"] * MANY,
    "None": ["1", "None"] * MANY,
    "tuples": ["(1, 2)"] * MANY,
}


FORMS = ("[{}]", "[{},]", "[ {}\n    ]", "[{}] + [{}]", "[{}][1:]", "sorted([{}])", "list([{}])")
KEYS = ("int", "float", "str", "escapes")


def results(type, expression):
    """What four calls return, of which later ones run plans; each result is changed, so that none may be another's."""
    f = torch.jit.CompilationUnit(f"def f(x: int) -> {type}:\n    return {expression}\n").f
    found = []
    for _ in range(4):
        value = f(1)
        found.append((repr(value), value.clear())[0])
    return found


def agrees(type, expression, monkeypatch):
    found = results(type, expression)
    with monkeypatch.context() as patch:
        patch.setattr(lexer, "_ROWS", {})
        assert found == results(type, expression)


def type_of(kind):
    return TYPES.get(kind, "str")


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_is_what_its_literals_make_it(kind, mode, monkeypatch):
    agrees(f"List[{type_of(kind)}]", f"[{', '.join(KINDS[kind])}]", monkeypatch)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["int", "brackets"])
def test_however_it_is_written(form, kind, mode, monkeypatch):
    agrees(f"List[{type_of(kind)}]", form.replace("{}", ", ".join(KINDS[kind])), monkeypatch)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", KINDS)
def test_a_dict_is_what_its_literals_make_it(key, value, monkeypatch):
    pairs = ", ".join(map("{}: {}".format, KINDS[key], KINDS[value]))
    agrees(f"Dict[{type_of(key)}, {type_of(value)}]", f"{{{pairs}}}", monkeypatch)


def test_the_last_of_equal_keys_counts_in_the_place_of_the_first(mode, monkeypatch):
    agrees("Dict[int, int]", "{" + ", ".join(f"{n % 300}: {n}" for n in range(900)) + "}", monkeypatch)


@pytest.mark.parametrize("items", NOT_ROWS.values(), ids=NOT_ROWS)
def test_what_is_no_row_of_one_type_is_compiled_as_ever(items, monkeypatch):
    text = f"def f(x: int):\n    return [{', '.join(items)}]\n"
    found = outcome(text)
    monkeypatch.setattr(lexer, "_ROWS", {})
    assert found == outcome(text)


def outcome(text):
    try:
        f = torch.jit.CompilationUnit(text).f
        return str(f.schema), repr(f(1))
    except CompileError as error:
        return str(error)


@pytest.mark.parametrize("annotation", [
    "List[int]", "Optional[List[int]]", "List[float]", "List[Optional[int]]", "Any", "Dict[int, int]", "int",
    "Union[List[int], List[str]]", "Union[int, List[int]]", "Tuple[int, int]", "List[Any]",
])  # fmt: skip
@pytest.mark.parametrize("kind", ["int", "str"])
def test_annotations_say_what_they_say_of_literals(annotation, kind, monkeypatch):
    text = f"def f(x: int):\n    y: {annotation} = [{', '.join(KINDS[kind])}]\n    return y\n"
    found = outcome(text)
    monkeypatch.setattr(lexer, "_ROWS", {})
    assert found == outcome(text)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "escapes"])
def test_it_is_one_node_and_its_text_reads_back(kind):
    many = ", ".join(KINDS[kind])
    text = f"def f(x: int):\n    return ([{many}], {{{', '.join(f'{n}: {v}' for n, v in enumerate(KINDS[kind]))}}})\n"
    f = torch.jit.CompilationUnit(text).f
    assert len(list(f.graph.nodes())) < 8
    assert outcome(f.code) == outcome(text)
    (tree,) = parse_program(Source(text))
    assert outcome(unparse(tree)) == outcome(text)


@pytest.mark.parametrize("kind", KINDS)
def test_archives_keep_it(kind):
    """Texts that are no ASCII stand in the table of constants; an archive of an archive says the same."""
    text = f"def f(x: int):\n    y = [{', '.join(KINDS[kind])}]\n    y.append(y[0])\n    return y[x:]\n"
    f = torch.jit.CompilationUnit(text).f
    again = saved(saved(f))
    assert [repr(again(290)), repr(again(0))] == [repr(f(290)), repr(f(0))]
    assert again.code == saved(f).code
    assert len(list(again.graph.nodes())) == len(list(f.graph.nodes()))


def saved(f):
    file = io.BytesIO()
    torch.jit.save(f, file)
    file.seek(0)
    return torch.jit.load(file)


def test_an_index_and_arguments_are_no_lists():
    many = ", ".join(["0"] * MANY)
    unit = torch.jit.CompilationUnit(f"def f(x):\n    print({many})\n    return x[{many}]\n")
    assert len(unit.f.graph.find_node("prim::Print").inputs) == MANY
    assert len(unit.f.graph.find_all_nodes("aten::select")) == MANY


def test_a_wrong_string_is_underlined():
    strings = [*KINDS["str"], r'"\x41"']
    with pytest.raises(ParseError, match="unsupported hex specifier"):
        torch.jit.CompilationUnit(f"def f():\n    return [{', '.join(strings)}]\n")


# -- programs that are too long

LONG = {
    "names": "return [" + "x," * 1_500_000 + "]",
    "a tuple": "return (" + "1," * 1_500_000 + ")",
    "targets": "a, " * 1_500_000 + "= x",
    "assignments": "a = " * 1_000_000 + "x",
    "arguments": "print(" + "x," * 1_500_000 + ")",
    "statements": "a=x\n    " * 600_000,
    "mixed literals": "return [" + "1,2.5," * 500_000 + "]",
    "pairs of names": "return {" + "x:x," * 1_000_000 + "}",
    "subscripts": "return [" + "x[0]," * 1_000_000 + "]",
}


@pytest.mark.parametrize("body", LONG.values(), ids=LONG)
def test_a_program_of_millions_of_words_is_refused_before_it_is_read(body):
    start = time.process_time()
    with pytest.raises(ParseError, match=r"this (statement|text) has more than [\d,]+ words") as caught:
        torch.jit.CompilationUnit(f"def f(x: int):\n    {body}\n")
    assert time.process_time() - start < 4
    assert interpreter_settings.WORDS_VARIABLE in str(caught.value)


def test_a_function_of_too_many_parameters_is_refused():
    most = interpreter_settings.MAX_PARAMETERS
    header = ", ".join(f"a{n}" for n in range(most))
    assert len(parse_program(Source(f"def f({header}):\n    return a1\n"))) == 1
    with pytest.raises(ParseError, match="at most 8,192 parameters"):
        torch.jit.CompilationUnit(f"def f({header}, b):\n    return b\n")


def test_the_limit_is_a_setting():
    assert interpreter_settings.words_of("") == 131_072
    assert interpreter_settings.words_of("500000") == 500_000
    for wrong in ("many", "-1", "1e6"):
        with pytest.raises(ArgumentError, match=f"TSREPL_MAX_WORDS is a number of words, and not '{wrong}'"):
            interpreter_settings.words_of(wrong)


def test_a_statement_at_the_limit_is_read_and_one_beyond_is_not(monkeypatch):
    monkeypatch.setattr(lexer, "MAX_WORDS", 50)
    inside = "return " + "+".join(["x"] * 25)  # 50 words
    torch.jit.CompilationUnit(f"def f(x: int):\n    {inside}\n")
    with pytest.raises(ParseError, match="this statement has more than 50 words"):
        torch.jit.CompilationUnit(f"def f(x: int):\n    {inside}+x\n")


@pytest.mark.parametrize(("body", "count"), [
    ("return [" + "1, " * 500_000 + "]", 500_000), ("return [" + "'a', " * 500_000 + "]", 500_000),
    ("return {" + ", ".join(f"{n}:{n}" for n in range(300_000)) + "}", 300_000),
], ids=["ints", "strings", "pairs"])  # fmt: skip
def test_millions_of_literals_are_compiled_and_run_soon(body, count):
    start = time.process_time()
    f = torch.jit.CompilationUnit(f"def f(x: int):\n    {body}\n").f
    assert [len(f(1)) for _ in range(3)] == [count] * 3
    assert time.process_time() - start < 4
