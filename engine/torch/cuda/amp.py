"""`torch.cuda.amp`: mixed precision under its older names; see `engine.torch.amp`."""

from __future__ import annotations

from typing import Any

from engine.lang import scalars
from engine.torch import amp


class autocast(amp.autocast):
    """`torch.amp.autocast("cuda")`."""

    torch_path = "torch.cuda.amp.autocast_mode.autocast"

    def __init__(
        self, enabled: bool = True, dtype: scalars.dtype = scalars.float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler("cuda")`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("cuda", *args, **kwargs)
