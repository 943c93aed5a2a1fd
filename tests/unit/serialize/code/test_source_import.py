"""Classes and functions of an archive's code, made when something asks for them."""

import math

import pytest

from engine.aten.values.ivalue import EnumValue
from engine.lang import scalars
from engine.lang.errors import ArchiveError
from engine.lang.types import INT, STR, ClassType, EnumType, InterfaceType, TupleType
from engine.serialize.code.class_export import class_code
from engine.serialize.code.source_import import SourceImporter

CODE = {
    "__torch__": """class M(Module):
  __parameters__ = ["w", ]
  __buffers__ = ["b", ]
  __forward_hooks__ = ["after", ]
  w : Tensor
  b : Optional[Tensor]
  sub : __torch__.deep.Sub
  __annotations__["0"] = List[__torch__.Color]
  scale : Final[float] = 0.5
  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    sub = self.sub
    return (sub).same(x, )
  def after(self: __torch__.M,
    x: Tuple[Tensor],
    y: Tensor) -> Tensor:
    return y
class Color(Enum):
  RED = "r"
  BLUE = "b"
class Point(NamedTuple):
  x : int
  y : __torch__.Color
class Shape(ModuleInterface):
  def same(self, x: Tensor) -> Tensor:
    pass
class Broken(Module):
  x : Missing
def helper(p: __torch__.Point,
    n: int=3) -> int:
  q = __torch__.Point(n, __torch__.Color.BLUE)
  return (q)[0]
def first() -> float:
  return CONSTANTS.c0
""",
    "__torch__.deep": """class Sub(Module):
  __parameters__ = []
  __buffers__ = []
  __annotations__ = []
  __annotations__["1"] = int
  def same(self: __torch__.deep.Sub,
    x: Tensor) -> Tensor:
    return x
class Plain:
  n : int
  def __init__(self: __torch__.deep.Plain) -> NoneType:
    self.n = 1
    return None
""",
    "__torch__.bad": "class C(Module)\n",
}


class Records:
    def __init__(self):
        self.read = []

    def text(self, prefix):
        self.read.append(prefix)
        return (CODE[prefix], None) if prefix in CODE else None


@pytest.fixture
def importer():
    return SourceImporter(Records(), lambda: (0.25,))


def test_a_module_class(importer):
    type = importer.find_type("__torch__.M")
    assert type.is_module
    assert [(a.name, a.type.annotation_str, a.kind) for a in type.attributes] == [
        ("w", "Tensor", "parameter"),
        ("b", "Optional[Tensor]", "buffer"),
        ("sub", "__torch__.deep.Sub", "attribute"),
        ("0", "List[__torch__.Color]", "attribute"),
    ]
    assert type.constants == {"scale": 0.5}
    assert list(type.methods) == ["forward"]
    assert [hook.name for hook in type.forward_hooks] == ["after"]


def test_records_are_read_once_and_only_when_needed(importer):
    importer.find_type("__torch__.Color")
    assert importer._records.read == ["__torch__"]
    importer.find_type("__torch__.M")
    importer.find_type("__torch__.deep.Plain")
    assert importer._records.read == ["__torch__", "__torch__.deep"]


def test_bodies_are_compiled_when_needed(importer):
    type = importer.find_type("__torch__.M")
    assert not type.methods["forward"].is_defined
    importer.compile_all()
    assert type.methods["forward"].is_defined
    assert importer.find_type("__torch__.deep.Sub").methods["same"].is_defined


def test_the_other_kinds_of_classes(importer):
    color = importer.find_type("__torch__.Color")
    assert isinstance(color, EnumType)
    assert (color.value_type, color.members) == (STR, (("RED", "r"), ("BLUE", "b")))
    point = importer.find_type("__torch__.Point")
    assert isinstance(point, TupleType)
    assert (point.name, point.fields, point.elements) == ("__torch__.Point", ("x", "y"), (INT, color))
    shape = importer.find_type("__torch__.Shape")
    assert isinstance(shape, InterfaceType)
    assert shape.is_module
    assert importer.find_type("__torch__.deep.Sub").is_subtype_of(shape)
    plain = importer.find_type("__torch__.deep.Plain")
    assert isinstance(plain, ClassType)
    assert not plain.is_module


def test_functions(importer):
    helper = importer.find_function("__torch__.helper")
    assert helper.schema.arguments[1].default == 3
    assert importer.find_function("__torch__.first").graph.outputs[0].node.attr("value") == 0.25
    assert importer.find_function("__torch__.M") is None
    assert importer.find_type("__torch__.helper") is None


def test_a_class_is_written_as_it_was_read(importer):
    text = class_code(importer.find_type("__torch__.M"))
    assert CODE["__torch__"].startswith(text)


@pytest.mark.parametrize("name", ["__torch__.Broken", "__torch__.bad.C"])
def test_what_cannot_be_read_is_refused(importer, name):
    with pytest.raises(ArchiveError):
        importer.find_type(name)


def test_unknown_names(importer):
    assert importer.find_type("__torch__.None1") is None
    assert importer.find_type("os.path") is None


def constant(text, type="int"):
    CODE["__torch__.k"] = f"class K(Module):\n  k : Final[{type}] = {text}\n"
    return SourceImporter(Records(), lambda: (0.25,)).find_type("__torch__.k.K").constants["k"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("1.", 1.0),
        ("True", True),
        ("None", None),
        ('"a\\n"', "a\n"),
        ("(1, (2.5,))", (1, (2.5,))),
        ("[1, 2]", [1, 2]),
        ('{"a": 1}', {"a": 1}),
        ("annotate(List[int], [])", []),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("1.-2.j", 1 - 2j),
        ('torch.device("cpu")', scalars.CPU),
        ("CONSTANTS.c0", 0.25),
    ],
)
def test_constants(text, value):
    found = constant(text)
    assert found == value
    assert type(found) is type(value)


def test_constants_of_the_archives_own_classes():
    red = constant("__torch__.Color.RED")
    assert isinstance(red, EnumValue)
    assert red.name == "RED"
    assert constant("__torch__.Point(1, __torch__.Color.RED)")[0] == 1


@pytest.mark.parametrize(
    "text",
    ["open(1)", "x", "1 + 1", "CONSTANTS.c1", "CONSTANTS.d0", "__torch__.Color.GREEN", "{[1]: 2}", "-True", "not 1"],
)
def test_what_is_no_constant_is_refused(text):
    with pytest.raises(ArchiveError):
        constant(text)


CHOSEN = """class Shape(ModuleInterface):
  def forward(self, x: Tensor) -> Tensor:
    pass
class Sub(Module):
  def forward(self: __torch__.Sub, x: Tensor) -> Tensor:
    return x
class {other}(Module):
  n : int
class List(Module):
  __annotations__["0"] = __torch__.Sub
  __annotations__["1"] = __torch__.{second}
class M(Module):
  mods : __torch__.List
  def forward(self: __torch__.M, x: Tensor, i: int) -> Tensor:
    mods = self.mods
    s : {hint} = mods[i]
    return (s).forward(x, )
"""


def chosen(second="Sub", hint="__torch__.Shape"):
    records = Records()
    records.text = lambda prefix: (CHOSEN.format(other="Other", second=second, hint=hint), None)
    found = SourceImporter(records, lambda: ())
    type = found.find_type("__torch__.M")
    found.compile_all()
    return type.methods["forward"].graph


def test_modules_chosen_by_index_under_an_interface():
    assert "prim::ModuleContainerIndex" in [node.kind for node in chosen().all_nodes()]


@pytest.mark.parametrize("what", [{"second": "Other"}, {"hint": "Tensor"}])
def test_modules_chosen_by_index_that_do_not_offer_it(what):
    with pytest.raises(ArchiveError, match="not subscriptable"):
        chosen(**what)


VISION = """class M(Module):
  def forward(self: __torch__.M, b: Tensor, s: Tensor) -> Tensor:
    return ops.torchvision.nms(b, s, 0.5)
  def roi(self: __torch__.M, x: Tensor, r: Tensor) -> Tensor:
    return ops.torchvision.roi_align(x, r, 1., 2, 2, -1, False)
  def deform(self: __torch__.M, x: Tensor, w: Tensor, o: Tensor, m: Tensor, b: Tensor) -> Tensor:
    return ops.torchvision.deform_conv2d(x, w, o, m, b, 1, 1, 0, 0, 1, 1, 1, 1, False)
"""


def test_operators_of_torchvision_are_known():
    records = Records()
    records.text = lambda prefix: (VISION, None)
    found = SourceImporter(records, lambda: ())
    methods = found.find_type("__torch__.M").methods
    found.compile_all()
    assert all(
        node.op is not None for method in methods.values() for node in method.graph.all_nodes() if "vision" in node.kind
    )
