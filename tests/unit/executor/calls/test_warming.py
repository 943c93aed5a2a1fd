"""What was warmed is found by later processes, which compile nothing; what is not is said."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import engine
import engine.torch as torch
from engine.executor.calls import warming
from engine.executor.plans import kept_plans, lowered
from engine.fuser.backend import code, tiering
from engine.fuser.library import image_files
from engine.lang.errors import ArgumentError
from engine.torch import nn
from tests.unit.executor.small_modules import Branches, Layers, Left, Pointwise

torch.manual_seed(0)


class Windows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 2, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.max_pool2d(torch.relu(self.convolution(x[None, None])), 2)


class Written(nn.Module):
    """A part of the module is written."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total += x.sum(0)
        return torch.exp(x) + self.total


MODULES: list[type[nn.Module]] = [Pointwise, Layers, Branches, Windows, Left, Written]
X = torch.arange(16.0).reshape(4, 4) / 8 - 1


def saved(module: nn.Module, folder: Path) -> Path:
    path = folder / f"{type(module).__name__}.pt"
    torch.jit.save(torch.jit.script(module.eval()), str(path))
    return path


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of its own, with the library of operators."""
    room = image_files.folder()
    assert room is not None
    shutil.copytree(room, tmp_path / "kernels" / "library")
    (tmp_path / "kernels").chmod(0o700)
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path / "kernels"))
    monkeypatch.delenv("TSREPL_COMPILE", raising=False)
    kept_plans._engine.cache_clear()
    compiler = lowered.SETTINGS.compiler_for(None)
    monkeypatch.setattr(compiler, "known", {})  # nothing of other tests is in this process
    monkeypatch.setattr(code, "_LOADED", {})
    return tmp_path / "kernels"


_HEAD = """
import json, sys, engine, engine.torch as torch
from engine.fuser.backend import kernel_cache, tiering
x = torch.arange(16.0).reshape(4, 4) / 8 - 1
torch.set_grad_enabled(False)
def opened():
    return map(torch.jit.load, sys.argv[1:])
"""
_WARM = _HEAD + "print(json.dumps([[engine.warm(m, x).groups, 0] for m in opened()]))"
_LATER = (
    _HEAD
    + """
from engine.executor.plans import fusion, making
def refuse(*given, **options):
    raise AssertionError("it was on disk")
making.specialise = fusion.decompose = refuse
with kernel_cache.counting() as uses:
    models, answers = [*opened()], []
    for m in models:
        answers.append([])
        for _ in range(4):
            answers[-1].append(m(x).tolist())
            tiering.wait()
imports, found = "llvmlite" in sys.modules, []  # views may compile
for m, each in zip(models, answers):
    (plan,) = engine.explain(m.forward).plans
    found.append([each, plan.origin is not None, [len(group.kernels) > 0 for group in plan.groups]])
print(json.dumps([found, imports, [*map(kernel_cache.kind_of, uses.made)], tiering.failures()]))
"""
)


def _printed(program: str, *paths: Path) -> Any:
    command = [sys.executable, "-c", program, *map(str, paths)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_later_processes_compile_nothing(store: Path, tmp_path: Path) -> None:
    paths = [saved(module(), tmp_path) for module in MODULES]
    warmed = _printed(_WARM, *paths)
    found, imported, made, mistakes = _printed(_LATER, *paths)
    assert (imported, made, mistakes) == (False, [], [])
    before = tiering.mode()
    tiering.set_mode("off")
    try:
        for path, (answers, is_kept, kernels), (groups, _) in zip(paths, found, warmed, strict=True):
            m = torch.jit.load(str(path))
            with torch.no_grad():
                for answer in answers:
                    torch.testing.assert_close(torch.tensor(answer), m(X), rtol=1e-5, atol=1e-6)
            assert is_kept and len(kernels) == groups, path.stem
            assert any(kernels), path.stem
    finally:
        tiering.set_mode(before)


def test_the_command_line_does_the_same(store: Path, tmp_path: Path) -> None:
    path = saved(Layers(), tmp_path)
    command = [
        sys.executable,
        "-m",
        "tsrepl",
        "warm",
        str(path),
        "--json",
        "--input",
        "arange(16.0).reshape(4, 4) / 8 - 1",
    ]
    told = []
    for _ in range(2):
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        told.append(json.loads(ended.stdout)["call"])
    first, second = (each["files"] for each in told)
    assert {kind: (each["made"], each["found"]) for kind, each in first.items()} == dict.fromkeys(
        ("plan", "planned", "groups", "calls", "kernel", "code", "graphs"), (1, 0)
    )
    assert all(each["made"] == 0 for each in second.values())
    assert told[0]["kernels"] == told[1]["kernels"] == 1
    _, imported, made, _ = _printed(_LATER, path)
    assert (imported, made) == (False, [])


# ------------------------------------------------------------------ what is said


def _opened(tmp_path: Path) -> Any:
    return torch.jit.load(str(saved(Layers(), tmp_path)))


def _in_hands(tmp_path: Path) -> Any:
    m = _opened(tmp_path)
    assert m.forward.graph is not None
    return m


NOTES: dict[str, tuple[Callable[[Path], Any], bool, str]] = {
    "all is kept": (_opened, False, ""),
    "gradients are recorded": (_opened, True, warming.RECORDED),
    "no archive": (lambda _: torch.jit.script(Layers()), False, warming.IN_NO_ARCHIVE),
    "a graph in somebody's hands": (_in_hands, False, warming.IN_HANDS),
}  # fmt: skip


@pytest.mark.parametrize("what", NOTES)
def test_limits_are_said(what: str, store: Path, tmp_path: Path) -> None:
    make, records, note = NOTES[what]
    with torch.set_grad_enabled(records):
        warmed = engine.warm(make(tmp_path), X)
    assert warmed.notes == ((note,) if note else ())
    assert warmed.kernels > 0 and warmed.library is not None and warmed.library.size > 0
    kinds = {each.kind: each for each in warmed.files}
    assert kinds["kernel"].made == kinds["code"].made > 0
    assert ("plan" in kinds) == (what in ("all is kept", "gradients are recorded"))


def test_what_this_process_has_is_neither_made_nor_found(store: Path, tmp_path: Path) -> None:
    m = _opened(tmp_path)
    with torch.no_grad():
        first, second = engine.warm(m, X), engine.warm(m, X)
    assert (first.groups, first.kernels) == (second.groups, second.kernels) == (1, 1)
    assert second.files == ()
    assert tiering.mode() == second.mode


def test_in_mode_off_nothing_is_compiled(store: Path, tmp_path: Path, without_machine_code: None) -> None:
    warmed = engine.warm(_opened(tmp_path), X)
    assert (warmed.mode, warmed.files, warmed.notes) == ("off", (), (warming.OFF,))


def test_the_mode_comes_back_where_the_call_fails(store: Path, tmp_path: Path) -> None:
    before = tiering.mode()
    with pytest.raises(RuntimeError):
        engine.warm(_opened(tmp_path), torch.ones(3, 5))
    assert tiering.mode() == before


def test_what_is_not_compiled_is_refused() -> None:
    with pytest.raises(ArgumentError, match="only what is compiled") as error:
        engine.warm(Layers(), X)  # type: ignore[arg-type]
    assert "torch.jit.script" in error.value.hints[0]
