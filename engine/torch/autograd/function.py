"""`torch.autograd.function`, by the names that scripts import from it."""

from engine.aten.autograd import Function as Function
from engine.aten.autograd import once_differentiable as once_differentiable
from engine.aten.autograd.function import FunctionContext as FunctionCtx  # noqa: F401
