"""The text behind a call of an operator.

In: an operator's name.  Out: readable Python: the schema, the implementation that serves calls now, and the function
that `engine.aten.dispatch.compile` wrote, with its look at the hooks, its work and the wrapping of its results.
"""

from __future__ import annotations

from engine.aten.dispatch import table
from engine.aten.dispatch.op import Op
from engine.lang.errors import OperatorError, did_you_mean


def show_call(name: str) -> str:
    """The text of the operator `aten::add.Tensor`, or of all overloads of `aten::add`.

    Raises OperatorError when there is no such operator.
    """
    entry = table.find(name)
    entries = [entry] if entry is not None and "." in name else table.overloads(name.partition(".")[0])
    if not entries or ("." in name and entry is None):
        raise OperatorError(f"there is no operator {name}", hints=did_you_mean(name, table.names()))
    return "\n\n".join(map(_shown, entries))


def _shown(op: Op) -> str:
    python, impl = op.compiled.run, op.run
    if impl is python:
        served = "served by the function below"
    else:
        doc = (getattr(impl, "__doc__", None) or "").rpartition("\n")[2] or "Another implementation."
        served = f"served by {impl.__class__.__name__}: {doc} It leaves other calls to the function below"
    source = getattr(python, "source", f"{python.__module__}.{python.__qualname__}, a function without hooks")
    return f"# {op.text}\n# {served}\n{source}"
