"""The LSTM cell on its way through the compiler: the seven stages of PyTorch's overview of its JIT, each as text.

Up to the numbering of values, and the places of integer constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np
import pytest

from engine.aten.values.tensor import Tensor, tensor
from engine.executor.bytecode.code import Code
from engine.executor.calls.call import call_function
from engine.executor.plans.making import refine_inputs
from engine.executor.plans.spec import SpecReader
from engine.frontend.compilation.compile import compile_source
from engine.ir import type_verbosity
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.unit import Function
from engine.lang.types import TensorType
from engine.passes.pipeline import PIPELINES, run_pipeline, verifier
from tests.unit.executor.lstm_listing import LSTM_LISTING

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
KNOWN = {name: "Float(*)" if name.startswith("b_") else "Float(*, *)" for name in NAMES}
"""What the arguments of `arguments` let the graph know of its inputs."""
GATES = """\
  %9 : T = aten::t(%w_ih)
  %10 : T = aten::mm(%x, %9)
  %11 : T = aten::t(%w_hh)
  %12 : T = aten::mm(%hx, %11)
"""
SUM = """\
  %13 : T = aten::add(%10, %12, %8)
  %14 : T = aten::add(%13, %b_ih, %8)
  %gates : T = aten::add(%14, %b_hh, %8)
"""
CELL = """\
  %ingate : T = aten::sigmoid(%31)
  %forgetgate : T = aten::sigmoid(%32)
  %cellgate : T = aten::tanh(%33)
  %outgate : T = aten::sigmoid(%34)
  %25 : T = aten::mul(%forgetgate, %cx)
  %26 : T = aten::mul(%ingate, %cellgate)
  %cy : T = aten::add(%25, %26, %8)
  %28 : T = aten::tanh(%cy)
  %hy : T = aten::mul(%outgate, %28)
"""
RESULT = "  %30 : (T, T) = prim::TupleConstruct(%hy, %cy)\n  return (%30)\n"
CHUNKS = "  %31 : T, %32 : T, %33 : T, %34 : T = prim::ConstantChunk[chunks=4, dim=1](%gates)\n"
LIST = "  %16 : T[] = aten::chunk(%gates, %7, %8)\n  %31 : T, %32 : T, %33 : T, %34 : T = prim::ListUnpack(%16)\n"
FOUR, ONE = "  %7 : int = prim::Constant[value=4]()\n", "  %8 : int = prim::Constant[value=1]()\n"


def fused_sum() -> str:
    """The sum of the gates, gate by gate."""
    leaves = ("b_hh", "b_ih", "m1", "m2")
    chunks = [
        f"  {', '.join(f'%{leaf}{i} : T' for i in range(4))} = prim::ConstantChunk[chunks=4, dim=1](%{leaf})\n"
        for leaf in leaves
    ]
    sums = [("p", "m1", "m2"), ("q", "p", "b_ih"), ("3", "q", "b_hh")]
    lines = [
        f"  %{total}{i + (total == '3')} : T = aten::add(%{left}{i}, %{right}{i}, %8)\n"
        for total, left, right in sums
        for i in range(4)
    ]
    return "".join([*chunks, ONE, *lines])


def head(names: Iterable[str], known: Mapping[str, str] | None = None) -> str:
    types = known or {}
    return f"graph({', '.join(f'%{name} : ' + types.get(name, 'Tensor') for name in names)}):\n"


def wanted(text: str, tensor: str = "Float(*, *)") -> str:
    """The text of a stage, in which T stands for the type of most tensors."""
    return normal(re.sub(r"\bT\b", tensor, text))


def normal(text: str) -> str:
    """Number the values in order of appearance, in each graph of the text; ints stand where they are used."""
    parts = []
    text = re.sub(r",\n +(?=%)", ", ", text)
    for part in re.split(r"(?=\bgraph\()", text):
        for name, number in re.findall(r"  (%\w+) : int = prim::Constant\[value=(\d+)\]\(\)\n", part):
            part = re.sub(rf"  {name} : int = .*\n", "", part)
            part = re.sub(rf"{name}\b", number, part)
        numbers: dict[str, int] = {}
        parts.append(re.sub(r"%[\w.]+", lambda found, n=numbers: f"%{n.setdefault(found[0], len(n))}", part))  # type: ignore[misc]
    return "".join(parts)


@pytest.fixture(autouse=True)
def _types_and_shapes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Like the overview, tell neither devices nor who needs gradients."""
    monkeypatch.setattr(type_verbosity, "_CURRENT", type_verbosity._Current())
    type_verbosity.set_type_verbosity(type_verbosity.SHAPES)


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


REQUIRED, PRESERVING = PIPELINES["required"], PIPELINES["derivative_preserving"]
FUSING, SPLITTING = PIPELINES["post_derivative"], PIPELINES["derivative_splitting"]


def test_the_frontend_gives_the_unoptimized_graph() -> None:
    text = head(NAMES) + FOUR + ONE + GATES + SUM + LIST + CELL + RESULT
    assert normal(str(function().graph)) == wanted(text, "Tensor")


def test_specialised_inputs_tell_dtype_and_rank() -> None:
    text = head(NAMES, KNOWN) + FOUR + ONE + GATES + SUM + LIST + CELL + RESULT
    assert normal(str(stage())) == wanted(text, "Tensor")


def test_required_passes_fold_constants_and_find_what_is_known() -> None:
    text = head(NAMES, KNOWN) + ONE + GATES + SUM + CHUNKS + CELL + RESULT
    assert normal(str(stage(*REQUIRED))) == wanted(text)


def test_derivative_preserving_passes_find_nothing_more() -> None:
    text = head(NAMES, KNOWN) + ONE + GATES + SUM + CHUNKS + CELL + RESULT
    assert normal(str(stage(*REQUIRED, *PRESERVING))) == wanted(text)


def test_without_gradients_all_pointwise_operators_become_one_fusion_group() -> None:
    """The chunk has moved in front of the sum, whose operands are brought to one shape before."""
    outside = (
        "  %77 : Tensor[] = prim::ListConstruct(%b_hh, %b_ih, %10, %12)\n"
        "  %78 : Tensor[] = aten::broadcast_tensors(%77)\n"
        "  %79 : Tensor, %80 : Tensor, %81 : Tensor, %82 : Tensor = prim::ListUnpack(%78)\n"
        "  %hy : T, %cy : T = prim::FusionGroup_0(%cx, %82, %81, %80, %79)\n"
    )
    group = head(("cx", "m2", "m1", "b_ih", "b_hh"), {"cx": "T"}) + fused_sum() + CELL + "  return (%hy, %cy)\n"
    text = f"{head(NAMES, KNOWN)}{GATES}{outside}{RESULT}with prim::FusionGroup_0 = {group}"
    assert normal(str(stage(*REQUIRED, *PRESERVING, *FUSING))) == wanted(text)


def test_with_gradients_differentiable_operators_become_one_graph() -> None:
    graph = stage(*REQUIRED, *PRESERVING, *SPLITTING, requires_grad=True)
    inputs = ("cx", "b_hh", "b_ih", "hx", "w_hh", "x", "w_ih")
    call = f"  %hy : T, %cy : T = prim::DifferentiableGraph_0({', '.join(f'%{name}' for name in inputs)})\n"
    inner = head(inputs, KNOWN) + GATES + ONE + SUM + CHUNKS + CELL + "  return (%hy, %cy)\n"
    text = f"{head(NAMES, KNOWN)}{ONE}{call}{RESULT}with prim::DifferentiableGraph_0 = {inner}"
    assert normal(str(graph)) == wanted(text)


def test_the_interpreter_runs_it_as_instructions() -> None:
    assert str(Code(stage(*REQUIRED, *PRESERVING), "LSTMCellS")) == LSTM_LISTING


def test_every_stage_computes_the_same() -> None:
    expected = [found.array for found in call_function(function(), arguments())]
    for passes in ((), REQUIRED, (*REQUIRED, *PRESERVING), (*REQUIRED, *PRESERVING, "move_chunks")):
        made = function()
        made._graph = stage(*passes)
        found = [result.array for result in call_function(made, arguments())]
        assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
