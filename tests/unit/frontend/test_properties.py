"""What holds for every program."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings

from engine.executor.calls.call import call_function
from engine.frontend.compilation.compile import compile_source
from engine.frontend.python.trees import trees_from_text
from engine.frontend.syntax.parser import parse_expression, parse_statements
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.unparse import unparse
from engine.lang.source import Source
from engine.passes.pipeline import run_pipeline, verifier

from .generated import EXPRESSIONS, VALUES, functions, programs
from .test_front_ends_agree import normal

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
OPTIMIZED = ("inline", "peephole", "constant_propagation", "cse", "dce", "constant_pooling")


def plain(tree: Tree) -> str:
    return str(normal(tree))


@QUICK
@given(EXPRESSIONS)
def test_an_expression_reads_as_it_was_written(tree: Tree) -> None:
    text = unparse(tree)
    assert plain(parse_expression(Source(text))) == plain(tree)
    assert plain(parse_expression(Source(text), extended=True)) == plain(tree)


@QUICK
@given(functions())
def test_a_function_reads_as_it_was_written_by_every_front_end(tree: Tree) -> None:
    text = unparse(tree)
    for extended in (False, True):
        (again,) = parse_statements(Source(text), extended=extended)
        assert plain(again) == plain(tree)
    (python,) = trees_from_text(Source(text))
    assert plain(python) == plain(tree)


@QUICK
@given(programs(), VALUES)
def test_a_program_means_what_it_means_in_python(text: str, values: tuple[Any, ...]) -> None:
    function = compile_source(text).functions["f"]
    expected = answer_of_python(text, values)
    assert repr(call_function(function, copies(values), {})) == expected
    run_pipeline(OPTIMIZED, function.graph, verifier)
    function.executor = None
    assert repr(call_function(function, copies(values), {})) == expected


def copies(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(list(value) if isinstance(value, list) else value for value in values)


def answer_of_python(text: str, values: tuple[Any, ...]) -> str:
    namespace: dict[str, Any] = {"List": list}
    exec(text, namespace)
    return repr(namespace["f"](*copies(values)))
