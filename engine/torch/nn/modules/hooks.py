"""Hooks of modules: handles for their removal, and the connection of backward hooks to gradients.

In: tables of hooks; a module's inputs and outputs.  Out: handles; the same tensors behind a gate at which gradients
are shown to the hooks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

from engine.aten.autograd import Function, is_grad_enabled
from engine.aten.values.tensor import Tensor

_numbers: Final = count()
Hook = Callable[..., Any]


class Registered(NamedTuple):
    """A hook and its calling convention."""

    call: Hook
    with_kwargs: bool = False
    with_module: bool = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


class RemovableHandle:
    """A registered hook, which `remove()` or the end of a `with` block removes."""

    def __init__(self, table: OrderedDict[int, Any], hook: Any, prepend: bool = False) -> None:
        self.id = next(_numbers)
        self._table = table
        table[self.id] = hook
        if prepend:
            table.move_to_end(self.id, last=False)

    def remove(self) -> None:
        self._table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class _Gate(Function):
    """Passes tensors on; in backward passes `see` gets their gradients and may replace them."""

    @staticmethod
    def forward(ctx: Any, see: Callable[[tuple[Any, ...]], tuple[Any, ...]], *tensors: Tensor) -> Any:
        ctx.see = see
        ctx.set_materialize_grads(False)
        return tuple(each.view_as(each) for each in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *ctx.see(gradients))


class BackwardHooks:
    """The backward hooks of one call: pre-hooks get the gradients of its outputs, hooks also those of its inputs."""

    def __init__(self, module: Any, pre_hooks: Sequence[Hook], hooks: Sequence[Hook]) -> None:
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks
        self._of_outputs: tuple[Any, ...] = ()
        self._inputs_watched = False
        self._inputs = 0

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The module's arguments, behind a gate."""
        if not self.hooks:
            return args
        self._inputs = len(args)
        passed, places = self._watch(args, self._see_inputs)
        self._inputs_watched = bool(places)
        return tuple(passed)

    def leave(self, result: Any) -> Any:
        """The module's result, behind a gate."""
        many = isinstance(result, (tuple, list))
        passed, places = self._watch(result if many else (result,), self._see_outputs)
        if not places:
            return result
        if not many:
            return passed[0]
        return type(result)(*passed) if hasattr(result, "_fields") else type(result)(passed)

    def _watch(self, values: Sequence[Any], see: Callable[..., Any]) -> tuple[list[Any], list[int]]:
        """The values with differentiable tensors behind a gate, and the positions of these."""
        passed = list(values)
        places = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad and is_grad_enabled()]
        if places:
            gated = _Gate.apply(lambda found: see(found, places, len(passed)), *(values[i] for i in places))
            for place, tensor in zip(places, gated, strict=True):
                passed[place] = tensor
        return passed, places

    def _see_outputs(self, gradients: tuple[Any, ...], places: list[int], count: int) -> tuple[Any, ...]:
        found = _spread(gradients, places, count)
        for hook in self.pre_hooks:
            found = _changed(hook(self.module, found), found)
        self._of_outputs = found
        if self.hooks and not self._inputs_watched:
            self._run((None,) * self._inputs)
        return tuple(found[i] for i in places)

    def _see_inputs(self, gradients: tuple[Any, ...], places: list[int], count: int) -> tuple[Any, ...]:
        found = self._run(_spread(gradients, places, count))
        return tuple(found[i] for i in places)

    def _run(self, of_inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.hooks:
            of_inputs = _changed(hook(self.module, of_inputs, self._of_outputs), of_inputs)
        return of_inputs


def _spread(gradients: tuple[Any, ...], places: list[int], count: int) -> tuple[Any, ...]:
    """The gradients at their positions, None elsewhere."""
    found: list[Any] = [None] * count
    for place, gradient in zip(places, gradients, strict=True):
        found[place] = gradient
    return tuple(found)


def _changed(answer: Any, found: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients with a hook's replacements, if any.  Raises RuntimeError for another number of gradients."""
    if answer is None:
        return found
    given = answer if isinstance(answer, tuple) else (answer,)
    if len(given) != len(found):
        raise RuntimeError(f"Backward hook returned an invalid number of grad: got {len(given)}, expected {len(found)}")
    return given
