"""Defaults of parameters, as the schema of a function has them."""

from typing import Any

import pytest

from engine.frontend.compilation.function_schema import read_signature
from engine.frontend.names.resolve import TextResolver
from engine.frontend.names.type_annotations import TypeReader
from engine.frontend.syntax.parser import parse_def
from engine.frontend.syntax.views import Def
from engine.ir.unit import CompilationUnit
from engine.lang.source import Source

LITERALS = [
    ("int", "1", 1), ("int", "-9223372036854775808", -(2**63)), ("float", "2.5", 2.5), ("bool", "True", True),
    ("Optional[int]", "None", None), ("Optional[int]", "3", 3), ("Optional[float]", "0.5", 0.5), ("None", "None", None),
]  # fmt: skip
OTHERS = [("float", "1"), ("str", '"a"'), ("List[int]", "[1]"), ("int", "1 + 1"), ("Optional[float]", "1")]


class Compiled(Exception):
    """An emitter is asked for."""


def default_of(type: str, text: str) -> Any:
    def fresh() -> Any:
        raise Compiled

    view = Def(parse_def(Source(f"def f(x: {type}={text}):\n    pass\n")))
    schema = read_signature(view, "f", None, TypeReader(TextResolver(CompilationUnit())), fresh)
    return schema.arguments[0].default


@pytest.mark.parametrize(("type", "text", "value"), LITERALS)
def test_literals_of_the_type_are_not_compiled(type: str, text: str, value: Any) -> None:
    found = default_of(type, text)
    assert (found, found.__class__) == (value, value.__class__)


@pytest.mark.parametrize(("type", "text"), OTHERS)
def test_other_defaults_are_compiled(type: str, text: str) -> None:
    with pytest.raises(Compiled):
        default_of(type, text)
