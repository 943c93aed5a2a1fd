"""The table of passes, and functions that run them by name.

In: names of passes (modules of this package, each with one function of its own name) and a graph.  Out:
the graph, changed.  A listener gets a `PassEvent` after each pass: the pass explorer, the verifier and
the log are listeners.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.ir.clone import copy_graph
from engine.ir.graph import Graph
from engine.ir.pass_log import Settings, current, logged
from engine.ir.rewrites import Rewrite, is_watched, run_watched, watching
from engine.lang.deferred import deferred
from engine.lang.errors import CompileError, did_you_mean
from engine.lang.records import dataclass

if TYPE_CHECKING:
    from engine.ir import verify
else:
    verify = deferred("engine.ir.verify")

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
"""Pipelines that may be asked for by name.  The last four are the stages of PyTorch's overview of its compiler:
`required,derivative_preserving,post_derivative`."""


class PassRow(NamedTuple):
    """The stages that run a pass, and its change in short: before → after."""

    stages: tuple[str, ...]
    change: str


_TABLE: Final = """
add_if_then_else                      | request                    | if c: r = a else: r = b → r = IfThenElse(c, a, b)
autocast                              | plans                      | with autocast: mm(x, x) → mm(half(x), half(x))
batch_mm                              | named                      | mm(a, b) + mm(c, d) → MMTreeReduce(a, c, b, d)
canonicalize                          | request                    | %17, %9 → %1, %3, in the order of definition
canonicalize_graph_fuser_ops          | named                      | chunk(x, 2, 1) → ConstantChunk[2, 1](x)
canonicalize_outputs                  | compile                    | a, b = if …; f(b, a) → b, a = if …; f(b, a)
check_inplace                         | plans                      | PythonOp[inplace=1](x) → CompileError
complete_shape_analysis               | request                    | x : Tensor → x : Float(2, 3), as in one call
constant_loop_unrolling               | plans                      | for i in range(2): t += i → t += 0; t += 1
constant_pooling                      | compile plans freeze mobile named | 1 in each block → one 1 at the start
constant_propagation                  | freeze mobile named        | 2 * 3 → 6
constant_propagation_immutable_types  | compile plans freeze       | 2 * 3 → 6; [2, 3] stays
conv1d_to_conv2d                      | mobile                     | conv1d(x, w) → squeeze(conv2d(unsqueeze(x), …))
create_autodiff_subgraphs             | named                      | tanh(x * y) → DifferentiableGraph(x, y)
create_functional_graphs              | request                    | tanh(sigmoid(x)) → FunctionalGraph(x)
create_fusion_groups                  | named                      | tanh(x * y) → FusionGroup(x, y)
cse                                   | plans freeze mobile named  | tanh(x) * tanh(x) → t = tanh(x); t * t
dce                                   | plans freeze mobile named  | y = x + x, never used → nothing
dead_write_elimination                | plans                      | (x + 1).mul_(2), never used → nothing
decompose_ops                         | request                    | addmm(c, a, b, 1, 1) → add(c, mm(a, b), 1)
eliminate_concat_common_inputs        | request                    | s = cat(a, b); cat(a, b, c) → s = …; cat(s, c)
eliminate_exceptions                  | request                    | if c: raise E else: y = -x → y = -x
eliminate_no_ops                      | freeze                     | detach(x) * 2 → x * 2
erase_number_types                    | request                    | n : int → n : Long()
erase_shape_information               | plans                      | x : Float(2, 3) → x : Tensor
fold_conv_dims                        | freeze                     | conv2d(x, …).dim() → 4
fold_frozen_conv_add_or_sub           | freeze                     | conv(x, w, b) + c → conv(x, w, b + c)
fold_frozen_conv_bn                   | freeze mobile              | batch_norm(conv(x, w, b)) → conv(x, v, c)
fold_frozen_conv_mul_or_div           | freeze                     | conv(x, w, b) * c → conv(x, w * c, b * c)
fold_frozen_linear_bn                 | freeze                     | batch_norm(linear(x, w, b)) → linear(x, v, c)
fold_prepacking_ops                   | mobile                     | linear_clamp_prepack(w, b) → its object
fresh_activations                     | plans                      | conv(x).relu_() → conv(x).relu()
functional_to_inplace_activation      | request                    | relu(x + y) → (x + y).relu_()
fuse_add_relu                         | mobile                     | relu(x + y) → _add_relu(x, y)
fuse_linear                           | mobile                     | addmm(b, x, w.t()) → linear(x, w, b)
fuse_prepacked_clamp                  | mobile                     | relu(linear_clamp_run(x, p)) → it clamps itself
hoist_common_nodes                    | request                    | if c: f(x); g() else: f(x) → f(x); if c: g()
inline                                | plans freeze named         | f(x) → the body of f
inline_fork_wait                      | request                    | wait(fork(f, x)) → the body of f
inline_functional_graphs              | request                    | FunctionalGraph(x) → tanh(sigmoid(x))
inplace_to_functional_activation      | request                    | (x + y).relu_() → (x + y).relu()
insert_prepacked_ops                  | mobile                     | linear(x, w, b) → linear_clamp_run(x, packed)
loop_invariant_code_motion            | request                    | for …: k = a * b; f(k) → k = a * b; for …: f(k)
loop_unrolling                        | named                      | for i in range(n): f(i) → eight f(i) a round
lower_all_tuples                      | request                    | f(p : (int, int)) → f(p.0 : int, p.1 : int)
lower_grad_of                         | plans named                | GradOf(d) → if any(d): … else: AutogradZero()
lower_simple_tuples                   | compile plans freeze       | c, d = (a, b) → c = a; d = b
move_chunks                           | named                      | chunk(a + b, 2) → chunk(a, 2) + chunk(b, 2)
normalize_ops                         | compile                    | absolute(x) → abs(x)
peel_loops                            | request                    | for i in range(n): f(i) → f(0); for i in …: f(i)
peephole                              | plans freeze named         | x * 1 → x
peephole_alias_sensitive              | request                    | x + 0 → x, of tensors
peephole_list_idioms                  | request                    | len([a, b]) → 2
propagate_device                      | named                      | relu(x) : Tensor → …(device=cpu)
propagate_dtype                       | named                      | x * n : Tensor → Float
propagate_input_shapes                | plans                      | t(x) : Tensor → t(x) : Float(3, 2)
propagate_requires_grad               | named                      | exp(x) : Tensor → …(requires_grad=0)
propagate_shapes_on_graph             | named                      | mm(x, w) : Tensor → Tensor(2, 4)
refine_integer_values                 | request                    | if x == 4: x + y → if x == 4: 4 + y
refine_tuple_types                    | named                      | (x, n) : (Tensor, int) → (Float(2), int)
remove_dropout                        | freeze mobile              | dropout(x, p, False) → x
remove_expands                        | plans named                | a + expand(b, size) → a + b, of traces
remove_inplace_ops                    | request                    | x.add_(y) → x + y, whoever sees the write
remove_list_mutation                  | request                    | l = [a]; l.append(b) → l = [a, b]
remove_list_mutation_and_use_variadic | request                    | l = [a]; l.append(b); cat(l) → VarConcat(a, b)
remove_mutation                       | request                    | t = -x; t.add_(1) → -x + 1; lists likewise
remove_tensor_mutation                | request                    | t = -x; t.add_(1) → t = -x + 1
run_decompositions                    | request                    | var(x) → mean(x), …, sum(x) / n
scalar_operands                       | plans                      | x + tensor(1.5) → x + 1.5
size_arithmetic                       | plans                      | int(tensor(n) * 2) → n * 2
specialize_autogradzero               | plans named                | GradOf(AutogradZero()) → AutogradZero()
transpose_frozen_linear               | request                    | linear(x, w, b) → x @ w.t() + b
transpose_products                    | plans                      | t(mm(a, b)) → mm(t(b), t(a))
unpack_prepacked                      | plans                      | linear_clamp_run(x, packed) → relu(linear(…))
use_variadic                          | request                    | cat([a, b]) → VarConcat(a, b)
"""
PASSES: Final[dict[str, PassRow]] = {
    name: PassRow(tuple(stages.split()), change)
    for name, stages, change in ([part.strip() for part in row.split(" | ")] for row in _TABLE.strip().splitlines())
}
"""Every pass: one file of this package each.  The stages are `compile`, after emitting (`engine.frontend.lowering`);
`plans`, before execution (`engine.executor.plans`); `freeze`, in `torch.jit.freeze`; `mobile`, in
`optimize_for_mobile`; `named`, in one of `PIPELINES`; `request`, when nothing else runs it but a caller that asks for
it by its name."""


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
    """The names of all passes, sorted."""
    return sorted(PASSES)


def run_pass(name: str, graph: Graph, listener: Listener | None = None, *args: Any, **options: Any) -> bool:
    """Run one pass on the graph; True if it changed.  Raises CompileError when there is no such pass.

    Further arguments and options go to the pass.
    """
    found = find_pass(name)
    name, settings = ALIASES.get(name, name), current()
    function = partial(_with, found, args, options) if args or options else found
    if settings.concern(name):
        function = partial(_asking, settings, name, function)
    if listener is not None:
        return _observed(name, function, graph, listener)
    return run_watched(name, function, graph, ()) if is_watched() else function(graph)


def _with(found: Pass, args: tuple[Any, ...], options: dict[str, Any], graph: Graph) -> bool:
    return found(graph, *args, **options)


def _asking(settings: Settings, name: str, function: Pass, graph: Graph) -> bool:
    return logged(name, lambda graph: run_watched(name, function, graph, (settings.allow,)), graph, settings)


def _observed(name: str, function: Pass, graph: Graph, listener: Listener) -> bool:
    """Run the pass, and give the listener its event."""
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


_LISTED = "engine.passes.pipeline.names() lists them, and so does %help passes at the prompt"


@cache
def find_pass(name: str) -> Pass:
    """The pass of that name.  Raises CompileError."""
    module = ALIASES.get(name, name)
    if module not in PASSES:
        raise CompileError(f"there is no pass '{name}'", hints=did_you_mean(name, names()) or (_LISTED,))
    found: Pass = getattr(import_module(f"engine.passes.{module}"), module)
    return found


def verifier(event: PassEvent) -> None:
    """A listener that checks the graph after each pass."""
    try:
        verify.verify(event.graph)
    except AssertionError as error:
        raise AssertionError(f"{event.name} broke the graph: {error}\nwhich was\n{event.before_text}") from error
