"""Annotations as types."""

from __future__ import annotations

import pytest

from engine.frontend.names.resolve import TextResolver
from engine.frontend.names.type_annotations import TypeReader, dotted_name
from engine.frontend.syntax.parser import parse_expression
from engine.ir.unit import CompilationUnit
from engine.lang.errors import CompileError
from engine.lang.source import Source
from engine.lang.types import ClassType

UNIT = CompilationUnit()
UNIT.add_type("Point", ClassType("Point"))
READER = TypeReader(TextResolver(UNIT))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("int", "int"),
        ("None", "NoneType"),
        ("'int'", "int"),
        ("torch.Tensor", "Tensor"),
        ("torch.device", "Device"),
        ("torch.dtype", "int"),
        ("Any", "Any"),
        ("List[Tensor]", "Tensor[]"),
        ("list[int]", "int[]"),
        ("Dict[str, List[int]]", "Dict(str, int[])"),
        ("Tuple[int, str]", "(int, str)"),
        ("Tuple[()]", "()"),
        ("Optional[int]", "int?"),
        ("Optional[Optional[int]]", "int?"),
        ("Union[int, None]", "int?"),
        ("Union[int]", "int"),
        ("int | None", "int?"),
        ("Future[int]", "Future(int)"),
        ("Await[int]", "Await(int)"),
        ("typing.List[int]", "int[]"),
        ("BroadcastingList2[int]", "int[]"),
        ("List[Point]", "Point[]"),
    ],
)
def test_types(text: str, wanted: str) -> None:
    assert str(READER.read(parse_expression(Source(text)))) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Pont", "Unknown type name 'Pont'"),
        ("Lit[int]", "Unknown type constructor Lit"),
        ("Final[int]", "Unknown type constructor Final"),
        ("List[int, str]", "List expected exactly one element type but found 2"),
        ("Dict[Tuple[int, int], int]", "Cannot create dict for key type"),
        ("1 + 2", "cannot be used in a type expression"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(CompileError) as error:
        READER.read(parse_expression(Source(text)))
    assert message in str(error.value)


def test_a_misspelt_class_is_guessed() -> None:
    with pytest.raises(CompileError, match="did you mean 'Point'"):
        READER.read(parse_expression(Source("Pont")))


def test_a_broadcasting_list_tells_its_length() -> None:
    found = READER.read_broadcasting(parse_expression(Source("Optional[BroadcastingList3[int]]")))
    assert found is not None
    assert (str(found[0]), found[1]) == ("int[]?", 3)
    assert READER.read_broadcasting(parse_expression(Source("List[int]"))) is None


def test_dotted_names() -> None:
    assert dotted_name(parse_expression(Source("a.b.c"))) == "a.b.c"
    assert dotted_name(parse_expression(Source("a().b"))) is None
