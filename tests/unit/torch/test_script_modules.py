"""Scripted modules: the graphs and the code that PyTorch gives for the same programs, the results of the Python
modules, what is refused, and archives.

`recorded_modules.txt` was written by PyTorch 2.13 for `module_programs.py`: of each method the graph and the code.
"""

# ruff: noqa: UP006, UP035, UP045
import importlib.util
import io
import pickle
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import MethodType
from typing import Any, Dict, List, Optional, Tuple

import pytest

import engine as torch
from engine import Tensor, nn
from engine.lang.errors import ArchiveError, ArgumentError, CompileError, InvalidConstantError

HERE = Path(__file__).parent
RECORDED = (HERE / "recorded_modules.txt").read_text()


def load_programs() -> Any:
    """The programs as a module of the name that they had when they were recorded, which the texts show."""
    spec = importlib.util.spec_from_file_location("module_programs", HERE / "module_programs.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAMS = load_programs().PROGRAMS


def recorded() -> Iterator[tuple[str, str, str]]:
    for section in re.split(r"^=== ", RECORDED, flags=re.M)[1:]:
        head, _, rest = section.partition("\n")
        graph, _, code = rest.partition("\n---\n")
        yield head, graph, code


def renumbered(text: str) -> str:
    """Values under numbers in the order in which they appear, each graph with its own; types without the part of their
    names that depends on what was compiled before."""
    graphs = re.split(r"(?=\bgraph\()", re.sub(r"___torch_mangle_\d+\.", "", text))
    return "".join(map(_renumbered, graphs)).strip()


def _renumbered(graph: str) -> str:
    numbers: dict[str, str] = {}
    return re.sub(r"%[\w.]+", lambda found: numbers.setdefault(found[0], f"%{len(numbers)}"), graph)


@pytest.mark.parametrize(("head", "graph", "code"), list(recorded()))
def test_graphs_and_code_are_the_original_s(head: str, graph: str, code: str) -> None:
    name, path, method = head.split()
    module = torch.script(PROGRAMS[name]())
    for part in [] if path == "." else path.split("."):
        module = module[int(part)] if part.isdigit() else getattr(module, part)
    compiled = module.__getattr__(method)
    assert renumbered(compiled.graph.str(print_source_ranges=False)) == renumbered(graph)
    assert renumbered(compiled.code) == renumbered(code)


INPUTS: Dict[str, Tuple[Any, ...]] = {
    "Containers": ([[1.0, -2.0]],), "Members": ([[1.0, -2.0]],), "Attributes": ([[1.0, 2.0, 3.0, 4.0]], "a"),
    "Hooked": ([1.0, -1.0],), "Overloaded": ([1.0],), "Choice": ([1.0],), "Mangled": ([1.0, 2.0],),
    "Ignoring": ([1.0, 2.0],), "Packed": ([1.0, 2.0],), "Forking": ([1.0, -2.0],),
    "Linear": ([[1.0, 2.0]],), "GELU": ([1.0, -2.0],), "LayerNorm": ([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]],),
}  # fmt: skip


def arguments(name: str) -> List[Any]:
    return [torch.tensor(value) if isinstance(value, list) else value for value in INPUTS[name]]


def plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().tolist()
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    return value


# To Python, a torch.jit.Attribute is a pair and not its value.
@pytest.mark.parametrize("name", [name for name in INPUTS if name != "Attributes"])
def test_a_scripted_module_computes_what_the_python_one_does(name: str) -> None:
    module = PROGRAMS[name]()
    compiled = torch.script(module)
    expected = plain(module(*arguments(name)))
    if name == "Members":
        module.count, module.mean = 0, torch.zeros(2)
    assert plain(compiled(*arguments(name))) == expected


@pytest.mark.parametrize("name", [name for name in INPUTS if name != "Ignoring"])
def test_archives_of_scripted_modules(name: str) -> None:
    compiled = torch.script(PROGRAMS[name]())
    loaded = torch.jit.load(io.BytesIO(compiled.save_to_buffer()))
    assert plain(loaded(*arguments(name))) == plain(compiled(*arguments(name)))
    assert list(loaded.state_dict()) == list(compiled.state_dict())


def test_modules_of_equal_types_share_a_class_and_others_do_not() -> None:
    module = torch.script(PROGRAMS["Mangled"]())
    types = [part._ivalue.type for part in module.children()]
    assert len({type.qualname for type in types}) == 3
    assert ".___torch_mangle_" in types[1].qualname
    assert torch.script(nn.Linear(1, 2))._ivalue.type is torch.script(nn.Linear(1, 2))._ivalue.type
    assert torch.script(nn.Linear(1, 2))._ivalue.type is not torch.script(nn.Linear(2, 2))._ivalue.type
    assert torch.script(nn.Linear(1, 2))._ivalue.type.qualname.startswith("__torch__.torch.nn.modules.linear.")


def test_parameters_are_those_of_the_python_module() -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    compiled = torch.script(module)
    assert compiled[0].weight is module[0].weight
    assert [name for name, _ in compiled.named_parameters()] == [name for name, _ in module.named_parameters()]
    assert list(compiled.state_dict()) == list(module.state_dict())
    compiled.eval()
    assert not compiled[1].training
    assert module.training


def test_attributes_can_be_set_on_the_compiled_module() -> None:
    compiled = torch.script(PROGRAMS["Members"]())
    compiled(torch.ones(1, 2))
    assert compiled.count == 1
    compiled.reset()
    compiled.count += 5
    assert (compiled.count, compiled.twice, compiled.limit) == (5, 6, 3)


class Shares(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.b = nn.Buffer(torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) + self.b


def test_a_state_may_take_the_place_of_the_tensors() -> None:
    module = torch.jit.script(Shares())
    state = {name: tensor.double() for name, tensor in module.state_dict().items()}
    module.load_state_dict(state)
    assert module.b.dtype is torch.float32
    module.load_state_dict(state, assign=True)
    assert module.b.dtype is module.inner.weight.dtype is torch.float64
    state["b"].add_(1)
    assert module.b.tolist() == [1, 1] and module(torch.ones(1, 2, dtype=torch.float64)).dtype is torch.float64


def test_compiled_modules_are_not_pickled() -> None:
    with pytest.raises(TypeError, match=r"torch\.jit\.save writes it"):
        pickle.dumps(torch.jit.script(Shares()))


def test_ignored_methods_run_in_python_and_cannot_be_saved() -> None:
    compiled = torch.script(PROGRAMS["Ignoring"]())
    assert compiled(torch.ones(4)) == [3, 4]
    assert compiled.in_python(torch.ones(2), 1) == [1, 2]
    with pytest.raises(RuntimeError, match="annotated to be ignored and cannot be run"):
        compiled(torch.ones(4), True)
    with pytest.raises(ArchiveError, match="Could not export Python function call 'in_python'"):
        compiled.save_to_buffer()


def test_hooks_run_when_the_module_is_called_and_not_when_forward_is() -> None:
    compiled = torch.script(PROGRAMS["Hooked"]())
    assert compiled.relu(torch.ones(1)).tolist() == [3.0]
    assert compiled.relu.forward(torch.ones(1)).tolist() == [1.0]


def test_overloaded_methods_are_compiled_once_for_each_signature() -> None:
    compiled = torch.script(PROGRAMS["Overloaded"]())
    assert compiled.more__0(1) == 2
    assert compiled.more__1(torch.ones(1)).tolist() == [2.0]
    assert compiled(torch.ones(1)).tolist() == [5.0]


@torch.jit._overload
def doubled(x: int) -> int: ...


@torch.jit._overload
def doubled(x: Tensor) -> Tensor: ...  # noqa: F811


def doubled(x):  # type: ignore[no-untyped-def]  # noqa: F811
    return x + x


def uses_overloads(x: Tensor) -> Tensor:
    return doubled(x) + doubled(2)


def test_overloaded_functions() -> None:
    assert torch.script(uses_overloads)(torch.ones(1)).tolist() == [6.0]


def test_a_module_that_does_not_offer_its_interface_is_refused() -> None:
    module = PROGRAMS["Choice"]()
    module.act = nn.ReLU()
    with pytest.raises(CompileError, match=r"does not have method|is not compatible with interface"):
        torch.script(module)


# -- refusals: what is wrong, where, and the calls that led there


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()
        self.odd = {1, 2}
        self.empty: List[int] = []
        self.mixed = [1, "a"]
        self.layers = nn.ModuleList([nn.ReLU()])
        self.named = nn.ModuleDict({"a": nn.ReLU()})
        self.function = lambda x: x


class Missing(Base):
    def forward(self, x: Tensor) -> Tensor:
        return x + self.nothing


class NoType(Base):
    def forward(self, x: Tensor) -> Tensor:
        return x + self.odd


class Empty(Base):
    def forward(self, x: Tensor) -> int:
        return len(self.empty)


class Mixed(Base):
    def forward(self, x: Tensor) -> int:
        return len(self.mixed)


class NewAttribute(Base):
    def forward(self, x: Tensor) -> Tensor:
        self.added = x
        return x


class NotIterable(Base):
    def forward(self, x: Tensor) -> Tensor:
        for module in self.relu:
            x = module(x)
        return x


class VariableIndex(Base):
    def forward(self, x: Tensor, i: int) -> Tensor:
        return self.layers[i](x)


class WrongKey(Base):
    def forward(self, x: Tensor) -> Tensor:
        return self.named["b"](x)


class Super(Missing):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


class Lambda(Base):
    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Recursive(Base):
    def forward(self, x: Tensor) -> Tensor:
        return self.forward(x)


class ForPython(Base):
    def forward(self, x: Tensor) -> Tensor:
        self.eval()
        return x


class NoneStays(Base):
    def __init__(self) -> None:
        super().__init__()
        self.number: Optional[int] = None

    def forward(self, x: Tensor) -> Tensor:
        self.number = 3
        return x


somewhere = torch.script(nn.ReLU())


class NoSubmodule(Base):
    def forward(self, x: Tensor) -> Tensor:
        return somewhere(x)


REFUSED = [
    (Missing, "Module 'Missing' has no attribute 'nothing'", "self.nothing"),
    (NoType, "failed to convert Python type: 'set' to a TorchScript type. Only tensors and", "self.odd"),
    (Empty, "List trace inputs must have elements. Its type was inferred; try adding a type", "self.empty"),
    (Mixed, "consistent element type. Found int and str. Its type was inferred", "self.mixed"),
    (NewAttribute, "Tried to set nonexistent attribute: added", "self.added = x"),
    (NotIterable, "Only constant Sequential, ModuleList, ModuleDict, or ParameterList can be", "for module in"),
    (VariableIndex, "Expected integer literal for index but got a variable", "self.layers[i]"),
    (WrongKey, "Key Error, b", 'self.named["b"]'),
    (Super, "super() is not supported", "super().forward"),
    (Lambda, "This function exists as an attribute on the Python module, but we failed", "self.function"),
    (Recursive, "'forward' is called recursively", "self.forward"),
    (ForPython, "'eval' of a module is for Python alone", "self.eval"),
    (NoneStays, "Wrong type for attribute assignment. Expected NoneType but got int", "self.number = 3"),
    (NoSubmodule, "Cannot call a ScriptModule that is not a submodule of the caller", "somewhere(x)"),
]


@pytest.mark.parametrize(("cls", "message", "place"), REFUSED)
def test_refusals_tell_what_and_where(cls: type, message: str, place: str) -> None:
    for _ in range(2):
        with pytest.raises(CompileError, match=re.escape(message)) as caught:
            torch.script(cls())
        lines = str(caught.value).splitlines()
        carets = [at for at, line in enumerate(lines) if "~" in line]
        assert any(place in lines[at - 1] for at in carets)


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ReLU()

    def helper(self, x: Tensor) -> Tensor:
        return x + unknown  # type: ignore[name-defined]  # noqa: F821

    def forward(self, x: Tensor) -> Tensor:
        return self.helper(x)


def test_an_error_in_a_method_tells_who_called_it() -> None:
    with pytest.raises(CompileError, match="undefined value unknown") as caught:
        torch.script(Outer())
    assert "'helper' is being compiled since it was called from 'forward'" in str(caught.value)


def test_nothing_is_left_of_what_failed() -> None:
    unit = torch.jit.script.__globals__["PYTHON"].unit
    before = set(unit.functions), set(unit.types)
    with pytest.raises(CompileError):
        torch.script(nn.Sequential(nn.Tanh(), Outer()))
    assert (set(unit.functions), set(unit.types)) == before


def test_constants_must_be_constants() -> None:
    module = Base()
    module.__constants__ = ("odd",)
    type(module).__constants__ = ("odd",)
    try:
        with pytest.raises(
            InvalidConstantError, match=r"'set' object in attribute 'Base\.odd' is not a valid constant"
        ):
            torch.script(module)
        with pytest.raises(TypeError):
            torch.script(module)
    finally:
        del type(module).__constants__


class Uninitialized(nn.Module):
    def __init__(self) -> None:
        pass


class Wrong(nn.Module):
    sizes: List[int]

    def __init__(self) -> None:
        super().__init__()
        self.sizes = "a"


class Hookless(nn.Module):
    def __init__(self, hook: Any) -> None:
        super().__init__()
        self.register_forward_pre_hook(hook)

    def forward(self, x: Tensor) -> Tensor:
        return x


def bare(self, input: Tuple[Tensor]):  # type: ignore[no-untyped-def]
    return None


def untupled(self, input: Tensor) -> None:  # type: ignore[no-untyped-def]
    return None


@pytest.mark.parametrize(("make", "message"), [
    (Uninitialized, "Uninitialized' has not been initialized, did you forget to call 'super()'?"),
    (Wrong, "Could not cast attribute 'sizes' to type List[int]"),
    (lambda: Hookless(bare), "Pre-hook 'bare' on module 'Hookless' is missing a return annotation"),
    (lambda: Hookless(untupled), "expected the input argument to be typed as a Tuple but found type: 'Tensor'"),
])  # fmt: skip
def test_modules_that_cannot_be_compiled_as_they_are(make: Any, message: str) -> None:
    with pytest.raises(CompileError, match=re.escape(message)):
        torch.script(make())


def test_a_module_class_is_no_script_class() -> None:
    with pytest.raises(CompileError, match="consider passing an instance instead"):
        torch.script(Base)


def test_a_module_without_forward_has_no_graph() -> None:
    with pytest.raises(ArgumentError, match="Method 'forward' is not defined"):
        torch.script(nn.Module()).graph  # noqa: B018


# -- classes derived from ScriptModule


class Derived(torch.jit.ScriptModule):
    __constants__ = ("k",)

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k
        self.weight = nn.Parameter(torch.ones(2))
        self.define("def extra(self, x):\n    return x + self.weight\n")

    @torch.jit.script_method
    def forward(self, x: Tensor) -> Tensor:
        return self.scaled(x) + self.extra(x)

    @torch.jit.script_method
    def scaled(self, x: Tensor) -> Tensor:
        return x * self.k

    def in_python(self) -> int:
        return self.k + 1


def test_classes_derived_from_script_module_are_compiled_when_made() -> None:
    module = Derived(4)
    assert isinstance(module, Derived)
    assert isinstance(module, torch.jit.ScriptModule)
    assert not isinstance(torch.script(nn.ReLU()), Derived)
    assert module(torch.ones(2)).tolist() == [6.0, 6.0]
    assert module.in_python() == 5
    module.define("def more(self, x):\n    return self.extra(x) + 1\n")
    assert module.more(torch.ones(2)).tolist() == [3.0, 3.0]


def test_scripted_modules_can_be_submodules() -> None:
    inner = torch.script(nn.Linear(2, 2))
    outer = nn.Sequential(inner, nn.ReLU())
    assert [name for name, _ in outer.named_parameters()] == ["0.weight", "0.bias"]
    compiled = torch.script(outer)
    assert compiled[0]._ivalue is inner._ivalue
    x = torch.ones(1, 2)
    assert compiled(x).tolist() == outer(x).tolist()


def test_an_ignored_method_that_one_module_was_given_comes_before_its_class() -> None:
    class Net(nn.Module):
        @torch.jit.ignore
        def told(self) -> str:
            return "of the class"

    @torch.jit.ignore
    def told(self: Any) -> str:
        return "its own"

    net, other = Net(), Net()
    net.told = MethodType(told, net)
    assert (torch.jit.script(net).told(), torch.jit.script(other).told()) == ("its own", "of the class")


def test_the_length_of_a_container_is_what_its_class_says() -> None:
    class Twice(nn.ModuleList):
        def __len__(self) -> int:
            return 2 * len(self._modules)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = Twice([nn.ReLU()])
            self.plain = nn.ModuleList([nn.ReLU()])

        def forward(self) -> list[int]:
            return [len(self.parts), len(self.plain)]

    assert torch.jit.script(Net())() == [2, 1]


def test_ignored_attributes_are_for_ignored_methods() -> None:
    class Net(nn.Module):
        __jit_ignored_attributes__ = ("scale", "part")

        def __init__(self) -> None:
            super().__init__()
            self.scale, self.part, self.size = 3, nn.ReLU(), 4

        def forward(self) -> int:
            return self.size

        @torch.jit.ignore
        def scaled(self, x: Tensor) -> Tensor:
            return self.part(x) * self.scale

    class Uses(Net):
        def forward(self) -> int:
            return self.scale

    net = torch.jit.script(Net())
    assert (net(), net.scale) == (4, 3)
    assert net.scaled(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 6.0]
    with pytest.raises(CompileError, match="attribute was ignored during compilation"):
        torch.jit.script(Uses())


def test_an_attribute_with_a_type_is_its_value_in_init() -> None:
    class Net(torch.jit.ScriptModule):
        def __init__(self) -> None:
            super().__init__()
            self.rate = torch.jit.Attribute(1, float)
            self.twice = self.rate * 2

        @torch.jit.script_method
        def forward(self) -> tuple[float, int]:
            return self.rate, self.twice

    rate, twice = Net()()
    assert (type(rate), rate, twice) == (float, 1.0, 2)


def test_words_for_attributes_without_a_type() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = [nn.ReLU()]

        def forward(self) -> int:
            return len(self.parts)

    with pytest.raises(CompileError, match=r"type of list element: Cannot infer concrete type of torch.nn.Module"):
        torch.jit.script(Net())


def test_quantization_schemes_are_numbers() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scheme = torch.per_tensor_affine

        def forward(self) -> bool:
            return self.scheme == torch.per_tensor_affine

    assert torch.jit.script(Net())() is True


class KeepsItsState(nn.Module):
    """Its program saves and loads itself, and notes for whom."""

    saved: List[str]
    loaded: List[str]

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.weight = nn.Linear(2, 2), nn.Parameter(torch.ones(2))
        self.saved, self.loaded = [], []

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) * self.weight

    @torch.jit.export
    def _save_to_state_dict(self, destination: Dict[str, Tensor], prefix: str, keep_vars: bool) -> None:
        self.saved.append(prefix)

    @torch.jit.export
    def _load_from_state_dict(
        self, state_dict: Dict[str, Tensor], prefix: str, local_metadata: Any, strict: bool,
        missing_keys: List[str], unexpected_keys: List[str], error_msgs: List[str],
    ) -> None:  # fmt: skip
        self.loaded.append(prefix)
        self.weight.data.copy_(state_dict[prefix + "scale"])


def test_a_program_saves_and_loads_the_tensors_of_a_module_itself() -> None:
    compiled = torch.jit.script(nn.Sequential(nn.Linear(2, 2), KeepsItsState()))
    state = compiled.state_dict()
    assert compiled[1].saved == ["1."]
    assert list(state) == ["0.weight", "0.bias", "1.linear.weight", "1.linear.bias"]
    state = {name: tensor * 0 + 3 for name, tensor in state.items()} | {"1.scale": torch.tensor([5.0, 6.0])}
    compiled.load_state_dict(state)
    assert compiled[1].loaded == ["1."]
    assert compiled(torch.ones(1, 2)).tolist() == [[(9 * 3 + 9 * 3 + 3) * 5.0, (9 * 3 + 9 * 3 + 3) * 6.0]]
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0.bias"'):
        compiled.load_state_dict({name: tensor for name, tensor in state.items() if name != "0.bias"})


@pytest.mark.parametrize("first", ["self", "me"])
def test_a_type_comment_of_a_method_that_is_given_as_text_leaves_out_its_module(first: str) -> None:
    module: Any = torch.jit.script(torch.nn.Linear(1, 1))
    module.define(
        f"def pair_{first}({first}, x, n):\n    # type: (Tensor, int) -> Tuple[Tensor, int]\n    return x, n\n"
    )
    module.define(f"def three_{first}({first}):\n    # type: () -> int\n    return 3\n")
    pair, three = getattr(module, f"pair_{first}"), getattr(module, f"three_{first}")
    assert (pair(torch.ones(1), 2)[1], three()) == (2, 3)
    with pytest.raises(RuntimeError, match="Number of type annotations"):
        module.define(f"def wrong({first}, x):\n    # type: (Tensor, Tensor) -> Tensor\n    return x\n")
