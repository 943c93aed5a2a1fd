"""Modules compiled here: PyTorch loads what they save, computes the same, and gives the same graphs for them."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine

torch = pytest.importorskip("torch", reason="compares with a real PyTorch, which is not installed here")
pytestmark = pytest.mark.peer

PROGRAMS = Path(__file__).parents[1] / "unit" / "torch" / "module_programs.py"


def load(name: str, text: str, folder: Path) -> Any:
    """The programs as a module of that name."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The same programs for the engine and for PyTorch."""
    text = PROGRAMS.read_text()
    theirs = text.replace("import engine as torch", "import torch").replace("from engine import", "from torch import")
    folder = tmp_path_factory.mktemp("programs")
    return load("own_programs", text, folder), load("peer_programs", theirs, folder)


INPUTS: dict[str, tuple[Any, ...]] = {
    "Containers": ([[1.0, -2.0]],), "Members": ([[1.0, -2.0]],), "Attributes": ([[1.0, 2.0, 3.0, 4.0]], "a"),
    "Hooked": ([1.0, -1.0],), "Overloaded": ([1.0],), "Choice": ([1.0],), "Mangled": ([1.0, 2.0],),
    "Packed": ([1.0, 2.0],), "Forking": ([1.0, -2.0],), "Linear": ([[1.0, 2.0]],), "GELU": ([1.0, -2.0],),
    "LayerNorm": ([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]],), "Conv2d": (np.ones((1, 2, 5, 5)).tolist(),),
    "BatchNorm2d": (np.arange(16.0).reshape(1, 2, 2, 4).tolist(),), "MaxPool2d": ([[[1.0, 2.0], [3.0, 4.0]]],),
}  # fmt: skip


def plain(value: Any) -> Any:
    if hasattr(value, "detach"):
        return value.detach().tolist()
    return [plain(part) for part in value] if isinstance(value, (tuple, list)) else value


def flat(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", INPUTS)
def test_pytorch_runs_what_was_saved_here(name: str, programs: tuple[Any, Any], tmp_path: Path) -> None:
    module = engine.script(programs[0].PROGRAMS[name]())
    module.save(tmp_path / "m.pt")
    loaded = torch.jit.load(str(tmp_path / "m.pt"))
    assert list(loaded.state_dict()) == list(module.state_dict())
    for _ in range(2):
        mine = module(*(engine.tensor(v) if isinstance(v, list) else v for v in INPUTS[name]))
        other = loaded(*(torch.tensor(v) if isinstance(v, list) else v for v in INPUTS[name]))
        for one, two in zip(flat(plain(mine)), flat(plain(other)), strict=True):
            assert one == (two if two is None else pytest.approx(two, rel=1e-5, abs=1e-6))


def without_names(text: str) -> str:
    numbers: dict[str, str] = {}
    text = re.sub(r" # [^\n]*|___torch_mangle_\d+\.|(own|peer)_programs\.", "", text)
    return re.sub(r"%[\w.]+", lambda found: numbers.setdefault(found[0], f"%{len(numbers)}"), text)


@pytest.mark.parametrize("name", [*INPUTS, "Ignoring"])
def test_graphs_are_equal(name: str, programs: tuple[Any, Any]) -> None:
    mine = engine.script(programs[0].PROGRAMS[name]())
    theirs = torch.jit.script(programs[1].PROGRAMS[name]())
    texts = [without_names(str(module.graph)).partition("with prim")[0] for module in (mine, theirs)]
    assert texts[0] == texts[1]
