"""The views of replies that a reader can take hold of.

In: a reply.  Out: a widget, for the types of replies that have a row in `WIDGETS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tsrepl.session.plan_replies import CostReply, GuardsReply, ProfileReply
from tsrepl.session.replies import (
    DebugReply,
    GpuKernelsReply,
    GraphReply,
    KernelsReply,
    ModuleReply,
    PipelineReply,
    TraceReply,
)
from tsrepl.widgets.costs import CostView
from tsrepl.widgets.debug import DebuggerView
from tsrepl.widgets.graph import GraphView
from tsrepl.widgets.kernels import KernelView
from tsrepl.widgets.modules import ModuleTree
from tsrepl.widgets.passes import PassExplorer
from tsrepl.widgets.profile import ProfileView
from tsrepl.widgets.trace import TracePlayer
from tsrepl.widgets.view import View

WIDGETS: Final[dict[type[Any], Callable[[Any], View]]] = {
    GraphReply: GraphView,
    PipelineReply: PassExplorer,
    ModuleReply: ModuleTree,
    TraceReply: TracePlayer,
    CostReply: CostView,
    ProfileReply: ProfileView,
    GuardsReply: ProfileView,
    KernelsReply: KernelView,
    GpuKernelsReply: KernelView,
    DebugReply: DebuggerView,
}
