"""The names of the `torch` namespace, each imported at its first use.

In: a name.  Out: an object from the module that `HOMES` gives, a dtype or constant, a submodule, or the operator of
that name (`add` is `aten::add`).
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, Final

from engine.lang import scalars
from engine.torch.namespace.missing_names import UnknownNameError
from engine.torch.namespace.type_names import TYPES

HOMES: Final[dict[str, str]] = {
    "CompilationUnit": "engine.torch.jit", "ScriptFunction": "engine.torch.jit", "ScriptModule": "engine.torch.jit",
    "script": "engine.torch.jit", "load": "engine.torch.serialization", "save": "engine.torch.serialization",
    "Tensor": "engine.aten.values.tensor",
    **dict.fromkeys(TYPES.split(), "engine.torch.compiled.types"),
    **dict.fromkeys("tensor from_numpy".split(), "engine.torch.namespace.creation"),
    "Size": "engine.aten.values.tensor",
    **dict.fromkeys("device dtype layout memory_format qscheme".split(), "engine.lang.scalars"),
    "show_call": "engine.aten.dispatch.show",
    "Budget": "engine.executor.interpreter.budget", "parse_ir": "engine.ir.parser",
    "bisect": "engine.torch.jit.probing.bisection", "debug": "engine.torch.jit.probing.debugging",
    "explain": "engine.torch.jit.probing.explaining", "warm": "engine.torch.jit.probing.warming",
    **dict.fromkeys(("run_pass", "run_pipeline"), "engine.torch.jit.passes"),
    **dict.fromkeys(
        "no_grad enable_grad inference_mode is_grad_enabled is_inference_mode_enabled set_grad_enabled".split(),
        "engine.aten.autograd",
    ),
    **dict.fromkeys(
        "Generator manual_seed seed initial_seed get_rng_state set_rng_state".split(), "engine.torch.random"
    ),
    **dict.fromkeys(
        "is_tensor is_storage typename get_default_dtype set_default_dtype set_default_tensor_type get_default_device "
        "get_num_threads set_num_threads compile_mode set_compile_mode set_default_device use_deterministic_algorithms "
        "are_deterministic_algorithms_enabled compile as_tensor asarray finfo iinfo FloatTensor DoubleTensor "
        "HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor CharTensor ByteTensor BoolTensor".split(),
        "engine.torch.namespace.python_functions",
    ),
    "as_torch": "engine.torch.import_hook",
    "load_weights": "engine.serialize.inspect.weights",
    "set_printoptions": "engine.aten.formatting.printing", "vmap": "engine.torch.func",
    **dict.fromkeys(
        "autocast is_autocast_enabled is_autocast_cpu_enabled get_autocast_dtype GradScaler".split(), "engine.torch.amp"
    ),
    "default_generator": "engine.torch.random",
    **dict.fromkeys("_assert broadcast_shapes unravel_index".split(), "engine.torch.namespace.python_functions"),
    **dict.fromkeys("from_dlpack to_dlpack frombuffer".split(), "engine.aten.values.interchange"),
}  # fmt: skip
"""Name -> module that defines it."""
MODULES: Final[dict[str, str]] = {
    "errors": "engine.lang.errors", "op": "engine.aten.dispatch.table", "jit": "engine.torch.jit",
    "nn": "engine.torch.nn",
    "torch": "engine.torch",
    **{
        name: f"engine.torch.{name}"
        for name in (
            "_C accelerator amp autograd backends cuda distributions fft func library linalg ops optim profiler random "
            "serialization special testing utils version"
        ).split()
    },
}  # fmt: skip
CONSTANTS: Final[dict[str, Any]] = {
    **scalars.QSCHEME_BY_NAME, **scalars.DTYPE_WORDS, **scalars.DTYPE_BY_NAME, **scalars.DTYPE_ALIASES,
    **scalars.MEMORY_FORMAT_BY_NAME, **scalars.LAYOUT_BY_NAME,
    "newaxis": None,
    "inf": math.inf, "nan": math.nan, "pi": math.pi, "e": math.e,
}  # fmt: skip


def find(name: str, module: str = "engine") -> Any:
    """The object of that name.  Raises AttributeError, worded for `module` and with the nearest known name."""
    if name in HOMES:
        import_module("engine.torch.namespace.tensor_methods")
        return getattr(import_module(HOMES[name]), name)
    if name in MODULES:
        return import_module(MODULES[name])
    if name in CONSTANTS:
        return CONSTANTS[name]
    if name.startswith("__"):
        raise UnknownNameError(name, module, tuple)
    import_module("engine.torch.namespace.tensor_methods")
    found = import_module("engine.torch.namespace.functions").find(name)
    if found is None:
        found = import_module("engine.torch.other_modules").find(f"engine.torch.{name}")
    if found is None:
        raise UnknownNameError(name, module, known)
    return found


def known() -> list[str]:
    """All names of the namespace, sorted."""
    functions = import_module("engine.torch.namespace.functions")
    return sorted({*HOMES, *MODULES, *CONSTANTS, *functions.known("torch")})
