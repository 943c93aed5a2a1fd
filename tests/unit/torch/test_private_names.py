"""`torch._C` and the other modules whose names stand in tables: each name works, or refuses in words."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import engine.torch as torch
from engine.lang.errors import NotSupportedError
from engine.torch import _C, other_modules
from engine.torch.namespace.refused_names import refusal_of
from tests.unit.torch.compatibility_table import table

DOCUMENT = Path(__file__).parents[3] / "docs/compatibility.md"


def test_every_name_of_the_extension_module_is_found_or_refuses_in_words() -> None:
    for name in _C.HOMES:
        assert refusal_of(getattr(_C, name)) is None
    for name, words in _C.REFUSED.items():
        with pytest.raises(NotSupportedError, match=re.escape(f"torch._C.{name}: {words}")):
            getattr(_C, name)()


@pytest.mark.parametrize("path", other_modules.MODULES)
def test_every_name_of_the_other_modules_is_found_or_refuses_in_words(path: str) -> None:
    module, row = other_modules.find(f"engine.torch.{path}"), other_modules.MODULES[path]
    for name in row.homes:
        assert refusal_of(getattr(module, name)) is None
    for name, words in row.refused.items():
        with pytest.raises(NotSupportedError, match=re.escape(words)):
            getattr(module, name)()


def test_the_document_lists_what_is_there() -> None:
    text = DOCUMENT.read_text()
    assert table() in text, "run python -m tests.unit.torch.compatibility_table > the table of docs/compatibility.md"


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match="did you mean '_jit_pass_inline'"):
        _C._jit_pass_inlin  # type: ignore[attr-defined]  # noqa: B018


def test_passes_and_settings_work() -> None:
    private: Any = _C
    graph = private.parse_ir("graph(%a : Tensor):\n  %b : Tensor = aten::relu(%a)\n  return (%a)\n")
    private._jit_pass_lint(graph)
    private._jit_pass_dce(graph)
    assert graph.findNode("aten::relu") is None
    before = private._jit_set_profiling_mode(True)
    assert private._jit_set_profiling_mode(before) is True


def test_schemas_and_operators() -> None:
    private: Any = _C
    schema = private.parse_schema("mine::f.g(Tensor x, int[2] size=1, *, bool flag=True) -> Tensor")
    assert (schema.name, schema.overload_name) == ("mine::f", "g")
    assert [each.name for each in schema.arguments] == ["x", "size", "flag"]
    assert [each.has_default_value() for each in schema.arguments] == [False, True, True]
    assert schema.arguments[1].N == 2
    function, overloads = private._jit_get_operation("aten::relu")
    assert function(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0] and "" in overloads
    assert len(private._jit_get_all_schemas()) > 1000


class Inner(torch.nn.Module):
    def forward(self, x: torch.Tensor):  # type: ignore[no-untyped-def]
        return x + 1


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.factor = 2

    def forward(self, x: torch.Tensor):  # type: ignore[no-untyped-def]
        return self.inner(x) * self.factor


def test_modules_behind_their_wrappers() -> None:
    module: Any = torch.jit.script(Outer())
    handle = module._c
    assert handle._method_names() == ["forward"] and handle.hasattr("factor") and not handle.hasattr("other")
    handle.setattr("factor", 5)
    assert module(torch.ones(1)).item() == 10.0
    assert handle.getattr("inner")._get_method("forward").graph.findNode("aten::add") is not None
    assert handle._type().name() == "Outer" and isinstance(handle, _C.ScriptModule)  # type: ignore[attr-defined]
    assert b"bytecode.pkl" in handle._save_to_buffer_for_mobile()
    with pytest.raises(NotSupportedError, match="no replicas"):
        handle._replicate_for_data_parallel()


class WithoutForward(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.graph = 3

    @torch.jit.export
    def twice(self, x: torch.Tensor):  # type: ignore[no-untyped-def]
        return self.inner(x) + self.inner(x)


def test_the_programs_names_are_attributes_of_handles() -> None:
    handle = torch.jit.script(WithoutForward())._c  # type: ignore[attr-defined]
    assert handle.twice(torch.ones(1)).item() == handle.inner.forward(torch.ones(1)).item() * 2
    assert handle.inner == handle.getattr("inner") and handle.inner.hasattr("training")
    assert "def twice" in handle.code and handle.inner.code.count("def ") == 1
    with pytest.raises(AttributeError, match=r"WithoutForward .*does not have a field with name 'forward'"):
        handle.forward(torch.ones(1))


def test_a_wrapper_takes_another_module() -> None:
    module: Any = torch.jit.script(Outer()).eval()
    module._c = _C._freeze_module(module._c)  # type: ignore[attr-defined]
    assert module(torch.ones(1)).item() == 4.0 and not module._c.hasattr("inner")


def test_hooks_are_told_of_modules_without_forward() -> None:
    told: list[Any] = []
    hooks: Any = _C
    hooks._jit_set_emit_hooks(told.append, None)
    try:
        module: Any = torch.jit.script(WithoutForward())
    finally:
        hooks._jit_set_emit_hooks(None, None)
    assert [each for each in told if each == module._c] and all("def " in each.code for each in told)


def _added(x: int) -> int:
    return x + 1


def test_hooks_are_told_of_functions_of_python_and_not_of_texts() -> None:
    told: list[Any] = []
    hooks: Any = _C
    hooks._jit_set_emit_hooks(None, told.append)
    try:
        scripted = torch.jit.script(_added)
        torch.jit.CompilationUnit("def f(x: int):\n    return x + 1\n")
    finally:
        hooks._jit_set_emit_hooks(None, None)
    assert [each.name for each in told] == [scripted.name] == ["_added"]


def test_lists_and_dicts_that_programs_share() -> None:
    unit = torch.jit.CompilationUnit(
        "def grow(x: List[int]):\n    x.append(3)\n\ndef put(x: Dict[str, int]):\n    x['b'] = 2\n"
    )
    numbers, named = torch.jit.script([1, 2]), torch.jit.script({"a": 1})
    unit.grow(numbers), unit.put(named)
    assert numbers == [1, 2, 3] and list(named.items()) == [("a", 1), ("b", 2)]
    assert numbers[1:] == [2, 3] and numbers.pop() == 3 and repr(numbers) == "[1, 2]"
    with pytest.raises(TypeError):
        numbers.append("x")
    with pytest.raises(KeyError):
        named[1]
    nested = torch.jit.script([[1], [2]])
    unit.grow(nested[0])
    assert nested == [[1, 3], [2]]


def test_units_see_the_names_of_python_on_request() -> None:
    def twice(x: int) -> int:
        return 2 * x

    unit = torch.jit.CompilationUnit("def f(x: int) -> int:\n    return twice(x)\n", _frames_up=0)
    assert unit.f(4) == twice(4)


def test_hooks_are_told_of_what_is_compiled() -> None:
    private, told = _C, []  # type: ignore[var-annotated]
    hooks: Any = private
    hooks._jit_set_emit_hooks(told.append, told.append)
    try:
        module = torch.jit.script(Inner())
        with torch.jit.internal._disable_emit_hooks():
            torch.jit.script(Inner())
    finally:
        hooks._jit_set_emit_hooks(None, None)
    assert told == [module._c]


# -- import torch

PROGRAM = """
import engine
with engine.as_torch():
    import torch, torch.nn.functional as F
    from torch import nn, Tensor
    import torch.jit._trace, torch._C, torch.utils._pytree
    assert torch.nn.functional is F and torch.__version__ >= "2.1" and "tsrepl" in torch.__version__
    assert engine.torch is torch and not torch.distributed.is_available()
    for text in ("import torch.missing", "from torch import missing", "from torch.nn import Linaer"):
        try:
            exec(text)
        except ImportError as error:
            print(error)
    try:
        torch.fx.symbolic_trace(nn.Linear(1, 1))
    except RuntimeError as error:
        print(error)
import sys
assert "torch" not in sys.modules
"""


def test_torch_is_the_facade_where_that_is_asked_for() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    missing, name, layer, refused = done.stdout.splitlines()[:4]
    assert "engine.torch stands in for it" in missing
    assert "cannot import name 'missing'" in name and "cannot import name 'Linaer'" in layer
    assert refused.startswith("torch.fx.symbolic_trace: programs are recorded by torch.jit.trace")


def test_another_torch_that_is_loaded_is_left_alone() -> None:
    program = "import sys, types, engine; sys.modules['torch'] = types.ModuleType('torch'); engine.as_torch()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1 and "PyTorch itself is loaded" in done.stderr


def test_scripts_run_unchanged(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys, torch\nprint(sys.argv[1:], torch.ones(2).sum().item(), __name__)\n")
    for words in (["-m", "engine.torch"], ["-m", "tsrepl", "run", "--as-torch"]):
        done = subprocess.run(
            [sys.executable, *words, str(script), "--lr", "1"], capture_output=True, text=True, check=True
        )
        assert done.stdout == "['--lr', '1'] 2.0 __main__\n"
