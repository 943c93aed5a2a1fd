"""`torch.jit.internal`: the few internal functions of PyTorch that scripts call.

In: settings, values, graphs.  Out: the settings, warnings, and errors for missing features.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from engine.lang.errors import NotSupportedError
from engine.torch.jit import flags
from engine.torch.jit.scripting.emit_hooks import disable_emit_hooks as _disable_emit_hooks  # noqa: F401


def symbolic_shapes_test_mode_enabled() -> bool:
    """The value of the flag `symbolic_shapes_test_mode`."""
    enabled: bool = flags.get_symbolic_shapes_test_mode()
    return enabled


def check_empty_containers(obj: Any) -> None:
    """Warn about an empty list, tuple or dict, whose element type defaults to Tensor."""
    if isinstance(obj, (list, tuple, dict)) and not obj:
        warnings.warn(
            "The inner type of a container is lost when calling torch.jit.isinstance in eager mode. "
            "The element type of an empty container is taken for granted: results may differ from the compiled program",
            stacklevel=2,
        )


def fuser_get_fused_kernel_code(graph: Any, inputs: Sequence[Any]) -> str:
    """Raise NotSupportedError: kernels have no source text in another language."""
    raise NotSupportedError("kernels have no source text here", hints=("look at the graph that runs: graph_for(..)",))
