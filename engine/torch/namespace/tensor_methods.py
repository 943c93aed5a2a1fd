"""Methods of tensors that are written in TorchScript: bound here, compiled when first called.

In: nothing.  Out: `Tensor` with these methods, as an effect of the import.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from engine.aten.dispatch.calls import call, call_method
from engine.aten.python import binding
from engine.aten.values.tensor import Tensor
from engine.fuser.library import serving
from engine.fuser.operators import slots
from engine.lang.deferred import deferred

if TYPE_CHECKING:
    from engine.torch.namespace import functions
else:
    functions = deferred("engine.torch.namespace.functions")  # which the executor comes with

COMPILERS: Final = (slots, serving)
"""Modules that offer machine code for what is called often: each takes its slot when it is imported."""

_NAMES: Final = "unique unique_consecutive"


def _method(name: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        function: Any = functions.find(name)
        return function(self, *args, **kwargs)

    method.__name__ = name
    return method


def _nonzero(self: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of nonzero elements: rows of one tensor, or a tensor for each dimension."""
    return tuple(call("nonzero_numpy", (self,), {})) if as_tuple else call_method("nonzero", (self,), {})


def _norm(self: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The norm of the elements, or along some dimensions, as `torch.norm` computes it."""
    if dtype is None and isinstance(p, (int, float)):
        return call_method("norm", (self, p) if dim is None else (self, p, dim, keepdim), {})
    function: Any = _general_norm()
    return function(self, p, dim, keepdim, dtype=dtype)


@cache
def _general_norm() -> Any:
    return functions.find("norm")


binding.bind({"norm": _norm, "nonzero": _nonzero, **{name: _method(name) for name in _NAMES.split()}})
