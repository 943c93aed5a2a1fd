"""Modules as trees."""

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import tensor
from engine.lang.types import TENSOR, ClassType
from tsrepl.session.modules import module_node, without_scopes


def test_a_module_in_two_places_is_shown_and_counted_once():
    leaf_type, root_type = ClassType("__torch__.Leaf", is_module=True), ClassType("__torch__.Net", is_module=True)
    leaf_type.add_attribute("w", TENSOR, "parameter")
    leaf = Object(leaf_type, [tensor([1.0, 2.0])])
    root_type.add_attribute("a", leaf_type)
    root_type.add_attribute("b", leaf_type)
    node = module_node("m", Object(root_type, [leaf, leaf]))
    assert [(child.name, child.same_as, len(child.slots)) for child in node.children] == [("a", None, 1), ("b", "a", 0)]
    assert (node.parameters, node.bytes) == (2, 8)


def test_classes_in_texts_go_by_their_own_names() -> None:
    text = "%a : __torch__.torch.nn.modules.linear.___torch_mangle_3.Linear, List[__torch__.Net]"
    assert without_scopes(text) == "%a : Linear, List[Net]"
