"""`torch.nn`: modules, parameters, and the functions behind them.

In: sizes and settings.  Out: layers with parameters, which can be called, combined, saved and compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.torch.namespace.missing_names import refuse_unknown_names
from engine.torch.nn import modules as modules
from engine.torch.nn.parameter import Buffer as Buffer
from engine.torch.nn.parameter import Parameter as Parameter
from engine.torch.nn.parameter import UninitializedBuffer as UninitializedBuffer
from engine.torch.nn.parameter import UninitializedParameter as UninitializedParameter

if TYPE_CHECKING:
    from engine.torch.nn import functional as functional
    from engine.torch.nn import init as init
    from engine.torch.nn import utils as utils
    from engine.torch.nn.modules import *  # noqa: F403
    from engine.torch.nn.modules.parallel import DataParallel as DataParallel

__all__ = [
    *modules.__all__, "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter",
    "functional", "init", "modules", "utils",
]  # fmt: skip
_LATE = {
    **{name: f"{__name__}.{name}" for name in ("functional", "init", "utils")},
    **{name: modules.HOMES[name] for name in modules.__all__},
    "DataParallel": "engine.torch.nn.modules.parallel",
}
_REFUSED = {"SyncBatchNorm": "there is one process, in which BatchNorm1d, BatchNorm2d and BatchNorm3d do the same"}
refuse_unknown_names(__name__, _LATE, _REFUSED)
