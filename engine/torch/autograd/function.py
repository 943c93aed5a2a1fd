"""`torch.autograd.function`: re-exports under the module path that scripts import."""

from engine.aten.autograd import Function as Function
from engine.aten.autograd import once_differentiable as once_differentiable
from engine.aten.autograd.function import FunctionContext as FunctionCtx  # noqa: F401
