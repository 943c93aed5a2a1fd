"""Functions of Python that are told of everything that is compiled: `torch._C._jit_set_emit_hooks`.

In: a function for modules and one for functions, or None.  Out: each is called with the compiled thing, modules as
`torch._C.ScriptModule`, when `torch.jit.script` or `trace` has made it, and with nothing of a `CompilationUnit`, as in
PyTorch.  Without them nothing is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from engine.lang.records import dataclass
from engine.torch.jit.scripting.module_handle import handle_of

T = TypeVar("T")
Hook = Callable[[Any], Any]


@dataclass(slots=True)
class _Hooks:
    module: Hook | None = None
    function: Hook | None = None


_HOOKS: Final = _Hooks()


def set_emit_hooks(module_hook: Hook | None, function_hook: Hook | None) -> None:
    """Call these from now on; None calls nothing."""
    _HOOKS.module, _HOOKS.function = module_hook, function_hook


def get_emit_hooks() -> tuple[Hook | None, Hook | None]:
    """The functions for modules and for functions."""
    return _HOOKS.module, _HOOKS.function


@contextmanager
def disable_emit_hooks() -> Iterator[None]:
    """Tell nobody of what the block compiles."""
    before = get_emit_hooks()
    set_emit_hooks(None, None)
    try:
        yield
    finally:
        set_emit_hooks(*before)


def emitted_module(module: T) -> T:
    """The compiled module, of which the hook was told."""
    if _HOOKS.module is not None:
        _HOOKS.module(handle_of(module))
    return module


def emitted_function(function: T) -> T:
    """The compiled function, of which the hook was told."""
    if _HOOKS.function is not None:
        _HOOKS.function(function)
    return function
