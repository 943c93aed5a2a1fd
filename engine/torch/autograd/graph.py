"""`torch.autograd.graph`: nodes of the backward graph, and hooks for the tensors that they save (re-exports)."""

from engine.aten.autograd.node import Node as Node
from engine.aten.autograd.saving import save_on_cpu as save_on_cpu
from engine.aten.autograd.saving import saved_tensors_hooks as saved_tensors_hooks
