"""Taps: values from inside a call, and stopping there."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import engine.torch as torch
from engine.lang.errors import ArgumentError
from engine.torch import nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([2.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        doubled = x * self.scale
        return self.shift(doubled)

    def shift(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(Block(), Block())
        self.act = nn.ReLU()
        self.calls = 0

    def forward(self, x: torch.Tensor, n: int = 2) -> tuple[torch.Tensor, int]:
        self.calls += 1
        h = self.layers(x)
        for i in range(n):
            h = self.act(h - i)
        with torch.no_grad():
            h += 1
        return h, n


def loaded() -> Any:
    """The module as it comes out of an archive."""
    file = io.BytesIO()
    torch.jit.script(Net()).save(file)
    return torch.jit.load(io.BytesIO(file.getvalue()))


X = torch.tensor([1.0, -3.0])


def test_results_of_submodules() -> None:
    m = loaded()
    with m.tap("layers.*", "act", "") as taps:
        result = m(X)
    assert list(taps.calls) == ["layers.0", "layers.1", "act", ""]
    assert taps.values["layers.0"].tolist() == [3.0, -5.0]
    assert taps.unreached == []
    assert taps.values["layers.1"].tolist() == [7.0, -9.0]
    assert [value.tolist() for value in taps.calls["act"]] == [[7.0, 0.0], [6.0, 0.0]]
    assert taps.values[""][0].tolist() == result[0].tolist() == [7.0, 1.0]


def test_results_of_other_methods_are_asked_for() -> None:
    m = loaded()
    with m.tap("layers.*()", "layers.1") as taps:
        m(X)
    assert list(taps.calls) == ["layers.0.shift()", "layers.1.shift()", "layers.1"]


def test_values_are_copies_unless_they_are_not_wanted() -> None:
    m = loaded()
    with m.tap("act") as copied, m.tap("act", copy=False) as live:
        m(X, 1)
    assert copied.values["act"].tolist() == [7.0, 0.0]
    assert live.values["act"].tolist() == [8.0, 1.0]


def test_variables_and_lines() -> None:
    m = loaded()
    line = 1 + next(i for i, text in enumerate(Path(__file__).read_text().splitlines()) if "doubled = x" in text)
    with m.tap("layers.1:doub*", ":h", f"test_taps.py:{line}") as taps:
        m(X, 0)
    assert taps.values["layers.1:doubled"].tolist() == [6.0, -10.0]
    assert taps.calls[":h"][0].tolist() == [7.0, -9.0]
    assert taps.calls[f"test_taps.py:{line} doubled"][0].tolist() == [2.0, -6.0]


def test_lines_of_the_archive() -> None:
    m = loaded()
    with m.tap("code/*.py:*") as taps, m.tap("elsewhere.py:*") as nothing:
        m(X)
    assert any(place.endswith(" doubled") for place in taps.values)
    assert not nothing.values


def test_only_while_open_and_only_this_module() -> None:
    m, other = loaded(), loaded()
    with m.tap("act") as taps:
        other(X)
        m(X, 1)
    m(X, 1)
    assert len(taps.calls["act"]) == 1
    assert repr(taps) == "<Taps 'act': 1>"


def test_forked_calls_are_seen() -> None:
    class Forks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.jit.wait(torch.jit.fork(self.act, x))

    m = torch.jit.script(Forks())
    with m.tap("act") as taps:
        m(X)
    assert taps.values["act"].tolist() == [1.0, 0.0]


def test_run_until() -> None:
    m = loaded()
    assert m.run_until("layers.0", X).tolist() == [3.0, -5.0]
    assert m.run_until(":h", X).tolist() == [7.0, -9.0]
    assert m.calls == 2
    assert torch.is_grad_enabled()


def test_run_until_leaves_the_contexts_it_was_in() -> None:
    class Quiet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                return self.act(x)

    m = torch.jit.script(Quiet())
    assert m.run_until("act", X).tolist() == [1.0, 0.0]
    assert torch.is_grad_enabled()


def test_refusals() -> None:
    m = loaded()
    with pytest.raises(ArgumentError, match=r"no submodule matches 'layer.0'.*\n.*did you mean 'layers.0'"):
        m.tap("layer.0")
    with pytest.raises(ArgumentError, match="say where"):
        m.tap()
    with pytest.raises(ArgumentError, match="never came to 'act'"):
        m.run_until("act", X, 0)


def test_a_program_may_mean_something_else_by_the_names() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cut = 3

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.tap(x)

        @torch.jit.export
        def tap(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.cut

    m = torch.jit.script(Own())
    assert (m.cut, m.tap(X).tolist()) == (3, [3.0, -9.0])
    assert callable(m.run_until)
