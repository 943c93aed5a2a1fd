"""Kernels call the strips of tiles that the library of operators has, and do without where it has none."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch
from engine.fuser.backend import code, machine, symbols
from engine.fuser.backend.symbols import LIBRARY
from engine.fuser.groups import gemm
from engine.fuser.groups.from_graph import lower
from engine.fuser.stubs import stub
from engine.fuser.stubs.binding import Binding
from engine.ir.parser import parse_ir

PRODUCT = """
graph(%x : Tensor, %y : Tensor):
  %z : Tensor = aten::mm(%x, %y)
  %w : Tensor = aten::relu(%z)
  return (%w)
"""


@pytest.fixture(autouse=True)
def _served(library: None) -> None:
    """The library is there."""


@pytest.fixture
def without_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    find, ahead = LIBRARY.find, {each.name for each in gemm.ahead()}
    monkeypatch.setattr(LIBRARY, "find", lambda symbol: None if symbol in ahead else find(symbol))


def product() -> tuple[Binding, tuple[Any, Any]]:
    args = torch.randn(96, 80), torch.randn(80, 112)
    return lower(parse_ir(PRODUCT), args), args


def tiles(text: str, word: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(word) and "@strip_of_tile_" in line.replace('"', "")]


def test_the_library_has_what_products_call() -> None:
    assert [each.name for each in gemm.ahead() if LIBRARY.find(each.name) is None] == []
    binding, _ = product()
    text = str(stub.module(binding))
    assert tiles(text, "declare") and not tiles(text, "define")


def test_without_it_they_are_part_of_the_kernel(without_tiles: None) -> None:
    binding, _ = product()
    text = str(stub.module(binding))
    assert tiles(text, "define") and not tiles(text, "declare")


def test_code_that_calls_what_is_gone_is_compiled_anew(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    binding, args = product()
    wanted = torch.relu(args[0].mm(args[1]))
    run = stub.bind("f", [binding], lambda *given: None)
    torch.testing.assert_close(run(*args), wanted)
    key = binding.stub[0].key
    assert machine.kernel_cache.load(key) is not None
    code._LOADED.pop(key)
    request.getfixturevalue("without_tiles")
    assert not any(symbols.address_of(each.name) for each in gemm.ahead())
    assert code.known(key) is None
    again, _ = product()
    torch.testing.assert_close(stub.bind("f", [again], lambda *given: None)(*args), wanted)
    code.forget(key)
