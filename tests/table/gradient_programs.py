"""Programs of one operator each, for the law of compiled gradients: what they give, and its derivatives.

In: an operator with a gradient, and a device.  Out: `check`, for which the results and gradients of a program that runs
through a differentiable graph are those of the eager tape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pytest

from engine.aten.autograd import grad
from engine.aten.dispatch.op import Op
from engine.aten.values import libraries, xp
from engine.aten.values.tensor import Tensor
from engine.executor.autodiff.formulas import differentiable_arguments
from engine.executor.interpreter.interpreter import run_function
from engine.executor.plans import differentiation
from engine.executor.plans.executor import executor_of
from engine.fuser.backend import tiering
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph
from engine.ir.unit import Function
from engine.lang import scalars
from engine.lang.errors import EngineError, OperatorError
from engine.lang.types import ListType, TensorType
from tests.table.gradient_samples import gradient_arguments_for, in_dtype

CALLS: Final = {"eager": 2, "background": 4, "off": 2}
"""By the compile mode the calls of a program; beside it, one has its plan made, the next its groups split, which the
last one runs."""


@contextmanager
def splitting_everything(mode: tiering.Mode = "eager") -> Iterator[None]:
    """While this lasts every operator is a differentiable graph of its own; in mode "eager" at once."""
    before, threshold = tiering.mode(), differentiation.SETTINGS.threshold
    tiering.set_mode(mode)
    differentiation.SETTINGS.threshold = 1
    try:
        yield
    finally:
        tiering.set_mode(before)
        differentiation.SETTINGS.threshold = threshold


def is_left_to_the_tape(op: Op) -> bool:
    """True for operators in no group: elements decide about sizes, memory is shared or written, lists come apart."""
    gives_list = isinstance(op.schema.returns[0].type, ListType)
    return op.data_dependent or op.side_effects or not op.gives_new or gives_list


def program(op: Op, arguments: Sequence[Any]) -> tuple[Function, list[Tensor]]:
    """A program that calls the operator with these arguments, and those of them that are tensors."""
    graph, given, inputs = Graph(), [], []

    def tensor(value: Tensor) -> Any:
        given.append(value)
        return graph.add_input("", TensorType())

    for argument, value in zip(op.schema.arguments, arguments, strict=True):
        if isinstance(value, Tensor):
            inputs.append(tensor(value))
        elif isinstance(value, list) and any(isinstance(each, Tensor) for each in value):
            parts = [tensor(each) if isinstance(each, Tensor) else insert_constant(graph, each) for each in value]
            inputs.append(graph.append("prim::ListConstruct", parts, [argument.type]).output)
        else:
            inputs.append(insert_constant(graph, value, argument.type if value is not None else None))
    node = graph.append(op.name, inputs, [result.type for result in op.schema.returns])
    node.op = op
    outputs = [value for value in node.outputs if isinstance(value.type, TensorType)]
    if len(node.outputs) == 1 and isinstance(node.output.type, ListType):
        results = op.run(*arguments)
        outputs = graph.append("prim::ListUnpack", [node.output], [TensorType()] * len(results)).outputs
    for value in outputs:
        graph.register_output(value)
    return Function("f", _graph=graph), given


def derivatives(results: Sequence[Any], tensors: Sequence[Tensor]) -> list[list[Any]]:
    """Gradients by all tensors that require grad, and the gradients of these."""
    wanted = [t for t in tensors if t.requires_grad]
    outputs = [r for r in results if isinstance(r, Tensor) and r.requires_grad]
    first = grad(outputs, wanted, [weights(r) for r in outputs], create_graph=True, allow_unused=True)
    again = [g for g in first if g is not None and g.requires_grad]
    second: Sequence[Any] = [None] * len(wanted)
    if again:
        try:
            second = grad(again, wanted, [weights(g) for g in again], allow_unused=True)
        except OperatorError as error:  # there is no formula for the gradient of the gradient
            if "not implemented" not in str(error):
                raise
            second = []
    return [[*first], [*second]]


def weights(like: Tensor) -> Tensor:
    """A gradient to begin with, whose elements differ."""
    made = np.cos(np.arange(like.array.size)).astype(like.array.dtype).reshape(like.array.shape)
    return Tensor(libraries.moved(made, like.device))


def listed(results: Any) -> list[Any]:
    return [*results] if isinstance(results, (list, tuple)) else [results]


def check(
    op: Op, device: str = "cpu", dtype: xp.NumpyDtype = xp.FLOAT64, arguments: Sequence[Any] | None = None,
    by: Sequence[str] = (),
) -> None:  # fmt: skip
    """Raises AssertionError where the program's results or derivatives are not those of the tape, in the first call or
    later, or one refuses the dtype and the other does not.  Derivatives are `by` arguments of these names, or all that
    the row has formulas for."""
    known = {*by} or {op.schema.arguments[i].name for i in differentiable_arguments(op)}
    names = [a.name for a in op.schema.arguments]
    given = gradient_arguments_for(op) if arguments is None else arguments
    samples = [in_dtype(v, name in known, dtype) for v, name in zip(given, names, strict=True)]
    args = [there(value, scalars.device(device)) for value in samples]
    try:
        expected = [r for r in listed(op.run(*args)) if isinstance(r, Tensor)]
        tapes = derivatives(expected, _tensors_of(args))
    except EngineError:
        with pytest.raises(EngineError):
            _run(*program(op, args))
        return
    function, tensors = program(op, args)
    calls = CALLS[tiering.mode()]
    for call in range(calls):
        found, gradients = _run(function, tensors)
        tiering.wait()
        _assert_same(found, expected)
        assert [r.requires_grad for r in found] == [r.requires_grad for r in expected]
        is_split = any(t.grad_fn is not None and t.grad_fn.name() == "DifferentiableGraphBackward" for t in found)
        is_complex = any(t.array.dtype in xp.COMPLEX for t in (*tensors, *found))
        is_made = tiering.mode() == "eager" or call == calls - 1
        if is_made and not (is_complex or is_left_to_the_tape(op)):
            assert is_split, differentiation_of(function)
        tiering.wait()
        for order, (mine, wanted) in enumerate(zip(gradients, tapes, strict=True)):
            _assert_same(mine, wanted, overflows=order > 0)


def _run(function: Function, tensors: Sequence[Tensor]) -> tuple[list[Tensor], list[list[Any]]]:
    """Results and derivatives of a program."""
    found = [r for r in listed(run_function(function, tensors)) if isinstance(r, Tensor)]
    return found, derivatives(found, tensors)


def _tensors_of(args: Sequence[Any]) -> list[Tensor]:
    """The tensors among arguments and in lists of these, in the order in which programs take them."""
    return [each for arg in args for each in listed(arg) if isinstance(each, Tensor)]


def there(value: Any, device: scalars.device) -> Any:
    """The value with its tensors on the device."""
    if isinstance(value, list):
        return [there(each, device) for each in value]
    return Tensor(libraries.moved(value.array, device), value.requires_grad) if isinstance(value, Tensor) else value


def differentiation_of(function: Function) -> Any:
    """The reasons why nodes are in no differentiable graph."""
    (plan,) = executor_of(function).plans
    return plan.reason, plan.differentiation and [*plan.differentiation.refused.values()], tiering.failures()[-1:]


def _assert_same(found: Sequence[Any], expected: Sequence[Any], overflows: bool = False) -> None:
    """Equal up to rounding.  With `overflows` products of half precision may be taken in another order, in which other
    ones leave its range: elements that are finite in both count."""
    for mine, tapes in zip(found, expected, strict=True):
        if isinstance(tapes, Tensor) or isinstance(mine, Tensor):
            known = tapes if mine is None else mine
            zero = Tensor(libraries.moved(np.zeros((), known.array.dtype), known.device))
            a, b = (zero if each is None else each for each in (mine, tapes))
            assert (a.device, a.array.dtype) == (b.device, b.array.dtype)
            left, right = map(_in_numpys, np.broadcast_arrays(*(libraries.on_host(each.array) for each in (a, b))))
            if overflows and a.array.dtype in xp.HALVES:
                both = np.isfinite(left) & np.isfinite(right)
                left, right = left[both], right[both]
            np.testing.assert_allclose(left, right, **tolerance(a.array.dtype, right))


def _in_numpys(array: Any) -> Any:
    """The array in a dtype of numpy's own, which its tests know."""
    if array.dtype == xp.COMPLEX32:
        return array.astype(np.complex128)
    return array.astype(np.float64) if array.dtype in xp.HALVES else array


def tolerance(dtype: xp.NumpyDtype, expected: Any) -> dict[str, float]:
    """Some units in the last place of the dtype, of the largest elements too: terms of sums may cancel."""
    eps = float(xp.limits(dtype).eps) if dtype in xp.INEXACT else 0.0
    sizes = np.abs(expected[np.isfinite(expected)]) if eps else np.zeros(0)
    largest = max(1.0, float(sizes.max())) if sizes.size and dtype in xp.HALVES else 1.0
    return {"rtol": max(1e-7, 16 * eps), "atol": 4 * eps * largest if eps > 1e-10 else 1e-12}
