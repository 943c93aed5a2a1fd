"""Calls that are made when their results are first needed, in programs: `torch.jit._awaitable` and its type `Await`."""

from __future__ import annotations

import io
from typing import Any, List  # noqa: UP035  (programs write it)

import pytest

import engine.torch as torch
from engine.ir.parser import parse_ir
from engine.lang.errors import CompileError
from engine.torch import Tensor
from engine.torch.jit import _Await as Await


class Pair:
    def __init__(self, first: Tensor, second: Tensor) -> None:
        self.first = first
        self.second = second

    def both(self) -> Tensor:
        return self.first + self.second


def swap(pair: Pair) -> Pair:
    print("swaps")
    return Pair(pair.second, pair.first)


def late(x: Tensor) -> Tensor:
    print("runs")
    return x * 2


def test_the_call_is_made_once_and_when_the_result_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Tensor) -> Tensor:
        waiting = torch.jit._awaitable(late, x)
        print("first")
        result = torch.jit._awaitable_wait(waiting)
        return result + torch.jit._awaitable_wait(waiting)

    script: Any = torch.jit.script(f)
    for _ in range(3):
        assert script(torch.ones(2)).tolist() == [4, 4]
        assert capsys.readouterr().out == "first\nruns\n"
    saved = io.BytesIO()
    torch.jit.save(script, saved)
    saved.seek(0)
    assert torch.jit.load(saved)(torch.ones(2)).tolist() == [4, 4]


def test_an_attribute_of_the_result_waits_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Tensor) -> Tensor:
        waiting: Await[Pair] = torch.jit._awaitable(swap, Pair(x, x + 1))
        return waiting.first + waiting.both()

    script: Any = torch.jit.script(f)
    assert script(torch.zeros(1)).tolist() == [2]
    assert capsys.readouterr().out == "swaps\n"
    waits = [each.inputsAt(0).type().str() for each in script.graph.findAllNodes("prim::awaitable_wait")]
    assert len(waits) == 2
    assert all(each.startswith("Await(__torch__.") for each in waits)


def test_awaits_are_given_taken_and_kept_in_lists() -> None:
    def wait_all(waiting: List[Await[Tensor]]) -> Tensor:  # noqa: UP006
        total = torch.zeros(2)
        for each in waiting:
            assert isinstance(each, torch.jit._Await)
            total += torch.jit._awaitable_wait(each)
        return total

    def give(x: Tensor) -> Await[Tensor]:
        return torch.jit._awaitable(late, x)

    given = torch.jit.script(give)(torch.ones(2))
    assert isinstance(given, torch._C._Await)
    total = torch.jit.script(wait_all)([given, torch.jit._awaitable_nowait(torch.ones(2))])
    assert total.tolist() == [3, 3]


def test_awaits_of_other_types_are_refused() -> None:
    def wrong(x: Tensor) -> int:
        waiting: Await[int] = torch.jit._awaitable(late, x)
        return torch.jit._awaitable_wait(waiting)

    with pytest.raises(CompileError, match=r"annotated with type Await\[int\].*a value of type Await\[Tensor\]"):
        torch.jit.script(wrong)

    def none(x: Tensor) -> Tensor:
        return torch.jit._awaitable_wait(x)  # type: ignore[arg-type]

    with pytest.raises(CompileError, match="Cannot match an await to Tensor"):
        torch.jit.script(none)


def test_their_types_are_read_from_graphs_and_futures_print_in_both_ways() -> None:
    text = """graph(%x : Await(Tensor),
      %y : Future[int],
      %z : Dict(int, Future(int))):
  %1 : Tensor = prim::awaitable_wait(%x)
  return (%1)
"""
    assert str(parse_ir(text)) == text
