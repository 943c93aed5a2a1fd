"""Programs that call Python: `prim::PythonOp`, made of functions marked `@torch.jit.ignore`.

In: the node, which holds the function.  Out: an operation that gives the function Python values and takes its result
back as a value of the declared type.  Importing this module adds the row to the interpreter's table.
"""

from __future__ import annotations

from typing import Any

from engine.executor.bytecode.operations import OPERATIONS, Operation
from engine.executor.conversion.from_python import Mismatch, from_python
from engine.executor.conversion.to_python import to_python
from engine.ir.graph import Node
from engine.lang.errors import ArgumentError


def python_call(node: Node) -> Operation:
    function, name = node.attr("function"), node.attr("name")
    out = [to_python(value.type) for value in node.inputs]
    back, declared = from_python(node.output.type), node.output.type

    def call(*values: Any) -> Any:
        result = function(*(convert(v) if convert else v for convert, v in zip(out, values, strict=True)))
        try:
            return back(result)
        except Mismatch:
            raise ArgumentError(
                f"'{name}' is declared to return {declared.annotation_str}, and returned a {type(result).__name__}"
            ) from None

    return call


OPERATIONS["prim::PythonOp"] = python_call
