"""Names of the operators' nodes: `AddBackward0`.

In: an entry of the operator table.  Out: a name, PyTorch's where it does not just follow from the operator's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.lang.deferred import pattern_of

if TYPE_CHECKING:
    from engine.aten.dispatch.op import Op

_OTHER: Final = {
    "to": "ToCopy", "reshape": "View", "flatten": "View", "unflatten": "View", "view_as": "View",
    "reshape_as": "View", "expand_as": "Expand", "broadcast_to": "Expand", "contiguous": "Clone", "copy": "Copy",
    "max.other": "Maximum", "min.other": "Minimum", "split.sizes": "SplitWithSizes", "split": "SplitWithSizes",
    "chunk": "Split", "narrow": "Slice", "true_divide": "Div", "movedim": "Permute", "zero": "Zero", "linear": "Addmm",
    "_lstm_layer": "MkldnnRnnLayer", "_gru_layer": "Stack", "_rnn_tanh_layer": "Stack", "_rnn_relu_layer": "Stack",
}  # fmt: skip
"""Operators (or overloads) whose node has the name of another operator."""
_SECOND: Final = frozenset({
    "sum.dim_IntList", "mean.dim", "rsub.Scalar", "pow.Tensor_Tensor", "max", "min", "squeeze.dim", "prod.dim_int",
    "median", "masked_fill.Tensor", "normal.Tensor_float", "clamp.Tensor", "index_fill.int_Tensor", "scatter.value",
})  # fmt: skip
"""Overloads whose node name ends in 1, since that of another overload ends in 0."""


def node_name(op: Op) -> str:
    """The name of the operator's node; in-place forms have that of the functional one."""
    source = op.functional or op
    overload = source.qualified_name.removeprefix("aten::")
    bare = source.name.removeprefix("aten::")
    bare = bare.rstrip("_") if not bare.startswith("__") else bare
    stem = _OTHER.get(overload) or _OTHER.get(bare) or "".join(map(_capital, bare.split("_")))
    return f"{_DIMENSIONS.sub(_upper, stem)}Backward{int(overload in _SECOND)}"


_DIMENSIONS: Final = pattern_of(r"[123]d(?=[A-Z]|$)")
"""`2d` in a name is written `2D`."""


def _upper(found: re.Match[str]) -> str:
    return found.group().upper()


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]
