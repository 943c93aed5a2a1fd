"""`torch.jit.flags`: PyTorch's internal settings.

In: a value.  Out: `set_<name>(value)` stores it, `get_<name>()` returns it.  Setters that return the previous value in
PyTorch do so here.  Those of profiling have an effect (see `_PROFILING`), and those written out below have; others are
stored, as the engine has no use for them.  No result depends on any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from engine.executor.plans import differentiation
from engine.executor.plans.switches import may_optimize, set_optimizing
from engine.executor.profiling.settings import PROFILING
from engine.lang.errors import did_you_mean
from engine.torch.compiled.graphs import PRINTING

_VALUES: Final[dict[str, Any]] = {
    "symbolic_shapes_test_mode": False,
    "fusion_group_inlining": True,
    "texpr_reductions_enabled": False,
    "can_fuse_on_cpu": False,
    "can_fuse_on_gpu": False,
    "te_must_use_llvm_cpu": False,
    "texpr_fuser_enabled": True,
    "profiling_executor": False,
    "profiling_mode": False,
    "num_profiled_runs": PROFILING.runs,
    "tracer_state_warn": True,
    "texpr_parallel_cpu_enabled": False,
    "te_generate_block_code": False,
    "nvfuser_enabled": False,
    "can_fuse_on_cpu_legacy": False,
    "texpr_dynamic_shape_enabled": True,
    "autocast_mode": True,
    "llga_enabled": False,
}
"""Name of the setting -> its value."""
_PROFILING: Final = frozenset(
    "profiling_executor profiling_mode num_profiled_runs texpr_fuser_enabled can_fuse_on_cpu".split()
)
"""Those that have an effect.  New plans are made from profiles, after so many profiled runs: by the executor with
groups that guard themselves, in the mode, without that, with bailouts.  The executor's groups are formed, and have
kernels, with the first call where the fuser of tensor expressions may work on the CPU."""
_GIVE_THE_VALUE_BEFORE: Final = frozenset((
    "profiling_executor", "profiling_mode", "num_profiled_runs", "texpr_reductions_enabled", "te_generate_block_code",
    "nvfuser_enabled",
))  # fmt: skip


def graph_executor_optimize(new_settings: bool | None = None) -> bool:
    """True if calls of this thread may run optimized plans; a given value is the setting from now on."""
    return may_optimize() if new_settings is None else set_optimizing(new_settings)


def get_bailout_depth() -> int:
    """The number of plans with guards that are made for one kind of arguments (see `set_fusion_strategy`)."""
    return PROFILING.depth


def set_bailout_depth(depth: int) -> int:
    """Have so many plans with guards made, which are static; the depth before."""
    before, PROFILING.strategy = PROFILING.depth, (("STATIC", max(int(depth), 0)),)
    return before


def set_autodiff_subgraph_inlining(wanted: bool) -> None:
    """Leave small groups of differentiable nodes in the graph around them, and form groups when compiling pays; without
    it, all groups are formed before the first call."""
    differentiation.SETTINGS.keeps_all = not wanted


def get_inline_everything_mode() -> bool:
    """True if the graphs of functions are shown with what they call."""
    return PRINTING.inlined


def set_inline_everything_mode(wanted: bool) -> None:
    """Show the graphs of functions with what they call, or with calls."""
    PRINTING.inlined = wanted
    PRINTING.inlined_graphs.clear()


def _getter(name: str) -> Callable[[], Any]:
    return lambda: _VALUES[name]


def _setter(name: str) -> Callable[[Any], Any]:
    def keep(value: Any) -> Any:
        before, _VALUES[name] = _VALUES[name], value
        if name in _PROFILING:
            _apply_profiling()
        return before if name in _GIVE_THE_VALUE_BEFORE else None

    return keep


def _apply_profiling() -> None:
    PROFILING.is_enabled = bool(_VALUES["profiling_executor"] or _VALUES["profiling_mode"])
    PROFILING.guards = "groups" if _VALUES["profiling_executor"] else "bailouts"
    PROFILING.fuses_at_once = bool(_VALUES["texpr_fuser_enabled"] and _VALUES["can_fuse_on_cpu"])
    PROFILING.runs = max(int(_VALUES["num_profiled_runs"]), 0)


_FUNCTIONS: Final = (
    "graph_executor_optimize", "get_bailout_depth", "set_bailout_depth", "get_inline_everything_mode",
    "set_inline_everything_mode", "set_autodiff_subgraph_inlining",
)  # fmt: skip
_MAKERS: Final[dict[str, Callable[[str], Callable[..., Any]]]] = {"get": _getter, "set": _setter}


def __getattr__(name: str) -> Callable[..., Any]:
    verb, _, setting = name.partition("_")
    if verb in _MAKERS and setting in _VALUES:
        return _MAKERS[verb](setting)
    hint = "" if name.startswith("__") else "".join(f"; {h}" for h in did_you_mean(name, __dir__()))
    raise AttributeError(f"module 'torch.jit.flags' has no attribute '{name}'{hint}")


def __dir__() -> list[str]:
    return [*_FUNCTIONS, *(f"{verb}_{setting}" for verb in _MAKERS for setting in _VALUES)]
