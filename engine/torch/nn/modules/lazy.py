"""Lazy layers, which take the number of input features from their first input.

In: all but the number of input features.  Out: a layer whose first call makes its parameters, and turns it
into an ordinary layer (`LazyLinear` becomes `Linear`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import engine as torch
from engine.aten.values.tensor import Tensor
from engine.torch.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from engine.torch.nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from engine.torch.nn.modules.instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from engine.torch.nn.modules.linear import Linear
from engine.torch.nn.modules.module import Module
from engine.torch.nn.parameter import UninitializedBuffer, UninitializedParameter, materialize

_TABLES = frozenset({"_parameters", "_buffers", "_modules", "_other_hooks", "_forward_hooks", "_forward_pre_hooks"})


class LazyModuleMixin:
    """The base of lazy layers.  `_size_name` is the omitted argument, `_axis` its dimension in inputs."""

    cls_to_become: ClassVar[type[Module]]
    _size_name: ClassVar[str]
    _axis: ClassVar[int] = 1
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)  # type: ignore[arg-type]
        self.__dict__["_made_with"] = args, kwargs
        with torch.random.fork_rng():
            made = self.cls_to_become(*self._arguments(None))
        for name, value in vars(made).items():
            if name not in _TABLES:
                self.__dict__[name] = value
        self.__dict__[self._size_name] = 0
        for table, kind in (("_parameters", UninitializedParameter), ("_buffers", UninitializedBuffer)):
            for name, value in vars(made)[table].items():
                self.__dict__[table][name] = value if value is None or value.ndim == 0 else kind(value)

    def _arguments(self, size: int | None) -> list[Any]:
        """The arguments of the ordinary layer; without a size, with the smallest one possible."""
        args, kwargs = self.__dict__["_made_with"]
        code = self.cls_to_become.__init__.__code__
        names = code.co_varnames[1 : code.co_argcount]
        defaults = self.cls_to_become.__init__.__defaults__ or ()
        values = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
        values.update(self._defaults)
        values.update(zip((name for name in names if name != self._size_name), args, strict=False))
        unknown = [name for name in kwargs if name not in names]
        if unknown or len(args) >= len(names):
            what = unknown[0] if unknown else args[-1]
            raise TypeError(f"{type(self).__name__}() got an unexpected argument {what!r}")
        values.update(kwargs)
        values[self._size_name] = values.get("groups", 1) if size is None else size
        missing = [name for name in names if name not in values]
        if missing:
            raise TypeError(f"{type(self).__name__}() missing required argument: '{missing[0]}'")
        return [values[name] for name in names]

    def has_uninitialized_params(self) -> bool:
        return any(
            isinstance(value, (UninitializedParameter, UninitializedBuffer))
            for table in ("_parameters", "_buffers")
            for value in self.__dict__[table].values()
        )

    def initialize_parameters(self, size: int) -> None:
        """Make the parameters for inputs with this many features; they stay the same objects."""
        made = self.cls_to_become(*self._arguments(size))
        for table in ("_parameters", "_buffers"):
            for name, own in self.__dict__[table].items():
                if isinstance(own, (UninitializedParameter, UninitializedBuffer)):
                    materialize(own, vars(made)[table][name])
                elif own is not None:
                    own.data.copy_(vars(made)[table][name].data)
        self.__dict__[self._size_name] = size

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._settle(args[0].shape[self._axis])
        return self(*args, **kwargs)

    def _settle(self, size: int) -> None:
        if self.has_uninitialized_params():
            self.initialize_parameters(size)
        self.__dict__.pop("_made_with")
        self.__dict__[self._size_name] = size
        self.__class__ = self.cls_to_become  # type: ignore[assignment]

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        weight = state_dict.get(f"{prefix}weight", state_dict.get(f"{prefix}running_mean"))
        if weight is not None and self.has_uninitialized_params():
            self.initialize_parameters(self._size_of(weight))
        super()._load_from_state_dict(state_dict, prefix, *rest)  # type: ignore[misc]

    def _size_of(self, weight: Tensor) -> int:
        """The number of input features of a layer with this weight."""
        if self._size_name == "num_features" or "Transpose" in self.cls_to_become.__name__:
            return weight.shape[0]
        return weight.shape[1] * self.__dict__.get("groups", 1)


class LazyLinear(LazyModuleMixin, Linear):
    """Linear without `in_features`."""

    cls_to_become, _size_name, _axis = Linear, "in_features", -1


def _lazy(ordinary: Any, size: str, axis: int, **defaults: Any) -> Any:
    """A lazy class whose instances become instances of `ordinary`."""
    facts = {
        "cls_to_become": ordinary, "_size_name": size, "_axis": axis, "_defaults": defaults, "__module__": __name__,
    }  # fmt: skip
    return type(f"Lazy{ordinary.__name__}", (LazyModuleMixin, ordinary), {"__doc__": f"Without `{size}`.", **facts})


LazyConv1d, LazyConv2d, LazyConv3d, LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(each, "in_channels", -1 - each.dims)
    for each in (Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
)  # fmt: skip
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (
    _lazy(each, "num_features", 1) for each in (BatchNorm1d, BatchNorm2d, BatchNorm3d)
)  # fmt: skip
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _lazy(each, "num_features", axis, affine=True, track_running_stats=True)
    for each, axis in ((InstanceNorm1d, -2), (InstanceNorm2d, -3), (InstanceNorm3d, -4))
)  # fmt: skip
