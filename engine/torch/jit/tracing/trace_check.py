"""Checks a trace: the program is traced a second time, and both traces are compared with the program itself.

In: the trace, a function that traces again, the program, inputs.  Out: nothing, warnings about different results, or
TracingCheckError where the two graphs differ: then the program does not do the same at every call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from engine.aten.autograd import no_grad
from engine.aten.dispatch.table import overloads
from engine.aten.values.tensor import Tensor
from engine.frontend.tracing.position import warn
from engine.ir.clone import copy_graph
from engine.ir.constants import constant_value
from engine.ir.graph import Graph, Node
from engine.lang.errors import EngineError
from engine.passes.canonicalize import canonicalize
from engine.passes.pipeline import run_pass
from engine.torch.compiled.objects import ScriptFunction, ScriptMethod

Traced = ScriptFunction | ScriptMethod
ATOL: Final = 1e-5
_MANGLED: Final = re.compile(r"\.___torch_mangle_\d+")


class TracingCheckError(EngineError):
    """Tracing the program twice gave two different graphs."""


def check(
    traced: Traced, trace_again: Callable[[], Traced], program: Any, run: Callable[[Any], Any], tolerance: float
) -> None:
    """Compare the traces and the program; `run(callee)` calls it on a copy of the inputs.  Raises TracingCheckError."""
    with no_grad():
        again = trace_again()
        graph, other = _plain(traced), _plain(again)
        results = run(traced)
        if _compare(results, run(program), graph, "Python function", tolerance):
            _compare(results, run(again), graph, "repeated trace", tolerance)
    problems = [*_graph_difference(graph, other), *_constant_differences(graph, other, tolerance)]
    if problems:
        raise TracingCheckError("\n".join(["Tracing failed sanity checks!", *problems]))


def _plain(traced: Traced) -> Graph:
    """A copy of the graph with its calls inlined and without shapes in its types."""
    graph: Graph = traced.inlined_graph._ir
    run_pass("erase_shape_information", graph)
    return graph


# ------------------------------------------------------------------ results


def _compare(results: Any, expected: Any, graph: Graph, what: str, tolerance: float) -> bool:
    """Warn about each result that differs; True if all are the same."""
    pairs = zip(_tensors(results), _tensors(expected), strict=False)
    found = {i: _difference(mine, theirs, tolerance) for i, (mine, theirs) in enumerate(pairs, 1)}
    wrong = {number: difference for number, difference in found.items() if difference}
    if wrong:
        _warn_of_chance(graph)
    for number, difference in wrong.items():
        warn(
            f"Output nr {number}. of the traced function does not match the corresponding output of the {what}. "
            f"Detailed error:\n{difference}"
        )
    return not wrong


def _warn_of_chance(graph: Graph) -> None:
    random = [node for node in graph.all_nodes() if _is_random(node)]
    if random:
        shown = "".join(f"\n\t{node}{_place(node)}" for node in random[:20])
        warn(
            f"Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:{shown}\nThis may "
            "cause errors in trace checking. To disable trace checking, pass check_trace=False to torch.jit.trace()"
        )


def _is_random(node: Node) -> bool:
    if not any(op.nondeterministic for op in overloads(node.kind)):
        return False
    return node.kind != "aten::dropout" or constant_value(node.inputs[2]) is not False


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        yield from _tensors(part)


def _difference(mine: Tensor, theirs: Tensor, tolerance: float) -> str:
    """A description of the difference; "" if the tensors are close."""
    if mine.array.shape != theirs.array.shape:
        return f"The shapes are {list(mine.array.shape)} and {list(theirs.array.shape)}."
    if mine.dtype != theirs.dtype:
        return f"The dtypes are {mine.dtype} and {theirs.dtype}."
    if mine.is_meta and theirs.is_meta:
        return ""
    wide = np.complex128 if mine.dtype.is_complex else np.float64
    a, b = mine.array.astype(wide), theirs.array.astype(wide)
    wrong = ~np.isclose(a, b, rtol=tolerance, atol=ATOL, equal_nan=True)
    if not wrong.any():
        return ""
    with np.errstate(all="ignore"):
        distance = np.where(wrong, np.abs(a - b), 0)
    at = np.unravel_index(int(np.argmax(np.nan_to_num(distance, nan=np.inf))), distance.shape)
    place = f" at index {tuple(map(int, at))}" if at else ""
    return (
        f"Mismatched elements: {int(wrong.sum())} / {wrong.size} ({wrong.mean():.1%})\n"
        f"Greatest absolute difference: {distance[at]}{place} (up to {ATOL} allowed, and {tolerance} of the value)"
    )


# ------------------------------------------------------------------ graphs


def _graph_difference(graph: Graph, other: Graph) -> Iterator[str]:
    """A text comparison of the graphs, and the first nodes that differ, with their places in the program."""
    if _text(_without_names(graph)) == _text(_without_names(other)):
        return
    text, other_text = _text(graph), _text(other)
    lines = ["ERROR: Graphs differed across invocations!", "\tGraph diff:", *_diff(text, other_text)]
    for node, twin in zip(graph.all_nodes(), other.all_nodes(), strict=False):
        if _text(node) != _text(twin):
            lines += ["\tFirst diverging operator:", "\tNode diff:", *_diff(_text(node), _text(twin))]
            lines += [f"\tTrace source location:{_place(node)}", f"\tCheck source location:{_place(twin)}"]
            break
    yield "\n".join(lines)


def _without_names(graph: Graph) -> Graph:
    """A copy whose values have numbers alone: names are those of the variables around, which may be others."""
    copy = copy_graph(graph)
    canonicalize(copy, keep_names=False)
    return copy


def _constant_differences(graph: Graph, other: Graph, tolerance: float) -> Iterator[str]:
    pairs = zip(graph.find_all_nodes("prim::Constant"), other.find_all_nodes("prim::Constant"), strict=False)
    for node, twin in pairs:
        mine, theirs = constant_value(node.output), constant_value(twin.output)
        if not (isinstance(mine, Tensor) and isinstance(theirs, Tensor)):
            continue
        difference = _difference(mine, theirs, tolerance)
        if difference:
            yield (
                "ERROR: Tensor-valued Constant nodes differed in value across invocations. This often indicates that "
                f"the tracer has encountered untraceable code.\n\tNode:\n\t\t{_text(node)}\n\tSource Location:"
                f"{_place(node)}\n\tComparison exception:\n\t\t" + difference.replace("\n", "\n\t\t")
            )
            return


def _text(what: Graph | Node) -> str:
    return _MANGLED.sub("", str(what))


def _diff(text: str, other: str) -> list[str]:
    import difflib  # needed only for a failed check

    return ["\t\t" + line.rstrip() for line in difflib.ndiff(text.splitlines(), other.splitlines())]


def _place(node: Node) -> str:
    if node.range is None:
        return " unknown"
    return (
        f"\n\t\t{node.range.filename}({node.range.line}): {node.range.text.splitlines()[0] if node.range.text else ''}"
    )
