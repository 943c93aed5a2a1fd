"""Types as graphs print them."""

from itertools import product

import pytest

from engine.lang import scalars
from engine.lang.errors import ParseError, SchemaError
from engine.lang.lexer import Lexer
from engine.lang.scalars import CPU, DTYPES, device, float32
from engine.lang.schema_parser import parse_type
from engine.lang.source import Source
from engine.lang.type_parser import TypeParser
from engine.lang.types import INT, NONE, STR, TENSOR, ClassType, ListType, OptionalType, TensorType, Type, union_of

PRINTED = """int
float
complex
bool
str
NoneType
Scalar
Device
Generator
Any
AnyEnumType
Function
Tensor
Tensor?
Tensor[]
int[][]
int?[]
int[]?
t
t[]
Dict(str, int)
Dict(str, Dict(int, Tensor[]))[]
(int, str)
(int)
()
(int, (str, float)[])?
Future(Tensor)
Await(Tensor)
Union(float, int, str)
Union(Tensor, NoneType, str)
NamedTuple(a : int, b : Tensor[])
__torch__.foo.Bar
__torch__.foo.___torch_mangle_0.Bar[]
Enum<__torch__.Color>
InterfaceType<I>
LongTensor
FloatTensor(requires_grad=0, device=cpu)
Float(2, 3)
Float(*, *)
Float()
Tensor(*, 3)
Float(2, *, strides=[3, 1], requires_grad=0, device=cpu)
Float(requires_grad=1, device=cuda:0)
Double(1, strides=[*], requires_grad=0)"""


@pytest.mark.parametrize("text", PRINTED.splitlines())
def test_types_print_back(text: str) -> None:
    assert str(parse_type(text)) == text


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types_of_tensors_are_read_as_what_they_were(dtype: scalars.dtype) -> None:
    forms = [(None, None), ((), None), ((None,), None), ((2, None), None), ((2, 3), (3, 1))]
    for (sizes, strides), needs, place in product(forms, [None, False, True], [None, CPU, device("cuda", 1)]):
        type = TensorType(dtype, sizes, strides, needs, place)
        found = parse_type(str(type))
        assert isinstance(found, TensorType)
        assert (found, found.sizes) == (type, sizes), str(type)


def test_what_the_text_means() -> None:
    assert parse_type("int[]?") == OptionalType(ListType(INT))
    assert parse_type("Union(int, NoneType)") == OptionalType(INT)
    assert parse_type("Union(str, int, NoneType)") == union_of([INT, STR, NONE])
    assert parse_type("Float(2, *, strides=[3, 1], requires_grad=0, device=cuda:1)") == TensorType(
        float32, (2, None), (3, 1), False, device("cuda", 1)
    )
    assert parse_type("Tensor") is TENSOR


def test_symbols_of_unknown_sizes() -> None:
    for text, symbols in (("Float(SS(-2), 4)", (-2, 4)), ("Float(SS(-2), *)", None)):
        type = parse_type(text)
        assert isinstance(type, TensorType)
        assert (type.sizes, type.symbols) == ((None, 4 if "4" in text else None), symbols)


@pytest.mark.parametrize("text", ["ScalarType", "Layout", "MemoryFormat", "SymInt", "QScheme"])
def test_other_words_for_int(text: str) -> None:
    assert parse_type(text) is INT


def test_classes_come_from_the_resolver_and_else_are_the_same_each_time() -> None:
    known = ClassType("__torch__.M")
    classes: dict[str, Type] = {"__torch__.M": known}
    assert parse_type("__torch__.M[]", classes.get) == ListType(known)
    pair = parse_type("(__torch__.N, __torch__.N)").contained()
    assert pair[0] is pair[1]
    assert isinstance(pair[0], ClassType)


def test_a_reader_beside_others() -> None:
    lexer = Lexer(Source("%x : int[], %y : Tensor"))
    for _ in range(3):
        lexer.next()
    assert TypeParser(lexer).parse() == ListType(INT)
    assert lexer.cur.kind == ","


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a type but found 'eof'"),
        ("Flaot", "unknown type specifier 'Flaot'"),
        ("int[", "expected ] but found 'eof'"),
        ("int int", "expected eof but found 'ident'"),
        ("Dict(int)", "Dict is made of 2"),
        ("Union()", "a Union has members"),
        ("Float(2.5)", "expected an integer"),
        ("Float(color=1)", "expected strides, requires_grad or device"),
        ("Float(2, device=tpu)", "Expected one of cpu, cuda"),
        ("Float(99999999999999999999)", "out of range"),
        ("(" * 1000, "nested too deeply"),
        ("int" + "[" * 1000, "expected ]"),
        ("Tensor(a!)", "expected"),
        ("3", "expected a type but found 'number'"),
        ("$", "expected a valid token"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_type(text)
    assert message in str(caught.value)
    assert caught.value.range is not None


def test_a_hint_names_the_nearest_type() -> None:
    with pytest.raises(SchemaError, match="did you mean 'Float'"):
        parse_type("Flaot")


def test_the_reader_itself_raises_parse_errors() -> None:
    with pytest.raises(ParseError):
        TypeParser(Lexer(Source("Dict(int,"))).parse()
