"""ScriptModule over a hand-made object."""

import gc

import pytest

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor, tensor
from engine.frontend.compilation.compile import define
from engine.frontend.names.resolve import TextResolver
from engine.frontend.syntax.parser import parse_program
from engine.ir.unit import CompilationUnit
from engine.lang.source import Source
from engine.lang.types import BOOL, INT, TENSOR, ClassType, ListType
from engine.torch.jit.scripting.script_module import ScriptModule, wrap

FORWARD = """
def forward(self, x):
    return x * self.weight + self.bias

def shifted(self, by: int) -> int:
    return self.steps[0] + by
"""


def linear(unit: CompilationUnit, name: str) -> ClassType:
    made = ClassType(f"__torch__.{name}", is_module=True)
    for attribute, type, kind in [
        ("training", BOOL, "attribute"), ("scale", TENSOR, "buffer"), ("weight", TENSOR, "parameter"),
        ("bias", TENSOR, "parameter"), ("steps", ListType(INT), "attribute"),
    ]:  # fmt: skip
        made.add_attribute(attribute, type, kind)
    define(unit, parse_program(Source(FORWARD)), TextResolver(unit), made.qualname, made)
    return made


@pytest.fixture
def model() -> ScriptModule:
    unit = CompilationUnit()
    kind = linear(unit, "Linear")
    outer = ClassType("__torch__.Model", is_module=True)
    outer.add_attribute("training", BOOL)
    outer.add_attribute("first", kind)
    outer.add_attribute("second", kind)
    shared = tensor([1.0])
    parts = [Object(kind, [True, tensor([9.0]), tensor([float(i)]), shared, [i, 1]]) for i in (2, 3)]
    wrapped = wrap(Object(outer, [True, *parts]))
    assert isinstance(wrapped, ScriptModule)
    return wrapped


def test_attributes_submodules_and_methods(model: ScriptModule) -> None:
    assert model.first(tensor([5.0])).tolist() == [11.0]
    assert model.first.forward(tensor([5.0])).tolist() == [11.0]
    assert model.second.shifted(by=4) == 7
    assert model.first.weight.tolist() == [2.0]
    assert "aten::mul" in str(model.first.graph)
    assert "def forward(self," in model.first.code
    assert {"first", "training", "state_dict"} <= set(dir(model))


def test_lists_come_as_copies(model: ScriptModule) -> None:
    model.first.steps.append(5)
    assert model.first.steps == [2, 1]
    model.first.steps = (7, 8)
    assert model.first.shifted(0) == 7


def test_a_wrapper_is_one_object_as_long_as_it_is_held(model: ScriptModule) -> None:
    first = model.first
    assert model.first is first
    del first
    gc.collect()
    assert model.first.original_name == "Linear"


def test_state_dict_has_parameters_before_buffers_and_children_last(model: ScriptModule) -> None:
    names = [f"{part}.{name}" for part in ("first", "second") for name in ("weight", "bias", "scale")]
    state = model.state_dict()
    assert list(state) == names
    assert all(isinstance(value, Tensor) for value in state.values())


def test_a_shared_parameter_is_listed_once(model: ScriptModule) -> None:
    assert [name for name, _ in model.named_parameters()] == ["first.weight", "first.bias", "second.weight"]
    assert [name for name, _ in model.named_buffers()] == ["first.scale", "second.scale"]
    assert [name for name, _ in model.first.named_parameters(prefix="p")] == ["p.weight", "p.bias"]
    assert list(model.parameters(recurse=False)) == []


def test_modules_and_children(model: ScriptModule) -> None:
    assert [name for name, _ in model.named_modules()] == ["", "first", "second"]
    assert [name for name, _ in model.named_children()] == ["first", "second"]
    assert (len(model), model[1].original_name, bool(model.first)) == (2, "Linear", True)


def test_modes_reach_every_module(model: ScriptModule) -> None:
    assert model.eval() is model
    assert (model.training, model.first.training) == (False, False)
    assert model.train().second.training is True


def test_the_tree_prints_as_in_pytorch(model: ScriptModule) -> None:
    assert repr(model) == (
        "RecursiveScriptModule(\n"
        "  original_name=Model\n"
        "  (first): RecursiveScriptModule(original_name=Linear)\n"
        "  (second): RecursiveScriptModule(original_name=Linear)\n"
        ")"
    )


def test_what_is_not_there_is_refused(model: ScriptModule) -> None:
    with pytest.raises(AttributeError, match="'Model' object has no attribute 'frist'; did you mean 'first'"):
        model.frist  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'brand_new'"):
        model.brand_new  # noqa: B018


def test_what_python_adds_stays_in_python(model: ScriptModule) -> None:
    model.brand_new = 3
    assert model.brand_new == 3
    assert "brand_new" not in [attribute.name for attribute in model._ivalue.type.attributes]
