"""Futures and awaitables in annotations, of Python and of programs."""

from __future__ import annotations

from typing import get_args, get_origin

import engine.torch as torch
from engine.torch import Tensor
from engine.torch.jit import Future, _Await

ONES = torch.ones(2)


def doubled(x: Tensor) -> Tensor:
    return 2 * x


def started(x: Tensor) -> Future[Tensor]:
    return torch.jit.fork(doubled, x)


def awaited(x: Tensor, given: Future[Tensor] | None = None) -> Tensor:
    fut: torch.futures.Future[Tensor] = started(x)
    futs: list[torch.jit.Future[Tensor]] = [fut]
    if given is not None:
        futs.append(given)
    return torch.jit.wait(futs[0])


def test_programs_take_annotated_futures() -> None:
    compiled = torch.jit.script(awaited)
    assert compiled(ONES).tolist() == [2.0, 2.0]
    assert str(torch.jit.script(started).schema) == "started(Tensor x) -> Future(Tensor)"


def test_python_runs_the_annotations() -> None:
    assert awaited(ONES).tolist() == [2.0, 2.0]
    assert torch.jit.annotate(list[_Await[Tensor]], []) == []
    for made in (Future[int], _Await[int]):
        assert get_args(made) == (int,)
        assert get_origin(made) in (Future, _Await)
    internal = torch._jit_internal
    assert (internal.is_future(Future[int]), internal.is_future(_Await[int])) == (True, False)
    assert internal.is_await(_Await[int])
