"""Results of differentiable graphs that a program makes by the pass share no memory, and know what profiles say."""

from __future__ import annotations

import itertools

import pytest

import engine.torch as torch

_KINDS = ("aten::t", "aten::neg", "aten::relu")
"""Operators of one tensor; the first one gives a view."""


def grouped(text: str, threshold: int = 1) -> object:
    graph = torch._C.parse_ir(text)
    torch._C._jit_pass_create_autodiff_subgraphs(graph, threshold)
    torch._C._jit_pass_lint(graph)
    return graph


@pytest.mark.parametrize("kinds", [*itertools.product(_KINDS, repeat=3)])
@pytest.mark.parametrize("wanted", ["%1, %2", "%1, %3", "%2, %3", "%1, %2, %3"])
def test_no_two_results_of_a_group_share_memory(kinds: tuple[str, ...], wanted: str) -> None:
    nodes = "".join(f"    %{i + 1} : Tensor = {kind}(%{i})\n" for i, kind in enumerate(kinds))
    types = ", ".join("Tensor" for _ in wanted.split(","))
    graph = grouped(
        f"graph(%0 : Tensor):\n{nodes}    %4 : ({types}) = prim::TupleConstruct({wanted})\n    return (%4)\n"
    )
    for group in graph.findAllNodes("prim::DifferentiableGraph"):  # type: ignore[attr-defined]
        body = group.g("Subgraph")
        results = [*body.outputs()]
        aliases = body.alias_db()
        assert not any(aliases.may_contain_alias(a, b) for a, b in itertools.combinations(results, 2))
    run = torch._C._create_function_from_graph("f", graph)
    x = torch.tensor([[-1.0, 2.0], [3.0, -4.0]], requires_grad=True)
    functions = {"aten::t": torch.t, "aten::neg": torch.neg, "aten::relu": torch.relu}
    values = [x]
    for kind in kinds:
        values.append(functions[kind](values[-1]))
    for found, number in zip(run(x), wanted.replace("%", "").split(","), strict=True):
        assert torch.equal(found, values[int(number)])


def test_results_have_the_gradient_of_their_profile() -> None:
    graph = grouped(
        "graph(%a : Tensor):\n"
        "    %1 : Tensor = prim::profile[profiled_type=Float(requires_grad=0)](%a)\n"
        "    %2 : Tensor = aten::relu(%1)\n"
        "    %3 : Tensor = aten::neg(%2)\n"
        "    %4 : Tensor = prim::Print(%3)\n"
        "    %5 : Tensor = prim::profile[profiled_type=Float(requires_grad=0)](%3)\n"
        "    return (%5)\n",
        threshold=2,
    )
    (group,) = graph.findAllNodes("prim::DifferentiableGraph")  # type: ignore[attr-defined]
    (result,) = group.g("Subgraph").outputs()
    assert result.requiresGrad() is False
    assert [node.kind() for node in group.g("Subgraph").nodes()] == ["prim::profile", "aten::relu", "aten::neg"]
