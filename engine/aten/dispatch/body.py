"""The body of an operator as text: from its tensors to arrays, through its kernel, and back.

In: an `Op`.  Out: a `Body`, the lines of a function of all the schema's arguments, without hooks.  What they do is
settled here, once: which arguments are tensors to unwrap, whether numpy has to be silenced, how results are wrapped
(new, view, written).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.aten.dispatch import device_dispatch, errors
from engine.aten.dispatch.dtype_support import guarded
from engine.aten.dispatch.layouts import laid_out
from engine.aten.dispatch.out_checks import IN_DTYPE_OF_OUT, WRITE_AGAIN, WRITE_APART, check_of
from engine.aten.dispatch.scalar import QUICK_ENVIRONMENT, general_kernel, long_rows, quick_code, scalar_kernel
from engine.aten.dispatch.wrapping import (
    dtype_number,
    part,
    refuse_overlap,
    refuse_shared,
    store,
    store_again,
    store_out,
)
from engine.aten.kernels.rules import ordered_like
from engine.aten.values import libraries, xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.hot_helpers import HOT
from engine.aten.values.tensor import Tensor
from engine.lang.generated import indented
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import DEVICE, INT, ListType, OptionalType, TensorType, Type

if TYPE_CHECKING:
    from engine.aten.dispatch.op import Op


@dataclass(frozen=True, slots=True)
class Body:
    """Lines of a function, the expression that they leave the result in, and what the names in them stand for."""

    lines: Sequence[str]
    result: str
    environment: dict[str, Any]


def array_kernel(op: Op) -> Callable[..., Any]:
    """What computes the operator's results from arrays: its kernel, or its scalar expression compiled."""
    if op.functional is not None:
        kernel = array_kernel(op.functional)
        return guarded(op, kernel) if op.schema.arguments[0].is_write else kernel
    return guarded(op, scalar_kernel(op) if op.kernel is None else laid_out(op, op.kernel))


def array_body(op: Op) -> Body:
    """The operator over tensors, by its kernel."""
    schema = op.schema
    written = [a.name for a in schema.arguments if a.is_write]
    names = [safe(a.name) for a in schema.arguments]
    compute, environment = _computation(op, schema)
    refused = f"raise refusal(op, ({''.join(n + ', ' for n in names)}), error) from error"
    work = [*_overlap_check(schema), *compute, *_stores(schema, written)]
    rescue = f"if hooks.devices: result = rescued(op, op.body, ({''.join(n + ', ' for n in names)}), error)"
    lines = ["try:", *indented(work), "except REFUSALS as error:", f"    {rescue}", f"    else: {refused}"]
    if not (op.exact or _only_shows(schema) or _is_quickly_exact(op)):
        lines = ["token = switch(SILENT)", *lines, "finally:", "    loud(token)"]
    in_place = _in_place(op, schema)
    if in_place is not None:
        environment |= QUICK_ENVIRONMENT
        lines = [*in_place, *lines]
    environment = {**_ENVIRONMENT, **environment, "op": op, "check": check_of(op.qualified_name)}
    if written:
        return Body(lines, ", ".join(map(safe, written)), environment)
    wraps, result = _wraps(schema)
    return Body([*lines, *wraps], result, environment)


def _computation(op: Op, schema: FunctionSchema) -> tuple[list[str], dict[str, Any]]:
    """Lines that leave the result's array, or arrays, in `result`."""
    passed = [_unwrapped(a) for a in schema.arguments if not (a.kwarg_only and a.is_write)]
    if op.qualified_name in IN_DTYPE_OF_OUT:
        passed[-1] = "(dtype_number(out) if dtype is None else dtype)"
    given = ", ".join(passed)
    here = f"{'silently(kernel, ' if _is_quickly_exact(op) else 'kernel('}{given})"
    is_here = "not hooks.devices"
    if (device := _device_argument(schema)) is not None:
        is_here = f"{is_here} and ({device} is None or {device}.type == 'cpu')"
    general = f"{here} if {is_here} else computed(op, kernel, {given})"
    quick = quick_code(op) if op.scalar is not None else None
    if quick is None:
        return [f"result = {general}"], {"kernel": array_kernel(op)}
    spelled = {name: f"{safe(name)}_array" for name in quick.tensors}
    arrays = [f"{spelled[name]} = {safe(name)}.array" for name in quick.tensors]
    shown = ", ".join(spelled[name] for name in quick.tensors)
    first = spelled[quick.tensors[0]]
    is_in_order = f"result.flags.c_contiguous and ({first}.flags.c_contiguous or 0 in {first}.strides)"
    ordered = f"if not ({is_in_order}): result = ordered_like(result, ({shown},))"
    lines = [*arrays, *quick.lines("result = ", general, spelled), ordered]
    return lines, {"kernel": guarded(op, general_kernel(op)), "rows": long_rows(quick), **QUICK_ENVIRONMENT}


def _device_argument(schema: FunctionSchema) -> str | None:
    """The name of the argument that says where the result is made."""
    return next((safe(a.name) for a in schema.arguments if a.declared == "Device" or _is_device(a.type)), None)


def _is_device(type: Type) -> bool:
    return (type.element if isinstance(type, OptionalType) else type) is DEVICE


def _is_quickly_exact(op: Op) -> bool:
    """Is the operator's expression exact where nothing has to be converted?"""
    quick = quick_code(op) if op.scalar is not None else None
    return quick is not None and quick.is_exact


def _in_place(op: Op, schema: FunctionSchema) -> list[str] | None:
    """Lines that let one function of numpy write where the operator writes, if its operands all look like that."""
    source = op.functional
    quick = None if source is None or str(source.dtype) == "bool" else quick_code(source)
    if quick is None or [a.name for a in schema.arguments if a.is_write] != list(quick.tensors[:1]):
        return None
    spelled = {name: f"{safe(name)}_array" for name in quick.tensors}
    given = f"({''.join(safe(a.name) + ', ' for a in schema.arguments)})"
    call, first = quick.ufunc(spelled), spelled[quick.tensors[0]]
    if call is None:
        return None
    target = safe(quick.tensors[0])
    alike = [f"{spelled[n]}.dtype is d and {spelled[n]}.shape == {first}.shape" for n in quick.tensors[1:]]
    alike += [f"{name} == 1" for name in quick.units]
    alike += [f"type({name}) in real" for name in quick.numbers]
    return [
        *(f"{spelled[n]} = {safe(n)}.array" for n in quick.tensors),
        f"d = {first}.dtype",
        f"if {' and '.join(['(d is f32 or d is f64)', *alike])} and {first}.flags.c_contiguous:",
        *indented(_overlap_check(schema)),
        "    token = switch(SILENT)",
        "    try:",
        f"        {call[0]}({call[1]}, {first})",
        "    except REFUSALS as error:",
        f"        if not hooks.devices: raise refusal(op, {given}, error) from error",
        f"        rescued(op, op.body, {given}, error)",
        f"        return {target}",
        "    finally:",
        "        loud(token)",
        f"    storage = {target}._storage",
        f"    if storage is None: storage = {target}.memory",
        "    storage.version += 1",
        f"    return {target}",
    ]


def _only_shows(schema: FunctionSchema) -> bool:
    """Is the result a view of the one tensor there is, or sizes?  Then numpy finds no arithmetic to complain about."""
    if schema.returns and all(a.type in (INT, ListType(INT)) for a in schema.returns):
        return True
    converts = any(a.is_write or a.declared == "ScalarType" for a in schema.arguments)
    if converts or len(tensors_of(schema.arguments)) != 1:
        return False
    return len(schema.returns) == 1 and _viewed(schema, schema.returns[0]) is not None


# ------------------------------------------------------------------ arguments


def safe(name: str) -> str:
    """An argument's name as Python can spell it (`from` is a keyword there)."""
    return name if name.isidentifier() and name not in ("from", "lambda") else name + "_"


def tensor_kind(type: Type) -> str:
    """tensor, tensor?, tensor[] or tensor?[]; empty for every other type."""
    if isinstance(type, TensorType):
        return "tensor"
    if isinstance(type, OptionalType):
        inner = tensor_kind(type.element)
        return inner + "?" if inner in ("tensor", "tensor[]", "tensor?[]") else ""
    if isinstance(type, ListType):
        inner = tensor_kind(type.element)
        return inner + "[]" if inner in ("tensor", "tensor?") else ""
    return ""


_UNWRAP: Final = {
    "": "{0}",
    "tensor": "{0}.array",
    "tensor?": "(None if {0} is None else {0}.array)",
    "tensor[]": "[*map(array_of, {0})]",
    "tensor[]?": "(None if {0} is None else [t.array for t in {0}])",
    "tensor?[]": "[None if t is None else t.array for t in {0}]",
    "tensor?[]?": "(None if {0} is None else [None if t is None else t.array for t in {0}])",
}
_REQUIRES_GRAD: Final = {
    "tensor": "{0}._requires_grad",
    "tensor?": "({0} is not None and {0}._requires_grad)",
    "tensor[]": "True in map(requires_grad_of, {0})",
    "tensor[]?": "any([t._requires_grad for t in {0} or ()])",
    "tensor?[]": "any([t._requires_grad for t in {0} if t is not None])",
    "tensor?[]?": "any([t._requires_grad for t in {0} or () if t is not None])",
}


def _unwrapped(argument: Argument) -> str:
    return _UNWRAP[tensor_kind(argument.type)].format(safe(argument.name))


def requires_grad(argument: Argument) -> str:
    """The condition that it does, or that one of its elements does."""
    return _REQUIRES_GRAD[tensor_kind(argument.type)].format(safe(argument.name))


def tensors_of(arguments: Sequence[Argument]) -> list[Argument]:
    """Those that are tensors, or hold some."""
    return [a for a in arguments if tensor_kind(a.type)]


# ------------------------------------------------------------------ results


def _wraps(schema: FunctionSchema) -> tuple[list[str], str]:
    """Lines that turn `result` into what the schema returns, and the expression for that."""
    if len(schema.returns) == 1:
        return _wrap_one(schema, schema.returns[0])
    if not schema.returns:
        return [], "None"
    return [], f"({', '.join(f'hot.fresh(result[{i}])' for i in range(len(schema.returns)))},)"


def _wrap_one(schema: FunctionSchema, returned: Argument) -> tuple[list[str], str]:
    kind = tensor_kind(returned.type)
    if not kind:
        return [], "result"
    source = _viewed(schema, returned)
    if kind == "tensor[]":
        return [], f"[part(r, {source}) for r in result]" if source else "[hot.fresh(r) for r in result]"
    if source is not None:
        return [], f"hot.view(result, {source})"
    return [], "hot.fresh(result)"


def _viewed(schema: FunctionSchema, returned: Argument) -> str | None:
    """The argument whose memory the result may show."""
    alias = returned.alias or (None)
    if alias is None:
        return None
    marks = alias.before or (alias.elements[0].before if alias.elements else frozenset())
    for argument in schema.arguments:
        if argument.alias is not None and argument.alias.before & marks:
            return safe(argument.name)
    return None


def _stores(schema: FunctionSchema, written: Sequence[str]) -> list[str]:
    """Lines that put the result(s) into the written argument(s)."""
    names = [safe(name) for name in written]
    if len(names) == 1:
        stored = "store_again" if schema.name in WRITE_AGAIN else "store"
        return [f"{stored}(self, result)" if names[0] == "self" else f"store_out({names[0]}, result, check)"]
    return [f"store_out({name}, result[{i}], check)" for i, name in enumerate(names)]


def _overlap_check(schema: FunctionSchema) -> list[str]:
    """Lines that look, where what is written has views, for inputs that show part of the same memory."""
    inputs = [safe(a.name) for a in schema.arguments if tensor_kind(a.type) == "tensor" and not a.is_write]
    lists = [f"*{safe(a.name)}" for a in schema.arguments if tensor_kind(a.type) == "tensor[]" and not a.is_write]
    apart = schema.name in WRITE_APART and schema.arguments[-1].kwarg_only
    lines = []
    for target in (safe(a.name) for a in schema.arguments if a.is_write and tensor_kind(a.type) == "tensor"):
        shown = f"({target}, ({', '.join([*inputs, *lists])},))"
        others = [f"{target}._storage is not None", *([] if lists else [_other_than(target, inputs)])]
        if inputs or lists:
            lines.append(f"refuse_shared{shown}" if apart else f"if {' and '.join(others)}: refuse_overlap{shown}")
    return lines


def _other_than(target: str, names: Sequence[str]) -> str:
    return "(" + " or ".join(f"{name} is not {target}" for name in names) + ")"


_ENVIRONMENT: Final[dict[str, Any]] = {
    "Tensor": Tensor, "new": object.__new__, "ndarray": np.ndarray, "asarray": libraries.as_array, "switch": xp.switch,
    "SILENT": xp.SILENT, "loud": xp.loud, "REFUSALS": errors.REFUSALS, "refusal": errors.refusal,
    "hot": HOT, "part": part, "store": store, "store_again": store_again, "store_out": store_out,
    "refuse_overlap": refuse_overlap, "refuse_shared": refuse_shared, "dtype_number": dtype_number,
    "array_of": attrgetter("array"), "requires_grad_of": attrgetter("_requires_grad"),
    "ordered_like": ordered_like, "silently": xp.silently, "hooks": HOOKS, "computed": device_dispatch.computed,
    "rescued": device_dispatch.rescued,
}  # fmt: skip
