"""Modules by path, shared and entangled ones."""

from engine.aten.values.ivalue import Object
from engine.aten.values.submodules import each_module, every_place, is_entangled
from engine.lang.types import ClassType


def module(**parts):
    type = ClassType("__torch__.M", is_module=True)
    for name, part in parts.items():
        type.add_attribute(name, part.type)
    return Object(type, list(parts.values()))


def doubled(levels):
    made = module()
    for _ in range(levels):
        made = module(a=made, b=made)
    return made


def paths(found):
    return [path for path, _ in found]


def test_a_shared_module_has_two_places():
    leaf = module()
    root = module(a=module(x=leaf), b=leaf, c=module())
    assert paths(every_place(root)) == ["", "a", "a.x", "b", "c"]
    assert paths(each_module(root)) == ["", "a", "a.x", "c"]
    assert paths(each_module(root, "m")) == ["m", "m.a", "m.a.x", "m.c"]
    assert not is_entangled(root)


def test_places_that_multiply_are_told_once():
    assert len(paths(every_place(doubled(10)))) == 2**11 - 1
    root = doubled(1000)
    assert is_entangled(root)
    assert len(paths(every_place(root))) == len(paths(each_module(root))) == 1001


def test_many_modules_are_not_entangled():
    leaf = module()
    root = module(**{f"m{n}": module(a=leaf) for n in range(200)})
    assert len(paths(every_place(root))) == 401
    deep = module()
    for _ in range(3000):
        deep = module(a=deep)
    assert not is_entangled(deep) and len(paths(every_place(deep))) == 3001


def test_a_module_that_holds_itself():
    root = module(a=module())
    root.slots[0].type.add_attribute("up", root.type)
    root.slots[0].set("up", root)
    assert is_entangled(root)
    assert paths(every_place(root)) == ["", "a"]
