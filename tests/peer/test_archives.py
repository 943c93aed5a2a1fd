"""What tsrepl saves, PyTorch loads and runs to the same outputs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import engine

torch = pytest.importorskip("torch", reason="compares with a real PyTorch, which is not installed here")
from tests.peer.recorded import differences  # noqa: E402

pytestmark = pytest.mark.peer

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = """
def helper(x: Tensor, n: int = 2) -> Tensor:
    out = x
    for i in range(n):
        out = out * x
    return out

def f(x: Tensor, flag: bool):
    if flag:
        y = helper(x)
    else:
        y = helper(x, n=3)
    while float(y.sum()) > 100.0:
        y = y / 2
    return y, [1, 2, 3], {"a": 1.5}
"""


@pytest.mark.parametrize("name", ["lstm_cell", "mlp"])
def test_a_loaded_module_saved_again(name: str, tmp_path: Path) -> None:
    engine.load(EXAMPLES / f"{name}.pt").save(tmp_path / f"{name}.pt")
    recorded = np.load(EXAMPLES / f"{name}.npz")
    inputs = [torch.from_numpy(recorded[key]) for key in recorded if not key.startswith("result.")]
    outputs = torch.jit.load(str(tmp_path / f"{name}.pt"))(*inputs)
    for index, output in enumerate(outputs if isinstance(outputs, tuple) else (outputs,)):
        np.testing.assert_allclose(output.detach().numpy(), recorded[f"result.{index}"], rtol=1e-5, atol=1e-6)


def test_a_function_compiled_here(tmp_path: Path) -> None:
    function = engine.CompilationUnit(PROGRAM).f
    function.save(tmp_path / "f.pt")
    theirs = torch.jit.load(str(tmp_path / "f.pt"))
    for flag in (True, False):
        mine, rest, pairs = function(engine.tensor([1.0, 2.0, 3.0]), flag)
        other, other_rest, other_pairs = theirs(torch.tensor([1.0, 2.0, 3.0]), flag)
        assert mine.tolist() == other.tolist()
        assert (rest, pairs) == (other_rest, other_pairs)


def test_pytorch_prints_the_same_code(tmp_path: Path) -> None:
    function = engine.CompilationUnit("def f(a, b):\n    c = a + b\n    return torch.tanh(c * c)\n").f
    function.save(tmp_path / "f.pt")
    theirs = torch.jit.load(str(tmp_path / "f.pt")).code
    assert theirs.strip() == function.code.strip().replace("def f(", "def forward(self,\n    ")


ARCHIVES = Path(__file__).parents[1] / "unit" / "serialize" / "archives"
FOLDERS = [ARCHIVES, *map(Path, filter(None, os.environ.get("TSREPL_ARCHIVES", "").split(os.pathsep)))]
EVERY = [path for folder in FOLDERS for path in sorted(folder.glob("*.pt"))]
"""The archives of the tests, and those in the folders that TSREPL_ARCHIVES names."""


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_every_archive_is_the_same_module_after_it_was_saved(path: Path, tmp_path: Path) -> None:
    engine.load(path).save(tmp_path / path.name)
    before, after = torch.jit.load(str(path)), torch.jit.load(str(tmp_path / path.name))
    assert [name for name, _ in before.named_modules()] == [name for name, _ in after.named_modules()]
    old, new = before.state_dict(), after.state_dict()
    assert list(old) == list(new)
    for name, tensor in old.items():
        assert (tensor.dtype, tensor.shape, tensor.stride()) == (new[name].dtype, new[name].shape, new[name].stride())
        assert tensor.numel() == 0 or torch.equal(
            *(t.reshape(-1).clone().view(torch.uint8) for t in (tensor, new[name]))
        )
    assert before._c._method_names() == after._c._method_names()
    for method in before._c._method_names():
        schemas = [m._c._get_method(method).schema.arguments[1:] for m in (before, after)]
        old_arguments, new_arguments = ([(a.name, str(a.type)) for a in arguments] for arguments in schemas)
        assert old_arguments == new_arguments


@pytest.mark.parametrize("path", [path for path in EVERY if path.with_suffix(".json").exists()], ids=lambda p: p.stem)
def test_a_saved_archive_gives_what_was_recorded(path: Path, tmp_path: Path) -> None:
    engine.load(path).save(tmp_path / path.name)
    assert list(differences(torch.jit.load(str(tmp_path / path.name)), path.with_suffix(".json"))) == []


@pytest.mark.parametrize("name", ["constants", "everything", "function"])
def test_a_saved_archive_gives_what_the_original_gives(name: str, tmp_path: Path) -> None:
    path = ARCHIVES / f"{name}.pt"
    engine.load(path).save(tmp_path / path.name)
    x = torch.arange(6.0).reshape(2, 3)
    inputs = (x, 2.0) if name == "function" else (x,)
    before, after = (torch.jit.load(str(each))(*inputs) for each in (path, tmp_path / path.name))
    for one, other in zip(*((each if isinstance(each, tuple) else (each,)) for each in (before, after)), strict=True):
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


def test_differences_are_found(tmp_path: Path) -> None:
    record = tmp_path / "f.json"
    doubled = {"tensor": {"dtype": "bfloat16", "shape": [2], "data": "AEAAQA=="}}
    for result, found in ((doubled, 0), ({"list": [doubled]}, 1), (2.0, 1), (None, 1), ({"tuple": []}, 1)):
        ones = {"tensor": {"dtype": "bfloat16", "shape": [2], "data": "gD+APw=="}}
        record.write_text(json.dumps({"calls": [{"method": "forward", "args": [ones], "result": result}]}))
        module = torch.nn.Module()
        module.forward = lambda x: x * 2
        assert len(list(differences(module, record))) == found
