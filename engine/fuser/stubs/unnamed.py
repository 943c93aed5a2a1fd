"""Bindings without the names that programs gave: equal for kernels that differ in names only.

In: a `Binding`, named after the values of a group.  Out: the same binding with numbers for names, which is what is
compiled: layers of a model have one kernel, also where each has weights of other names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from engine.fuser.ir.kernel import Kernel, Let, calling
from engine.fuser.ir.outlining import bound_names, renamed, renamed_expression, renamed_parameter
from engine.fuser.stubs.binding import (
    Argument,
    Binding,
    NumberResult,
    ObjectResult,
    Result,
    TensorArgument,
    size,
    stride,
)

AnyResult = Result | NumberResult | ObjectResult
T = TypeVar("T", bound=Argument | AnyResult)


def unnamed(binding: Binding) -> Binding:
    """The binding with numbers for names, but for that of the kernel itself."""
    names = {name: f"_{i}" for i, name in enumerate(dict.fromkeys(_names(binding)))}
    for each in binding.arguments:
        if isinstance(each, TensorArgument):
            for d in range(each.rank):
                for of in (size, stride):
                    names[of(each.name, d).name] = of(names[each.name], d).name
    functions = {each.name: f"helper_{i}" for i, each in enumerate(binding.kernel.helpers) if not each.is_ahead}
    results = tuple(_result(each, names) for each in binding.results)
    return replace(
        binding,
        kernel=_kernel(binding.kernel, names, functions),
        arguments=tuple(_named(each, names) for each in binding.arguments),
        results=results,
        guards=tuple(renamed_expression(each, names) for each in binding.guards),
        lets=tuple(Let(names[each.name], renamed_expression(each.value, names)) for each in binding.lets),
        work=None if binding.work is None else renamed_expression(binding.work, names),
        told=None if binding.told is None else replace(binding.told, name=names[binding.told.name]),
    )


def told_by(binding: Binding) -> str:
    """All that tells the binding from others; of helpers that the library has, their names do."""
    kernel = binding.kernel
    own = replace(kernel, helpers=tuple(each for each in kernel.helpers if not each.is_ahead))
    ahead = [each.name for each in kernel.helpers if each.is_ahead]
    return f"{replace(binding, kernel=own)} {ahead}"


def _names(binding: Binding) -> Iterator[str]:
    """All names, in order; some more than once."""
    yield from (each.name for each in (*binding.arguments, *binding.results, *binding.lets))
    if binding.told is not None:
        yield binding.told.name
    for kernel in (*binding.kernel.helpers, binding.kernel):
        if kernel.is_ahead:
            continue
        yield from (each.name for each in kernel.parameters)
        yield from bound_names(kernel.body)


def _named(of: T, names: Mapping[str, str]) -> T:
    return replace(of, name=names[of.name])


def _result(of: AnyResult, names: Mapping[str, str]) -> AnyResult:
    if isinstance(of, Result):
        of = replace(of, shape=tuple(renamed_expression(each, names) for each in of.shape))
    return _named(of, names)


def _kernel(of: Kernel, names: Mapping[str, str], functions: Mapping[str, str]) -> Kernel:
    if of.is_ahead:
        return of
    found = calling(of, functions)
    return replace(
        found,
        name=functions.get(of.name, of.name),
        parameters=tuple(renamed_parameter(each, names) for each in of.parameters),
        body=renamed(found.body, names),
        helpers=tuple(_kernel(each, names, functions) for each in of.helpers),
    )
