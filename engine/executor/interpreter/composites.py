"""Operators whose bodies are written in TorchScript.

In: an entry of the operator table with a `composite` body, an expression in terms of its arguments.  Out: a Python
function that runs it.  It stands alone since it imports the compiler, which is loaded when such an operator first runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.aten.dispatch.op import Op
from engine.executor.interpreter.interpreter import run_function
from engine.frontend.compilation.compile import compile_source
from engine.lang.schema import Argument


def compile_composite(op: Op) -> Callable[..., Any]:
    """The operator as a function of all its arguments.  Raises CompileError when its body does not compile."""
    name = op.name.partition("::")[2]
    parameters = ", ".join(map(_parameter, op.schema.arguments))
    results = [result.type.annotation_str for result in op.schema.returns]
    returns = results[0] if len(results) == 1 else f"Tuple[{', '.join(results)}]"
    text = f"def {name}({parameters}) -> {returns}:\n    return {op.composite}\n"
    function = compile_source(text, filename=f"<{op.qualified_name}>", strict=False).functions[name]
    return lambda *args: run_function(function, args)


def _parameter(argument: Argument) -> str:
    return f"{argument.name}: {argument.type.annotation_str}"
