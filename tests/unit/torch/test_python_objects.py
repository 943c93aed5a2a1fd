"""Classes, enums, named tuples and modules on their way from Python into programs, and back."""

from __future__ import annotations

import copy
import importlib.util
import io
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

import engine.torch as torch
from engine.ir.parser import parse_ir
from engine.lang.errors import ArchiveError, CompileError, NotSupportedError, ParseError


def load_programs() -> Any:
    spec = importlib.util.spec_from_file_location("python_objects", Path(__file__).parent / "python_objects.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


P = load_programs()


def script(thing: Any) -> Any:
    return torch.jit.script(thing)


def code_in_archive(thing: Any, name: str) -> str:
    with zipfile.ZipFile(io.BytesIO(thing.save_to_buffer())) as archive:
        (path,) = (each for each in archive.namelist() if each.endswith(name))
        return archive.read(path).decode()


# -- classes


def test_members_of_every_kind() -> None:
    compiled = script(P.uses_ordered)
    assert compiled(3) == P.uses_ordered(3) == (4, 6, 8)


def test_properties_come_first_and_methods_by_name() -> None:
    code = code_in_archive(script(P.uses_ordered), "python_objects.py")
    _, _, inside = code.partition("class Ordered")
    found = [line.split("(")[0].removeprefix("  def ") for line in inside.splitlines() if line.startswith("  def ")]
    assert found == ["__twice_getter", "__init__", "__lt__", "a", "b", "make", "odd"]


def test_static_methods_are_functions_of_the_module() -> None:
    assert "__torch__.python_objects.plus(" in script(P.uses_ordered).code


def test_an_unused_method_raises() -> None:
    with pytest.raises(RuntimeError, match="Cannot call @unused methods"):
        script(P.uses_unused)(1)


# -- enums


@pytest.mark.parametrize("member", list(P.Color))
def test_enums(member: Any) -> None:
    *known, same = script(P.names_members)(member)
    assert tuple(known) == P.names_members(member)[:3]
    assert same is False, "every use of a member is an object of its own"


def test_members_stay_apart_as_constants() -> None:
    text = str(script(P.names_members).graph)
    assert text.count("value=__torch__.python_objects.Color.RED]") == 2
    assert "value=[__torch__.python_objects.Color.RED, __torch__.python_objects.Color.BLUE]" in text


def test_the_text_of_a_member() -> None:
    assert script(P.shows_member)(P.Color.RED) == "Enum<Color.RED>"


def test_a_member_as_default() -> None:
    compiled = script(P.default_member)
    assert compiled() == 2
    assert str(compiled.schema) == "default_member(Enum<__torch__.python_objects.Color> c=Enum<Color.BLUE>) -> int"


# -- named tuples


def test_named_tuples_in_graphs_and_schemas() -> None:
    compiled = script(P.makes_span)
    assert compiled(4) == P.makes_span(4)
    assert "NamedTuple(start : int, end : float = 2.) = prim::TupleConstruct" in str(compiled.graph)
    assert "Dict(str, __torch__.python_objects.Span) = prim::DictConstruct" in str(compiled.graph)
    assert str(compiled.schema) == "makes_span(int x) -> Dict(str, __torch__.python_objects.Span)"


def test_defaults_of_fields_are_read_back() -> None:
    named = "NamedTuple(a : int, b : float = 2., c : int[] = [1, 2])"
    fields = parse_ir(f"graph(%x : int):\n  %p : {named} = aten::f(%x)\n  return (%p)\n").outputs[0].type
    assert str(fields) == "NamedTuple(a : int, b : float, c : int[])"


# -- functions


def test_functions_of_pythons_library_by_their_names() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert script(P.imported_functions)(9.5) == pytest.approx(P.imported_functions(9.5))
    assert "careful" in [str(each.message) for each in caught]
    kinds = [node.kind for node in script(P.imported_functions).graph.nodes()]
    assert [kind for kind in kinds if kind.startswith("aten")] == [
        "aten::warn", "aten::warn", "aten::sqrt", "aten::floor", "aten::add",
    ]  # fmt: skip


def test_defaults_have_the_declared_type() -> None:
    compiled = script(P.whole_default)
    assert compiled(torch.ones(1)).tolist() == [4.5]
    assert str(compiled.schema) == "whole_default(Tensor x, float by=1., (int, float) to=(2, 3.5)) -> Tensor"


def test_a_module_from_outside_runs_in_python() -> None:
    compiled, x = script(P.outside_layer), torch.ones(2)
    assert compiled(x).tolist() == P.layer(x).tolist()
    assert "^<python_value>[]()(%x)" in str(compiled.graph).replace("%x.1", "%x")
    with pytest.raises(ArchiveError, match="Could not export Python function call '<python_value>'"):
        compiled.save_to_buffer()


def test_assert_and_is_tracing() -> None:
    compiled = script(P.asserted)
    assert compiled(torch.ones(1)) is False
    with pytest.raises(RuntimeError, match="AssertionError: one dimension"):
        compiled(torch.ones(1, 1))
    assert 'prim::Constant[name="is_tracing"]' in str(compiled.graph)


def test_functions_of_the_library_can_be_compiled() -> None:
    compiled = script(torch.nn.functional.softmax)
    assert compiled.qualified_name == "__torch__.torch.nn.functional.softmax"
    assert compiled(torch.zeros(2), 0).tolist() == [0.5, 0.5]


def test_a_union_with_none_keeps_its_order() -> None:
    assert script(P.either_or_none).code.startswith("def either_or_none(x: Union[int, NoneType, str]) -> bool")


@pytest.mark.parametrize(("program", "message"), P.REFUSED)
def test_refusals(program: Any, message: str) -> None:
    with pytest.raises((CompileError, NotSupportedError), match=message):
        script(program)


# -- modules


def test_modules_know_of_backward_hooks() -> None:
    compiled = script(P.Plain())
    assert compiled._is_full_backward_hook is None
    assert "  _is_full_backward_hook : Optional[bool]\n" in code_in_archive(compiled, "python_objects.py")


def test_the_state_s_type_is_what_getstate_returns() -> None:
    compiled = script(P.Stateful())
    schema = str(compiled._ivalue.type.methods["__setstate__"].schema)
    assert (
        schema.endswith("((int, Tensor, int[], bool) state) -> NoneType")
        or "(int, Tensor, int[], bool) state" in schema
    )
    loaded = torch.jit.load(io.BytesIO(compiled.save_to_buffer()))
    assert loaded(torch.ones(1)).tolist() == [4.0]


def test_copies() -> None:
    compiled = script(P.Stateful())
    shallow, deep = copy.copy(compiled), copy.deepcopy(compiled)
    shallow.n = 10
    assert (compiled.n, shallow.n, deep.n) == (3, 10, 4)
    assert shallow.weight is compiled.weight
    assert deep.weight is not compiled.weight
    shared = script(torch.nn.ModuleList([one := torch.nn.Linear(1, 1), one]))
    again = copy.deepcopy(shared)
    assert again[0].weight is again[1].weight
    assert again[0].weight is not shared[0].weight


def test_methods_of_all_names() -> None:
    compiled = script(P.Methods())
    assert compiled(torch.ones(1)).tolist() == [5.0]
    assert compiled._forward(torch.ones(1)).tolist() == [5.0]
    assert compiled._forward.name == "_forward"


def test_a_method_that_one_instance_has() -> None:
    own, plain = script(P.replaced()), script(P.Plain())
    assert own(torch.ones(1)).tolist() == [2.0]
    assert plain(torch.ones(1)).tolist() == [1.0]
    assert own._ivalue.type is not plain._ivalue.type


def test_what_modules_do_in_python() -> None:
    compiled = script(torch.nn.Sequential(torch.nn.Linear(2, 1)))
    seen: list[str] = []
    assert compiled.apply(lambda module: seen.append(module.original_name)) is compiled
    assert seen == ["Linear", "Sequential"]
    assert compiled.double()[0].weight.dtype == torch.float64
    assert compiled.to(torch.float32).get_parameter("0.weight").dtype == torch.float32
    assert list(compiled.state_dict(prefix="a.")) == ["a.0.weight", "a.0.bias"]
    compiled.load_state_dict({"0.weight": torch.ones(1, 2), "0.bias": torch.zeros(1)})
    assert compiled(torch.ones(2)).tolist() == [2.0]
    with pytest.raises(RuntimeError, match="Missing key"):
        compiled.load_state_dict({})
    compiled(torch.ones(2)).sum().backward()
    compiled.zero_grad()
    assert compiled[0].weight.grad is None
    with pytest.raises(AttributeError, match="has no parameter 'nothing'"):
        compiled.get_parameter("nothing")
    assert "0" in compiled


def test_constants_cannot_be_set() -> None:
    compiled = script(torch.nn.Linear(2, 1))
    with pytest.raises(RuntimeError, match="Can't set constant 'in_features' which has value:2"):
        compiled.in_features = 3


# -- hooks and interfaces


@pytest.mark.parametrize(("module", "message"), P.HOOKS)
def test_hooks_must_fit_forward(module: Any, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        script(module)


def test_hooks_that_fit() -> None:
    assert script(P.with_hooks(P.one_result, P.keeps))(torch.ones(1)).tolist() == [2.0]


def test_a_submodule_behind_an_interface() -> None:
    assert script(P.Container(P.Plain()))(torch.ones(1)).tolist() == [1.0]


def test_interfaces_are_checked_where_they_are_declared() -> None:
    class WithBody:
        def step(self, x: int) -> int:
            return x

    class Derived(WithBody):
        def step(self, x: int) -> int:
            pass  # type: ignore[return]

    with pytest.raises(CompileError, match="the body of 'step' must be 'pass'"):
        torch.jit.interface(WithBody)
    with pytest.raises(CompileError, match="does not support inheritance yet"):
        torch.jit.interface(Derived)


# -- text


def test_text_has_functions_only() -> None:
    with pytest.raises(ParseError, match="expected def but found 'class' here"):
        torch.jit.CompilationUnit("class A:\n    def __init__(self):\n        self.x = 1\n")


@script
class Account:
    def __init__(self, balance: int):
        self.balance: int = balance

    @classmethod
    def opened(cls, balance: int) -> Account:
        return cls(balance + 1)


def _through_an_instance(balance: int) -> int:
    return Account(0).opened(balance).balance


def test_class_methods_are_called_through_instances() -> None:
    assert script(_through_an_instance)(4) == 5
