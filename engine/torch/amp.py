"""`torch.amp`: mixed precision.

In: code in a `with` block, losses.  Out: the same; operators run in the dtypes that they are given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from engine.lang import scalars
from engine.lang.errors import OperatorError

F = TypeVar("F", bound=Callable[..., Any])


class autocast:
    """`with autocast("cpu"):` runs operators as they are: float32 stays float32.

    Raises OperatorError for a device that is not there, unless it is disabled.
    """

    torch_path = "torch.amp.autocast_mode.autocast"

    def __init__(
        self, device_type: str = "cpu", dtype: scalars.dtype | None = None, enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:  # fmt: skip
        if enabled and scalars.device(device_type).type != "cpu":
            raise OperatorError(f"there is no {device_type} device", hints=("autocast('cpu') changes nothing here",))
        self.device, self.fast_dtype, self.enabled = device_type, dtype or scalars.bfloat16, enabled

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exception: object) -> None: ...

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]


class GradScaler:
    """Hands losses and steps on: without float16 gradients there is nothing to scale."""

    def __init__(self, device: str = "cpu", init_scale: float = 65536.0, enabled: bool = True, **_: Any) -> None:
        self._enabled = False

    def scale(self, outputs: Any) -> Any:
        return outputs

    def unscale_(self, optimizer: Any) -> None: ...

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | None = None) -> None: ...

    def get_scale(self) -> float:
        return 1.0

    def is_enabled(self) -> bool:
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...
