"""The backward pass and the recording switch, as operators of programs.

In: tensors, gradients.  Out: gradients, or nothing where they are added to `.grad`.
"""

from __future__ import annotations

from typing import Any

from engine.aten.autograd import engine
from engine.aten.dispatch.grad_mode import MODE, enable
from engine.aten.dispatch.table import op
from engine.aten.values.tensor import Tensor


def backward(tensors: Any, gradients: Any = None, retain_graph: bool | None = None, create_graph: bool = False) -> None:
    engine.backward(tensors, gradients, retain_graph, create_graph)


def grad(
    outputs: list[Tensor], inputs: list[Tensor], grad_outputs: list[Tensor | None] | None, retain_graph: bool | None,
    create_graph: bool, allow_unused: bool,
) -> list[Tensor | None]:  # fmt: skip
    return list(engine.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused))


def set_grad_enabled(enabled: bool) -> None:
    enable(enabled)


op("aten::is_grad_enabled() -> bool", python=lambda: MODE.enabled, side_effects=True)
op("aten::set_grad_enabled(bool val) -> ()", python=set_grad_enabled, side_effects=True)
op("aten::backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False) -> ()",
   python=backward, side_effects=True)  # fmt: skip
op("aten::backward.TensorList(Tensor[] tensors, Tensor?[]? grad_tensors=None, bool? retain_graph=None, "
   "bool create_graph=False) -> ()", python=backward, side_effects=True)  # fmt: skip
op("aten::grad(Tensor[] outputs, Tensor[] inputs, Tensor?[]? grad_outputs=None, bool? retain_graph=None, "
   "bool create_graph=False, bool allow_unused=False) -> Tensor?[]", python=grad, side_effects=True)  # fmt: skip
op("aten::retain_grad(Tensor(a!) self) -> ()", python=lambda self: self.retain_grad(), variants="method")
op("aten::retains_grad(Tensor self) -> bool", python=lambda self: self.retains_grad)
op("aten::output_nr(Tensor self) -> int", python=lambda self: self.output_nr)
op("aten::_version(Tensor self) -> int", python=lambda self: self._version)
