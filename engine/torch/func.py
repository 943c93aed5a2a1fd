"""`torch.func`: transformations of functions.

In: a function of tensors, or a module.  Out: a function that returns gradients or is vectorized over a dimension; a
call of the module with other parameters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from engine.aten.autograd import functional
from engine.aten.autograd import grad as gradients_of
from engine.aten.dispatch.calls import call
from engine.aten.values.tensor import Tensor
from engine.torch.namespace.missing_names import refuse_unknown_names

Function = Callable[..., Any]


def grad(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of `func`, which returns one number."""

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, rest = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (found, rest[1]) if has_aux else found

    return gradient


def grad_and_value(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of `func` and its value."""

    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> Any:
        places = (argnums,) if isinstance(argnums, int) else argnums
        given = list(args)
        leaves: list[Tensor] = []
        for place in places:
            given[place] = _with_leaves(args[place], leaves)
        value = func(*given, **kwargs)
        loss = value[0] if has_aux else value
        outer = any(leaf.grad_fn is not None for leaf in leaves)
        found = iter(gradients_of(loss, leaves, create_graph=outer, allow_unused=True))
        results = tuple(_with_values(args[place], found) for place in places)
        return (results[0] if isinstance(argnums, int) else results), value

    return both


def _with_leaves(value: Any, leaves: list[Tensor]) -> Any:
    """A copy of the structure whose tensors require gradients; these are appended to `leaves`."""
    if isinstance(value, Tensor):
        leaf: Tensor = value.view_as(value) if value.requires_grad else value.detach().requires_grad_()
        leaves.append(leaf)
        return leaf
    if isinstance(value, Mapping):
        return {key: _with_leaves(each, leaves) for key, each in value.items()}
    return type(value)(_with_leaves(each, leaves) for each in value)


def _with_values(like: Any, found: Any) -> Any:
    if isinstance(like, Tensor):
        gradient = next(found)
        return like.detach() * 0 if gradient is None else gradient
    if isinstance(like, Mapping):
        return {key: _with_values(each, found) for key, each in like.items()}
    return type(like)(_with_values(each, found) for each in like)


def jacrev(func: Function, argnums: int = 0) -> Function:
    """A function that returns the Jacobian of `func` with respect to one of its arguments."""

    def jacobian(*args: Any) -> Any:
        def of_one(value: Tensor) -> Any:
            return func(*args[:argnums], value, *args[argnums + 1 :])

        return functional.jacobian(of_one, args[argnums], create_graph=args[argnums].requires_grad)

    return jacobian


jacfwd = jacrev


def hessian(func: Function, argnums: int = 0) -> Function:
    """A function that returns the second derivatives of `func`, which returns one number."""
    return jacrev(jacrev(func, argnums), argnums)


def vmap(func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", **_: Any) -> Function:
    """The function mapped over a dimension of its arguments: called for every index, with the results stacked."""

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        sizes = {arg.shape[dim] for arg, dim in zip(args, dims, strict=True) if dim is not None}
        if len(sizes) != 1:
            raise ValueError(f"vmap: expected all tensors to have the same size in the mapped dimension, got {sizes}")
        rows = [
            func(*(a if d is None else a.select(d, i) for a, d in zip(args, dims, strict=True)), **kwargs)
            for i in range(sizes.pop())
        ]
        return _stacked(rows, out_dims)

    return mapped


def _stacked(rows: list[Any], dims: Any) -> Any:
    if isinstance(rows[0], Tensor):
        return call("stack", (rows, dims), {})
    if isinstance(rows[0], Mapping):
        return {key: _stacked([row[key] for row in rows], dims) for key in rows[0]}
    each = dims if isinstance(dims, tuple) else (dims,) * len(rows[0])
    return tuple(_stacked(list(part), dim) for part, dim in zip(zip(*rows, strict=True), each, strict=True))


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None) -> Any:
    """Call a module with the given parameters and buffers instead of its own.  Raises KeyError for unknown names."""
    given = parameter_and_buffer_dicts
    values = given if isinstance(given, Mapping) else {k: v for each in given for k, v in each.items()}
    replaced: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for path, value in values.items():
            owner, _, name = path.rpartition(".")
            tables = vars(module.get_submodule(owner))
            table = next((tables[t] for t in ("_parameters", "_buffers") if name in tables[t]), None)
            if table is None:
                raise KeyError(f"the module has no parameter or buffer '{path}'")
            replaced.append((table, name, table[name]))
            table[name] = value
        arguments = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*arguments, **(kwargs or {}))
    finally:
        for table, name, own in reversed(replaced):
            table[name] = own


refuse_unknown_names(__name__)
