"""`torch.jit.flags`: PyTorch's internal settings, stored without effect on results.

In: a value.  Out: `set_<name>(value)` stores it, `get_<name>()` returns it.  Setters that return the previous value in
PyTorch do so here.  Settings that the engine has no use for have no effect at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from engine.lang.errors import did_you_mean

_VALUES: Final[dict[str, Any]] = {
    "symbolic_shapes_test_mode": False,
    "fusion_group_inlining": True,
    "texpr_reductions_enabled": False,
    "can_fuse_on_cpu": False,
    "can_fuse_on_gpu": False,
    "te_must_use_llvm_cpu": False,
    "autodiff_subgraph_inlining": True,
    "texpr_fuser_enabled": True,
    "profiling_executor": True,
    "profiling_mode": True,
    "tracer_state_warn": True,
    "texpr_parallel_cpu_enabled": False,
    "te_generate_block_code": False,
    "nvfuser_enabled": False,
}
"""Name of the setting -> its value."""
_GIVE_THE_VALUE_BEFORE: Final = frozenset(
    ("profiling_executor", "profiling_mode", "texpr_reductions_enabled", "te_generate_block_code", "nvfuser_enabled")
)
_EXECUTOR_OPTIMIZE: Final = [True]


def graph_executor_optimize(new_settings: bool | None = None) -> bool:
    """The setting; a given value replaces it."""
    before = _EXECUTOR_OPTIMIZE[0]
    if new_settings is not None:
        _EXECUTOR_OPTIMIZE[0] = new_settings
    return before


def _getter(name: str) -> Callable[[], Any]:
    return lambda: _VALUES[name]


def _setter(name: str) -> Callable[[Any], Any]:
    def keep(value: Any) -> Any:
        before, _VALUES[name] = _VALUES[name], value
        return before if name in _GIVE_THE_VALUE_BEFORE else None

    return keep


_MAKERS: Final[dict[str, Callable[[str], Callable[..., Any]]]] = {"get": _getter, "set": _setter}


def __getattr__(name: str) -> Callable[..., Any]:
    verb, _, setting = name.partition("_")
    if verb in _MAKERS and setting in _VALUES:
        return _MAKERS[verb](setting)
    hint = "" if name.startswith("__") else "".join(f"; {h}" for h in did_you_mean(name, __dir__()))
    raise AttributeError(f"module 'torch.jit.flags' has no attribute '{name}'{hint}")


def __dir__() -> list[str]:
    return ["graph_executor_optimize", *(f"{verb}_{setting}" for verb in _MAKERS for setting in _VALUES)]
