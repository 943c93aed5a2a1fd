"""The passes that run on a graph before it is executed, in order.

`BEFORE_EXECUTION` runs on every graph, whatever runs it: the reference does the same even when it is told not to
optimize, and it shows (a dead write is gone before it can fail; `x == x` is True; an implicit expansion is none).
`PRE_SPECIALISATION` runs on a copy for a plan, once calls are inlined and before its inputs get their types: effects of
calls must be visible, and what traces know of their examples in the bodies of calls must be forgotten.
`PRE_DERIVATIVE` keeps the graph differentiable; graphs that need gradients are split after it; `POST_DERIVATIVE` is for
passes that need not keep the graph differentiable.

`PRE_DERIVATIVE` begins with what makes graphs legal that differentiation or tracing left: missing gradients, gradients
by formula, expansions for the sizes of an example.  Loops of a few rounds, known when compiling, are unrolled, as their
counters become constants; `AFTER_UNROLLING` folds these where there were any.  `POST_DERIVATIVE` has two passes of our
own: sizes that traces computed with as tensors become numbers, and activations give new tensors where nobody can tell.

Of what the reference does besides, three things are left out.  Constants of mutable types are not folded: whoever gets
such a value may write to it, and the next call would see that.  Loops whose rounds only the run tells are not unrolled,
nor products batched: generated code is slower for it (`benchmarks/executor.py` has a loop of each kind).
"""

from __future__ import annotations

from typing import Final

BEFORE_EXECUTION: Final = (
    "check_inplace",
    "autocast",
    "remove_expands",
    "scalar_operands",
    "erase_shape_information",
    "peephole",
    "constant_propagation_immutable_types",
    "dead_write_elimination",
)
PRE_SPECIALISATION: Final = ("scalar_operands", "erase_shape_information")
PRE_DERIVATIVE: Final = (
    "unpack_prepacked",
    "specialize_autogradzero",
    "lower_grad_of",
    "remove_expands",
    "peephole",
    "constant_propagation_immutable_types",
    "peephole",
    "cse",
    "lower_simple_tuples",
)
UNROLLING: Final = ("constant_loop_unrolling",)
AFTER_UNROLLING: Final = ("constant_propagation_immutable_types", "peephole")
POST_DERIVATIVE: Final = ("size_arithmetic", "constant_pooling", "dce", "fresh_activations")
AFTER_GUARDS: Final = ("propagate_input_shapes", "peephole", "constant_propagation_immutable_types", "dce")
"""For graphs with guards: sizes and dtypes follow from the guarded ones, and questions about them are answered."""
AFTER_GROUPING: Final = ("constant_pooling", "dce")
"""For graphs with groups, which have constants of their own."""
BACKWARD: Final = ("transpose_products", "peephole")
"""For backward graphs, before they are specialised like others."""
BEFORE_FUSION: Final = ("propagate_input_shapes", "peephole", "constant_propagation_immutable_types", "dce")
"""Questions of programs about ranks are answered, so that they stand between no two nodes of a kernel."""
