"""`DataParallel`: where there is one device, the module itself.  In: a module.  Out: one that calls it."""

from __future__ import annotations

from typing import Any

from engine.torch.nn.modules.module import Module


class DataParallel(Module):
    """Calls its module on the whole batch: there is one device.  Its name in a state dict is `module`."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module, self.dim = module, dim

    def forward(self, *inputs, **kwargs):  # type: ignore[no-untyped-def]
        return self.module(*inputs, **kwargs)
