"""The `torch` namespace for PyTorch scripts: `import engine.torch as torch` (or `import engine as torch`).

In: names as PyTorch spells them.  Out: the engine's functions, classes and modules; see `names`.  What loading an
archive, a first call and its plan need is imported here, and not by the first call, for which somebody may wait; so is
the library of operators mapped, as far as it is there.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from engine.torch import names
from engine.torch.version import __version__ as __version__

_NAMESPACE: Final = ("creation", "functions", "python_functions", "tensor_methods", "wrappers")
_COMMON: Final = (
    "activations", "comparison", "control", "conversion", "creation", "layout", "lists", "matmul", "normalization",
    "pointwise", "reductions", "scalars", "shape", "strings",
)  # fmt: skip
"""Families of operators that many programs use."""
AT_ONCE: Final = (
    "engine.torch.jit", "engine.torch.serialization",
    *(f"engine.torch.namespace.{part}" for part in _NAMESPACE),
    "engine.lang.plain_blocks", "engine.frontend.emit.body", "engine.frontend.lowering.lower",
    "engine.executor.plans.making", "engine.executor.plans.cpu_kernels", "engine.fuser.library.serving",
    "engine.fuser.operators.slots", "engine.fuser.stubs.method_code", "engine.fuser.backend.scratch",
    "engine.fuser.backend.threads",
)  # fmt: skip
"""Modules that come with the namespace, and what they need."""


def __getattr__(name: str) -> Any:
    with import_module("engine.lang.interpreter_settings").collecting_rarely():
        value = names.find(name, __name__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *names.known()})


def _load_at_once() -> None:
    """Import these modules, and the passes that run when a program is compiled or planned."""
    with import_module("engine.lang.interpreter_settings").importing():
        for name in AT_ONCE:
            import_module(name)
        import_module("engine.aten.dispatch.table").read_families(_COMMON)
        for name, row in import_module("engine.passes.pipeline").PASSES.items():
            if {"compile", "plans"} & {*row.stages}:
                import_module(f"engine.passes.{name}")
    import_module("engine.serialize.code.kept_graphs").compiler_state()
    import_module("engine.fuser.library.serving").take_parts_that_are_there()


_load_at_once()
