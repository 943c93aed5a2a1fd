"""`torch.utils.mobile_optimizer`: programs optimized for phones, and what is left to do in one.

In: a compiled module.  Out: a frozen copy whose layers are prepacked (`passes/insert_prepacked_ops.py`), with their
clamps inside; advice.  The passes are those of `PASSES` whose stage is `mobile`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from typing import Any, Final

from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.unit import Function
from engine.lang.errors import ArgumentError, NotSupportedError
from engine.lang.types import BOOL
from engine.passes.pipeline import run_pass, run_pipeline
from engine.torch.compiled.graphs import inline_with_forks
from engine.torch.jit.scripting.freezing import copied, freeze_module
from engine.torch.jit.scripting.script_module import ScriptModule, wrap


class MobileOptimizerType(Enum):
    """The parts of the optimization, each of which may be left out."""

    CONV_BN_FUSION = 1
    INSERT_FOLD_PREPACK_OPS = 2
    REMOVE_DROPOUT = 3
    FUSE_ADD_RELU = 4
    HOIST_CONV_PACKED_PARAMS = 5
    CONV_1D_TO_2D = 6
    VULKAN_AUTOMATIC_GPU_TRANSFER = 7


class LintCode(Enum):
    """The kinds of advice."""

    BUNDLED_INPUT = 1
    REQUIRES_GRAD = 2
    DROPOUT = 3
    BATCHNORM = 4


_CLEAN_UP: Final = ("constant_propagation", "dce", "cse", "constant_pooling")
_PIPELINE: Final[tuple[tuple[MobileOptimizerType | None, tuple[str, ...]], ...]] = (
    (MobileOptimizerType.CONV_BN_FUSION, ("fold_frozen_conv_bn", "dce")),
    (MobileOptimizerType.CONV_1D_TO_2D, ("conv1d_to_conv2d", "constant_propagation")),
    (MobileOptimizerType.INSERT_FOLD_PREPACK_OPS,
     ("fuse_linear", "insert_prepacked_ops", "fuse_prepacked_clamp", "fold_prepacking_ops")),
    (None, _CLEAN_UP),
    (MobileOptimizerType.REMOVE_DROPOUT, ("remove_dropout",)),
    (MobileOptimizerType.FUSE_ADD_RELU, ("fuse_add_relu",)),
    (None, ("dce",)),
)  # fmt: skip
"""The passes that run on each method, with the part that leaves them out."""
_GPUS: Final = ("vulkan", "metal")
_BUNDLED: Final = "get_bundled_inputs_functions_and_info"


def optimize_for_mobile(
    script_module: Any,
    optimization_blocklist: Collection[MobileOptimizerType] | None = None,
    preserved_methods: Sequence[str] | None = None,
    backend: str = "CPU",
) -> ScriptModule:
    """A copy of the module, in eval mode and frozen, whose layers are those that phones run.

    `optimization_blocklist` names parts to leave out.  `preserved_methods`, and what gives inputs that are bundled with
    the module, stay beside `forward`.  Raises TypeError for anything but a compiled module and for an unknown back end,
    AttributeError for an unknown method, NotSupportedError for the back ends of GPUs, ArgumentError for a module that
    cannot be frozen.
    """
    if not isinstance(script_module, ScriptModule):
        raise TypeError(f"Got {type(script_module)}, but ScriptModule is expected.")
    preserved = [str(name) for name in preserved_methods or ()]
    bundled = _bundled(script_module, preserved)
    if all(hasattr(script_module, name) for name in bundled):
        preserved = list(dict.fromkeys((*preserved, *bundled)))
    missing = [name for name in preserved if not hasattr(script_module, name)]
    if missing:
        raise AttributeError(f"The following methods to preserve do not exist in script_module: {', '.join(missing)}")
    if backend.lower() in _GPUS:
        hint = "backend='CPU' makes a program that runs on any phone, and here"
        raise NotSupportedError(f"programs are not optimized for the back end {backend}", hints=(hint,))
    if backend.lower() != "cpu":
        raise TypeError("Unknown backend, must be one of 'CPU', 'Vulkan' or 'Metal'")
    return optimized(script_module, frozenset(optimization_blocklist or ()), preserved)


def optimized(
    module: ScriptModule, left_out: Collection[MobileOptimizerType], preserved: Sequence[str]
) -> ScriptModule:
    """`optimize_for_mobile` without its checks.  Raises ArgumentError for a module that cannot be frozen."""
    unknown = [each for each in left_out if not isinstance(each, MobileOptimizerType)]
    if unknown:
        raise ArgumentError(f"{unknown[0]!r} is no part of the optimization", hints=("MobileOptimizerType has them",))
    frozen = freeze_module(wrap(copied(module._ivalue)).eval(), preserved)
    type = frozen._ivalue.type
    for method in type.methods.values():
        if isinstance(method, Function):
            _optimize(method.graph, left_out)
            method.executor = None
    if type.slot("mobile_optimized") is None:
        type.add_attribute("mobile_optimized", BOOL)
    frozen._ivalue.set("mobile_optimized", True)
    return frozen


def _optimize(graph: Graph, left_out: Collection[MobileOptimizerType]) -> None:
    for part, names in _PIPELINE:
        if part in left_out:
            continue
        if part is MobileOptimizerType.CONV_BN_FUSION:
            while run_pass(names[0], graph):
                pass
        run_pipeline(names, graph)


def _bundled(module: ScriptModule, preserved: Sequence[str]) -> list[str]:
    """The methods that give inputs which are bundled with the module."""
    found = ["get_all_bundled_inputs", "get_num_bundled_inputs"] if hasattr(module, "get_all_bundled_inputs") else []
    if hasattr(module, _BUNDLED):
        found.append(_BUNDLED)
        for name in getattr(module, _BUNDLED)():
            found += [] if name in preserved else [name]
            found += [f"get_all_bundled_inputs_for_{name}", f"_bundled_inputs_deflated_{name}"]
    return found


def generate_mobile_module_lints(script_module: Any) -> list[dict[str, str]]:
    """Advice for a small and fast program for phones: a `name` of `LintCode` and a `message` each.

    Raises TypeError for anything but a compiled module.
    """
    if not isinstance(script_module, ScriptModule):
        raise TypeError(f"Got {type(script_module)}, but ScriptModule is expected.")
    found = []
    if not hasattr(script_module, "_generate_bundled_inputs_for_forward"):
        text = "No bundled input for forward, please add bundled inputs before saving the module."
        found.append((LintCode.BUNDLED_INPUT, text))
    for name, parameter in script_module.named_parameters():
        if parameter.requires_grad:
            text = f"Param {name} requires grad, please set torch.no_grad() to reduce memory usage"
            found.append((LintCode.REQUIRES_GRAD, text))
    for method in script_module._ivalue.type.methods.values():
        graph = method.graph if isinstance(method, Function) else None
        for kind in dict.fromkeys(_called(graph) if graph is not None else ()):
            for word, code in (("dropout", LintCode.DROPOUT), ("batch_norm", LintCode.BATCHNORM)):
                if word in kind:
                    text = f"Operator {kind} exists, remember to call eval() and optimize_for_mobile before saving"
                    found.append((code, text))
    return [{"name": code.name, "message": text} for code, text in found]


def _called(graph: Graph) -> list[str]:
    """The operators of a graph and of what it calls."""
    inlined = copy_graph(graph)
    inline_with_forks(inlined)
    return [node.kind for node in inlined.all_nodes()]
