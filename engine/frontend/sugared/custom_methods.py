"""Methods of the builtin classes that are not written in TorchScript: each is one operator.

In: a class's name.  Out: its type, with functions whose graphs are that operator, so that they are called, inlined and
printed as all methods are.
"""

from __future__ import annotations

from typing import Final

from engine.aten.dispatch import table
from engine.frontend.matching.convert import make_tuple
from engine.ir.graph import Graph
from engine.ir.unit import Function
from engine.lang import custom_classes
from engine.lang.custom_classes import PREFIX
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import ClassType

_WHOLE: Final = None
_METHODS: Final[dict[str, dict[str, tuple[str, int | None]]]] = {
    "quantized.LinearPackedParamsBase": {
        "unpack": ("quantized::linear_unpack", _WHOLE), "weight": ("quantized::linear_unpack", 0),
        "bias": ("quantized::linear_unpack", 1),
    },
    **{
        f"quantized.Conv{n}dPackedParamsBase": {
            "unpack": (f"quantized::conv{n}d_unpack", _WHOLE), "weight": (f"quantized::conv{n}d_unpack", 0),
            "bias": (f"quantized::conv{n}d_unpack", 1),
            **{name: (f"quantized::conv{n}d_{name}", _WHOLE)
               for name in ("stride", "padding", "output_padding", "dilation", "groups", "transpose")},
        }
        for n in (2, 3)
    },
    "quantized.EmbeddingPackedParamsBase": {"unpack": ("quantized::embedding_bag_unpack", _WHOLE)},
}  # fmt: skip
"""Class -> method -> the operator, and the index of its result (None: all)."""


def custom_class(qualname: str) -> ClassType | None:
    """The builtin class of that name, with its methods; None when there is none."""
    found = custom_classes.find(qualname)
    rows = _METHODS.get(qualname.removeprefix(PREFIX), {}) if found is not None and not found.methods else {}
    for name, (operator, index) in rows.items():
        assert found is not None
        found.methods[name] = _method(found, name, operator, index)
    return found


def _method(owner: ClassType, name: str, operator: str, index: int | None) -> Function:
    entry = table.find(operator)
    assert entry is not None, operator
    graph = Graph()
    self_value = graph.add_input("self", type=owner)
    node = graph.append(entry.name, [self_value], [argument.type for argument in entry.schema.returns])
    node.op = entry
    values = [*node.outputs]
    result = values[index or 0] if index is not None or len(values) == 1 else make_tuple(graph, values)
    graph.register_output(result)
    function = Function(f"{owner.qualname}.{name}")
    schema = FunctionSchema(name, arguments=(Argument("self", owner),), returns=(Argument("", result.type),))
    function.define(schema, graph)
    return function
