"""From an entry of the operator table to the functions that run it, written as text and compiled.

In: an `Op`.  Out: its `Compiled`: a function of all the schema's arguments in order, which is its body behind the hooks
that may step in, and the body alone.  The text unwraps tensors to arrays, calls the kernel, silences numpy where needed
and wraps the results (new, view, written), so a call inspects nothing; it reads the slots of its operator (`op.body`,
`op.recorded`) when it is called.  `show_call` prints it.

`HOOKS.grad` steps in where a tensor argument requires grad, `HOOKS.trace` everywhere; both are called
as hook(op, args, run), where `run(*args)` does the work without that hook, and return the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final

import numpy as np

from engine.aten.dispatch import device_dispatch, errors
from engine.aten.dispatch.dtype_support import Guard, guard_of
from engine.aten.dispatch.layouts import laid_out, operands_of, ordering_line
from engine.aten.dispatch.op import Body, Compiled, Op, Written
from engine.aten.dispatch.out_checks import Check
from engine.aten.dispatch.scalar import QUICK_ENVIRONMENT, PointwiseKernels, QuickCode, pointwise_kernels
from engine.aten.dispatch.wrapping import (
    check_writable,
    dtype_number,
    fresh,
    part,
    refuse_overlap,
    refuse_shared,
    store,
    store_again,
    store_out,
    view,
)
from engine.aten.kernels.rules import ordered_like
from engine.aten.values import libraries, xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.promotion import check_cast
from engine.aten.values.tensor import Tensor
from engine.lang.errors import EngineError, ExecutionError, OperatorError
from engine.lang.generated import define, indented
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import DEVICE, INT, ListType, OptionalType, TensorType, Type, unwrap_optional


def compile_op(op: Op) -> Compiled:
    """The operator as functions of all its arguments, positionally; the schema's results come back."""
    schema, python, source = op.schema, op.python, op.functional
    if schema.is_vararg and python is not None:
        return Compiled(python, python)
    guard, check = guard_of(op), op.out_check or check_cast
    if op.is_composed:
        python = _composite(op)
    if python is not None:
        work = guard(laid_out(op, python))
        if not (tensors_of(schema.arguments) or tensors_of(schema.returns) or op.side_effects):
            return Compiled(work, work)
        return _behind_hooks(op, schema, _calling(op, schema, work), grad=bool(op.gradient))
    if source is not None and (source.python is not None or source.is_composed):
        work = _then_written(schema, guard(lambda *_: None), source, check)
        return _behind_hooks(op, schema, _calling(op, schema, work), grad=False)
    text = _array_body(op, schema, guard, check)
    written = Written([*text.lines, f"return {text.result}"], text.environment)
    return _behind_hooks(op, schema, written, grad=bool(tensors_of(schema.returns)), text=text)


def _composite(op: Op) -> Callable[..., Any]:
    assert HOOKS.call is not None, f"{op.qualified_name} is written in TorchScript, which nobody runs here"
    run, function = HOOKS.call, composite_function(op)

    def work(*args: Any) -> Any:
        try:
            return run(function, args)
        except ExecutionError as error:
            raise _told_as_ours(error) from None

    return work


def _told_as_ours(error: ExecutionError) -> EngineError:
    """The error of a text as that of the operator: who calls it knows no line of the text, nor what that calls."""
    cause = error.__cause__
    is_known = isinstance(cause, EngineError) and not isinstance(cause, ExecutionError)
    told = cause if is_known else OperatorError(error.message, hints=error.hints)
    assert isinstance(told, EngineError)
    told.hints = tuple(hint for hint in told.hints if not hint.startswith("in aten::"))
    return told


def composite_function(op: Op) -> Any:
    """The function of the operator's `composite` text, compiled once."""
    found = _composites.get(op)
    if found is None:
        assert HOOKS.composite is not None, f"{op.qualified_name} is written in TorchScript, which nobody compiles here"
        found = _composites.setdefault(op, HOOKS.composite(op))
    return found


_composites: Final = dict[Op, Any]()


def _then_written(schema: FunctionSchema, refuse: Callable[..., Any], source: Op, check: Check) -> Callable[..., Any]:
    """For the in-place or out form of an operator made of others: run those, then write."""
    outs = [i for i, a in enumerate(schema.arguments) if a.is_write and a.kwarg_only]

    def work(*args: Any) -> Any:
        refuse(*args)
        given = args if outs or not args[0].requires_grad else (args[0].clone(), *args[1:])
        result = source.impl(*(arg for i, arg in enumerate(given) if i not in outs))
        if not outs:
            check_writable(args[0], result.array)
            return args[0].copy_(result)
        targets = tuple(args[i] for i in outs)
        for target, made in zip(targets, (result,) if len(outs) == 1 else result, strict=True):
            store_out(target, made.array, check)
        return targets[0] if len(targets) == 1 else targets

    return work


def _calling(op: Op, schema: FunctionSchema, work: Callable[..., Any]) -> Written:
    """Lines that call a function of tensors, and turn its refusals into the operator's."""
    given = ", ".join(safe(a.name) for a in schema.arguments)
    lines = [f"return work({given}) if not hooks.devices else worked(op, work, {given})"]
    if schema.name.startswith("aten::"):
        refused = f"    raise refusal(op, {_all_arguments(schema)}, error) from error"
        lines = ["try:", *indented(lines), "except REFUSALS as error:", refused]
    return Written(lines, {"op": op, "work": work})


def _behind_hooks(op: Op, schema: FunctionSchema, work: Written, grad: bool, text: Body | None = None) -> Compiled:
    """The work as a function, and the same behind the hooks; all in one function, since calls are what costs."""
    names, file = [safe(a.name) for a in schema.arguments], f"<{schema.qualified_name}>"
    grad_lines = _grad_lines(schema) if grad and tensors_of(schema.arguments) else []
    written = Written([*grad_lines, *work.lines], {**_ENVIRONMENT, **work.environment})
    body = define("body", names, work.lines, dict(written.environment), file)
    run = define("run", names, [_trace_line(schema, bool(grad_lines)), *written.lines], dict(written.environment), file)
    body.__qualname__ = run.__qualname__ = schema.qualified_name
    return Compiled(run, body, written, text)


def _trace_line(schema: FunctionSchema, asks_for_grad: bool) -> str:
    body = "partial(untraced, op)" if asks_for_grad else "op.body"
    return f"if hooks.trace is not None: return hooks.trace(op, {_all_arguments(schema)}, {body})"


def _grad_lines(schema: FunctionSchema) -> list[str]:
    args = _all_arguments(schema)
    asked = " or ".join(map(requires_grad, tensors_of(schema.arguments)))
    return [  # tensors are asked again: `rebased` may fall at any time, when a tensor is collected
        f"if ({asked} or hooks.rebased) and hooks.grad is not None:",
        f"    if hooks.grad is hooks.recorded and ({asked}): return op.recorded{args}",
        f"    return hooks.grad(op, {args}, op.body)",
    ]


def _all_arguments(schema: FunctionSchema) -> str:
    return f"({''.join(safe(a.name) + ', ' for a in schema.arguments)})"


def untraced(op: Op, *args: Any) -> Any:
    """The call of an operator below a trace: recorded for gradients where it would be otherwise."""
    if HOOKS.grad is not None and (HOOKS.rebased or any(map(_has_grad, args))):
        return HOOKS.grad(op, args, op.body)
    return op.body(*args)


def _has_grad(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_grad, value))
    return isinstance(value, Tensor) and value._requires_grad


# ------------------------------------------------------------------ work over arrays


def array_kernel(op: Op) -> Callable[..., Any]:
    """The function that computes the operator's results from arrays: its kernel, or its expression compiled."""
    return _guarded_kernel(op, None if op.scalar is None else pointwise_kernels(op), guard_of(op))


def _guarded_kernel(op: Op, pointwise: PointwiseKernels | None, guard: Guard) -> Callable[..., Any]:
    if op.functional is not None:
        kernel = array_kernel(op.functional)
        return guard(kernel) if op.schema.arguments[0].is_write else kernel
    if pointwise is not None:
        return guard(_ordered_kernel(op, pointwise))
    assert op.kernel is not None
    return guard(laid_out(op, op.kernel))


def _ordered_kernel(op: Op, pointwise: PointwiseKernels) -> Callable[..., Any]:
    """The expression as a kernel whose result lies as the operands ask for."""
    names, quick = pointwise.names, pointwise.quick
    general = f"general({', '.join(names)})"
    lines = [f"result = {general}"] if quick is None else quick.lines("result = ", general, {})
    environment = {**QUICK_ENVIRONMENT, "general": pointwise.general, "ordered_like": ordered_like}
    lines = [*lines, ordering_line(operands_of(op)), "return result"]
    return define("kernel", names, lines, environment, f"<scalar {pointwise.text}>")


def _array_body(op: Op, schema: FunctionSchema, guard: Guard, check: Check) -> Body:
    """The operator over tensors, by its kernel."""
    pointwise, in_place = None if op.scalar is None else pointwise_kernels(op), None
    if op.functional is not None and op.functional.scalar is not None and str(op.functional.dtype) != "bool":
        in_place = _in_place(schema, pointwise_kernels(op.functional).quick)
    is_exact = pointwise is not None and pointwise.quick is not None and pointwise.quick.is_exact
    written = [a.name for a in schema.arguments if a.is_write]
    compute, environment = _computation(op, schema, pointwise, is_exact)
    if pointwise is not None and pointwise.quick is not None:
        environment["kernel"] = guard(pointwise.general)
    else:
        environment["kernel"] = _guarded_kernel(op, pointwise, guard)
    args = _all_arguments(schema)
    apart = op.writes_apart and schema.arguments[-1].kwarg_only
    work = [*_overlap_check(schema, apart), *compute, *_stores(written, op.writes_again)]
    rescue = f"if hooks.devices: result = rescued(op, op.body, {args}, error)"
    refused = f"raise refusal(op, {args}, error) from error"
    lines = ["try:", *indented(work), "except REFUSALS as error:", f"    {rescue}", f"    else: {refused}"]
    if not (op.exact or _only_shows(schema) or is_exact):
        lines = ["token = switch(SILENT)", *lines, "finally:", "    loud(token)"]
    if in_place is not None:
        environment |= QUICK_ENVIRONMENT
        lines = [*in_place, *lines]
    environment = {**_ARRAYS, **environment, "op": op, "check": check}
    if written:
        return Body(lines, ", ".join(map(safe, written)), environment)
    wraps, result = _wraps(schema)
    return Body([*lines, *wraps], result, environment)


def _computation(
    op: Op, schema: FunctionSchema, pointwise: PointwiseKernels | None, is_exact: bool
) -> tuple[list[str], dict[str, Any]]:
    """Lines that leave the result's array, or arrays, in `result`."""
    passed = [_unwrapped(a) for a in schema.arguments if not (a.kwarg_only and a.is_write)]
    if op.in_dtype_of_out:
        passed[-1] = "(dtype_number(out) if dtype is None else dtype)"
    given = ", ".join(passed)
    here = f"{'silently(kernel, ' if is_exact else 'kernel('}{given})"
    is_here = "not hooks.devices"
    if (device := _device_argument(schema)) is not None:
        is_here = f"{is_here} and ({device} is None or {device}.type == 'cpu')"
    general = f"{here} if {is_here} else computed(op, kernel, {given})"
    if pointwise is None or pointwise.quick is None:
        return [f"result = {general}"], {}
    quick = pointwise.quick
    spelled = {name: f"{safe(name)}_array" for name in quick.tensors}
    arrays = [f"{spelled[name]} = {safe(name)}.array" for name in quick.tensors]
    ordered = ordering_line([spelled[name] for name in operands_of(op)])
    lines = [*arrays, *quick.lines("result = ", general, spelled), ordered]
    return lines, {**QUICK_ENVIRONMENT}


def _device_argument(schema: FunctionSchema) -> str | None:
    """The name of the argument that says where the result is made."""
    return next((safe(a.name) for a in schema.arguments if a.declared == "Device" or _is_device(a.type)), None)


def _is_device(type: Type) -> bool:
    return unwrap_optional(type) is DEVICE


def _in_place(schema: FunctionSchema, quick: QuickCode | None) -> list[str] | None:
    """Lines that let one function of numpy write where the operator writes, if its operands allow it."""
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
    alike += [*(f"type({name}) in real" for name in quick.numbers), "not hooks.several"]
    return [
        *(f"{spelled[n]} = {safe(n)}.array" for n in quick.tensors),
        f"d = {first}.dtype",
        f"if {' and '.join(['(d is f32 or d is f64)', *alike])} and {first}.flags.c_contiguous:",
        *indented(_overlap_check(schema, apart=False)),
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
    """True if the result is a view of the only tensor argument, or sizes: numpy has no arithmetic to warn of."""
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
    return [], f"({', '.join(f'fresh(result[{i}])' for i in range(len(schema.returns)))},)"


def _wrap_one(schema: FunctionSchema, returned: Argument) -> tuple[list[str], str]:
    kind = tensor_kind(returned.type)
    if not kind:
        return [], "result"
    source = _viewed(schema, returned)
    if kind == "tensor[]":
        return [], f"[part(r, {source}) for r in result]" if source else "[fresh(r) for r in result]"
    if source is not None:
        return [], f"view(result, {source})"
    return [], "fresh(result)"


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


def _stores(written: Sequence[str], again: bool) -> list[str]:
    """Lines that put the result(s) into the written argument(s)."""
    names = [safe(name) for name in written]
    if len(names) == 1:
        stored = "store_again" if again else "store"
        return [f"{stored}(self, result)" if names[0] == "self" else f"store_out({names[0]}, result, check)"]
    return [f"store_out({name}, result[{i}], check)" for i, name in enumerate(names)]


def _overlap_check(schema: FunctionSchema, apart: bool) -> list[str]:
    """Lines that look, where what is written has views, for inputs that show part of the same memory."""
    inputs = [safe(a.name) for a in schema.arguments if tensor_kind(a.type) == "tensor" and not a.is_write]
    lists = [f"*{safe(a.name)}" for a in schema.arguments if tensor_kind(a.type) == "tensor[]" and not a.is_write]
    lines = []
    for target in (safe(a.name) for a in schema.arguments if a.is_write and tensor_kind(a.type) == "tensor"):
        shown = f"({target}, ({', '.join([*inputs, *lists])},))"
        others = [f"{target}._storage is not None", *([] if lists else [_other_than(target, inputs)])]
        if inputs or lists:
            lines.append(f"refuse_shared{shown}" if apart else f"if {' and '.join(others)}: refuse_overlap{shown}")
    return lines


def _other_than(target: str, names: Sequence[str]) -> str:
    return "(" + " or ".join(f"{name} is not {target}" for name in names) + ")"


_ARRAYS: Final[dict[str, Any]] = {
    "Tensor": Tensor, "new": object.__new__, "ndarray": np.ndarray, "asarray": libraries.as_array, "switch": xp.switch,
    "SILENT": xp.SILENT, "loud": xp.loud, "REFUSALS": errors.REFUSALS, "refusal": errors.refusal,
    "fresh": fresh, "view": view, "part": part, "store": store, "store_again": store_again, "store_out": store_out,
    "refuse_overlap": refuse_overlap, "refuse_shared": refuse_shared, "dtype_number": dtype_number,
    "array_of": attrgetter("array"), "requires_grad_of": attrgetter("_requires_grad"),
    "ordered_like": ordered_like, "silently": xp.silently, "hooks": HOOKS, "computed": device_dispatch.computed,
    "rescued": device_dispatch.rescued,
}  # fmt: skip
_ENVIRONMENT: Final[dict[str, Any]] = {
    "hooks": HOOKS, "fresh": fresh, "view": view, "partial": partial, "untraced": untraced, "REFUSALS": errors.REFUSALS,
    "refusal": errors.refusal, "worked": device_dispatch.worked,
}  # fmt: skip
