"""A converter's walk: every node, attribute and type of every graph, through PyTorch's names alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import engine.torch as torch

ARCHIVES = sorted((Path(__file__).parents[1] / "serialize/archives").glob("*.pt"))
TENSOR_KINDS = ("t", "ts")


def modules_of(handle: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, handle
    for name, child in handle._get_modules():
        if name:
            yield name, child


class Walk:
    """Collects what a converter needs of a graph: operators with their constants, weights by their paths, shapes."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.types: Counter[str] = Counter()
        self.constants = self.weights = 0

    def graph(self, graph: Any) -> None:
        defined = {value.debugName() for value in graph.inputs()}
        for value in graph.inputs():
            self.value(value)
        self.block(graph, defined)
        for value in graph.outputs():
            assert value.debugName() in defined

    def block(self, block: Any, outer: set[str]) -> None:
        for node in block.nodes():
            self.node(node, outer)

    def node(self, node: Any, defined: set[str]) -> None:
        self.kinds[node.kind()] += 1
        assert node.inputsSize() == len(list(node.inputs())) and node.outputsSize() == len(list(node.outputs()))
        for at, value in enumerate(node.inputs()):
            assert value.debugName() in defined, f"{value.debugName()} is used before it is there"
            assert node.inputsAt(at) == value and any(use.user == node for use in value.uses())
        self.attributes(node)
        for inner in node.blocks():
            names = defined | {value.debugName() for value in inner.inputs()}
            self.block(inner, names)
            for value in inner.outputs():
                assert value.debugName() in names
        for at, value in enumerate(node.outputs()):
            assert node.outputsAt(at) == value and value.node() == node
            self.value(value)
            defined.add(value.debugName())
        assert node.schema() and isinstance(node.sourceRange(), str) and isinstance(node.scopeName(), str)
        assert node.owningBlock() is not None

    def attributes(self, node: Any) -> None:
        for name in node.attributeNames():
            kind = node.kindOf(name)
            found = getattr(node, kind)(name)
            if kind in TENSOR_KINDS:
                for tensor in found if kind == "ts" else [found]:
                    self.weights += 1
                    assert tensor.detach().cpu().numpy().shape == tuple(tensor.shape)
        if node.kind() == "prim::Constant":
            self.constants += 1
            node.output().toIValue()

    def value(self, value: Any) -> None:
        type = value.type()
        self.types[type.kind()] += 1
        assert type.annotation_str and type.str() and isinstance(value.isCompleteTensor(), bool)
        for part in (type, *type.containedTypes()):
            if part.kind() == "TensorType":
                part.sizes(), part.scalarType(), part.dtype(), part.dim(), part.device(), part.strides()


def walk(path: Path) -> Walk:
    """The walk over every method of every module of the archive, as it is written and inlined."""
    found, module = Walk(), torch.jit.load(path)
    for _, handle in modules_of(module._c):
        for name in handle._method_names():
            method = handle._get_method(name)
            for graph in (method.graph, method.inlined_graph):
                found.graph(graph)
                torch._C._jit_pass_lint(graph)  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.stem)
def test_a_converter_reads_every_graph_of_an_archive(path: Path) -> None:
    found = walk(path)
    assert found.kinds and found.types["TensorType"]


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU())

    def forward(self, x: torch.Tensor):  # type: ignore[no-untyped-def]
        y = self.layers(x)
        for i in range(2):
            if i == 1:
                y = y + i
        return y, [y.size(0)]


def test_a_converter_reads_a_frozen_module_with_its_weights(tmp_path: Path) -> None:
    torch.jit.freeze(torch.jit.script(Net().eval())).save(str(tmp_path / "net.pt"))
    found = walk(tmp_path / "net.pt")
    assert found.weights and found.kinds["prim::Loop"] and found.kinds["aten::conv2d"] and found.types["ListType"]
