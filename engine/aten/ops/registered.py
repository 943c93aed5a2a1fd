"""Operators of the `_test` namespace, a family of its own: scripts test calls of other namespaces with them.

In: tensors, lists.  Out: what one operator of each way to pass arguments gives: defaults, lists, lists of lists.
"""

from __future__ import annotations

from engine.aten.dispatch.table import op


def first_of(inputs: list[list[str]]) -> str:
    """The first text of the first list."""
    return inputs[0][0]


op("_test::leaky_relu(Tensor self, float v=0.01) -> Tensor", composite="torch.leaky_relu(self, v)")
op("_test::cat(Tensor[] inputs) -> Tensor", composite="torch.cat(inputs)")
op("_test::get_first(str[][] _0) -> str _0", python=first_of)
