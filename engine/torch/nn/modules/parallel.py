"""`DataParallel` for one device.  In: a module.  Out: a module that calls it.

It is in a file like the other layers, since the path is part of the qualified names of compiled modules.
"""

from __future__ import annotations

from typing import Any

from engine.torch.nn.modules.module import Module


class DataParallel(Module):
    """Calls its module on the whole batch, since there is one device.  State dicts call that module `module`."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module, self.dim = module, dim

    def forward(self, *inputs, **kwargs):  # type: ignore[no-untyped-def]
        return self.module(*inputs, **kwargs)
