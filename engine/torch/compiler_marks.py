"""Marks and rules that programs leave for compilers and exporters of PyTorch, and questions whether one is at work.

In: functions, settings.  Out: the functions as they are, since `torch.compile` gives back what it is given, nothing is
exported, and no operator runs without the elements of its tensors; the answer to every question is no.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

from engine.aten.values.tensor import Tensor

T = TypeVar("T")


def _unchanged(fn: Any = None, *_: Any, **__: Any) -> Any:
    """The function itself, or, called without one, a decorator that leaves functions as they are."""
    return (lambda each: each) if fn is None else fn


allow_in_graph = disable = assume_constant_result = wrap = _unchanged


def compatibility(is_backward_compatible: bool = False) -> Callable[[T], T]:
    """A decorator that leaves functions as they are."""
    return lambda each: each


def parse_args(*kinds: str) -> Callable[[T], T]:
    """A decorator that leaves rules of an exporter as they are."""
    return lambda each: each


def _no(*_: Any, **__: Any) -> bool:
    """False: nothing is compiled, exported or taken over behind a program's back."""
    return False


is_compiling = is_dynamo_compiling = is_compile_supported = is_exporting = is_in_onnx_export = is_fake = _no
DisableTorchFunctionSubclass = nullcontext
has_torch_function = has_torch_function_unary = has_torch_function_variadic = _no


def _get_torch_home() -> str:
    """The folder in which PyTorch keeps what it has fetched: $TORCH_HOME, or one of the user's caches."""
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch")))


def is_tensor_like(value: Any) -> bool:
    return isinstance(value, Tensor)


def _nothing(*_: Any, **__: Any) -> None:
    """No effect: there is no compiler whose state could be reset or told of steps, and no exporter with rules."""


reset = get_proxy_mode = cudagraph_mark_step_begin = set_stance = register_custom_op_symbolic = _nothing
