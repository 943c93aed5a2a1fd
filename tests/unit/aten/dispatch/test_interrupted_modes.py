"""An interrupt at any event of a call under another grad mode leaves the mode of the thread as it was."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import engine.torch as torch
from engine.aten.dispatch import grad_mode
from engine.aten.dispatch.grad_mode import MODE, no_grad, with_recording
from engine.aten.values.hooks import HOOKS


def _entered(wanted: bool) -> None:
    (grad_mode.enable_grad if wanted else no_grad)().__enter__()


def _backward(wanted: bool) -> None:
    x = torch.ones(2).requires_grad_()
    torch.autograd.grad((x * x).sum(), x, create_graph=wanted)


def _hooks(wanted: bool) -> None:
    try:
        MODE.packing = (lambda x: x, lambda x: x)
        torch.ones(2).requires_grad_().tanh().sum().backward()
    finally:
        MODE.packing = None


WORK: dict[str, Callable[[bool], object]] = {
    "with_recording": lambda wanted: with_recording(wanted, torch.ones, 2),
    "backward": _backward,
    "hooks": _hooks,
}


def _interrupted(work: Callable[[], object], number: int) -> tuple[int, bool]:
    """Do the work with an interrupt at that event; the number of events, and whether it was interrupted."""
    count = 0

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        if event in ("call", "c_return") and "/engine/" in frame.f_code.co_filename:
            count += 1
            if count == number:
                raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        work()
    except KeyboardInterrupt:
        return count, True
    finally:
        sys.setprofile(None)
    return count, False


def _modes() -> tuple[Any, ...]:
    return MODE.enabled, MODE.inference, {*HOOKS.paused}


@pytest.mark.filterwarnings("ignore:Exception ignored in")  # of generators that close
@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize(("name", "before"), [("with_recording", False), *((name, True) for name in WORK)])
def test_an_interrupt_puts_the_mode_back(name: str, wanted: bool, before: bool) -> None:
    def work() -> None:
        WORK[name](wanted)

    work()
    with torch.set_grad_enabled(before):
        modes = _modes()
        count, _ = _interrupted(work, 0)
        assert count > 2
        for number in range(1, count + 1):
            _interrupted(work, number)
            assert _modes() == modes, number


@pytest.mark.parametrize("wanted", [True, False])
def test_a_context_that_was_not_entered_changes_nothing(wanted: bool) -> None:
    with torch.set_grad_enabled(not wanted):
        modes = _modes()
        for number in range(1, 20):
            _, was_interrupted = _interrupted(lambda: _entered(wanted), number)
            if not was_interrupted:
                break
            assert _modes() == modes, number
        assert number > 3
