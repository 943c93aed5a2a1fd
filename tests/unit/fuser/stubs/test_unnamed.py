"""Kernels that differ in names only are one; those that differ in more are not."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch
from engine.fuser.backend import machine
from engine.fuser.groups.from_graph import lower
from engine.fuser.stubs import stub
from engine.fuser.stubs.binding import Binding
from engine.fuser.stubs.unnamed import unnamed
from engine.ir.parser import parse_ir

CHAIN = """
graph({x} : Tensor, {y} : Tensor):
  {n} : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  {a} : Tensor = aten::{op}({x}, {y})
  {b} : Tensor = aten::mm({a}, {y})
  {c} : Tensor = aten::softmax({b}, {n}, %none)
  return ({c})
"""
NAMES = ("%x", "%y", "%n", "%a", "%b", "%c")
OTHERS = [
    ("%weight.1", "%input.2", "%dim", "%hidden", "%out", "%result"),
    ("%mul", "%add", "%exp", "%tanh", "%status_1", "%group"),  # as functions and what lowering itself makes
    ("%c", "%b", "%a", "%n", "%y", "%x"),
]


def binding(names: tuple[str, ...], op: str = "mul") -> Binding:
    x, y, n, a, b, c = names
    text = CHAIN.format(x=x, y=y, n=n, a=a, b=b, c=c, op=op)
    return lower(parse_ir(text), [torch.randn(20, 20), torch.randn(20, 20)])


@pytest.mark.parametrize("names", OTHERS)
def test_names_make_no_difference(names: tuple[str, ...]) -> None:
    assert repr(unnamed(binding(names))) == repr(unnamed(binding(NAMES)))


def test_what_is_computed_makes_one() -> None:
    assert repr(unnamed(binding(NAMES, "div"))) != repr(unnamed(binding(NAMES)))


def test_it_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = list[str]()
    real = machine.compile_for

    def counted(key: str, text: str) -> bytes:
        compiled.append(key)
        return real(key, text)

    monkeypatch.setattr(machine, "compile_for", counted)
    monkeypatch.setattr(machine.kernel_cache, "load", lambda *args: None)
    args = torch.randn(20, 20), torch.randn(20, 20)
    wanted = torch.softmax((args[0] * args[1]).mm(args[1]), -1)
    held = list[Any]()
    for names in (NAMES, *OTHERS):
        run = stub.bind("f", [binding(names)], lambda *given: None)
        held.append(run)
        torch.testing.assert_close(run(*args), wanted)
    assert len({*compiled}) <= 1
