"""`torch._C._jit_pass_complete_shape_analysis` and `_propagate_shapes`: what types tell after PyTorch's analysis."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import engine.torch as torch
from engine.ir.graph import Graph
from engine.ir.parser import parse_ir
from engine.lang.types import TENSOR, TensorType
from engine.passes.pipeline import run_pass

UNIT: Any = torch.jit.CompilationUnit
DTYPES = ["int32", "int64", "float32", "float64", "bool"]


def analysed(text: str, *args: Any, **options: Any) -> Graph:
    """The graph of `def f(...)` behind the pass."""
    graph: Graph = UNIT(f"def f{text}").f.graph._ir
    run_pass("complete_shape_analysis", graph, None, args, False, **options)
    return graph


def of(graph: Graph, kind: str) -> Any:
    return next(node.output.type for node in graph.all_nodes() if node.kind == kind)


@pytest.mark.parametrize("form", ["1", "[1, 2, 3]", "[[1], [2]]", "[[[1, 1]]]"])
@pytest.mark.parametrize("op", ["mul", "add", "sub"])
def test_a_list_tells_the_rank_of_its_tensor_and_no_sizes(form: str, op: str) -> None:
    for one, other in product(DTYPES, DTYPES):
        if op == "sub" and "bool" in (one, other):
            continue
        texts = [f"torch.tensor({form}, dtype=torch.{dtype})" for dtype in (one, other)]
        graph = analysed(f"():\n    a = {texts[0]}\n    b = {texts[1]}\n    return torch.{op}(a, b)\n")
        found = getattr(torch, op)(*(eval(text) for text in texts))
        type = graph.outputs[0].type
        assert isinstance(type, TensorType)
        assert (type.dtype, type.sizes, type.requires_grad) == (found.dtype, (None,) * found.dim(), None), texts


@pytest.mark.parametrize("call", ["prod(0, True)", "sum(0, keepdim=True)", "cumsum(0)", "unsqueeze(0)", "expand(2, 3)"])
def test_sizes_are_all_known_or_none(call: str) -> None:
    text = f"(x):\n    return x.{call}\n"
    x = torch.ones(1, 3)
    known, ranks = analysed(text, x), analysed(text, x, with_sizes=False)
    rank = eval(f"x.{call}").dim()
    assert known.outputs[0].type.sizes == tuple(eval(f"x.{call}").shape)
    assert ranks.outputs[0].type.sizes == (None,) * rank


def test_what_is_made_of_several_tensors_may_need_gradients() -> None:
    graph = analysed("(x):\n    return torch.sub(x, torch.tanh(x))\n", torch.ones(1))
    assert (of(graph, "aten::tanh").requires_grad, of(graph, "aten::sub").requires_grad) == (False, None)


@pytest.mark.parametrize("body", [
    "torch.mul(x, y, out=z)\n    return z", "z.resize_([4])\n    return z", "z.resize_as_(x)\n    return z",
    "w = z.view(-1)\n    w.resize_([3])\n    return z + 0", "z.set_(x)\n    return z.relu_()",
])  # fmt: skip
def test_nothing_is_told_of_memory_that_is_resized(body: str) -> None:
    graph = analysed(f"(x, y, z):\n    {body}\n", *(torch.ones(2, 2) for _ in range(3)))
    assert graph.inputs[2].type == TENSOR
    assert graph.outputs[0].type == TENSOR or "+ 0" in body


RANKED = [
    "repeat(2, 2)", "narrow(0, 0, 1)", "topk(1)[0]", "sort(0)[1]", "unfold(0, 1, 1)", "diag()", "max(0)[0]", "T",
    "tile(2, 2)", "expand_as(torch.ones(2, 3))", "index_select(0, torch.tensor([0]))", "kron(torch.ones(2, 2))",
    "outer(torch.ones(2))", "view_as(torch.ones(3, 1))", "lerp(x, 0.5)", "cross(x, 1)", "pow(2)", "clamp(0, 1)",
    "movedim(0, 1)", "median(0)[0]", "new_zeros(2, 3)", "to(torch.float64)", "matmul(torch.ones(3, 2))",
    "argmax(1)", "norm()", "softmax(1)", "trace()",
]  # fmt: skip


@pytest.mark.parametrize("call", RANKED)
def test_ranks_follow_from_ranks(call: str) -> None:
    x = torch.ones(3) if call.startswith("outer") else torch.ones(1, 3)
    found, type = eval(f"x.{call}"), analysed(f"(x):\n    return x.{call}\n", x, with_sizes=False).outputs[0].type
    assert isinstance(type, TensorType)
    assert (type.dtype, type.sizes) == (found.dtype, (None,) * found.dim())


@pytest.mark.parametrize("call", ["squeeze()", "squeeze(0)", "nonzero()"])
def test_what_sizes_or_elements_decide_is_not_said(call: str) -> None:
    type = analysed(f"(x):\n    return x.{call}\n", torch.ones(1, 3), with_sizes=False).outputs[0].type
    assert isinstance(type, TensorType)
    assert type.sizes is None


def test_what_elements_decide_has_a_rank() -> None:
    graph = parse_ir(
        "graph(%x : Float(), %m : Bool(3)):\n  %1 : Tensor = aten::masked_select(%x, %m)\n"
        "  %2 : Tensor = aten::relu(%1)\n  return (%2)\n"
    )
    run_pass("propagate_input_shapes", graph)
    assert str(graph.outputs[0].type) == "Float(*)"


@pytest.mark.parametrize("shape", [(2, 3), (), (0,)])
@pytest.mark.parametrize("wanted", [(4, 2), (6,), (), (1, 0)])
def test_resize_as_is_resize_to_the_others_size(shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    unit = UNIT("def one(x, y):\n    return x.resize_as_(y)\n\ndef other(x, y):\n    return x.resize_(y.size())\n")
    x, y = (torch.arange(8.0)[: torch.ones(s).numel()].reshape(s) for s in (shape, wanted))
    one, other = unit.one(x.clone(), y), unit.other(x.clone(), y)
    assert (one.shape, one.stride()) == (other.shape, other.stride())
    count = min(x.numel(), y.numel())
    assert torch.equal(one.flatten()[:count], x.flatten()[:count])
    held = x.clone()
    assert held.resize_as_(y) is held
    assert held.shape == y.shape
