"""How long alias analysis and each pass take on graphs of 10,000 nodes of several shapes, and on ResNet-50.

    python benchmarks/passes.py [PART OF A NAME]

Out: for each graph its size, the seconds to read it and to analyse it, then those of every pass on a copy of its own,
and of every pipeline; at most 1 second for the analysis of any of them, and for any pipeline on ResNet-50, is what we
want.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import Parameter, signature
from typing import Any, Final

from engine.executor.plans.pipelines import (
    AFTER_UNROLLING,
    POST_DERIVATIVE,
    PRE_DERIVATIVE,
    PRE_SPECIALISATION,
    UNROLLING,
)
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.passes.pipeline import PIPELINES, find_pass, names, run_pass, run_pipeline
from engine.torch.compiled.facade import unwrap

_HEAD: Final = """graph(%x : Tensor, %y : Tensor, %n : int, %c : bool):
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %v0 : Tensor = aten::neg(%x)
"""


def writes(count: int) -> str:
    """One value, written to again and again."""
    lines = (f"  %v{i + 1} : Tensor = aten::add_(%v{i}, %x, %one)\n" for i in range(count))
    return f"{_HEAD}{''.join(lines)}  return (%v{count})\n"


def views(count: int) -> str:
    """Views of views, and a value made of each."""
    lines = (f"  %v{i + 1} : Tensor = aten::t(%v{i})\n  %w{i} : Tensor = aten::neg(%v{i})\n" for i in range(count // 2))
    return f"{_HEAD}{''.join(lines)}  return (%v{count // 2})\n"


def lists(count: int) -> str:
    """Many small lists: joined, written to, and read."""
    parts = (
        f"  %a{i} : Tensor = aten::neg(%x)\n  %l{i} : Tensor[] = prim::ListConstruct(%a{i}, %y)\n"
        f"  %m{i} : Tensor[] = aten::append(%l{i}, %x)\n  %e{i} : Tensor = aten::__getitem__(%l{i}, %zero)\n"
        f"  %k{i} : Tensor[] = prim::ListConstruct(%e{i}, %y)\n  %v{i + 1} : Tensor = aten::cat(%k{i}, %zero)\n"
        for i in range(count // 6)
    )
    return f"{_HEAD}{''.join(parts)}  return (%v{count // 6})\n"


def loops(count: int, depth: int = 50) -> str:
    """Nests of loops, so many levels deep."""
    text, value = _HEAD, "v0"
    for nest in range(count // (3 * depth)):
        for level in range(depth):
            pad, name = "  " * (2 * level + 1), f"{nest}_{level}"
            text += f"{pad}%r{name} : Tensor = prim::Loop(%n, %c, %{value})\n"
            text += f"{pad}  block0(%i{name} : int, %b{name} : Tensor):\n"
            text += f"{pad}    %w{name} : Tensor = aten::add_(%b{name}, %x, %one)\n"
            value = f"w{name}"
        for level in reversed(range(depth)):
            pad, name = "  " * (2 * level + 1), f"{nest}_{level}"
            text += f"{pad}    %d{name} : Tensor = aten::mul(%{value}, %y)\n{pad}    -> (%c, %d{name})\n"
            value = f"r{name}"
    return f"{text}  return (%{value})\n"


def branches(count: int, depth: int = 50) -> str:
    """Nests of conditions, each branch with a write."""
    text, value = _HEAD, "v0"
    for nest in range(count // (4 * depth)):
        for level in range(depth):
            pad, name = "  " * (2 * level + 1), f"{nest}_{level}"
            text += f"{pad}%r{name} : Tensor = prim::If(%c)\n{pad}  block0():\n"
            text += f"{pad}    %w{name} : Tensor = aten::add_(%{value}, %x, %one)\n{pad}    -> (%w{name})\n"
            text += f"{pad}  block1():\n{pad}    %t{name} : Tensor = aten::t(%{value})\n"
            value = f"t{name}"
        for level in reversed(range(depth)):
            pad, name = "  " * (2 * level + 1), f"{nest}_{level}"
            text += f"{pad}    %d{name} : Tensor = aten::mul(%{value}, %y)\n{pad}    -> (%d{name})\n"
            value = f"r{name}"
    return f"{text}  return (%{value})\n"


def rotation(count: int) -> str:
    """A loop that carries a third of so many values, each in the next one's place after every round."""
    carried = range(count // 3)
    made = "".join(f"  %a{i} : Tensor = aten::neg(%x)\n" for i in carried)
    results = ", ".join(f"%r{i} : Tensor" for i in carried)
    inner = ", ".join(f"%b{i} : Tensor" for i in carried)
    body = "".join(f"      %w{i} : Tensor = aten::add_(%b{i}, %y, %one)\n" for i in carried)
    used = "".join(f"  %s{i} : Tensor = aten::neg(%r{i})\n" for i in carried)
    given = ", ".join(f"%w{(i + 1) % len(carried)}" for i in carried)
    initial = ", ".join(f"%a{i}" for i in carried)
    loop = (
        f"  {results} = prim::Loop(%n, %c, {initial})\n    block0(%i : int, {inner}):\n{body}      -> (%c, {given})\n"
    )
    return f"{_HEAD}{made}{loop}{used}  return (%s0)\n"


SHAPES: Final = (writes, views, lists, loops, branches, rotation)
"""From a number of nodes to the text of a graph of about that size."""


def resnet50(torch: Any) -> Any:
    """The network of 16 bottlenecks, as a module of the engine."""
    nn = torch.nn

    class Bottleneck(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, before: int, channels: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, channels, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, stride, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(channels)
            self.conv3 = nn.Conv2d(channels, 4 * channels, 1, bias=False)
            self.bn3 = nn.BatchNorm2d(4 * channels)
            self.relu = nn.ReLU(inplace=True)
            self.downsample = None
            if stride != 1 or before != 4 * channels:
                shortcut = nn.Conv2d(before, 4 * channels, 1, stride, bias=False)
                self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(4 * channels))

        def forward(self, x):  # type: ignore[no-untyped-def]  # annotations would be the program's
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.relu(self.bn2(self.conv2(out)))
            out = self.bn3(self.conv3(out))
            identity = x
            if self.downsample is not None:
                identity = self.downsample(x)
            out += identity
            return self.relu(out)

    blocks: list[Any] = []
    before = 64
    for channels, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(count):
            blocks.append(Bottleneck(before, channels, stride if index == 0 else 1))
            before = 4 * channels
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
        *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000),
    )  # fmt: skip


def scripted_resnet50() -> Graph:
    """A copy of the graph of its `forward`, with the calls of its layers."""
    torch: Any = import_module("engine.torch")
    return copy_graph(unwrap(torch.jit.script(resnet50(torch)).forward.graph))


def inlined_resnet50() -> Graph:
    """The same with all calls inlined."""
    graph = scripted_resnet50()
    run_pass("inline", graph)
    return graph


def seconds_of(call: Callable[[], object]) -> float:
    """Of the processor's time, which does not count what other programs take."""
    start = time.process_time()
    call()
    return time.process_time() - start


def takes_only_a_graph(name: str) -> bool:
    """May the pass run without being told more?"""
    _, *others = signature(find_pass(name)).parameters.values()
    optional = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return all(each.default is not each.empty or each.kind in optional for each in others)


def pass_times(graph: Graph, chosen: list[str]) -> Iterator[tuple[str, float]]:
    """Each pass on a copy of the graph."""
    for name in chosen:
        copy = copy_graph(graph)
        yield name, seconds_of(lambda copy=copy, name=name: run_pass(name, copy))  # type: ignore[misc]


def pipelines() -> dict[str, tuple[str, ...]]:
    """Those with a name, the stages of the overview one after the other, and what the executor makes a plan with."""
    stages = (*PIPELINES["required"], *PIPELINES["derivative_preserving"])
    plan = ("inline", *PRE_SPECIALISATION, *PRE_DERIVATIVE, *UNROLLING, *AFTER_UNROLLING, *POST_DERIVATIVE)
    return {
        **PIPELINES,
        "stages without gradients": (*stages, *PIPELINES["post_derivative"]),
        "stages with gradients": (*stages, *PIPELINES["derivative_splitting"]),
        "of a plan": plan,
    }


def main(part: str) -> None:
    graphs: dict[str, Callable[[], Graph]] = {
        shape.__name__: lambda shape=shape: parse_ir(shape(10_000))  # type: ignore[misc]
        for shape in SHAPES
    }
    graphs["resnet50"] = inlined_resnet50
    graphs["resnet50 with calls"] = scripted_resnet50
    for name, make in graphs.items():
        if part not in name:
            continue
        start = time.perf_counter()
        graph = make()
        made = time.perf_counter() - start
        seconds = min(seconds_of(lambda graph=graph: AliasDb(graph)) for _ in range(2))  # type: ignore[misc]
        print(f"{name}: {sum(1 for _ in graph.all_nodes())} nodes, made in {made:.2f} s, analysed in {seconds:.3f} s")
        total = 0.0
        for pass_name, taken in pass_times(graph, [name for name in names() if takes_only_a_graph(name)]):
            total += taken
            print(f"    {pass_name:<40}{taken:8.3f} s", flush=True)
        print(f"    {'all':<40}{total:8.3f} s")
        for title, chosen in pipelines().items():
            copy = copy_graph(graph)
            seconds = seconds_of(lambda copy=copy, chosen=chosen: run_pipeline(chosen, copy))  # type: ignore[misc]
            print(f"    pipeline {title:<31}{seconds:8.3f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
