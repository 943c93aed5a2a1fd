"""Operator schemas: text to data and back."""

import math
import random

import pytest

from engine.lang.errors import SchemaError
from engine.lang.scalars import device
from engine.lang.schema import NO_DEFAULT, AliasInfo, Argument
from engine.lang.schema_parser import parse_schema
from engine.lang.types import INT, NUMBER, TENSOR, ListType, OptionalType, VarType

SCHEMAS = r"""aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
aten::t(Tensor(a) self) -> Tensor(a)
aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]
aten::to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool copy=False) -> Tensor(b|a)
aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt groups=1) -> Tensor
aten::avg(Tensor self, int[2] kernel, int[2] stride=1, int[1]? dim=None) -> Tensor
aten::ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, MemoryFormat? memory_format=None) -> Tensor
aten::empty(int[] size, *, MemoryFormat memory_format=contiguous_format, Device device=cpu) -> Tensor
aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100) -> Tensor
aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
aten::max.dim_max(Tensor self, int dim, *, Tensor(a!) max, Tensor(b!) arg) -> (Tensor(a!) values, Tensor(b!) indices)
aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)
aten::copy.t(t[](a) self) -> t[]
aten::pop.Dict_default(Dict(str, t)(a!) self, str key, t default) -> t(*)
aten::dict.str((str, tVal)[] inputs) -> Dict(str, tVal)
aten::items.str(Dict(str, t) self) -> ((str, t)[])
aten::popitem.str(Dict(str, t)(a!) self) -> ((str, t))
aten::unchecked_unwrap_optional(t(a)? optional) -> t(a)
aten::wait(Future(t) self) -> t
aten::format(str self, ...) -> str
aten::__contains__.str_list(str[] l, str item) -> bool
aten::strip(str self, str chars=" \n\t\f\v") -> str
aten::quote(str self, str chars="\"\'\\") -> str
aten::norm(Tensor self, Scalar p=2, float eps=1.0000000000000001e-05, float scale=1., float top=inf) -> Tensor
aten::split_size(Tensor(a!)[] self, int[] dims=[-2, -1], bool[3] mask=[True, False, True]) -> ()
aten::marks(Tensor(a! -> b|c) x, Tensor(a|b!)[](c) y) -> Tensor(*)
aten::uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)
prim::Print(...) -> ()
prim::PythonOp(...) -> ...
prim::IfThenElse(bool cond, Any(a) x, Any(b) y) -> Any(b|a)
prim::EnumName(AnyEnumType enum) -> str
quantized::linear(Tensor X, __torch__.torch.classes.quantized.LinearPackedParamsBase W) -> Tensor
__torch__.M.forward(__torch__.M self, Tensor x, (int, str)[] pairs) -> (Tensor, Tensor[])
f(int x, *, int y=3) -> (int)
f() -> ()"""


@pytest.mark.parametrize("text", SCHEMAS.splitlines())
def test_schemas_print_back(text: str) -> None:
    wanted = "f(int x, *, int y=3) -> int" if text.endswith("(int)") else text
    assert str(parse_schema(text)) == wanted
    if "__torch__" not in text:  # classes compare by identity
        assert parse_schema(wanted) == parse_schema(text)


def arguments(text: str) -> tuple[Argument, ...]:
    return parse_schema(f"f({text}) -> ()").arguments


def test_names() -> None:
    schema = parse_schema("aten::add_.Tensor(Tensor(a!) self) -> Tensor(a!)")
    assert (schema.name, schema.overload, schema.qualified_name) == ("aten::add_", "Tensor", "aten::add_.Tensor")
    assert parse_schema("__torch__.a.M.forward() -> ()").name == "__torch__.a.M.forward"
    assert parse_schema("forward() -> ()").name == "forward"


def test_arguments() -> None:
    x, dims, kind, count = arguments("Tensor self, int[2] dims=1, *, ScalarType? dtype=None, Scalar alpha=1")
    assert (x.type, x.default, x.kwarg_only) == (TENSOR, NO_DEFAULT, False)
    assert (dims.type, dims.default, dims.broadcast) == (ListType(INT), [1, 1], 2)
    assert (kind.type, kind.default, kind.declared, kind.kwarg_only) == (OptionalType(INT), None, "ScalarType?", True)
    assert (count.type, count.default) == (NUMBER, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("int x=-1", -1), ("int x=0x10", 16), ("float x=1", 1.0), ("float x=1e-5", 1e-5), ("float x=-inf", -math.inf),
        ("complex x=2j", 2j), ("Scalar x=2.5", 2.5), ("bool x=True", True), ("int? x=None", None), ("str x='a'", "a"),
        ('str x="a\\nb"', "a\nb"), ("int[] x=[]", []), ("float[] x=[1, 2.5]", [1.0, 2.5]), ("int[3] x=0", [0, 0, 0]),
        ("int[2]? x=3", [3, 3]), ("ScalarType x=float", 6), ("ScalarType x=bfloat16", 15), ("int x=Mean", 1),
        ("MemoryFormat x=channels_last", 2), ("Layout x=strided", 0), ("Device x='cuda:1'", device("cuda", 1)),
        ("Device? x=cpu", device("cpu")), ("str[] x=['a', \"b\"]", ["a", "b"]),
    ],
)  # fmt: skip
def test_defaults(text: str, value: object) -> None:
    (argument,) = arguments(text)
    assert (type(argument.default), argument.default) == (type(value), value)


def test_alias_marks() -> None:
    write, wildcard, elements, both = arguments("Tensor(a!) w, t(b -> *) x, Tensor(c)[] y, Tensor(d!)[](e) z")
    assert write.alias == AliasInfo(frozenset("a"), frozenset("a"), True)
    assert write.is_write
    assert wildcard.alias == AliasInfo(frozenset("b"), frozenset("*"))
    assert wildcard.alias is not None
    assert wildcard.alias.is_wildcard
    assert elements.alias == AliasInfo(elements=(AliasInfo(frozenset("c"), frozenset("c")),))
    inner = AliasInfo(frozenset("d"), frozenset("d"), True)
    assert both.alias == AliasInfo(frozenset("e"), frozenset("e"), elements=(inner,))
    assert parse_schema("f(Tensor(a!) x) -> ()").is_mutable
    assert not parse_schema("f(Tensor(a) x) -> ()").is_mutable


def test_returns() -> None:
    schema = parse_schema("f() -> (Tensor values, Tensor(a) indices)")
    assert [(r.name, r.type) for r in schema.returns] == [("values", TENSOR), ("indices", TENSOR)]
    assert parse_schema("f(t x) -> t").returns[0].type == VarType("t")
    assert parse_schema("f() -> ()").returns == ()
    assert parse_schema("f() -> ...").is_varret


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f", "expected ( but found 'eof'"),
        ("f(int x", "expected ) but found 'eof'"),
        ("f(int) -> int", "expected a name for the argument"),
        ("f(int x)", "expected arrow but found"),
        ("f(int x) -> ", "expected a type"),
        ("f(Itn x) -> ()", "unknown type specifier 'Itn'"),
        ("f(int x=1.5) -> ()", "this default is no int"),
        ("f(int x=True) -> ()", "this default is no int"),
        ("f(bool x=1) -> ()", "this default is no bool"),
        ("f(int[] x=1) -> ()", "this default is no int[]"),
        ("f(int x=[1]) -> ()", "this default is no int"),
        ("f(str x=1) -> ()", "this default is no str"),
        ("f(int x=foo) -> ()", "expected a default value"),
        ("f(int x=-'a') -> ()", "expected a default value"),
        ("f(Device x='tpu') -> ()", "Expected one of cpu, cuda"),
        ("f(int x=99999999999999999999) -> ()", "out of range"),
        ("f(str x='\\x41') -> ()", "unsupported hex"),
        ("f(..., int x) -> ()", "expected ) but found"),
        ("f(Tensor(a!!) x) -> ()", "expected ) but found '!'"),
        ("f(int x) -> int int int", "expected eof"),
        ("a b(int x) -> ()", "is no operator name"),
        ("::(int x) -> ()", "is no operator name"),
        ("", "is no operator name"),
        ("f(" + "(" * 500, "nested too deeply"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_schema(text)
    assert message in str(caught.value)
    assert caught.value.range is not None


def test_damaged_schemas_end_in_schema_errors() -> None:
    rnd, texts = random.Random(7), SCHEMAS.splitlines()
    refusals: list[SchemaError] = []
    for _ in range(1500):
        text = rnd.choice(texts)
        for _ in range(rnd.randint(1, 4)):
            at = rnd.randrange(len(text) + 1)
            text = text[:at] + rnd.choice(["", *"()[]!?*,=-> |:.1aT'\"{}%"]) + text[at + rnd.randint(0, 3) :]
        try:
            str(parse_schema(text))
        except SchemaError as error:
            refusals.append(error)
    assert all(map(str, refusals))
