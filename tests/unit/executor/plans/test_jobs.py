"""Jobs of the worker: what it makes of plain data is what the program would have made, and is found by it."""

from __future__ import annotations

import io
import marshal
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import engine.torch as torch
from engine.executor.calls.call import call_function
from engine.executor.plans import jobs, kept_plans, lowered, making, sent_groups, tiers
from engine.executor.plans.executor import executor_of
from engine.fuser.backend import machine, tiering, worker
from engine.fuser.groups.from_graph import NotFused
from engine.fuser.library import beside
from engine.ir.flat import NAMELESS, flatten
from engine.torch import nn
from tests.unit.executor.small_modules import Branches, Layers, Left, Pointwise


@pytest.fixture
def done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of jobs that were done as by a process with the same store, in mode "background".

    What plain data cannot hold fails here, as it does on the way to a process.
    """
    torch.manual_seed(0)  # the same weights whichever tests ran before
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path / "kernels"))
    kept_plans._engine.cache_clear()
    before = tiering.mode()
    tiering.set_mode("background")
    names: list[str] = []

    def does(*job: Any) -> bool:
        name, *data = marshal.loads(marshal.dumps(job))
        floating = lowered.DEFAULTS.floating
        compiler = lowered.SETTINGS.compiler_for(None)
        assert compiler is not None
        with monkeypatch.context() as patch:
            patch.setattr(worker, "is_wanted", lambda: False)
            patch.setattr(making, "specialise", SPECIALISE)
            patch.setattr(compiler, "known", {})
            jobs.HANDLERS[name](*data)
        lowered.DEFAULTS.floating = floating
        names.append(name)
        return True

    def refuse(*given: Any, **options: Any) -> Any:
        raise AssertionError("the program did it itself")

    monkeypatch.setattr(worker, "is_wanted", tiering.is_beside)
    monkeypatch.setattr(beside, "_STATE", beside._State(has_asked=True))  # for no library, which takes long
    monkeypatch.setattr(tiers, "making_takes", lambda nodes: -1)
    monkeypatch.setattr(tiers, "SMALL", 0)
    monkeypatch.setattr(worker, "does", does)
    monkeypatch.setattr(making, "specialise", refuse)
    yield names
    tiering.wait()
    tiering.set_mode(before)
    jobs._PROGRAMS.clear()


SPECIALISE = making.specialise


class Constants(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + torch.tensor([1.0, 2.0, 3.0, 4.0])).exp() / x.size(0)


MODULES: list[type[nn.Module]] = [Pointwise, Layers, Branches, Constants, Left]


def _opened(module: nn.Module) -> Any:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(module), file)
    return torch.jit.load(io.BytesIO(file.getvalue())).eval()


def _calls(m: Any, x: Any) -> Any:
    with torch.no_grad():
        answer = m(x)
        for _ in range(3):
            for _ in range(3):
                assert torch.allclose(m(x), answer, equal_nan=True)
            tiering.wait()
    return answer


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], ids=str)
@pytest.mark.parametrize("module", MODULES, ids=lambda each: each.__name__)
def test_an_archives_plan_and_kernels_are_made_elsewhere(
    module: type[nn.Module], dtype: torch.dtype, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = module()
    x = (torch.arange(12).reshape(3, 4) - 5).to(dtype)
    with torch.no_grad():
        expected = made(x)
    m = _opened(made)
    assert torch.allclose(_calls(m, x), expected)
    assert done[0] == worker.PLAN
    assert tiering.failures() == []
    (plan,) = executor_of(m.forward._function).plans
    assert plan.history.origin is not None
    assert plan.history.origin.maker == "the worker"
    assert plan.fusion is None or plan.fusion.groups == [] or worker.LOWER in done


def test_the_dtype_of_new_tensors_goes_with_a_job(done: list[str]) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        x = torch.arange(12).reshape(3, 4)
        assert _calls(_opened(Pointwise()), x).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert {*done} >= {worker.PLAN, worker.LOWER}


@pytest.mark.parametrize("grad", [False, True])
def test_groups_of_a_program_that_is_in_no_archive_are_lowered_elsewhere(
    grad: bool, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "specialise", SPECIALISE)
    unit = torch.jit.CompilationUnit("def f(x: Tensor, k: float):\n  return (torch.tanh(x * k) + 1).sum(-1)")
    x = torch.randn(300, 400, requires_grad=grad)
    compiler = lowered.SETTINGS.compiler_for(None)
    assert compiler is not None

    def refuse(*given: Any) -> Any:
        raise AssertionError("the program lowered it itself")

    expected = (torch.tanh(x * 0.5) + 1).sum(-1)
    lower = compiler.lower
    monkeypatch.setattr(compiler, "lower", lambda *given: (refuse if worker.is_wanted() else lower)(*given))
    for _ in range(30):
        for _ in range(100):
            found = unit.f(x, 0.5)
            assert torch.allclose(found, expected)
            if grad:
                found.sum().backward()
        tiering.wait()
        if worker.LOWER in done:
            break
    assert worker.LOWER in done
    assert tiering.failures() == []


@pytest.mark.parametrize("is_there", [False, True])
def test_small_groups_are_formed_here_while_the_worker_starts(
    is_there: bool, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "specialise", SPECIALISE)
    monkeypatch.setattr(tiers, "SMALL", 300)
    monkeypatch.setattr(worker, "is_there", lambda: is_there)
    monkeypatch.setattr(worker, "in_background", tiering.in_background)
    f = torch.jit.CompilationUnit(f"def f(x: Tensor):\n  return (torch.tanh(x) + {7 + is_there}).sum(-1)").f
    x = torch.randn(300, 400)
    for _ in range(1000):
        f(x)
        tiering.wait()
        if worker.LOWER in done:
            break
    assert (worker.PLAN in done) == is_there
    (plan,) = executor_of(f._function).plans
    assert plan.fusion is not None
    assert [len(group.kernels) for group in plan.fusion.groups] == [1]


def test_a_plan_that_is_made_of_something_else_is_left_alone(done: list[str], tmp_path: Path) -> None:
    m = _opened(Pointwise())
    executor = executor_of(m.forward._function)
    with torch.no_grad():
        key = executor.reader.read(m._c if hasattr(m, "_c") else m, torch.ones(2, 2))
    kept = executor.kept(key)
    assert kept is not None
    program = kept.program.sent()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making, "specialise", SPECIALISE)
        for made_of, is_there in ((("another", *kept.made_of[1:]), False), (kept.made_of, True)):
            jobs.HANDLERS[worker.PLAN](
                program, kept.program.key, kept.function.qualname, kept_plans._sent_key(key), made_of,
                lowered.xp.FROM_NUMPY[lowered.DEFAULTS.floating].number,
            )  # fmt: skip
            assert kept.has("plan") == is_there


def test_programs_are_remembered_for_a_while() -> None:
    given = [(str(number), ("archive", 10, (), ())) for number in range(jobs.MAX_PROGRAMS + 2)]
    opened = [jobs._opened(state, *program)[1] for state, program in given]
    assert [*jobs._PROGRAMS] == [state for state, _ in given[2:]]
    assert jobs._opened("3", "archive", 10, (), ())[1] is opened[3]
    jobs._PROGRAMS.clear()


PROGRAM = """
import io, sys
import engine, engine.torch as torch
from engine.executor.plans import making, tiers
from engine.fuser.backend import tiering, worker
from engine.fuser.library import beside
beside._STATE.has_asked = True  # for no library, which takes long
made = []
specialise = making.specialise
making.specialise = lambda *given, **options: made.append(1) or specialise(*given, **options)
tiers.SMALL, tiers.making_takes = 0, lambda nodes: -1
m = torch.jit.load(sys.argv[1]).eval()
x = torch.arange(12.0).reshape(3, 4)
with torch.no_grad():
    answers = []
    for _ in range(3):
        answers += [m(x).sum().item() for _ in range(5)]
        tiering.wait()
print(len({round(each, 4) for each in answers}), made, "llvmlite" in sys.modules, tiering.failures())
print(worker._STATE.connection is not None)
"""


def test_a_program_imports_no_compiler(tmp_path: Path) -> None:
    """From beginning to end, with a real worker; a second program finds everything and asks nobody."""
    torch.jit.save(torch.jit.script(Layers()), tmp_path / "layers.pt")
    environment = {**os.environ, "TSREPL_COMPILE": "background", "TSREPL_KERNEL_CACHE": str(tmp_path / "kernels")}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "layers.pt")]
    for asks in (True, False):
        told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        assert told.stdout.splitlines() == ["1 [] False []", str(asks)]


UNIT = """
import sys
import engine, engine.torch as torch
from engine.executor.plans import making, tiers
from engine.fuser.backend import tiering, worker
from engine.fuser.library import beside
beside._STATE.has_asked = True  # for no library, which takes long
made = []
specialise = making.specialise
making.specialise = lambda *given, **options: made.append(1) or specialise(*given, **options)
tiers.SMALL, tiers.making_takes = 0, lambda nodes: -1
unit = torch.jit.CompilationUnit('''
def layer(x: Tensor, w: Tensor):
    return torch.relu(torch.mm(x, w)).softmax(-1)
def f(x: Tensor, w: Tensor, n: int):
    for _ in range(n):
        x = layer(x, w) + layer(x, w).tanh()
    return x
''')
x, w = torch.ones(4, 4), torch.ones(4, 4)
answers = []
for _ in range(4):
    answers += [unit.f(x, w, 3).sum().item() for _ in range(50)]
    tiering.wait()
print(len({round(each, 4) for each in answers}), made, "llvmlite" in sys.modules, tiering.failures())
print(worker._STATE.connection is not None)
"""


def test_a_program_in_no_archive_is_known_by_what_it_is_made_of(tmp_path: Path) -> None:
    environment = {**os.environ, "TSREPL_COMPILE": "background", "TSREPL_KERNEL_CACHE": str(tmp_path / "kernels")}
    for asks in (True, False):
        told = subprocess.run([sys.executable, "-c", UNIT], env=environment, check=True, capture_output=True, text=True)
        assert told.stdout.splitlines() == ["1 [] False []", str(asks)]


# ------------------------------------------------------------------ what cannot be done is no mistake


def _job(unit: str, args: list[Any]) -> tuple[Any, ...]:
    """The job of a whole text as one group, for such a call."""
    function = torch.jit.CompilationUnit(unit).f._function
    example = args, [call_function(function, args, {})]
    flat = lowered.flat_example(example)
    data = flatten(function.graph, NAMELESS)
    return data, flat, (), lowered.xp.FROM_NUMPY[lowered.DEFAULTS.floating].number


def test_a_refused_kernel_is_kept_as_refused(done: list[str]) -> None:
    """The worker tells of nothing, and whoever asked finds why there is no kernel."""
    job = _job("def f(x: Tensor):\n  return torch.linalg_inv(x)", [torch.eye(3)])
    jobs.HANDLERS[worker.LOWER](*job)
    compiler = lowered.SETTINGS.compiler_for(None)
    assert compiler is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "lower", None)  # it is found, and not tried again
        with pytest.raises(NotFused):
            compiler.lowered(*sent_groups.received(*job[:2]))


def test_text_that_llvm_refuses_is_told_where_it_was_written(done: list[str]) -> None:
    jobs.HANDLERS[worker.COMPILE](machine.code.key_of("nonsense"), "nonsense")
    with pytest.raises(machine.MachineError):
        machine.compile_for(machine.code.key_of("nonsense"), "nonsense")


@pytest.mark.parametrize(
    ("texts", "function"),
    [
        ((), "__torch__.Missing.forward"),
        ((("code/__torch__.py", b"def f(x: Tensor) -> Tensor:\n  return torch.missing(x)\n"),), "__torch__.f"),
        ((("code/__torch__.py", b"def f(x: Tensor) -> Tensor:\n  return (((\n"),), "__torch__.f"),
        ((("code/__torch__.py", b"\xff\xfe"),), "__torch__.f"),
    ],
    ids=["no function", "no such operator", "no code", "no text"],
)
def test_programs_that_cannot_be_compiled_are_left_alone(
    texts: tuple[tuple[str, bytes], ...], function: str, done: list[str]
) -> None:
    floating = lowered.xp.FROM_NUMPY[lowered.DEFAULTS.floating].number
    jobs.HANDLERS[worker.PLAN](
        ("archive", 10, (), texts), function, function, (False, (floating, 2, False)), ("another",), floating
    )  # fmt: skip
