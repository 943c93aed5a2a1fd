"""Operators about the program's own running: optionals, enums, warnings, where it runs.

In: any value.  Out: any value.
"""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

from engine.aten.dispatch.autocast import STATE as CASTS
from engine.aten.dispatch.autocast import pause, resume, small_dtype
from engine.aten.dispatch.table import op
from engine.aten.values.awaits import Await
from engine.aten.values.hooks import HOOKS
from engine.aten.values.ivalue import EnumValue, Object
from engine.aten.values.tensor import Tensor, tensor
from engine.lang import custom_classes
from engine.lang.counters import add_stat_value, time_point
from engine.lang.errors import Error, NotSupportedError, OperatorError

_ASSERTION = "AssertionError: "


def same(value: Any) -> Any:
    return value


def unwrap_optional(value: Any) -> Any:
    if value is None:
        raise OperatorError("Unwrapping null optional")
    return value


def choose(condition: bool, x: Any, y: Any) -> Any:
    return x if condition else y


def enum_value(member: EnumValue) -> Any:
    return member.value


def warn(message: str, stacklevel: int) -> None:
    warnings.warn(message, UserWarning, stacklevel=stacklevel)


def raise_exception(message: str, python_class: str | None) -> None:
    """An `assert` names no class; its message begins with it."""
    if python_class is None and message.startswith(_ASSERTION):
        raise Error(message.removeprefix(_ASSERTION), python_class="AssertionError")
    raise Error(message, python_class=python_class or "Exception")


def wait(future: Any) -> Any:
    return future.wait()


def enter_block(name: str, args: str | None) -> Object:
    """The mark of a new named block, for `exit_block`; a profiler notes when this runs."""
    return Object(_BLOCK)


def enter_block_by_tensor(name: str, args: str | None) -> Tensor:
    """The same mark as programs had it before PyTorch 1.12."""
    return tensor(0) if HOOKS.trace is not None else _UNSEEN


def exit_block(mark: Object | Tensor) -> None:
    """Nothing: the block of that mark ends, for a profiler."""


_BLOCK = custom_classes.builtin("profiler._RecordFunction")
_UNSEEN = tensor(0)


def no_file(filename: str) -> NoReturn:
    """Refuse: whoever runs an archive does not expect that it reads or writes files."""
    raise NotSupportedError(
        f"programs do not read or write files, such as {filename!r}",
        hints=("return the value, and have Python save it: torch.save(f(x), path)",),
    )


op("prim::unchecked_cast(t x) -> t", python=same)
op("aten::_pause_autocast() -> ()", python=pause, side_effects=True)
op("aten::_resume_autocast() -> ()", python=resume, side_effects=True)
op("prim::unchecked_unwrap_optional(t(a)? optional) -> t(a)", python=same)
op("aten::_unwrap_optional(t(a)? optional) -> t(a)", python=unwrap_optional)
op("prim::Uninitialized() -> Any", python=lambda: None)
op("prim::IfThenElse(bool cond, Any(a) x, Any(b) y) -> Any(b|a)", python=choose)
op("prim::EnumName(AnyEnumType enum) -> str", python=lambda member: member.name)
for _kind in ("int", "float", "str"):
    op(f"prim::EnumValue.{_kind}(AnyEnumType enum) -> {_kind}", python=enum_value)
op("prim::id(AnyClassType? x) -> int", python=lambda x: 0 if x is None else id(x))
op(f"profiler::_record_function_enter_new(str name, str? args=None) -> {_BLOCK.qualname}",
   python=enter_block, side_effects=True)  # fmt: skip
op(f"profiler::_record_function_exit._RecordFunction({_BLOCK.qualname} record) -> ()",
   python=exit_block, side_effects=True)  # fmt: skip
op("profiler::_record_function_enter(str name, str? args=None) -> Tensor",
   python=enter_block_by_tensor, side_effects=True)  # fmt: skip
op("profiler::_record_function_exit(Tensor handle) -> ()", python=exit_block, side_effects=True)
op("prim::AddStatValue(str key, int val) -> ()", python=add_stat_value, side_effects=True)
op("prim::TimePoint() -> int", python=time_point, side_effects=True)
op("aten::warn(str message, int stacklevel=2) -> ()", python=warn, side_effects=True)
op("aten::save(t item, str filename) -> ()", python=lambda item, filename: no_file(filename), side_effects=True)
op("aten::from_file(str filename, bool? shared=None, int? size=0, *, ScalarType? dtype=None, Layout? layout=None, "
   "Device? device=None, bool? pin_memory=None) -> Tensor",
   python=lambda filename, *_: no_file(filename), side_effects=True)  # fmt: skip
op("aten::is_scripting() -> bool", python=lambda: True)
op("aten::_get_tracing_state() -> bool", python=lambda: False)
op("prim::RaiseException(str msg, str? cls=None) -> ()", python=raise_exception, side_effects=True)
op("aten::wait(Future(t) self) -> t", python=wait)
op("prim::awaitable_wait(Await(t) self) -> t", python=wait, side_effects=True)
op("prim::awaitable_nowait(t self) -> Await(t)", python=Await.of)

op("aten::is_autocast_enabled() -> bool", python=lambda: False, side_effects=True)  # of a GPU
op("aten::is_autocast_cpu_enabled() -> bool", python=lambda: CASTS.fast is not None, side_effects=True)
op("aten::get_autocast_dtype(str device_type) -> ScalarType", side_effects=True,
   python=lambda device_type: small_dtype(device_type).number)  # fmt: skip
