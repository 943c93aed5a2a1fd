"""`torch.nn.utils.parametrize`: parameters that are computed from others whenever they are read.

In: a module, the name of one of its parameters, and a module that computes it.  Out: the module, its parameter a
property; what is trained is `module.parametrizations.NAME.original`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from engine.aten.autograd import no_grad
from engine.aten.tensor import Tensor
from engine.torch.nn.modules.container import ModuleDict, ModuleList
from engine.torch.nn.modules.module import Module
from engine.torch.nn.parameter import Parameter

_CACHE: Final[dict[tuple[int, str], Tensor]] = {}
_caching: Final[list[None]] = []


class ParametrizationList(ModuleList):
    """The modules that compute a parameter, and the original that they start from."""

    def __init__(self, modules: list[Any], original: Tensor) -> None:
        super().__init__(modules)
        self.original = Parameter(original.data, original.requires_grad)

    def forward(self) -> Any:
        value: Any = self.original
        for module in self:
            value = module(value)
        return value


@contextmanager
def cached() -> Iterator[None]:
    """Each parameter is computed once inside."""
    _caching.append(None)
    try:
        yield
    finally:
        _caching.pop()
        if not _caching:
            _CACHE.clear()


def register_parametrization(module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False) -> Any:
    """Compute the parameter by the module `parametrization`, after those that do so already.

    Raises ValueError when there is no such parameter.
    """
    if is_parametrized(module, tensor_name):
        module.parametrizations[tensor_name].append(parametrization)
        return module
    original = module._parameters.pop(tensor_name, None)
    if original is None:
        raise ValueError(f"Module '{type(module).__name__}' does not have a parameter with name '{tensor_name}'")
    if not is_parametrized(module):
        module.__class__ = type(f"Parametrized{type(module).__name__}", (type(module),), {})
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = ParametrizationList([parametrization], original)
    setattr(type(module), tensor_name, property(lambda self: _value(self, tensor_name)))
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Is this parameter (or any) computed?"""
    found = module._modules.get("parametrizations")
    return found is not None and (tensor_name is None or tensor_name in found)


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make the parameter an ordinary one again, with the computed values or the original's.  Raises ValueError."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {type(module).__name__} does not have a parametrization on {tensor_name}")
    with no_grad():
        value = getattr(module, tensor_name)
    original = module.parametrizations[tensor_name].original
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    module.register_parameter(tensor_name, Parameter(value.data) if leave_parametrized else original)
    if not len(module.parametrizations):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def _value(module: Any, name: str) -> Any:
    if not _caching:
        return module.parametrizations[name].forward()
    key = id(module), name
    if key not in _CACHE:
        _CACHE[key] = module.parametrizations[name].forward()
    return _CACHE[key]
