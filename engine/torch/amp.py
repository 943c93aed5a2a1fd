"""`torch.amp`: mixed precision.

In: code in a `with` block, losses.  Out: what the block computes, matrix products in a smaller dtype; losses as they
are.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar

from engine.aten.autocast import STATE, casting, small_dtype
from engine.lang import scalars

F = TypeVar("F", bound=Callable[..., Any])
_FAST: Final = (scalars.bfloat16, scalars.float16)


class autocast:
    """`with autocast("cpu"):` runs matrix products and convolutions in bfloat16, and what needs precision in float32.

    `dtype` may be float16 instead.  With another one, or for a device that is not there, it warns and changes nothing.
    """

    torch_path = "torch.amp.autocast_mode.autocast"

    def __init__(
        self, device_type: str, dtype: scalars.dtype | None = None, enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:  # fmt: skip
        self.device = scalars.device(device_type).type
        self.fast_dtype = scalars.bfloat16 if dtype is None else dtype
        self._enabled, self._cache_enabled = enabled and self._is_possible(), cache_enabled is not False
        self._entered: list[AbstractContextManager[None]] = []

    def _is_possible(self) -> bool:
        if self.device != "cpu":
            warnings.warn(f"There is no {self.device} device: autocast is disabled.", stacklevel=3)
            return False
        if self.fast_dtype in _FAST:
            return True
        supported = " and ".join(map(str, _FAST))
        warnings.warn(f"autocast knows {supported}, not {self.fast_dtype}: it is disabled.", stacklevel=3)
        return False

    def __enter__(self) -> autocast:
        fast = self.fast_dtype if self._enabled else None if self.device == "cpu" else STATE.fast
        self._entered.append(casting(fast, self._cache_enabled))
        self._entered[-1].__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._entered.pop().__exit__(*exception)

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Are products of tensors on that device cast now?"""
    return device_type == "cpu" and STATE.fast is not None


def is_autocast_cpu_enabled() -> bool:
    return STATE.fast is not None


get_autocast_dtype = small_dtype


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
