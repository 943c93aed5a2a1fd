"""Modules that hold modules or parameters: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict.

In: modules (or parameters) in order or under names.  Out: a module that is also a sequence or mapping of them.
`_container_kind` tells the compiler how programs may iterate over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from engine.aten.values.tensor import Tensor
from engine.lang.scalars import dtype
from engine.torch.nn.modules.module import Module, shown
from engine.torch.nn.parameter import Parameter


class _Numbered(Module):
    """Children under the names "0", "1", …"""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        modules = list(self._modules.values())
        if isinstance(index, slice):
            return self._of(modules[index])
        if not -len(modules) <= index < len(modules):
            raise IndexError(f"index {index} is out of range: there are {len(modules)} modules")
        return modules[index]

    def __setitem__(self, index: int, module: Any) -> None:
        self._modules[list(self._modules)[index]] = module

    def __delitem__(self, index: Any) -> None:
        modules = list(self._modules.values())
        del modules[index]
        self._modules.clear()
        self.extend(modules)

    def _of(self, modules: Iterable[Any]) -> Any:
        raise NotImplementedError

    def append(self, module: Any) -> Any:
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Any]) -> Any:
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Any) -> None:
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules.clear()
        self.extend(modules)

    def pop(self, key: int) -> Any:
        """Remove and return the module at this index."""
        module = self[key]
        del self[key]
        return module

    def __add__(self, other: Iterable[Any]) -> Any:
        return self._of([*self, *other])

    def __iadd__(self, other: Iterable[Any]) -> Any:
        return self.extend(list(other))

    def __repr__(self) -> str:
        return shown(type(self).__name__, (), _runs([(name, repr(each)) for name, each in self._modules.items()]))


class Sequential(_Numbered):
    """Modules called one after the other: `Sequential(a, b)`, or with names `Sequential(OrderedDict(x=a, y=b))`."""

    _container_kind: ClassVar[str] = "list"

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], Mapping) else enumerate(args)
        for name, module in named:
            self.register_module(str(name), module)

    def _of(self, modules: Iterable[Any]) -> Any:
        return type(self)(*modules)

    def __mul__(self, count: int) -> Sequential:
        if count <= 0:
            raise ValueError(f"Non-positive multiplication factor {count} for {type(self)}")
        return Sequential(*(list(self) * count))

    __rmul__ = __mul__

    def __imul__(self, count: int) -> Sequential:
        return self.extend(list(self) * (count - 1))

    def __repr__(self) -> str:
        return Module.__repr__(self)

    def forward(self, input):  # type: ignore[no-untyped-def]
        for module in self:
            input = module(input)
        return input


class ModuleList(_Numbered):
    """A list of modules, which cannot be called itself."""

    _container_kind: ClassVar[str] = "list"

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def _of(self, modules: Iterable[Any]) -> Any:
        return type(self)(modules)


class ModuleDict(Module):
    """Modules under names."""

    _container_kind: ClassVar[str] = "dict"

    def __init__(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def update(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        for name, module in modules.items() if isinstance(modules, Mapping) else modules:
            self[name] = module

    def __getitem__(self, name: str) -> Any:
        return self._modules[name]

    def __setitem__(self, name: str, module: Any) -> None:
        self.register_module(name, module)

    def __delitem__(self, name: str) -> None:
        del self._modules[name]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: str) -> bool:
        return name in self._modules

    def keys(self) -> Iterable[str]:
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        return self._modules.items()

    def pop(self, name: str) -> Any:
        return self._modules.pop(name)

    def clear(self) -> None:
        self._modules.clear()


class ParameterList(Module):
    """A list of parameters; tensors become parameters when they are added."""

    _container_kind: ClassVar[str] = "parameter_list"

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def append(self, value: Tensor) -> ParameterList:
        self.register_parameter(str(len(self)), _as_parameter(value))
        return self

    def extend(self, values: Iterable[Tensor]) -> ParameterList:
        for value in values:
            self.append(value)
        return self

    def __getitem__(self, index: Any) -> Any:
        values = list(self._parameters.values())
        return type(self)(v for v in values[index] if v is not None) if isinstance(index, slice) else values[index]

    def __setitem__(self, index: int, value: Tensor) -> None:
        self._parameters[list(self._parameters)[index]] = _as_parameter(value)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def extra_repr(self) -> str:
        return _parameter_lines(self, str)


class ParameterDict(Module):
    """Parameters under names."""

    _container_kind: ClassVar[str] = "parameter_dict"

    def __init__(self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def update(self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]) -> None:
        for name, value in parameters.items() if isinstance(parameters, Mapping) else parameters:
            self[name] = value

    def __getitem__(self, name: str) -> Any:
        return self._parameters[name]

    def __setitem__(self, name: str, value: Tensor) -> None:
        self.register_parameter(name, _as_parameter(value))

    def __delitem__(self, name: str) -> None:
        del self._parameters[name]

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, name: str) -> bool:
        return name in self._parameters

    def keys(self) -> Iterable[str]:
        return self._parameters.keys()

    def values(self) -> Iterable[Any]:
        return self._parameters.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        return self._parameters.items()

    def extra_repr(self) -> str:
        return _parameter_lines(self, lambda d: f"torch.{d.ir_name}Tensor")


def _as_parameter(value: Tensor) -> Tensor:
    return value if isinstance(value, Parameter) else Parameter(value)


def _parameter_lines(module: Module, kind: Callable[[dtype], str]) -> str:
    """The parameters, one a line, for `repr`; `kind` names their dtypes."""
    return "\n".join(
        f"  ({name}): Parameter containing: [{kind(each.dtype)} of size {'x'.join(map(str, each.shape))}]"
        for name, each in module._parameters.items()
        if each is not None
    )


def _runs(children: Iterable[tuple[str, str]]) -> list[str]:
    """The children as text, with equal neighbours shown once: `(0-2): 3 x ReLU()`."""
    runs: list[tuple[str, str, int, str]] = []
    for name, text in children:
        if runs and runs[-1][3] == text:
            first, _, count, _ = runs[-1]
            runs[-1] = (first, name, count + 1, text)
        else:
            runs.append((name, name, 1, text))
    return [
        (f"({first}): {text}" if count == 1 else f"({first}-{last}): {count} x {text}").replace("\n", "\n  ")
        for first, last, count, text in runs
    ]
