"""`torch.backends.cuda`: settings for the computations on GPUs.

In: settings.  Out: the settings, stored without effect: products are always computed in their own dtype, and attention
has one implementation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from engine.torch import cuda as _cuda
from engine.torch.namespace.missing_names import refuse_unknown_names

matmul = SimpleNamespace(
    allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False, fp32_precision="none",
)  # fmt: skip
cufft_plan_cache = SimpleNamespace(size=0, max_size=0, clear=lambda: None)
_ALLOWED = SimpleNamespace(flash=True, mem_efficient=True, math=True, cudnn=True)


def is_built() -> bool:
    """True if there is a GPU and the library for it."""
    return _cuda.is_available()


def flash_sdp_enabled() -> bool:
    return bool(_ALLOWED.flash)


def enable_flash_sdp(enabled: bool) -> None:
    _ALLOWED.flash = enabled


def mem_efficient_sdp_enabled() -> bool:
    return bool(_ALLOWED.mem_efficient)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    _ALLOWED.mem_efficient = enabled


def math_sdp_enabled() -> bool:
    return bool(_ALLOWED.math)


def enable_math_sdp(enabled: bool) -> None:
    _ALLOWED.math = enabled


def cudnn_sdp_enabled() -> bool:
    return bool(_ALLOWED.cudnn)


def enable_cudnn_sdp(enabled: bool) -> None:
    _ALLOWED.cudnn = enabled


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[dict[str, Any]]:
    """Store the settings for the duration of the block."""
    before = dict(vars(_ALLOWED))
    vars(_ALLOWED).update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield {}
    finally:
        vars(_ALLOWED).update(before)


refuse_unknown_names(__name__)
