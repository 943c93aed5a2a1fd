"""Every operator of tensors without numbers: a result has the form that it has on the CPU, and numbers are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import engine.torch as torch
from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.aten.values import libraries
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError
from tests.peer.layer_samples import LAYERS
from tests.table.optional_arguments import calls
from tests.table.samples import copied

NUMBERS = {"aten::item", "aten::Int.Tensor", "aten::Float.Tensor", "aten::Bool.Tensor", "aten::equal", "aten::allclose"}
"""Operators that give a number of the tensor, and so must refuse."""
PLACES = {
    "prim::device", "prim::is_cpu", "prim::is_meta", "aten::get_device", "aten::_version", "aten::cpu", "aten::cuda",
    "aten::_autocast_to_reduced_precision", "aten::_autocast_to_full_precision",
}  # fmt: skip
"""Operators whose results depend on where a tensor is, or that bring it elsewhere."""


LOOKING = (
    "CTCLoss", "MultiLabelMarginLoss", "EmbeddingBag", "AdaptiveLogSoftmaxWithLoss", "BatchNorm2d(3, momentum=None)",
)  # fmt: skip
"""Layers that go by elements."""


@pytest.fixture(autouse=True)
def _meta_for_this_test() -> Iterator[None]:
    libraries.library("meta")
    yield
    libraries.unload("meta")


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [t for each in value for t in _tensors(each)] if isinstance(value, (list, tuple)) else []


def _on_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().to("meta")
    return type(value)(map(_on_meta, value)) if type(value) in (list, tuple) else value


def _form(value: Any) -> Any:
    if isinstance(value, Tensor):
        return tuple(value.shape), value.dtype
    return [*map(_form, value)] if isinstance(value, (list, tuple)) else type(value).__name__


def _calls(op: Op) -> Iterator[list[Any]]:
    try:
        yield from calls(op, 0)
    except (KeyError, TypeError):
        return


def _differs(op: Op, args: Any) -> str:
    """What is wrong with the operator's result on meta; "" if nothing is, or if there is nothing to compare."""
    given = [_on_meta(value) for value in args]
    try:
        expected = op.run(*[copied(value) for value in args])
    except Exception:  # the sample does not fit
        return ""
    try:
        found = op.run(*given)
    except OperatorError as error:
        return "" if op.data_dependent or op.nondeterministic or "meta tensor" in str(error) else f"refused: {error}"
    if op.qualified_name in NUMBERS:
        return "a number"
    if not all(tensor.is_meta for tensor in _tensors(found)):
        return "not on meta"
    mine, theirs = _form(found), _form(expected)
    return "" if mine == theirs else f"{mine} and not {theirs}"


ENTRIES = [op for op in table.entries() if not op.schema.is_vararg and op.name not in PLACES]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(4))
def test_forms_are_those_of_the_cpu(part: int) -> None:
    wrong = []
    for op in ENTRIES[part::4]:
        for call in _calls(op):
            if _tensors(call) and (what := _differs(op, call)):
                wrong.append(f"{op.qualified_name}{[_form(v) for v in call]}: {what}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layer", [layer for layer in LAYERS if not layer.startswith(LOOKING)])
def test_layers_made_on_meta_give_forms(layer: str) -> None:
    names = {"torch": torch, "nn": torch.nn, "r": torch.randn, "i": lambda *size: torch.randint(0, 4, size)}
    expected = eval(f"nn.{layer}({LAYERS[layer]})", names)
    with torch.device("meta"):
        made = eval(f"nn.{layer}", names)
        found = eval(f"made({LAYERS[layer]})", {**names, "made": made})
    assert all(tensor.is_meta for tensor in (*made.parameters(), *made.buffers(), *_tensors(found)))
    assert _form(found) == _form(expected)
