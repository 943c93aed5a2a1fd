"""The LSTM cell on its way through the compiler: the stages of PyTorch's overview of its JIT, up to names of values.

That text is of an older PyTorch: what it knows of tensors inside of the graph (`Float(*, *)` everywhere) is left out
here, as later versions, and the passes of this engine, know less.
"""

from __future__ import annotations

import re

import numpy as np

from engine.aten.tensor import Tensor, tensor
from engine.executor.call import call_function
from engine.executor.plan import refine_inputs
from engine.executor.spec import SpecReader
from engine.frontend.compile import compile_source
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.ir.unit import Function
from engine.lang.types import TensorType
from engine.passes.canonicalize import canonicalize
from engine.passes.pipeline import run_pipeline, verifier

SOURCE = """
def LSTMCellS(x, hx, cx, w_ih, w_hh, b_ih, b_hh):
    gates = x.mm(w_ih.t()) + hx.mm(w_hh.t()) + b_ih + b_hh
    ingate, forgetgate, cellgate, outgate = gates.chunk(4, 1)
    ingate = torch.sigmoid(ingate)
    forgetgate = torch.sigmoid(forgetgate)
    cellgate = torch.tanh(cellgate)
    outgate = torch.sigmoid(outgate)
    cy = (forgetgate * cx) + (ingate * cellgate)
    hy = outgate * torch.tanh(cy)
    return hy, cy
"""
NAMES = ("x", "hx", "cx", "w_ih", "w_hh", "b_ih", "b_hh")
GATES = """\
  %9 : Tensor = aten::t(%w_ih)
  %10 : Tensor = aten::mm(%x, %9)
  %11 : Tensor = aten::t(%w_hh)
  %12 : Tensor = aten::mm(%hx, %11)
  %13 : Tensor = aten::add(%10, %12, %8)
  %14 : Tensor = aten::add(%13, %b_ih, %8)
  %gates : Tensor = aten::add(%14, %b_hh, %8)
"""
CELL = """\
  %ingate : Tensor = aten::sigmoid(%31)
  %forgetgate : Tensor = aten::sigmoid(%32)
  %cellgate : Tensor = aten::tanh(%33)
  %outgate : Tensor = aten::sigmoid(%34)
  %25 : Tensor = aten::mul(%forgetgate, %cx)
  %26 : Tensor = aten::mul(%ingate, %cellgate)
  %cy : Tensor = aten::add(%25, %26, %8)
  %28 : Tensor = aten::tanh(%cy)
  %hy : Tensor = aten::mul(%outgate, %28)
"""
RESULT = "  %30 : (Tensor, Tensor) = prim::TupleConstruct(%hy, %cy)\n  return (%30)\n"
CHUNKS = "  %31 : Tensor, %32 : Tensor, %33 : Tensor, %34 : Tensor = prim::ConstantChunk[chunks=4, dim=1](%gates)\n"
LIST = (
    "  %16 : Tensor[] = aten::chunk(%gates, %7, %8)\n"
    "  %31 : Tensor, %32 : Tensor, %33 : Tensor, %34 : Tensor = prim::ListUnpack(%16)\n"
)
FOUR, ONE = "  %7 : int = prim::Constant[value=4]()\n", "  %8 : int = prim::Constant[value=1]()\n"


def head(*names: str) -> str:
    return f"graph({', '.join(f'%{name} : Tensor' for name in names)}):\n"


def plain(text: str) -> str:
    """The text with values numbered anew, and nothing told of tensors."""
    graph = parse_ir(re.sub(r"\b(?:Float|Tensor)\([^)]*\)", "Tensor", text))
    canonicalize(graph, keep_names=False)
    for value in graph.inputs:
        value.set_debug_name("")
    return _without_names(str(graph))


def _without_names(text: str) -> str:
    """Number the values in order of appearance, in each graph of the text; ints stand where they are used."""
    parts = []
    for part in re.split(r"(?=\bgraph\()", text):
        for name, number in re.findall(r"  (%\w+) : int = prim::Constant\[value=(\d+)\]\(\)\n", part):
            part = re.sub(rf"  {name} : int = .*\n", "", part)
            part = re.sub(rf"{name}\b", number, part)
        numbers: dict[str, int] = {}
        parts.append(re.sub(r"%[\w.]+", lambda found, n=numbers: f"%{n.setdefault(found[0], len(n))}", part))  # type: ignore[misc]
    return "".join(parts)


def function() -> Function:
    return compile_source(SOURCE).functions["LSTMCellS"]


def arguments() -> list[Tensor]:
    random = np.random.default_rng(0)
    shapes = [(3, 10), (3, 5), (3, 5), (20, 10), (20, 5), (20,), (20,)]
    return [tensor(random.standard_normal(shape).astype(np.float32).tolist()) for shape in shapes]


def stage(*passes: str, requires_grad: bool = False) -> Graph:
    """The graph made for such arguments, after the passes."""
    graph = copy_graph(function().graph)
    reader = SpecReader(graph.inputs)
    refine_inputs(graph, reader, reader.read(*arguments()))
    for value in graph.inputs if requires_grad else ():
        assert isinstance(value.type, TensorType)
        value.set_type(TensorType(value.type.dtype, value.type.sizes, None, True, value.type.device))
    run_pipeline(passes, graph, verifier)
    return graph


REQUIRED = ("constant_propagation", "canonicalize_graph_fuser_ops", "propagate_shapes_on_graph")
PRESERVING = ("dce", "cse", "constant_pooling", "peephole", "constant_loop_unrolling", "batch_mm")


def test_the_frontend_gives_the_unoptimized_graph() -> None:
    assert plain(str(function().graph)) == plain(head(*NAMES) + FOUR + ONE + GATES + LIST + CELL + RESULT)


def test_specialised_inputs_tell_dtype_and_rank() -> None:
    graph = stage()
    told = [re.sub(", requires_grad.*", ")", str(value.type)) for value in graph.inputs]
    assert told == ["Float(*, *)"] * 5 + ["Float(*)"] * 2
    assert plain(str(graph)) == plain(head(*NAMES) + FOUR + ONE + GATES + LIST + CELL + RESULT)


def test_required_passes_fold_constants_and_find_ranks() -> None:
    graph = stage(*REQUIRED)
    assert plain(str(graph)) == plain(head(*NAMES) + ONE + GATES + CHUNKS + CELL + RESULT)
    ranks = [value.type.sizes for node in graph.nodes() for value in node.outputs if isinstance(value.type, TensorType)]
    assert ranks[:7] == [(None, None)] * 7


def test_derivative_preserving_passes_find_nothing_more() -> None:
    assert str(stage(*REQUIRED, *PRESERVING)) == str(stage(*REQUIRED))


def test_without_gradients_pointwise_operators_become_fusion_groups() -> None:
    """In the overview the chunk has moved in front of the additions, so that one group holds them all."""
    graph = stage(*REQUIRED, *PRESERVING, "create_fusion_groups")
    kinds = [re.sub(r"_\d+$", "", node.kind) for node in graph.nodes()]
    outside = ["prim::Constant", "aten::t", "aten::mm", "aten::t", "aten::mm"]
    group = "prim::FusionGroup"
    assert kinds == [*outside, group, "prim::ConstantChunk", group, "prim::TupleConstruct"]
    cell = [node for node in graph.nodes() if node.kind == group][-1].attr("Subgraph")
    inputs = head("cx", "34", "33", "32", "31")
    assert plain(str(cell)) == plain(inputs + ONE + CELL + "  return (%hy, %cy)\n")


def test_with_gradients_differentiable_operators_become_one_graph() -> None:
    graph = stage(*REQUIRED, *PRESERVING, "create_autodiff_subgraphs", requires_grad=True)
    inputs = ("cx", "b_hh", "b_ih", "hx", "w_hh", "x", "w_ih")
    call = f"  %hy : Tensor, %cy : Tensor = prim::DifferentiableGraph_0({', '.join(f'%{name}' for name in inputs)})\n"
    inner = GATES.replace("  %13", f"{ONE}  %13") + CHUNKS + CELL + "  return (%hy, %cy)\n"
    wanted = f"{head(*NAMES)}{ONE}{call}{RESULT}with prim::DifferentiableGraph_0 = {head(*inputs)}{inner}"
    assert plain(str(graph)) == plain(wanted)


def test_every_stage_computes_the_same() -> None:
    expected = [found.array for found in call_function(function(), arguments())]
    for passes in ((), REQUIRED, (*REQUIRED, *PRESERVING)):
        made = function()
        made._graph = stage(*passes)
        found = [result.array for result in call_function(made, arguments())]
        assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
