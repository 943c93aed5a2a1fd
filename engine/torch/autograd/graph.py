"""`torch.autograd.graph`: nodes, and what they keep.

In: hooks.  Out: nodes that keep what the hooks make of tensors.
"""

from engine.aten.autograd.node import Node as Node
from engine.aten.autograd.saving import save_on_cpu as save_on_cpu
from engine.aten.autograd.saving import saved_tensors_hooks as saved_tensors_hooks
