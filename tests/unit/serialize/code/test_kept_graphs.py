"""Graphs of archives on disk: a second opening compiles nothing, and what differs is compiled anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import engine.torch as torch
from engine.fuser.backend import kernel_cache, tiering
from engine.ir.rewrites import watching
from engine.ir.unit import ClassType, Function
from engine.serialize.archive import load_archive
from engine.serialize.code import kept_graphs
from engine.serialize.code.kept_graphs import KeptGraphs


class Inner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2, 2))

    def forward(self, x: torch.Tensor, times: int) -> torch.Tensor:
        for i in range(times):
            x = torch.nn.functional.relu(x @ self.weight) + i
        return x


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x, 3) * 2 ** len(x.size()) * 2


class Watched:
    """The names of functions that were restored, and of those that were not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.restored: list[str] = []
        self.compiled: list[str] = []
        restore = KeptGraphs.restore

        def noted(graphs: KeptGraphs, function: Any, *args: Any) -> bool:
            found = restore(graphs, function, *args)
            (self.restored if found else self.compiled).append(function.name)
            return found

        monkeypatch.setattr(KeptGraphs, "restore", noted)


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path / "kernels"))
    return Watched(monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    torch.jit.script(Model()).save(tmp_path / "model.pt")
    return tmp_path / "model.pt"


def opened(path: Path) -> Any:
    module = torch.jit.load(path)
    assert module(torch.ones(1, 2)).tolist() == [[96.0, 96.0]]
    tiering.wait()
    return module


def test_a_second_opening_compiles_nothing(watched: Watched, path: Path) -> None:
    first = opened(path)
    assert sorted(watched.compiled) == ["forward", "forward", "relu"]
    assert watched.restored == []
    second = opened(path)
    assert sorted(watched.restored) == ["forward", "forward", "relu"]
    assert str(second.inlined_graph) == str(first.inlined_graph)
    assert second.code == first.code


def test_graphs_of_functions_that_are_compiled_one_after_the_other_are_written_once(
    watched: Watched, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_graphs, "QUIET", 0.5)  # longer than it takes to compile one of them
    written = list[str]()
    store = kernel_cache.store
    monkeypatch.setattr(kernel_cache, "store", lambda key, data: (written.append(key), store(key, data)))
    opened(path)
    assert len(watched.compiled) > 1
    assert len([key for key in written if kernel_cache.kind_of(key) == "graphs"]) == 1


def test_other_code_has_other_graphs(watched: Watched, path: Path, tmp_path: Path) -> None:
    opened(path)
    changed = tmp_path / "changed.pt"

    class Other(Model):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x, 3) * 5 + self.inner(x, 3) * 3

    torch.jit.script(Other()).save(changed)
    watched.restored.clear()
    opened(changed)
    assert watched.restored == []


def test_cautions_come_back(watched: Watched, path: Path) -> None:
    first, second = (opened(path) and _forward(path).cautions for _ in range(2))
    assert [str(each).split(":")[0] for each in first] == ["int ** int is a float"]
    assert [str(each) for each in second] == [str(each) for each in first]
    assert watched.restored


def _forward(path: Path) -> Function:
    type = load_archive(path).type
    assert isinstance(type, ClassType)
    function = type.methods["forward"]
    assert isinstance(function, Function)
    function.ensure_defined()
    return function


def test_damaged_files_are_ignored(watched: Watched, path: Path, tmp_path: Path) -> None:
    opened(path)
    for file in (each for each in (tmp_path / "kernels").iterdir() if each.is_file()):
        file.write_bytes(file.read_bytes()[:-1])
    opened(path)
    assert watched.restored == []


def test_without_a_directory_everything_is_compiled(
    watched: Watched, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", "0")
    opened(path)
    opened(path)
    assert watched.restored == []
    assert kernel_cache.directory() is None


def test_nothing_is_restored_for_who_watches_the_compiler(watched: Watched, path: Path) -> None:
    opened(path)
    with watching(lambda rewrite: True):
        torch.jit.load(path).graph  # noqa: B018
    assert watched.restored == []
