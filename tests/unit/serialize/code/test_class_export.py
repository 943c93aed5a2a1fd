"""The code of an archive as a whole: which record holds what, under which name."""

from engine.ir.parser import parse_ir
from engine.ir.unit import Function
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import (
    INT,
    STR,
    TENSOR,
    ClassType,
    EnumType,
    FunctionType,
    InterfaceType,
    ListType,
    TupleType,
)
from engine.serialize.code.class_export import CodeExporter, class_code


def function(qualname, text, returned=INT, resolve=None):
    graph = parse_ir(text, resolve)
    arguments = tuple(Argument(value.debug_name.partition(".")[0], value.type) for value in graph.inputs)
    made = Function(qualname)
    made.define(FunctionSchema(made.name, arguments=arguments, returns=(Argument("", returned),)), graph)
    return made


SAME = "graph(%x.1 : int):\n  return (%x.1)"


def texts(exporter):
    return {prefix: str(printer.body) for prefix, printer in exporter.printers.items()}


def test_needs_are_followed_and_sorted_into_records():
    color = EnumType("__torch__.lib.Color", STR, (("RED", "r"),))
    point = TupleType((INT, color), "__torch__.Point", ("x", "color"))
    holder = ClassType("__torch__.Holder", is_module=True)
    holder.add_attribute("points", ListType(point))
    exporter = CodeExporter()
    exporter.need(holder)
    exporter.write_needed()
    assert texts(exporter) == {
        "__torch__": "class Holder(Module):\n  __parameters__ = []\n  __buffers__ = []\n"
        "  points : List[__torch__.Point]\n"
        "class Point(NamedTuple):\n  x : int\n  color : __torch__.lib.Color\n",
        "__torch__.lib": 'class Color(Enum):\n  RED = "r"\n',
    }


def test_two_classes_of_one_name_are_told_apart():
    first, second = ClassType("__torch__.C"), ClassType("__torch__.C")
    first.add_attribute("n", INT)
    second.add_attribute("other", first)
    exporter = CodeExporter()
    exporter.need(second)
    exporter.write_needed()
    assert texts(exporter) == {
        "__torch__": "class C:\n  other : __torch__.___torch_mangle_0.C\n",
        "__torch__.___torch_mangle_0": "class C:\n  n : int\n",
    }


def test_functions_are_written_once():
    helper = function("helper", SAME)
    caller = function(
        "__torch__.caller",
        """graph(%x.1 : int):
      %f : Function = prim::Constant[name="helper"]()
      %y.1 : int = prim::CallFunction(%f, %x.1)
      %z.1 : int = prim::CallFunction(%f, %y.1)
      return (%z.1)""",
        resolve=lambda name: FunctionType(helper),
    )
    exporter = CodeExporter()
    exporter.need(FunctionType(caller))
    exporter.write_needed()
    assert texts(exporter)["__torch__"] == (
        "def caller(x: int) -> int:\n  y = __torch__.helper(x, )\n  return __torch__.helper(y, )\n"
        "def helper(x: int) -> int:\n  return x\n"
    )


def test_a_class_with_everything():
    type = ClassType("__torch__.M", is_module=True)
    type.add_attribute("0", TENSOR, "parameter")
    type.add_attribute("b", TENSOR, "buffer")
    type.add_attribute("1", INT)
    type.constants["k"] = (1, 2.5)
    type.methods["f"] = function("__torch__.M.f", SAME)
    type.forward_pre_hooks.append(function("__torch__.M.before", SAME))
    assert class_code(type) == (
        'class M(Module):\n  __parameters__ = ["0", ]\n  __buffers__ = ["b", ]\n'
        '  __forward_pre_hooks__ = ["before", ]\n'
        '  __annotations__ = []\n  __annotations__["0"] = Tensor\n  b : Tensor\n  __annotations__["1"] = int\n'
        "  k : Final[Tuple[int, float]] = (1, 2.5)\n"
        "  def f(x: int) -> int:\n    return x\n  def before(x: int) -> int:\n    return x\n"
    )


def test_an_interface():
    shape = InterfaceType("__torch__.Shape", is_module=True)
    arguments = (Argument("self", shape), Argument("n", INT))
    shape.methods["area"] = FunctionSchema("area", arguments=arguments, returns=(Argument("", TENSOR),))
    exporter = CodeExporter()
    exporter.need(shape)
    exporter.write_needed()
    expected = "class Shape(ModuleInterface):\n  def area(self, n: int) -> Tensor:\n    pass\n"
    assert texts(exporter) == {"__torch__": expected}
