"""Compiling from text, looking inside, calling, fork and wait."""

import cmath
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import engine
from engine import jit, torch
from engine.lang.errors import ArgumentError, CompileError, NotSupportedError
from engine.torch import nn
from engine.torch.jit import CompilationUnit, ScriptFunction

PROGRAM = """
def double(x):
    return x + x

def quadruple(x):
    return double(double(x))
"""


def test_functions_are_attributes_of_their_unit() -> None:
    unit = CompilationUnit(PROGRAM)
    assert unit.quadruple(engine.tensor([1.0])).tolist() == [4.0]
    assert [function.name for function in unit] == ["double", "quadruple"]
    assert isinstance(unit.double, ScriptFunction)
    with pytest.raises(AttributeError, match="no attribute 'doubl'; did you mean 'double'"):
        unit.doubl  # noqa: B018


def test_definitions_can_be_added_and_a_wrong_one_adds_nothing() -> None:
    unit = CompilationUnit(PROGRAM)
    unit.define("def thrice(x):\n    return double(x) + x\n")
    assert unit.thrice(engine.tensor(1)).item() == 3
    with pytest.raises(CompileError):
        unit.define("def fine(x):\n    return x\ndef wrong(x):\n    return y\n")
    assert unit.find_function("fine") is None


def test_a_function_shows_what_it_is() -> None:
    function = CompilationUnit(PROGRAM).quadruple
    assert (function.name, function.qualified_name, function.__name__) == ("quadruple",) * 3
    assert str(function.schema) == "quadruple(Tensor x) -> Tensor"
    assert repr(function) == "<ScriptFunction quadruple(Tensor x) -> Tensor>"
    assert "prim::CallFunction" in str(function.graph)
    assert "prim::CallFunction" not in str(function.inlined_graph)
    assert str(function.inlined_graph).count("aten::add") == 2
    assert "def quadruple(x: Tensor) -> Tensor:" in function.code
    assert "aten::add" in str(CompilationUnit(PROGRAM).double.graph_for(engine.tensor([1.0])))


def test_a_call_that_does_not_fit_says_why() -> None:
    with pytest.raises(ArgumentError, match=r"double\(\) is missing value for argument 'x'"):
        CompilationUnit(PROGRAM).double()


def test_functions_are_saved_as_modules(tmp_path: Path) -> None:
    function = CompilationUnit(PROGRAM).double
    jit.save(function, str(tmp_path / "f.pt"), _extra_files={"note": "hello"})
    extra: dict[str, object] = {"note": ""}
    module = jit.load(str(tmp_path / "f.pt"), _extra_files=extra)
    assert module(engine.tensor([2.0])).tolist() == [4.0]
    assert extra == {"note": b"hello"}
    assert jit.load(io.BytesIO(function.save_to_buffer()))(engine.tensor([2.0])).tolist() == [4.0]


def scripted_in_python(x: int) -> int:
    """Adds one."""
    return x + 1


def test_script_compiles_python() -> None:
    function = engine.script(scripted_in_python)
    assert function(2) == 3
    assert function.__doc__ == "Adds one."
    assert engine.script(function) is function


def broken(x: int) -> int:
    return unknown_name  # type: ignore[name-defined,no-any-return]  # noqa: F821


def test_a_mistake_is_told_each_time_anew() -> None:
    for _ in range(2):
        with pytest.raises(CompileError, match="undefined value unknown_name"):
            engine.script(broken)


@pytest.mark.parametrize("thing", [3, "text", len])
def test_what_is_not_written_in_python_is_refused(thing: object) -> None:
    with pytest.raises(NotSupportedError, match="cannot compile a"):
        engine.script(thing)


class Counter:
    def __init__(self, start: int) -> None:
        self.count = start

    def add(self, n: int) -> int:
        self.count += n
        return self.count

    def __len__(self) -> int:
        return self.count


def make_counter(n: int) -> Counter:
    return Counter(n)


def test_instances_of_script_classes_come_and_go() -> None:
    assert engine.script(Counter) is Counter
    counter = engine.script(make_counter)(3)
    assert counter.add(2) == 5
    assert (counter.count, len(counter)) == (5, 5)
    counter.count = 7
    assert counter.add(1) == 8
    with pytest.raises(ArgumentError, match="Could not cast attribute 'count' to type int"):
        counter.count = "x"
    with pytest.raises(AttributeError, match="did you mean 'count'"):
        counter.coumt  # noqa: B018


def test_fork_and_wait_in_python() -> None:
    future = jit.fork(CompilationUnit(PROGRAM).double, engine.tensor([1.0]))
    assert jit.wait(future).tolist() == [2.0]


@pytest.mark.parametrize(("mark", "modifier"), [(jit.ignore, "ignore"), (jit.unused, "unused"), (jit.export, "export")])
def test_marks_leave_the_function_as_it_is(mark: Callable[..., object], modifier: str) -> None:
    def f() -> int:
        return 1

    assert mark(f) is f
    assert (jit.annotate(int, 3), jit.is_scripting(), vars(f)) == (3, False, {jit.MODIFIER: modifier})


def test_tensors_are_defaults_of_parameters() -> None:
    offset = torch.tensor([0.5, 1.5])

    def add(x, a=offset, b: torch.Tensor = torch.ones(1)):  # type: ignore[no-untyped-def]  # noqa: B008
        return x + a * b

    compiled = jit.script(add)
    assert compiled(torch.ones(2)).tolist() == [1.5, 2.5]
    assert compiled(torch.ones(2), torch.tensor(3.0)).tolist() == [4.0, 4.0]
    assert jit.script(calling(compiled))(torch.ones(2)).tolist() == [1.5, 2.5]


OFFSET = torch.tensor(2)


@pytest.mark.parametrize("annotation", [int, float, torch.Tensor | None, torch.Tensor])
def test_tensors_are_defaults_of_other_types_as_they_are_arguments(annotation: Any) -> None:
    def add(x, a=OFFSET):  # type: ignore[no-untyped-def]
        return x if a is None else x + a

    add.__annotations__["a"] = annotation
    assert jit.script(add)(torch.ones(1)).item() == 3


def test_a_tensor_is_no_default_of_a_list() -> None:
    def first(a: list[int] = OFFSET) -> int:  # type: ignore[assignment]
        return a[0]

    with pytest.raises(CompileError, match=r'Expected a default value of type List\[int\] on parameter "a"'):
        jit.script(first)


def calling(compiled: Any) -> Any:
    def outer(x):  # type: ignore[no-untyped-def]
        return compiled(x)

    return outer


def test_printed_graphs_show_the_lines_of_their_nodes() -> None:
    def relu(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)

    graph = jit.script(relu).graph
    shown = re.compile(r"aten::relu\(%x.1\) # .*test_jit.py:\d+:15")
    assert shown.search(str(graph)) and shown.search(repr(graph))
    with jit._hide_source_ranges():
        assert "#" not in str(graph)
        assert shown.search(graph.str(print_source_ranges=True))
    assert shown.search(str(graph))


def test_casts_stay_in_archives_that_are_written_again() -> None:
    def kind(x: Any) -> int:
        return 1 if isinstance(x, list[int]) or isinstance(x, list[str]) else 0  # type: ignore[misc]  # noqa: SIM101

    first = jit.load(io.BytesIO(saved(jit.script(kind))))
    second = jit.load(io.BytesIO(saved(first)))
    assert "unchecked_cast(Any, x)" in first.code
    assert second.code == first.code


def saved(program: Any) -> bytes:
    buffer = io.BytesIO()
    jit.save(program, buffer)
    return buffer.getvalue()


def test_programs_neither_read_nor_write_files(tmp_path: Path) -> None:
    unit = jit.CompilationUnit("""
def write(x: Tensor, path: str):
    torch.save(x, path)

def read(path: str):
    return torch.from_file(path)
""")
    path = tmp_path / "x.pt"
    with pytest.raises(RuntimeError, match="do not read or write files"):
        unit.write(torch.ones(1), str(path))
    with pytest.raises(RuntimeError, match="do not read or write files"):
        unit.read(str(path))
    assert not path.exists()


def test_a_state_with_each_tensor_once() -> None:
    module = nn.Module()
    module.a = module.b = nn.Parameter(torch.ones(1))
    assert list(jit._unique_state_dict(module)) == ["a"]
    assert not jit._unique_state_dict(module)["a"].requires_grad
    assert jit._unique_state_dict(module, keep_vars=True)["a"] is module.a


@pytest.mark.parametrize("name", ["vulkan", "mkldnn", "privateuseone:1", "hpu"])
def test_devices_without_tensors_can_be_named(name: str) -> None:
    assert str(torch.device(name)) == name
    with pytest.raises(RuntimeError, match=f"there is no {name.partition(':')[0]} device"):
        torch.ones(1).to(name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("foo", "Expected one of cpu, cuda"),
        ("vulcan:1", "did you mean 'vulkan'"),
        ("cuda:01", "Invalid device string"),
        ("", "must not be empty"),
    ],
)
def test_texts_that_name_no_device(text: str, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        torch.device(text)


def test_programs_make_generators_of_their_own() -> None:
    @torch.jit.script
    def drawn(seed: int):
        generator = torch.Generator()
        generator.manual_seed(seed)
        other = torch.Generator(device="cpu").manual_seed(seed)
        x = torch.empty(3).normal_(0.0, 1.0, generator=generator)
        return x, torch.randn(3, generator=other), generator.initial_seed()

    torch.manual_seed(0)
    x, y, seed = drawn(5)
    torch.manual_seed(1)
    again, _, _ = drawn(5)
    assert x.tolist() == y.tolist() == again.tolist()
    assert seed == 5
    loaded = torch.jit.load(_saved(drawn))
    assert loaded(5)[0].tolist() == x.tolist()


def _saved(program: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.jit.save(program, file)
    file.seek(0)
    return file


def test_functions_of_cmath_are_operators() -> None:
    results = "cmath.sqrt(a), cmath.phase(a), cmath.rect(2.0, 0.5), cmath.infj, cmath.isnan(a)"
    text = f"def f(a: complex):\n    return {results}\n"
    root, phase, point, infinite, is_nan = CompilationUnit(text).f(-1 + 0j)
    assert (root, phase, infinite, is_nan) == (1j, cmath.pi, complex(0, float("inf")), False)
    assert point == pytest.approx(cmath.rect(2.0, 0.5))


class Named:
    @torch.jit.ignore
    def __call__(self, x: torch.Tensor) -> str:
        return type(x).__name__


NAMED = Named()


def _names(x: torch.Tensor) -> str:
    return NAMED(x)


def test_objects_whose_call_is_ignored_are_called_in_python() -> None:
    assert torch.jit.script(_names)(torch.ones(1)) == "Tensor"


def _devices() -> Any:
    return torch.device(type="cpu"), torch.device(type="cuda", index=1), torch.device("cuda:2")


def test_devices_take_their_type_by_name() -> None:
    assert torch.jit.script(_devices)() == _devices()


def _class_of_a_library() -> Any:
    return io.BytesIO


def test_classes_of_libraries_are_no_values() -> None:
    with pytest.raises(CompileError, match="python value of type 'type' cannot be used as a value"):
        torch.jit.script(_class_of_a_library)


def test_a_late_annotation_is_a_wrong_value() -> None:
    class Late:
        def __init__(self, x: int):
            self.x = x

        def set(self, x: int) -> None:
            self.x: int = x

    with pytest.raises(ValueError, match="must be declared in __init__"):
        torch.jit.script(Late)


def test_a_value_without_type_says_why() -> None:
    found = torch._C.InferredType("the reason")
    assert (found.success(), found.reason()) == (False, "the reason")
    with pytest.raises(RuntimeError, match=r"type is null.* Reason: the reason"):
        found.type()
