"""Questions about Python's annotations and functions, under the names of `torch._jit_internal`.

In: annotations, functions, modules.  Out: facts: an Optional or not, the modifier of a function, its qualified name.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from engine.aten.values.awaits import Await
from engine.executor.concurrency.futures import Future
from engine.frontend.python.modifiers import DROPPED, IGNORED, MODIFIER, modifier_of
from engine.torch.jit.scripting.emit_hooks import disable_emit_hooks
from engine.torch.jit.scripting.names_seen import names_seen as names_seen
from engine.torch.jit.scripting.python_program import PYTHON

BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = list
"""In annotations (`BroadcastingList2[int]`), lists for which one number may stand; compiled texts know the names."""


def is_optional(ann: Any) -> bool:
    """True for `Optional[T]`, and for a Union that includes None."""
    return is_union(ann) and type(None) in typing.get_args(ann)


def is_union(ann: Any) -> bool:
    return typing.get_origin(ann) in (typing.Union, types.UnionType)


def _is_generic(origin: type) -> Callable[[Any], bool]:
    def test(ann: Any) -> bool:
        return typing.get_origin(ann) is origin

    test.__doc__ = f"True for a {origin.__name__} with the types of its parts."
    return test


is_tuple: Final = _is_generic(tuple)
is_list: Final = _is_generic(list)
is_dict: Final = _is_generic(dict)
is_future: Final = _is_generic(Future)
is_await: Final = _is_generic(Await)


def is_final(ann: Any) -> bool:
    """True for `Final[T]`."""
    return ann is typing.Final or typing.get_origin(ann) is typing.Final


class FunctionModifiers:
    """The marks that `torch.jit.ignore` and its like leave on a function."""

    UNUSED = "unused"
    IGNORE = "ignore"
    EXPORT = "export"
    DEFAULT = "default"
    _DROP = "drop"
    COPY_TO_SCRIPT_WRAPPER = "copy"


def get_torchscript_modifier(fn: Any) -> str:
    """The mark of the function."""
    return modifier_of(getattr(fn, "__func__", fn)) or FunctionModifiers.DEFAULT


def is_ignored_fn(fn: Any) -> bool:
    """True for a function that stays in Python."""
    return get_torchscript_modifier(fn) in IGNORED


def should_drop(fn: Any) -> bool:
    """True for a function whose calls are compiled to an error."""
    return get_torchscript_modifier(fn) in DROPPED


def copy_to_script_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method that compiled modules get from the Python class."""
    setattr(fn, MODIFIER, "ignore")
    return fn


def qualified_name(obj: Any, mangle_name: bool = True) -> str:
    """The name that a class or function has in archives."""
    return getattr(obj, "_jit_override_qualname", None) or PYTHON.name_of(obj)


def fake_range() -> Any:
    """A range of no text: None."""


def names_from_frame(frames_up: int = 0) -> Callable[[str], Any]:
    """A function that finds names as the code does that calls this, or its callers do."""
    return names_seen(frames_up + 1).get


def names_from_closure(fn: Callable[..., Any]) -> Callable[[str], Any]:
    """A function that finds names as the function's own code does."""
    seen = inspect.getclosurevars(fn)
    return {**seen.builtins, **fn.__globals__, **seen.nonlocals}.get


def disable_emit_hooks_decorator(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of whose compiled programs nobody is told."""

    @wraps(fn)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        with disable_emit_hooks():
            return fn(*args, **kwargs)

    return quiet


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, module_name: str, func_name: str
) -> Callable[..., Any]:
    """One function of two, by a flag among its arguments."""

    def choose(*args: Any, **kwargs: Any) -> Any:
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    choose.__name__, choose.__module__ = func_name, module_name
    return choose
