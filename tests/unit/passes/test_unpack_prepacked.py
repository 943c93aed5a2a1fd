"""The pass `unpack_prepacked`: what it rewrites, what it leaves, and what plans make of it."""

import engine
import engine.torch as torch
from engine.ir.clone import copy_graph
from engine.ir.rewrites import watching
from engine.passes.pipeline import run_pass
from tests.unit.serialize.mobile.prepacked.recorded import FOLDER, loaded


def kinds(graph):
    return [node.kind for node in graph.all_nodes() if not node.kind.startswith("prim::")]


def test_constant_layers_are_unpacked():
    program, _, _ = loaded(FOLDER / "convolutions.ptl")
    graph = copy_graph(program.forward._function.graph)
    before = len(graph.find_all_nodes("prepacked::conv2d_clamp_run"))
    assert run_pass("unpack_prepacked", graph)
    found = kinds(graph)
    assert found.count("aten::conv2d") == before == 6
    assert not any(kind.startswith("prepacked::") for kind in found)
    assert not run_pass("unpack_prepacked", graph)


def test_layers_whose_objects_are_attributes_stay():
    program, _, _ = loaded(FOLDER / "half.ptl")
    graph = copy_graph(program.forward._function.graph)
    assert run_pass("unpack_prepacked", graph)
    found = kinds(graph)
    assert (found.count("prepacked::conv2d_clamp_run"), found.count("aten::linear")) == (9, 1)


def test_a_refusal_leaves_the_layer():
    program, _, _ = loaded(FOLDER / "linears.ptl")
    graph = copy_graph(program.forward._function.graph)
    with watching(lambda _: False):
        assert not run_pass("unpack_prepacked", graph)
    assert len(graph.find_all_nodes("prepacked::linear_clamp_run")) == 5


def test_a_kernel_holds_a_layer_with_its_limits():
    before = torch.compile_mode()
    torch.set_compile_mode("eager")
    try:
        program, args, _ = loaded(FOLDER / "mobile.ptl")
        for _ in range(3):
            program(*args)
        (plan,) = engine.explain(program).plans
        texts = [group.graph for group in plan.groups]
        limits = [sum(text.count(kind) for kind in ("aten::relu", "aten::hardtanh", "aten::clamp")) for text in texts]
        assert sum(limits) == 7
        assert all("aten::conv2d" in text for text, count in zip(texts, limits, strict=True) if count)
        assert not plan.unfused
    finally:
        torch.set_compile_mode(before)
