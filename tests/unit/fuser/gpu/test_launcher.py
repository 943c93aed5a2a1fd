"""Kernels as functions of tensors on a device: layouts, guards, numbers, results, and what is left to the fallback."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.values import libraries
from engine.fuser.gpu import driver, emulated, launcher
from tests.table.device_double import double
from tests.unit.fuser.emulated_driver import EmulatedDriver
from tests.unit.fuser.gpu_kernels import all_of, binding_of, lowered, unit_of
from tests.unit.fuser.kernels_of_groups import tensor

pytestmark = pytest.mark.skipif(not emulated.is_possible(), reason="the C library has no contexts")
FELL_BACK = object()


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with double():
        yield


def on_device(value: Any) -> Any:
    return value.to("cuda") if isinstance(value, torch.Tensor) else value


def bound(text: str, *args: Any) -> tuple[Any, EmulatedDriver]:
    """The function of a kernel for such arguments."""
    driver = EmulatedDriver()
    return launcher.bind("f", [binding_of(text, *args)], lambda *_: FELL_BACK, driver), driver


def layouts(run: Any) -> int:
    """The number of layouts that the function is prepared for."""
    return len(run.__globals__["known"])


def same(text: str, run: Any, *args: Any) -> None:
    found, expected = all_of(run(*map(on_device, args))), all_of(unit_of(text, args).f(*args))
    assert FELL_BACK not in found
    for a, b in zip(found, expected, strict=True):
        assert a.device.type == "cuda"
        assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
        np.testing.assert_allclose(a.cpu().numpy(), b.numpy(), rtol=1e-4, atol=1e-4)


CASES = [
    ("x, y: torch.tanh(x) * y + 1", [tensor(4, 9), tensor(9)]),
    ("x: (torch.softmax(x, -1), x.sum(0))", [tensor(70, 33)]),
    ("x: torch.abs(x).sum()", [tensor(30000)]),
    ("x: x.permute(0, 2, 1) * 2", [tensor(2, 3, 5)]),
    ("x: torch.softmax(x.transpose(0, 1), -1)", [tensor(6, 40)]),
    ("x, y: x * y + y", [tensor(8, 6)[:, ::2], tensor(3, 8).t()]),
]


@pytest.mark.parametrize(("text", "args"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_results_are_those_of_the_program(text: str, args: list[Any]) -> None:
    run, _ = bound(text, *args)
    for _ in range(2):
        same(text, run, *args)


def test_a_layout_is_prepared_once() -> None:
    text = "x: torch.softmax(x, -1)"
    run, driver = bound(text, tensor(5, 40))
    for shape in ((5, 40), (70, 40), (5, 40), (70, 40)):
        same(text, run, tensor(*shape))
    assert (layouts(run), len(driver.launched)) == (2, 4)


def test_code_is_loaded_once() -> None:
    text = "x, y: torch.tanh(x) * y + 1"
    run, driver = bound(text, tensor(4, 9), tensor(9))
    for rows in (1, 3, 80):
        same(text, run, tensor(rows, 9), tensor(9))
    assert driver.loaded == ["group_0"]


def test_numbers_are_given_to_each_call() -> None:
    x = tensor(3, 7)
    run, driver = bound("x, a, n: x * a + n", x, 0.5, 3)
    for a, n in ((0.5, 3), (-2.25, -(1 << 20)), (1e-30, 3)):
        np.testing.assert_allclose(run(on_device(x), a, n).cpu().numpy(), (x * a + n).numpy(), rtol=1e-6)
    assert (len(driver.launched), len(driver.loaded), layouts(run)) == (3, 1, 1)


def test_guards_leave_calls_to_the_fallback() -> None:
    run, driver = bound("x, y: x + y", tensor(4, 3), tensor(4, 3))
    x = on_device(tensor(4, 3))
    assert run(x, x) is not FELL_BACK
    for other in (tensor(3), tensor(1, 3), tensor(3, 4).t(), tensor(4, 3).to(torch.float64), tensor(2, 4, 3)):
        assert run(x, on_device(other)) is FELL_BACK
    assert run(x, 1.0) is FELL_BACK
    assert len(driver.launched) == 1


def test_numbers_of_the_same_value_and_other_types_are_told_apart() -> None:
    run, _ = bound("x, n: x * n", tensor(4), 1)
    x = on_device(tensor(4))
    assert run(x, 1) is not FELL_BACK
    assert run(x, True) is FELL_BACK
    assert run(x, 1.0) is FELL_BACK


def test_arguments_may_be_missing_in_some_kernels() -> None:
    """A bias that is None for one kernel, and a tensor for another."""
    x, b = tensor(4, 6), tensor(6)
    program = torch.jit.CompilationUnit(
        "def f(x, b: Optional[Tensor]):\n    return torch.layer_norm(x, [6], None, b, 1e-5) * 2\n"
    )
    bindings = [lowered(program, [x, each]) for each in (None, b)]
    run = launcher.bind("f", bindings, lambda *_: FELL_BACK, EmulatedDriver())
    for each in (None, b, None):
        found = run(on_device(x), on_device(each))
        np.testing.assert_allclose(found.cpu().numpy(), program.f(x, each).numpy(), rtol=1e-4, atol=1e-5)
    assert run(on_device(x), 3) is FELL_BACK
    assert run(on_device(x), on_device(b).requires_grad_()) is FELL_BACK


def test_what_records_is_left_to_the_fallback() -> None:
    run, _ = bound("x: x * 2", tensor(4))
    x = on_device(tensor(4)).requires_grad_()
    assert run(x) is FELL_BACK
    with torch.no_grad():
        assert run(x) is not FELL_BACK


def test_numbers_of_the_cpu_are_brought_to_the_device() -> None:
    run, _ = bound("x, y: x * y", tensor(3, 4), torch.tensor(2.5))
    found = run(on_device(tensor(3, 4)), torch.tensor(2.5))
    np.testing.assert_allclose(found.cpu().numpy(), tensor(3, 4).numpy() * 2.5)


def test_threads_do_not_share_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that begins while another one launches has arguments of its own."""
    run, driver = bound("x, a: x * a", tensor(5), 1.0)
    x, launch, inner = on_device(tensor(5)), driver.launch, []

    def interrupted(*given: Any) -> None:
        if not inner:
            inner.append(None)
            thread = threading.Thread(target=lambda: inner.append(run(x, 3.0)))
            thread.start()
            thread.join()
        launch(*given)

    monkeypatch.setattr(driver, "launch", interrupted)
    outer = run(x, 2.0)
    for found, a in ((outer, 2.0), (inner[1], 3.0)):
        np.testing.assert_allclose(found.cpu().numpy(), tensor(5).numpy() * a)


def test_calls_fall_back_where_no_driver_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    driver._cupy.cache_clear()
    run = launcher.bind("f", [binding_of("x: x + 1", tensor(2))], lambda *_: FELL_BACK)
    assert run(on_device(tensor(2))) is FELL_BACK


def test_results_are_on_the_device_of_arguments() -> None:
    library = libraries.library("cuda")
    run, _ = bound("x: x + 1", tensor(2))
    assert type(run(on_device(tensor(2))).array) is library.array
