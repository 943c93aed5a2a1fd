"""`torch.amp.autocast`: matrix products in a smaller dtype.

In: code in a `with` block.  Out: the results of the block, with matrix products in a smaller dtype.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar

from engine.aten.dispatch.autocast import STATE, casting, small_dtype
from engine.aten.values import libraries
from engine.lang import scalars

F = TypeVar("F", bound=Callable[..., Any])
_FAST: Final = (scalars.bfloat16, scalars.float16)


class autocast:
    """`with autocast("cpu"):` runs matrix products in bfloat16, and precision-sensitive operators in float32.

    `dtype` may be float16 instead.  With another dtype, or for a missing device, it warns and has no effect.
    """

    torch_path = "torch.amp.autocast_mode.autocast"

    def __init__(
        self, device_type: str, dtype: scalars.dtype | None = None, enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:  # fmt: skip
        self.device = scalars.device(device_type).type
        self.fast_dtype = small_dtype(self.device) if dtype is None else dtype
        self._enabled, self._cache_enabled = enabled and self._is_possible(), cache_enabled is not False
        self._entered: list[AbstractContextManager[None]] = []

    def _is_possible(self) -> bool:
        if self.device != "cpu" and not libraries.is_there(self.device):
            warnings.warn(f"There is no {self.device} device: autocast is disabled.", stacklevel=3)
            return False
        if self.fast_dtype in _FAST:
            return True
        supported = " and ".join(map(str, _FAST))
        warnings.warn(f"autocast knows {supported}, not {self.fast_dtype}: it is disabled.", stacklevel=3)
        return False

    def __enter__(self) -> autocast:
        is_here = self._enabled or self.device == STATE.place
        fast = self.fast_dtype if self._enabled else None if is_here else STATE.fast
        self._entered.append(casting(fast, self._cache_enabled, self.device if is_here else STATE.place))
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
    """True if autocast is active for tensors on that device."""
    return STATE.fast is not None and device_type == STATE.place


def is_autocast_cpu_enabled() -> bool:
    return is_autocast_enabled("cpu")


get_autocast_dtype = small_dtype
