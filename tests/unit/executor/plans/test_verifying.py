"""What is on disk and does something else than the interpreter is found, removed, made anew, and told."""

from __future__ import annotations

import io
import marshal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.torch as torch
from engine.executor.debugging import comparing
from engine.executor.plans import cpu_kernels, kept_plans
from engine.executor.plans.plan_events import KeptRefused
from engine.fuser.backend import code, kernel_cache, tiering
from engine.fuser.library import parts
from engine.torch import nn
from tests.unit.executor.small_modules import Branches


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x * 2.0) + 1.0


class ScaledMore(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x * 3.0) + 1.0


class Written(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.mul_(2.0)
        return torch.exp(x) + x


class Held(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total += x.sum(0) * 2.0
        return torch.exp(x) * self.total


class Drawn(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print("drawn")
        return torch.sigmoid(x + torch.rand(3, 5)) * 2 + torch.rand_like(x)


class Loops(Branches):
    """A view of what the loop gives."""

    def forward(self, x: torch.Tensor, n: int = 3) -> torch.Tensor:
        return self.rounds(x, n).t()


class Counted(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int, list[torch.Tensor]]:
        return x.half() * 2 + 1, int((x > 0).sum()), [x.double().cumsum(0) / 3, x[:, 1:].exp()]


_GRAPHS: tuple[kernel_cache.Kind, ...] = ("plan", "groups")
ALL: list[type[nn.Module]] = [Scaled, Written, Held, Drawn, Loops, Counted]
POISONED: list[tuple[type[nn.Module], kernel_cache.Kind]] = [
    (Scaled, "kernel"), (Scaled, "code"), *((each, kind) for each in (Scaled, Written, Held) for kind in _GRAPHS),
]  # fmt: skip


@pytest.fixture(params=["eager", "background"], autouse=True)
def _mode(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TSREPL_KERNEL_CACHE", str(tmp_path / "kernels"))
    monkeypatch.setenv("TSREPL_WORKER", "0")
    monkeypatch.setattr(parts, "PARTS", ())  # operators are those of the process
    kept_plans._engine.cache_clear()
    before = tiering.mode()
    tiering.set_mode(request.param)
    yield
    tiering.wait()
    tiering.set_mode(before)


Open = Callable[[type[nn.Module]], Any]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens a module as another process has it, that knows nothing of it."""
    archives: dict[type[nn.Module], bytes] = {}

    def found(of: type[nn.Module]) -> Any:
        if of not in archives:
            file = io.BytesIO()
            torch.jit.save(torch.jit.script(of()), file)
            archives[of] = file.getvalue()
        monkeypatch.setattr(cpu_kernels.COMPILER, "known", {})
        monkeypatch.setattr(code, "_LOADED", {})
        return torch.jit.load(io.BytesIO(archives[of]))

    return found


def given() -> Any:
    """Numbers whose sum has a sign in whatever order they are added."""
    return torch.tensor(np.linspace(-1, 1.25, 15, dtype=np.float32).reshape(3, 5))


def called(m: Any) -> tuple[Any, ...]:
    """All that calls give and write."""
    found = []
    torch.manual_seed(0)
    with torch.no_grad():
        for _ in range(4):
            x = given()
            found.append(comparing.shown((m(x), x, torch.rand(2))))
            tiering.wait()
    return tuple(found)


def wanted(m: Any) -> tuple[Any, ...]:
    """The same in mode "off"."""
    before = tiering.mode()
    tiering.set_mode("off")
    try:
        return called(m)
    finally:
        tiering.set_mode(before)


def difference(one: Any, other: Any) -> str:
    return next(comparing.differences(one, other, ""), "")


def warmed(m: Any) -> dict[kernel_cache.Kind, str]:
    """The keys of what is kept for the calls, by kind."""
    with kernel_cache.counting() as uses, torch.no_grad():
        engine.warm(m, given())
    return {kernel_cache.kind_of(key): key for key in (*uses.made, *uses.found)}


def poison(opened: Open, module: type[nn.Module], kind: kernel_cache.Kind) -> str:
    """The key under which lies now what does something else: the same with another number."""
    mine = warmed(opened(module))
    if kind in _GRAPHS:
        held = kernel_cache.load(mine[kind])
        assert held is not None
        data = marshal.dumps(_with_three(marshal.loads(held)))
        assert data != held
    else:
        data = kernel_cache.load(warmed(opened(ScaledMore))[kind])
    assert data is not None
    kernel_cache.store(mine[kind], data)
    if kind == "plan":  # groups are formed of it
        kernel_cache.discard(mine["groups"])
    return mine[kind]


def _with_three(flat: Any) -> Any:
    """The graph with 3.0 in place of 2.0."""
    if isinstance(flat, (tuple, list)):
        return type(flat)(map(_with_three, flat))
    return 3.0 if flat == 2.0 and type(flat) is float else flat


@pytest.mark.parametrize(("module", "kind"), POISONED)
def test_what_differs_is_removed_and_made_anew(
    module: type[nn.Module], kind: kernel_cache.Kind, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = wanted(opened(module))
    key = poison(opened, module, kind)
    wrong = kernel_cache.load(key)
    assert difference(called(opened(module)), right), "nothing is compared without the variable"

    monkeypatch.setenv("TSREPL_VERIFY", "1")
    m = opened(module)
    with pytest.warns(RuntimeWarning, match="kept on disk gave other results than the interpreter") as told:
        assert difference(called(m), right) == ""
    assert len(told) == 1 and "tsrepl cache clear" in str(told[0].message)
    (event,) = [each for plan in m.forward.plans() for each in plan.events if isinstance(each, KeptRefused)]
    assert event.what == ("a plan" if kind in ("plan", "groups") else "a kernel") and event.difference

    assert kernel_cache.load(key) != wrong
    monkeypatch.delenv("TSREPL_VERIFY")
    warmed(opened(module))
    assert kernel_cache.load(key) not in (None, wrong), "it was made anew"
    again = opened(module)
    assert difference(called(again), right) == ""
    assert again.forward.plans()[-1].origin is not None


@pytest.mark.parametrize("module", ALL)
def test_nothing_is_said_of_what_is_right(
    module: type[nn.Module], opened: Open, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    right = wanted(opened(module))
    warmed(opened(module))
    capfd.readouterr()
    called(opened(module))
    printed = capfd.readouterr()
    monkeypatch.setenv("TSREPL_VERIFY", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = opened(module)
        assert difference(called(m), right) == ""
    assert capfd.readouterr() == printed, "what is run to be compared prints nothing"
    (plan,) = m.forward.plans()
    assert plan.origin is not None and any(group.kernels for group in plan.groups)


@pytest.mark.parametrize("module", ALL)
def test_each_entry_is_compared_once(module: type[nn.Module], opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    warmed(opened(module))
    monkeypatch.setenv("TSREPL_VERIFY", "1")
    made: list[str] = []
    compare = comparing.compared

    def counted(run: Any, code: Any, args: Any) -> Any:
        made.append(code.name)
        return compare(run, code, args)

    monkeypatch.setattr(comparing, "compared", counted)
    m = opened(module)
    called(m)
    assert made, "something came from disk"
    known = len(made)
    called(m)
    assert len(made) == known


def test_what_was_made_here_is_not_compared(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSREPL_VERIFY", "1")
    monkeypatch.setattr(comparing, "compared", None)
    called(opened(Scaled))


# ------------------------------------------------------------------ differences

T = torch.tensor
DIFFERENCES: dict[str, tuple[Any, Any, str]] = {
    "a dtype": (T([1.0]), T([1]), "the result has dtype float32, not int64"),
    "sizes": (T([1.0]), T([[1.0]]), "the result has sizes [1], not [1, 1]"),
    "an element": (T([1.0, 2.0]), T([1.0, 2.5]), "the result differs: 2.0 at [1], not 2.5"),
    "no number": (T([1.0, float("nan")]), T([1.0, 2.0]), "the result differs: nan at [1], not 2.0"),
    "an integer": (T([7, 8]), T([7, 9]), "the result differs: 8 at [1], not 9"),
    "strides": (
        torch.ones(2, 3), torch.ones(3, 2).t(), "the result has strides [12, 4] in bytes, not [4, 8]",
    ),
    "gradients": (T([1.0]), T([1.0]).requires_grad_(), "the result does not require grad"),
    "a part": ((T([1.0]), [T([2.0])]), (T([1.0]), [T([3.0])]), "the result ([1][0]) differs: 2.0 at [0], not 3.0"),
    "parts": ([1, 2], [1], "the result has 2 parts, not 1"),
    "a kind": (1.0, 1, "the result is a float, not a int"),
    "a number": (1, 2, "the result is 1, not 2"),
    "text": ("a", "b", "the result is 'a', not 'b'"),
    "a key": ({"a": 1}, {"b": 1}, "the result ([0][0]) is 'a', not 'b'"),
}  # fmt: skip
ALIKE: list[tuple[Any, Any]] = [
    (T([1.0, float("nan"), float("inf")]), T([1.00001, float("nan"), float("inf")])),
    (T([1e-9, 1.0]), T([0.0, 1.0])),
    (T([1.0]).half(), T([1.001]).half()),
    (torch.ones(2, 1), torch.ones(1, 2).t()),
    (torch.ones(3), torch.ones(3, 2)[:, 0]),
    (T([1.0 + 2j]), T([1.00001 + 2j])),
    ([T([1]), None, "a", {"k": 1.0}], [T([1]), None, "a", {"k": 1.0}]),
]


@pytest.mark.parametrize("what", DIFFERENCES)
def test_differences_are_told(what: str) -> None:
    found, other, text = DIFFERENCES[what]
    assert difference(comparing.shown((found,)), comparing.shown((other,))) == text


@pytest.mark.parametrize("pair", ALIKE)
def test_what_is_near_is_alike(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert difference(comparing.shown((one,)), comparing.shown((other,))) == ""
