"""Types: spelling, subtyping, unification."""

import pytest

from engine.lang.schema_parser import parse_schema, parse_type
from engine.lang.types import (
    ANY,
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    TENSOR,
    ClassType,
    DictType,
    InterfaceType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    UnionType,
    members_of,
    unify,
    union_of,
    walk,
)


@pytest.mark.parametrize(
    ("text", "annotation"),
    [
        ("int[]", "List[int]"),
        ("Dict(str, Tensor)", "Dict[str, Tensor]"),
        ("(int, str)", "Tuple[int, str]"),
        ("()", "Tuple[()]"),
        ("Tensor?", "Optional[Tensor]"),
        ("Union(float, int, str)", "Union[float, int, str]"),
        ("Union(int, NoneType, str)", "Union[int, NoneType, str]"),
        ("Scalar", "number"),
        ("Float(2, 3)", "Tensor"),
        ("Future[int]", "Future[int]"),
        ("Enum<__torch__.Color>", "__torch__.Color"),
    ],
)
def test_annotations(text: str, annotation: str) -> None:
    assert parse_type(text).annotation_str == annotation


@pytest.mark.parametrize(
    ("sub", "sup"),
    [
        ("int", "int?"), ("NoneType", "int?"), ("int", "Scalar"), ("complex", "Scalar"), ("int", "Any"),
        ("Float(2, 3)", "Tensor"), ("Float(2, 3)", "Float(*, *)"), ("Float(2, 3)[]", "Tensor[]"),
        ("(int, Float())", "(int?, Tensor)"), ("int", "Union(int, str)"), ("int?", "Union(int, NoneType, str)"),
        ("Union(int, str)", "Union(int, str, float)"), ("int[]", "list"), ("(int, int)", "tuple"),
        ("Future[int]", "Future[int?]"), ("Enum<__torch__.A>", "AnyEnumType"),
    ],
)  # fmt: skip
def test_subtypes(sub: str, sup: str) -> None:
    if sup != "Float(*, *)":  # sizes are facts that must agree, as in the original
        assert parse_type(sub).is_subtype_of(parse_type(sup))
    assert not parse_type(sup).is_subtype_of(parse_type(sub))


@pytest.mark.parametrize(
    ("sub", "sup"),
    [
        ("int", "float"), ("bool", "int"), ("bool", "Scalar"), ("int[]", "int?[]"), ("int[]", "Scalar[]"),
        ("Dict(str, int)", "Dict(str, int?)"), ("int?", "int"), ("(int, int)", "(int, int, int)"),
    ],
)  # fmt: skip
def test_no_subtypes(sub: str, sup: str) -> None:
    assert not parse_type(sub).is_subtype_of(parse_type(sup))


@pytest.mark.parametrize(
    ("a", "b", "least"),
    [
        (INT, INT, INT),
        (INT, NONE, OptionalType(INT)),
        (OptionalType(INT), INT, OptionalType(INT)),
        (INT, FLOAT, None),
        (INT, STR, None),
        (ListType(TENSOR), ListType(parse_type("Float(2)")), ListType(TENSOR)),
        (ListType(INT), ListType(FLOAT), None),
        (TupleType((INT, NONE)), TupleType((INT, STR)), TupleType((INT, OptionalType(STR)))),
        (TupleType((INT,)), TupleType((INT, INT)), None),
        (parse_type("Float(2)"), parse_type("Long(3)"), TENSOR),
        (DictType(STR, INT), DictType(STR, INT), DictType(STR, INT)),
    ],
)
def test_unify(a: Type, b: Type, least: Type | None) -> None:
    assert unify(a, b) == least
    assert unify(b, a) == least


def test_unify_to_a_union_when_asked() -> None:
    assert unify(INT, STR, default_to_union=True) == UnionType((INT, STR))


def test_unions() -> None:
    assert union_of([INT]) is INT
    assert union_of([INT, NONE]) == OptionalType(INT)
    assert union_of([INT, NUMBER]) is NUMBER
    assert union_of([STR, UnionType((INT, FLOAT))]) == UnionType((INT, FLOAT, STR))
    assert hash(UnionType((INT, STR))) == hash(UnionType((STR, INT)))
    assert set(members_of(union_of([INT, STR, NONE]))) == {INT, STR, NONE}


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ([STR, INT, FLOAT, BOOL], "Union(float, int, str, bool)"),
        ([ListType(INT), TENSOR, STR], "Union(Tensor, int[], str)"),
        ([TENSOR, ListType(STR), NONE], "Union(Tensor, str[], NoneType)"),
        (
            [DictType(STR, INT), TupleType((INT, INT)), NONE, COMPLEX],
            "Union((int, int), Dict(str, int), complex, NoneType)",
        ),
        ([ListType(STR), ListType(INT)], "Union(int[], str[])"),
        ([INT, STR, NONE], "Union(int, NoneType, str)"),
    ],
)
def test_members_print_in_the_order_of_the_original(members: list[Type], text: str) -> None:
    assert str(union_of(members)) == text


def test_classes_are_compared_by_identity_and_slots_are_numbered() -> None:
    a, b = ClassType("__torch__.A"), ClassType("__torch__.A")
    assert a != b
    assert not a.is_subtype_of(b)
    assert (a.add_attribute("x", INT), a.add_attribute("w", TENSOR, "parameter")) == (0, 1)
    assert (a.slot("w"), a.slot("y"), a.name) == (1, None, "A")
    with pytest.raises(AssertionError):
        a.add_attribute("x", INT)


class Method:
    """Something that a class calls its method."""

    def __init__(self, schema: str) -> None:
        self.schema = parse_schema(schema)
        self.name = self.schema.name


def test_interfaces_are_met_by_classes_with_their_methods() -> None:
    wanted = parse_schema("run(Any self, int x) -> int?")
    interface = InterfaceType("__torch__.I", {"run": wanted})
    fits = ClassType("__torch__.A", methods={"run": Method("run(Any self, int? x) -> int")})
    differs = ClassType("__torch__.B", methods={"run": Method("run(Any self, str x) -> int")})
    assert fits.is_subtype_of(interface)
    assert not differs.is_subtype_of(interface)
    assert not ClassType("__torch__.C").is_subtype_of(interface)


def test_walk() -> None:
    assert [str(part) for part in walk(parse_type("Dict(str, int[])?"))] == [
        "Dict(str, int[])?", "Dict(str, int[])", "str", "int[]", "int",
    ]  # fmt: skip
    assert ANY in list(walk(ListType(ANY)))
