"""Graphs of plans on disk: taken where all is the same, made where anything differs, and shown alike."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import engine
import engine.torch as torch
from engine.executor.plans import fusion, kept_plans, making
from engine.executor.plans.executor import executor_of
from engine.fuser.backend import tiering
from engine.torch import nn


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.size(0) > 2:
            x = x * 2.0
        return torch.tanh(x * self.weight) + 1.0


class Whole(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([Part(), Part()])

    def forward(self, x: torch.Tensor, n: int = 1) -> torch.Tensor:
        for part in self.parts:
            x = part(x)
        return torch.relu(x).softmax(-1) * n


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path / "kernels"))
    kept_plans._engine.cache_clear()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, without_machine_code: None) -> list[str]:
    """The names of functions whose graphs are specialised, one for each time."""
    found: list[str] = []
    specialise = making.specialise

    def counted(graph: Any, *args: Any, **options: Any) -> Any:
        found.append("a plan")
        return specialise(graph, *args, **options)

    monkeypatch.setattr(making, "specialise", counted)
    return found


def saved(module: nn.Module) -> bytes:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(module), file)
    return file.getvalue()


def opened(archive: bytes) -> Any:
    """The archive as another process has it, that knows no function of it."""
    return torch.jit.load(io.BytesIO(archive)).eval()


X = torch.tensor([[0.5, -1.0, 2.0, 3.0]] * 3)


def test_another_process_runs_no_pass(made: list[str]) -> None:
    archive = saved(Whole())
    answers, graphs = [], []
    for _ in range(3):
        m = opened(archive)
        answers.append(m(X))
        tiering.wait()
        graphs.append(engine.explain(m.forward).plans[0])
        assert len(made) == 1
    assert all(torch.equal(answers[0], each) for each in answers)
    assert len({str(each.graph) for each in graphs}) == len({each.source for each in graphs}) == 1
    assert [each.origin is not None for each in graphs] == [False, True, True]


def test_passes_are_shown_as_if_they_had_run_here(made: list[str]) -> None:
    archive = saved(Whole())
    shown = []
    for _ in range(2):
        m = opened(archive)
        m(X)
        passes = engine.explain(m.forward).plans[0].passes
        shown.append([(each.title, each.changed, each.nodes, each.changes, str(each.after)) for each in passes])
    assert shown[0] == shown[1] and len(shown[0]) > 10


def test_groups_come_from_disk_with_their_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    archive, before = saved(Whole()), tiering.mode()
    tiering.set_mode("eager")
    try:
        shown = []
        for is_kept in (False, True):
            m = opened(archive)
            if is_kept:
                monkeypatch.setattr(making, "specialise", None)
                monkeypatch.setattr("engine.executor.plans.fusion.form_groups", None)
            _unrecorded(m)
            (plan,) = engine.explain(m.forward).plans
            groups = [(group.name, group.lines, str(group.graph), len(group.kernels)) for group in plan.groups]
            shown.append((str(plan.graph), groups, plan.unfused))
        assert shown[0] == shown[1] and shown[0][1]
    finally:
        tiering.set_mode(before)


def test_kernels_are_there_for_calls_like_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    archive, before = saved(Whole()), tiering.mode()
    try:
        tiering.set_mode("eager")
        _unrecorded(opened(archive))
        tiering.set_mode("background")
        m = opened(archive)
        monkeypatch.setattr(fusion.FusedGroup, "miss", None)
        monkeypatch.setattr(fusion.PlanFusion, "_add_kernel", None)
        _unrecorded(m)
        assert len(executor_of(m.forward._function).cache) == 1, "not even the first call is the interpreter's"
        (plan,) = executor_of(m.forward._function).plans
        assert plan.fusion is not None and all(group.kernels for group in plan.fusion.groups)
        assert tiering.is_idle()
    finally:
        tiering.set_mode(before)


def test_kernels_of_other_calls_leave_room_for_those_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    archive, before = saved(Whole()), tiering.mode()
    monkeypatch.setattr(fusion, "MAX_KERNELS", 1)
    tiering.set_mode("eager")
    try:
        found = []
        for x in (X, X.double().float().t().contiguous().t(), X[:, ::1].flip(0), X):
            m = opened(archive)
            with torch.no_grad():
                m(x)
            (plan,) = executor_of(m.forward._function).plans
            assert plan.fusion is not None
            first = plan.fusion.groups[0]
            found.append((len(first.stored), len(first.done)))
        assert found == [(0, 1), (1, 1), (1, 1), (1, 0)]
    finally:
        tiering.set_mode(before)


def test_errors_say_where_they_came_up(made: list[str]) -> None:
    archive, errors = saved(Whole()), []
    for _ in range(2):
        m = opened(archive)
        m(X)
        with pytest.raises(RuntimeError) as error:
            m(torch.ones(3, 5))
        errors.append(str(error.value))
    assert errors[0] == errors[1] and "x * self.weight" in errors[0]


def _double() -> None:
    torch.set_default_dtype(torch.float64)


CHANGES: dict[str, Callable[[Any, pytest.MonkeyPatch], Any]] = {
    "a dtype": lambda m, patch: m(X.double()),
    "a rank": lambda m, patch: m(X.reshape(3, 1, 4)),
    "what requires grad": lambda m, patch: m(X.clone().requires_grad_()),
    "whether gradients are recorded": lambda m, patch: _unrecorded(m),
    "the engine": lambda m, patch: (
        kept_plans._engine.cache_clear(), patch.setattr(kept_plans.kernel_cache, "state_of_engine", lambda *_: "other"),
        m(X),
    ),
    "the interpreter of Python": lambda m, patch: (patch.setattr("sys.version", "4.0"), m(X)),
    "a graph in somebody's hands": lambda m, patch: (m.forward.graph, m(X)),
    "a part's graph in somebody's hands": lambda m, patch: (getattr(m.parts, "0").forward.graph, m(X)),
    "the dtype of new tensors": lambda m, patch: (_double(), m(X)),
}  # fmt: skip


def _unrecorded(m: Any) -> None:
    with torch.no_grad():
        m(X)


@pytest.mark.parametrize("what", CHANGES)
def test_each_part_decides(what: str, made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    archive = saved(Whole())
    opened(archive)(X)
    opened(archive)(X)
    assert len(made) == 1
    m = opened(archive)
    try:
        CHANGES[what](m, monkeypatch)
    finally:
        monkeypatch.undo()
        torch.set_default_dtype(torch.float32)
        kept_plans._engine.cache_clear()
    assert len(made) == 2


def test_another_program_of_that_name_has_its_own(made: list[str]) -> None:
    class Other(Part):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sin(x * self.weight) + 1.0

    other = Whole()
    other.parts = nn.ModuleList([Other(), Other()])
    first, second = opened(saved(Whole()))(X), opened(saved(other))(X)
    assert len(made) == 2 and not torch.equal(first, second)


def test_what_is_corrupted_is_made_again(made: list[str], tmp_path: Path) -> None:
    archive = saved(Whole())
    opened(archive)(X)
    for path in (tmp_path / "kernels").glob("*.kernel"):
        path.write_bytes(path.read_bytes()[:-1])
    opened(archive)(X)
    assert len(made) == 2
