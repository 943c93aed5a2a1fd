"""Functions with gradients of their own.

In: a subclass of `Function` with static methods `forward(ctx, ...)` (or `forward(...)` and
`setup_context(ctx, inputs, output)`) and `backward(ctx, *gradients)`.  Out: `apply`, which runs it and records one node
for it.  The context is that node.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.autograd import views
from engine.aten.autograd.node import Form, Gradient, Node, Saved, detached_alias, fits, fitted, used_twice
from engine.aten.autograd.saving import save
from engine.aten.dispatch.grad_mode import MODE, no_grad
from engine.aten.values import libraries, promotion
from engine.aten.values.hooks import HOOKS, NOT_TRACED
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorDtypeError, OperatorError, OperatorTypeError


class FunctionContext(Node):
    """The context `ctx`: tensors saved by `save_for_backward`, everything else as attributes."""

    def __init__(self, function: type[Function], inputs: Sequence[Any]) -> None:
        super().__init__(views.edges_of(inputs) if MODE.enabled else [None] * len(inputs))
        self.function = function
        self.needs_input_grad = tuple(edge is not None for edge in self.edges)
        self.outputs: list[Form] = []
        self.materialize_grads = True
        self.dirty: tuple[Tensor, ...] = ()
        self.non_differentiable: tuple[Tensor, ...] = ()
        self._to_save: tuple[Tensor | None, ...] = ()
        self._saved: list[Saved | None] | None = []

    def name(self) -> str:
        return type(self).__name__

    # -- for forward

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs; backward finds them as `saved_tensors`, or learns that they were written to."""
        self._to_save = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Inputs that were written to and are returned."""
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Outputs through which no gradients flow."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set if backward receives zeros (the default) or None for outputs without a gradient."""
        self.materialize_grads = value

    # -- for backward

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The saved tensors.  Raises OperatorError after the graph was freed or a tensor written to."""
        if self._saved is None:
            raise used_twice()
        return tuple(None if saved is None else saved.unpack(self) for saved in self._saved)

    def held(self) -> Sequence[Any]:
        return self._saved or ()

    def keep(self, results: Sequence[Any]) -> None:
        """Save the marked tensors in a form that lives as long as the node."""
        places = {id(result): i for i, result in enumerate(results)}
        self._saved = [None if t is None else save(t, places.get(id(t), -1)) for t in self._to_save]
        self._to_save = self.dirty = self.non_differentiable = ()

    def apply(self, gradients: list[Gradient]) -> Sequence[Gradient]:
        given = [self._materialized(i, gradient) for i, gradient in enumerate(gradients)]
        found = self.function.backward(self, *given)
        listed = list(found) if isinstance(found, (tuple, list)) else [found]
        count = len(self.edges)
        if len(listed) > count and all(gradient is None for gradient in listed[count:]):
            del listed[count:]
        if len(listed) != count:
            raise OperatorError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, "
                f"got {len(listed)})",
                hints=("backward returns one gradient for each argument of forward, None where there is none",),
            )
        return [self._checked(i, gradient) for i, gradient in enumerate(listed)]

    def _materialized(self, place: int, gradient: Gradient) -> Gradient:
        if gradient is not None or not self.materialize_grads:
            return gradient
        return Tensor(libraries.zeros(*self.outputs[place]))

    def _checked(self, place: int, gradient: Any) -> Gradient:
        edge = self.edges[place]
        if edge is None or gradient is None:
            return None
        if not isinstance(gradient, Tensor):
            raise OperatorTypeError(f"expected Variable or None (got {type(gradient).__name__})")
        if not fits(gradient.array.shape, edge.form[0]):
            raise OperatorError(
                f"Function {self.name()} returned an invalid gradient at index {place} - got "
                f"{list(gradient.shape)} but expected shape compatible with {list(edge.form[0])}"
            )
        return fitted(gradient, edge.form)

    def release(self) -> None:
        if self._saved:
            self._saved = None

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{self.name()} object at {id(self):#x}>"


_kinds: Final[weakref.WeakKeyDictionary[type[Any], type[FunctionContext]]] = weakref.WeakKeyDictionary()


def _context_of(function: type[Function]) -> type[FunctionContext]:
    """The node class of a function, named after it."""
    kind = _kinds.get(function)
    if kind is None:
        kind = _kinds[function] = type(f"{function.__name__}Backward", (FunctionContext,), {})
    return kind


def _place(value: Any) -> views.Placement | None:
    """The placement of a view in its base; None for other values, and where it cannot be determined."""
    if not isinstance(value, Tensor) or value._base is None:
        return None
    try:
        return views.place_of(value)
    except OperatorError:
        return None


class Function:
    """Base of custom functions: see the module's top."""

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise OperatorDtypeError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        raise OperatorDtypeError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise OperatorDtypeError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the function; its results have it as their grad_fn if a positional argument requires grad."""
        if HOOKS.tracer is not None and (traced := HOOKS.tracer.function(cls, args, kwargs, _run)) is not NOT_TRACED:
            return traced
        return _run(cls, args, kwargs)[0]


def _run(
    function: type[Function], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, tuple[Tensor, ...]]:  # fmt: skip
    """The result of the function, and the arguments that it wrote to."""
    context = _context_of(function)(function, args)
    places = [_place(arg) for arg in args]
    with no_grad():
        if function.setup_context is Function.setup_context:
            result = function.forward(context, *args, **kwargs)
        else:
            result = function.forward(*args, **kwargs)
            function.setup_context(context, args, result)
    written = context.dirty
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if MODE.enabled and any(context.needs_input_grad):
        results = _attach(context, args, results, places)
    return (tuple(results) if isinstance(result, (tuple, list)) else results[0]), written


def _attach(
    context: FunctionContext, args: tuple[Any, ...], results: list[Any], places: list[views.Placement | None]
) -> list[Any]:
    """Give the results their history; `places` are where arguments that are views were in their bases."""
    dirty = {id(t) for t in context.dirty}
    fixed = {id(t) for t in context.non_differentiable}
    inputs = {id(a): i for i, a in enumerate(args)}
    attached = [
        _shown(r) if id(r) in inputs and id(r) not in dirty and isinstance(r, Tensor) else r for r in results
    ]  # fmt: skip
    context.outputs = [_form(r) for r in attached]
    context.keep(attached)
    for i, result in enumerate(attached):
        if not isinstance(result, Tensor) or id(result) in fixed or promotion.rank(result.array.dtype) < 2:
            continue
        if id(result) not in dirty:
            if result._base is not None:
                result._view_kind = "function"
            result.attach(context, i)
            result._seen = result._version
            continue
        views.check_write(result)
        place = inputs[id(result)]
        if places[place] is None:
            views.move_retained(result, context)
            result.attach(context, i)
        else:
            views.rebase(result, context, place, places[place])
    return attached


def _shown(given: Tensor) -> Tensor:
    """An argument that was returned as it is: a view of it."""
    view = detached_alias(given)
    view._base = given if given._base is None else given._base
    return view


def _form(result: Any) -> Form:
    return views.form_of(result) if isinstance(result, Tensor) else Form((), np.dtype(np.float32))


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a `backward` that is not differentiable itself: it runs without recording."""

    @functools.wraps(backward)
    def once(ctx: Any, *gradients: Any) -> Any:
        recorded = MODE.enabled and any(isinstance(g, Tensor) and g.requires_grad for g in gradients)
        with no_grad():
            found = backward(ctx, *gradients)
        if not recorded:
            return found
        listed = found if isinstance(found, (tuple, list)) else (found,)
        return tuple(_refusing(g) if isinstance(g, Tensor) else g for g in listed)

    return once


class _Refusal(Node):
    def name(self) -> str:
        return "DelayedError"

    def apply(self, gradients: list[Gradient]) -> Sequence[Gradient]:
        raise OperatorError("trying to differentiate twice a function that was marked with @once_differentiable")


def _refusing(gradient: Tensor) -> Tensor:
    marked = gradient.data
    marked.attach(_Refusal(()), 0)
    return marked
