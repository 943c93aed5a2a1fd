"""Runs passes by name, and tells who listens.

In: names of passes (modules of this package, each with one function of its own name) and a graph.  Out:
the graph, changed.  A listener gets a `PassEvent` after each pass: the pass explorer, the verifier and
the log are listeners.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final

from engine import passes
from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.pass_log import Settings, current, logged
from engine.ir.rewrites import Rewrite, is_watched, run_watched, watching
from engine.ir.verify import verify
from engine.lang.errors import CompileError, did_you_mean

Pass = Callable[..., bool]

ALIASES: Final = {
    "lower_tuples": "lower_all_tuples",
    "eliminate_dead_code": "dce",
    "eliminate_common_subexpression": "cse",
}
SIMPLIFY: Final = ("peephole", "constant_propagation", "cse", "dce", "constant_pooling")
OPTIMIZE: Final = ("inline", *SIMPLIFY)
REQUIRED: Final = (
    "specialize_autogradzero", "lower_grad_of", "remove_expands", "constant_propagation",
    "canonicalize_graph_fuser_ops", "propagate_shapes_on_graph", "propagate_dtype", "propagate_device",
    "propagate_requires_grad", "refine_tuple_types",
)  # fmt: skip
DERIVATIVE_PRESERVING: Final = ("dce", "cse", "constant_pooling", "peephole", "loop_unrolling", "batch_mm")
FUSING: Final = ("move_chunks", "create_fusion_groups")
DIFFERENTIABLE: Final = ("create_autodiff_subgraphs",)
PIPELINES: Final[dict[str, tuple[str, ...]]] = {
    "simplify": SIMPLIFY, "optimize": OPTIMIZE, "required": REQUIRED, "derivative_preserving": DERIVATIVE_PRESERVING,
    "post_derivative": FUSING, "derivative_splitting": DIFFERENTIABLE,
}  # fmt: skip
"""The last four are the stages of PyTorch's overview: `required,derivative_preserving,post_derivative`."""
RUN_IN: Final[dict[str, frozenset[str]]] = {
    stage: frozenset(names.split())
    for stage, names in {
        "plans": "autocast erase_shape_information scalar_operands peephole constant_propagation_immutable_types "
        "dead_write_elimination inline specialize_autogradzero lower_grad_of remove_expands cse "
        "lower_simple_tuples constant_loop_unrolling size_arithmetic constant_pooling dce fresh_activations",
        "compiling": "normalize_ops constant_propagation",
        "freezing": "remove_dropout fold_conv_dims fold_frozen_conv_bn fold_frozen_conv_add_or_sub "
        "fold_frozen_conv_mul_or_div fold_frozen_linear_bn",
        "stages": "canonicalize_graph_fuser_ops propagate_shapes_on_graph propagate_dtype propagate_device "
        "propagate_requires_grad refine_tuple_types loop_unrolling batch_mm move_chunks create_fusion_groups "
        "create_autodiff_subgraphs",
        "on request": "add_if_then_else canonicalize canonicalize_outputs check_inplace complete_shape_analysis "
        "create_functional_graphs decompose_ops eliminate_concat_common_inputs eliminate_exceptions "
        "erase_number_types functional_to_inplace_activation fuse_linear hoist_common_nodes inline_fork_wait "
        "inline_functional_graphs inplace_to_functional_activation loop_invariant_code_motion "
        "lower_all_tuples peel_loops peephole_list_idioms propagate_input_shapes refine_integer_values "
        "remove_inplace_ops remove_list_mutation remove_list_mutation_and_use_variadic remove_mutation "
        "remove_tensor_mutation use_variadic",
    }.items()
}
"""Every pass, by where it runs first: before a plan is executed (`engine.executor.plans.pipelines`), at the end of
compiling, in `freeze`, in the stages of PyTorch's overview (`PIPELINES`), or only when somebody asks for it by name."""
_NOT_PASSES: Final = ("pipeline",)


@dataclass(frozen=True, slots=True)
class PassEvent:
    """One pass ran on `graph`, which later passes may change; `before` and `after_text` stay.

    `rewrites` are those that the pass asked for and made: which nodes it touched, and what became of them (as text).
    """

    name: str
    graph: Graph
    before: Graph
    after_text: str
    changed: bool
    seconds: float
    rewrites: tuple[str, ...] = ()

    @property
    def before_text(self) -> str:
        return str(self.before)


Listener = Callable[[PassEvent], None]


def names() -> list[str]:
    """Every pass there is."""
    return sorted(_known())


@cache
def _known() -> frozenset[str]:
    return frozenset(module.name for module in iter_modules(passes.__path__) if module.name not in _NOT_PASSES)


def run_pass(name: str, graph: Graph, listener: Listener | None = None, *args: Any, **options: Any) -> bool:
    """Run one pass on the graph; True if it changed.  Raises CompileError when there is no such pass.

    What else is given goes to the pass.
    """
    found = find_pass(name)
    name, settings = ALIASES.get(name, name), current()
    function = partial(_with, found, args, options) if args or options else found
    if settings.concern(name):
        function = partial(_asking, settings, name, function)
    if listener is not None:
        return _told(name, function, graph, listener)
    return run_watched(name, function, graph, ()) if is_watched() else function(graph)


def _with(found: Pass, args: tuple[Any, ...], options: dict[str, Any], graph: Graph) -> bool:
    return found(graph, *args, **options)


def _asking(settings: Settings, name: str, function: Pass, graph: Graph) -> bool:
    return logged(name, lambda graph: run_watched(name, function, graph, (settings.allow,)), graph, settings)


def _told(name: str, function: Pass, graph: Graph, listener: Listener) -> bool:
    """Run the pass, and tell the listener."""
    rewrites: list[str] = []
    before = copy_graph(graph)
    start = time.perf_counter()

    def note(rewrite: Rewrite) -> bool:
        rewrites.append(rewrite.text)
        return True

    with watching(note):
        changed = run_watched(name, function, graph, ())
    seconds = time.perf_counter() - start
    listener(PassEvent(name, graph, before, str(graph), changed, seconds, tuple(rewrites)))
    return changed


def run_pipeline(pass_names: str | Iterable[str], graph: Graph, listener: Listener | None = None) -> bool:
    """Run the passes in order (typed: "inline,dce,peephole"); True if one changed the graph.  Raises CompileError."""
    changed = False
    for name in listed(pass_names):
        changed |= run_pass(name, graph, listener)
    return changed


def listed(pass_names: str | Iterable[str]) -> tuple[str, ...]:
    """The names of the passes; of a text those between commas or blanks, where a pipeline stands for its passes."""
    if not isinstance(pass_names, str):
        return tuple(pass_names)
    words = pass_names.replace(",", " ").split()
    return tuple(name for word in words for name in PIPELINES.get(word, (word,)))


@cache
def find_pass(name: str) -> Pass:
    """The pass of that name.  Raises CompileError."""
    module = ALIASES.get(name, name)
    if module not in _known():
        raise CompileError(f"there is no pass '{name}'", hints=did_you_mean(name, names()))
    found: Pass = getattr(import_module(f"{passes.__name__}.{module}"), module)
    return found


def verifier(event: PassEvent) -> None:
    """A listener that checks the graph after each pass."""
    try:
        verify(event.graph)
    except AssertionError as error:
        raise AssertionError(f"{event.name} broke the graph: {error}\nwhich was\n{event.before_text}") from error
