"""Single nodes as expressions."""

import pytest

from engine.ir.parser import parse_ir
from engine.lang.types import ClassType
from engine.serialize.code.expressions import operator_name, write_expression
from engine.serialize.code.tagged_text import TaggedText


class Names:
    """A writer for which every value is called by its name."""

    def __init__(self):
        self.needed = []

    def use(self, value):
        return value.debug_name.partition(".")[0]

    def annotation(self, type):
        return type.annotation_str

    def constant(self, value, type):
        return repr(value)

    def depend(self, type):
        self.needed.append(type)


def expression(node, inputs="%a.1 : Tensor, %b.1 : int"):
    graph = parse_ir(f"graph({inputs}):\n  {node}\n  return (%a.1)")
    (made,) = graph.nodes()
    text = TaggedText([None])
    write_expression(Names(), text, made)
    return str(text)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("%1 : int = prim::Constant[value=3]()", "3"),
        ("%1 : int = aten::Int(%a.1)", "int(a)"),
        ("%1 : str = aten::str(%a.1)", "str(a)"),
        ("%1 : int = aten::IntImplicit(%a.1)", "annotate(int, a)"),
        ("%1 : Tensor = aten::__getitem__(%a.1, %b.1)", "a[b]"),
        ("%1 : (Tensor, int) = prim::TupleConstruct(%a.1, %b.1)", "(a, b)"),
        ("%1 : (Tensor) = prim::TupleConstruct(%a.1)", "(a,)"),
        ("%1 : Tensor = prim::TupleIndex(%a.1, %b.1)", "(a)[b]"),
        ("%1 : Tensor = prim::TupleSlice[beg=1, end=3](%a.1)", "(a)[1:3]"),
        ("%1 : int[] = prim::ListConstruct(%b.1, %b.1)", "[b, b]"),
        ("%1 : int[] = prim::ListConstruct()", "annotate(List[int], [])"),
        ("%1 : int?[] = prim::ListConstruct(%b.1)", "annotate(List[Optional[int]], [b])"),
        ("%1 : Dict(int, Tensor) = prim::DictConstruct(%b.1, %a.1)", "{b: a}"),
        ("%1 : Dict(int, int) = prim::DictConstruct()", "annotate(Dict[int, int], {})"),
        ('%1 : int = prim::GetAttr[name="n"](%a.1)', "a.n"),
        ('%1 : int = prim::GetAttr[name="0"](%a.1)', 'getattr(a, "0")'),
        ("%1 : int = prim::CallFunction(%a.1, %b.1)", "a(b, )"),
        ("%1 : int = prim::CallFunction(%a.1)", "a()"),
        ('%1 : int = prim::CallMethod[name="f"](%a.1, %b.1, %b.1)', "(a).f(b, b, )"),
        ("%1 : int = prim::unchecked_cast(%a.1)", "unchecked_cast(int, a)"),
        ("%1 : bool = prim::isinstance[types=[int]](%a.1)", "isinstance(a, int)"),
        ("%1 : bool = prim::isinstance[types=[int, str[]]](%a.1)", "isinstance(a, (int, List[str]))"),
        ("%1 : int[] = prim::Uninitialized()", "uninitialized(List[int])"),
        ("%1 : float[] = prim::tolist(%a.1, %b.1)", "annotate(List[float], a.tolist())"),
        ("%1 : str = prim::EnumName(%a.1)", "(a).name"),
        ("%1 : int = aten::_unwrap_optional(%a.1)", "torch._unwrap_optional(a)"),
        ("%1 : Tensor = other::thing(%a.1, %b.1)", "ops.other.thing(a, b)"),
        ("%1 : Tensor = aten::mm(%a.1, %a.1)", "torch.mm(a, a)"),
        ("%1 : Tensor[] = aten::grad(%a.1)", "torch.autograd.grad(a)"),
    ],
)
def test_forms(node, expected):
    assert expression(node) == expected


def test_operators_are_named_by_their_namespace():
    assert operator_name("aten::add") == "torch.add"
    assert operator_name("prim::min") == "ops.prim.min"


def test_a_method_call_needs_the_class():
    writer = Names()
    type = ClassType("__torch__.C")
    text = 'graph(%a.1 : __torch__.C):\n  %1 : int = prim::CallMethod[name="f"](%a.1)\n  return (%1)'
    (node,) = parse_ir(text, lambda name: type).nodes()
    write_expression(writer, TaggedText([None]), node)
    assert writer.needed == [type]
