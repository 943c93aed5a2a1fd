"""Completion in cells of Python asks objects of the engine, and in classes of TorchScript the text before them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from IPython.core.completer import IPCompleter, provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

Run = Callable[[str], Any]
NAMES: Final = """import engine.torch as torch
from engine.torch import nn
import engine.torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.parts = nn.Linear(2, 2), nn.ModuleList([nn.ReLU(), nn.Linear(2, 3)])

    def forward(self, x):
        return self.lin(x)

python, net, x, plain = Net(), torch.jit.script(Net()), torch.ones(2), [1]"""
CLASS: Final = """%%torchscript
class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.not_of_it = 1

class Block(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.first: nn.Module = nn.Linear(n, n)
        self.scale = 2.0

    def half(self, x):
        return x / 2

    def forward(self, x):
        if self.scale == 2:
            y = self."""


@pytest.fixture
def sources_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts for which IPython looks into the sources."""
    asked = list[str]()

    def matches(_: Any, *, text: str, **__: Any) -> Iterator[Any]:
        asked.append(text)
        return iter(())

    monkeypatch.setattr(IPCompleter, "_jedi_matches", matches)
    return asked


@pytest.fixture
def complete(shell: InteractiveShell, run: Run, sources_read: list[str]) -> Callable[[str], list[str]]:
    """A function that completes the end of a text."""
    run(NAMES)

    def complete(text: str) -> list[str]:
        with provisionalcompleter():
            return [each.text for each in shell.Completer.completions(text, len(text))]

    return complete


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        ("net.li", {"lin"}, {"list"}),
        ("net.lin.we", {"weight"}, {"lin"}),
        ("print(net.lin.weight.res", {"reshape"}, set[str]()),
        ("y = 1 + python.lin.bi", {"bias"}, set[str]()),
        ("python.parts[1].in_f", {"in_features"}, set[str]()),
        ("python.parts[-1].out_", {"out_features"}, set[str]()),
        ("x.tan", {"tanh", "tan"}, set[str]()),
        ("torch.rel", {"relu"}, {"relu6"}),
        ("torch.n", {"nn", "no_grad", "norm"}, {"new_ones"}),
        ("torch.", {"float32", "Tensor", "abs"}, {"capitalize", "names", "annotations", "compiled"}),
        ("F.", {"relu", "cross_entropy", "interpolate"}, {"Any", "Callable", "annotations", "call", "reshape"}),
        ("torch.nn.functional.re", {"relu", "relu6"}, {"reshape", "remainder"}),
        ("torch.linalg.ei", {"eigh"}, set[str]()),
        ("nn.Line", {"Linear"}, set[str]()),
        ("nn.Linear.for", {"forward"}, set[str]()),
    ],
)  # fmt: skip
def test_objects_of_the_engine_are_asked(
    complete: Callable[[str], list[str]], sources_read: list[str], text: str, wanted: set[str], unwanted: set[str]
) -> None:
    found = {*complete(text)}
    assert wanted <= found and not unwanted & found
    assert not any(name.startswith("_") for name in found) and not sources_read


def test_names_after_self_are_those_of_the_class_that_is_written(complete: Callable[[str], list[str]]) -> None:
    assert sorted(complete(CLASS)) == ["first", "forward", "half", "scale"]
    assert complete(f"{CLASS}sc") == ["scale"]


@pytest.mark.parametrize("text", ["plain.app", "'x'.jo", "nothing.x", "x.nothing.y", "python.parts[7].x", "1."])
def test_everything_else_is_left_to_others(
    complete: Callable[[str], list[str]], sources_read: list[str], text: str
) -> None:
    complete(text)
    assert sources_read == [text]
