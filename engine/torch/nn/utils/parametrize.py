"""`torch.nn.utils.parametrize`: parameters computed from others at every access.

In: a module, the name of one of its parameters, and a module that computes it.  Out: the module, its parameter a
property; the trained parameter is `module.parametrizations.NAME.original`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from engine.aten.autograd import no_grad
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.frontend.python.modifiers import MODIFIER
from engine.lang.generated import define
from engine.torch.nn.modules.container import ModuleDict, ModuleList
from engine.torch.nn.modules.module import Module
from engine.torch.nn.parameter import Parameter

_CACHE: Final[dict[int, Tensor]] = {}
_caching: Final[list[None]] = []


class ParametrizationList(ModuleList):
    """The modules that compute a parameter, and the original tensor that they are applied to."""

    def __init__(self, modules: list[Any], original: Tensor) -> None:
        super().__init__(modules)
        with no_grad():
            values = original.data if isinstance(original, Tensor) else original
            for module in reversed(modules):
                values = module.right_inverse(values) if hasattr(module, "right_inverse") else values
        self.is_tensor = isinstance(values, Tensor)
        learned = isinstance(original, Parameter)
        named = self._named(values)
        self._definitions = [_PROGRAM.format(", ".join(f"self.{name}" for name, _ in named))]
        for name, value in named:
            made = Parameter(value.data, original.requires_grad) if learned else value.data
            self.register_parameter(name, made) if learned else self.register_buffer(name, made)

    @staticmethod
    def _named(values: Any) -> list[tuple[str, Tensor]]:
        """Name -> tensor for the original: one tensor, or several that the first module takes."""
        return [("original", values)] if isinstance(values, Tensor) else [
            (f"original{i}", value) for i, value in enumerate(values)
        ]  # fmt: skip

    def originals(self) -> tuple[Tensor, ...]:
        count = len(self._parameters) + len(self._buffers)
        return tuple(getattr(self, "original" if self.is_tensor else f"original{i}") for i in range(count))

    def right_inverse(self, value: Tensor) -> None:
        """Set the original so that this value results.  Raises RuntimeError for a module without `right_inverse`."""
        with no_grad():
            values: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse, so that the "
                        "parameter cannot be assigned"
                    )
                values = module.right_inverse(values)
            for (_, given), own in zip(self._named(values), self.originals(), strict=True):
                own.data.copy_(given)

    def forward(self) -> Any:
        if not _caching:
            return self._computed()
        if HOOKS.tracer is not None:
            raise RuntimeError("Cannot trace a model while caching the parametrizations.")
        if id(self) not in _CACHE:
            _CACHE[id(self)] = self._computed()
        return _CACHE[id(self)]

    setattr(forward, MODIFIER, "ignore")

    def _computed(self) -> Any:
        first, *others = self
        value: Any = first(*self.originals())
        for module in others:
            value = module(value)
        return value


_PROGRAM: Final = """
def forward(self):
    value = self[0]({})
    for module in self[1:]:
        value = module(value)
    return value
"""
"""The method of compiled programs, for the originals that there are."""


@contextmanager
def cached() -> Iterator[None]:
    """A `with` block in which each parameter is computed once."""
    _caching.append(None)
    try:
        yield
    finally:
        _caching.pop()
        if not _caching:
            _CACHE.clear()


def register_parametrization(module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False) -> Any:
    """Compute the parameter by the module `parametrization`, applied after the existing ones.

    Raises ValueError for an unknown parameter.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        value = getattr(module, tensor_name).detach()
        if hasattr(parametrization, "right_inverse"):
            module.parametrizations[tensor_name].right_inverse(parametrization.right_inverse(value))
        module.parametrizations[tensor_name].append(parametrization)
        return module
    tables = (module._parameters, module._buffers)
    original = next((table[tensor_name] for table in tables if table.get(tensor_name) is not None), None)
    if original is None:
        raise ValueError(
            f"Module '{type(module).__name__}' does not have a parameter, a buffer, or a parametrized element with "
            f"name '{tensor_name}'"
        )
    parametrizations = ParametrizationList([parametrization], original)
    for table in tables:
        table.pop(tensor_name, None)
    if not is_parametrized(module):
        module.__class__ = type(f"Parametrized{type(module).__name__}", (type(module),), {})
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = parametrizations
    getter = computed_property(tensor_name, f"self.parametrizations[{tensor_name!r}]()")
    setattr(type(module), tensor_name, getter.setter(_setter(tensor_name)))
    return module


def computed_property(name: str, expression: str) -> property:
    """A property of modules, in Python and in programs, that is the value of an expression over `self`."""
    return property(define(name, ["self"], [f"return {expression}"], {}))


def with_property(module: Any, hook: Any, name: str, expression: str) -> Any:
    """A module that shares all with this one, but for the hook: what that computes before every call is a property."""
    made = copy.copy(module)
    for table in ("_parameters", "_buffers", "_modules", "_forward_pre_hooks"):
        made.__dict__[table] = copy.copy(module.__dict__[table])
    made.__dict__.pop(name)
    for key in [key for key, registered in made._forward_pre_hooks.items() if registered.call is hook]:
        del made._forward_pre_hooks[key]
    members = {name: computed_property(name, expression), "__module__": type(module).__module__}
    made.__class__ = type(type(module).__name__, (type(module),), members)
    return made


def _setter(name: str) -> Callable[[Any, Any], None]:
    def set_original(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(set_original, MODIFIER, "ignore")
    return set_original


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """True if the named parameter (or any) is parametrized."""
    found = module._modules.get("parametrizations")
    return found is not None and (tensor_name is None or tensor_name in found)


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make the parameter an ordinary one again, with the computed values or the original's.  Raises ValueError."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {type(module).__name__} does not have a parametrization on {tensor_name}")
    with no_grad():
        value = getattr(module, tensor_name)
    originals = module.parametrizations[tensor_name].originals()
    if not leave_parametrized and len(originals) > 1:
        raise ValueError("Cannot leave unparametrized a tensor that is computed from several")
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if isinstance(originals[0], Parameter):
        kept = originals[0] if not leave_parametrized else Parameter(value.data, originals[0].requires_grad)
        module.register_parameter(tensor_name, kept)
    else:
        module.register_buffer(tensor_name, value.data if leave_parametrized else originals[0])
    if not len(module.parametrizations):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module
