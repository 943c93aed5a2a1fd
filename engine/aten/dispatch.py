"""From an entry of the operator table to a function that runs it.

In: an `Op`.  Out: a function of all the schema's arguments in order.  What a call does is settled once,
here: which arguments are tensors to unwrap, how results are wrapped (new, view, written), which hook
may step in.  The function is written as text and compiled, so a call inspects nothing.

`HOOKS.grad` steps in where a tensor argument requires grad, `HOOKS.trace` everywhere; both are called
as hook(op, args, run), where `run(*args)` does the work without that hook, and return the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.aten import errors, xp
from engine.aten.promotion import check_cast
from engine.aten.rules import overlaps_partly
from engine.aten.scalar import scalar_kernel
from engine.aten.tensor import Tensor
from engine.aten.xp import Array
from engine.lang.errors import OperatorError
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import ListType, OptionalType, TensorType, Type

if TYPE_CHECKING:
    from engine.aten.op import Op

may_share: Final = np.may_share_memory
Hook = Callable[["Op", tuple[Any, ...], Callable[..., Any]], Any]


@dataclass(slots=True)
class Hooks:
    """Who wants to step in; None costs one attribute read."""

    grad: Hook | None = None
    rebased: int = 0
    """How many tensors came to require grad by a write, so that views of them may not know yet."""
    trace: Hook | None = None
    composite: Callable[[Op], Callable[..., Any]] | None = None
    """Compiles TorchScript bodies; the layer that knows the language sets it."""
    trace_call: Callable[..., Any] | None = None
    """Called for a call of a script function from Python, as hook(function, args, kwargs, run)."""
    trace_constant: Callable[[Tensor, str], None] | None = None
    """Called for a tensor that Python makes of its own values, with the name of what makes it."""
    call: Callable[[Any, Sequence[Any]], Any] | None = None
    """Runs a script function or method on its arguments; the layer that executes sets it."""


HOOKS: Final = Hooks()


def compile_op(op: Op) -> Callable[..., Any]:
    """The operator as a function of all its arguments, positionally; the schema's results come back."""
    schema = op.schema
    if schema.is_vararg and op.python is not None:
        return op.python
    of_tensors = bool(_tensors(schema.arguments) or _tensors(schema.returns))
    if op.python is not None or op.composite is not None:
        body = op.python or _composite(op)
        return _hooked(op, body, schema, grad=bool(op.gradient)) if of_tensors else body
    if op.functional is not None and op.functional.python is not None:
        return _hooked(op, _written_body(schema, op.functional), schema, grad=False)
    return _hooked(op, _array_body(op, schema), schema, grad=bool(_tensors(schema.arguments)))


def array_kernel(op: Op) -> Callable[..., Any]:
    """What computes the operator's results from arrays: its kernel, or its scalar expression compiled."""
    if op.functional is not None:
        return array_kernel(op.functional)
    return op.kernel if op.kernel is not None else scalar_kernel(op)


def _composite(op: Op) -> Callable[..., Any]:
    if HOOKS.composite is None:
        raise AssertionError(f"{op.qualified_name} is written in TorchScript, and no compiler has registered")
    return HOOKS.composite(op)


def _written_body(schema: FunctionSchema, functional: Op) -> Callable[..., Any]:
    """For the in-place or out form of an operator made of others: run those, then write."""
    outs = [i for i, a in enumerate(schema.arguments) if a.is_write and a.kwarg_only]
    compute = functional.run

    def body(*args: Any) -> Any:
        result = compute(*(arg for i, arg in enumerate(args) if i not in outs))
        if not outs:
            _check_writable(args[0], result.array)
            return args[0].copy_(result)
        targets = tuple(args[i] for i in outs)
        for target, part in zip(targets, (result,) if len(outs) == 1 else result, strict=True):
            store_out(target, part.array)
        return targets[0] if len(targets) == 1 else targets

    return body


def _array_body(op: Op, schema: FunctionSchema) -> Callable[..., Any]:
    """The operator over tensors, without hooks."""
    written = [a.name for a in schema.arguments if a.is_write]
    names = [_safe(a.name) for a in schema.arguments]
    passed = [_unwrapped(a) for a in schema.arguments if not (a.kwarg_only and a.is_write)]
    stores = _stores(written)
    lines = [
        f"def body({', '.join(names)}):",
        "    token = quiet()",
        "    try:",
        *(f"        {line}" for line in _overlap_check(schema)),
        f"        result = kernel({', '.join(passed)})",
        *("        " + line for line in stores),
        "    except REFUSALS as error:",
        f"        raise refusal(op, ({''.join(n + ', ' for n in names)}), error) from error",
        "    finally:",
        "        loud(token)",
        *("    " + line for line in (_written_results(written) if written else _wraps(schema))),
    ]
    return _compiled(lines, "body", op, kernel=array_kernel(op))


def _hooked(op: Op, body: Callable[..., Any], schema: FunctionSchema, grad: bool) -> Callable[..., Any]:
    """The body behind the hooks."""
    names = [_safe(a.name) for a in schema.arguments]
    args = f"({''.join(n + ', ' for n in names)})"
    grad = grad and bool(_tensors(schema.arguments))
    lines = [
        f"def run({', '.join(names)}):",
        "    if hooks.trace is not None:",
        f"        return hooks.trace(op, {args}, {'partial(untraced, op, body)' if grad else 'body'})",
    ]
    if grad:
        lines += [
            f"    if hooks.grad is not None and ({' or '.join(map(_requires_grad, _tensors(schema.arguments)))}"
            " or hooks.rebased):",
            f"        return hooks.grad(op, {args}, body)",
        ]
    return _compiled([*lines, f"    return body({', '.join(names)})"], "run", op, body=body)


def untraced(op: Op, body: Callable[..., Any], *args: Any) -> Any:
    """What an operator does while it is traced: what it would do otherwise."""
    if HOOKS.grad is not None and (HOOKS.rebased or any(map(_has_grad, args))):
        return HOOKS.grad(op, args, body)
    return body(*args)


def _has_grad(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_grad, value))
    return isinstance(value, Tensor) and value._requires_grad


def _compiled(lines: Sequence[str], name: str, op: Op, **more: Any) -> Callable[..., Any]:
    environment: dict[str, Any] = {**_ENVIRONMENT, "op": op, **more}
    exec(compile("\n".join(lines), f"<{op.qualified_name}>", "exec"), environment)
    function: Callable[..., Any] = environment[name]
    function.__qualname__ = op.qualified_name
    return function


# ------------------------------------------------------------------ arguments


def _safe(name: str) -> str:
    """An argument's name as Python can spell it (`from` is a keyword there)."""
    return name if name.isidentifier() and name not in ("from", "lambda") else name + "_"


def _kind(type: Type) -> str:
    """tensor, tensor?, tensor[] or tensor?[]; empty for every other type."""
    if isinstance(type, TensorType):
        return "tensor"
    if isinstance(type, OptionalType):
        inner = _kind(type.element)
        return inner + "?" if inner in ("tensor", "tensor[]", "tensor?[]") else ""
    if isinstance(type, ListType):
        inner = _kind(type.element)
        return inner + "[]" if inner in ("tensor", "tensor?") else ""
    return ""


_UNWRAP: Final = {
    "": "{0}",
    "tensor": "{0}.array",
    "tensor?": "(None if {0} is None else {0}.array)",
    "tensor[]": "[t.array for t in {0}]",
    "tensor[]?": "(None if {0} is None else [t.array for t in {0}])",
    "tensor?[]": "[None if t is None else t.array for t in {0}]",
    "tensor?[]?": "(None if {0} is None else [None if t is None else t.array for t in {0}])",
}
_REQUIRES_GRAD: Final = {
    "tensor": "{0}._requires_grad",
    "tensor?": "({0} is not None and {0}._requires_grad)",
    "tensor[]": "any([t._requires_grad for t in {0}])",
    "tensor[]?": "any([t._requires_grad for t in {0} or ()])",
    "tensor?[]": "any([t._requires_grad for t in {0} if t is not None])",
    "tensor?[]?": "any([t._requires_grad for t in {0} or () if t is not None])",
}


def _unwrapped(argument: Argument) -> str:
    return _UNWRAP[_kind(argument.type)].format(_safe(argument.name))


def _requires_grad(argument: Argument) -> str:
    return _REQUIRES_GRAD[_kind(argument.type)].format(_safe(argument.name))


def _tensors(arguments: Sequence[Argument]) -> list[Argument]:
    return [a for a in arguments if _kind(a.type)]


# ------------------------------------------------------------------ results


def _wraps(schema: FunctionSchema) -> list[str]:
    """Lines that turn `result` into what the schema returns."""
    if len(schema.returns) == 1:
        return _wrap_one(schema, schema.returns[0])
    if not schema.returns:
        return ["return None"]
    return [f"return ({', '.join(f'fresh(result[{i}])' for i in range(len(schema.returns)))},)"]


def _wrap_one(schema: FunctionSchema, returned: Argument) -> list[str]:
    kind = _kind(returned.type)
    if not kind:
        return ["return result"]
    source = _viewed(schema, returned)
    if kind == "tensor[]":
        return [f"return [part(r, {source}) for r in result]" if source else "return [fresh(r) for r in result]"]
    if source is not None:
        return [f"return view(result, {source})"]
    return [
        "if type(result) is not ndarray:",
        "    result = asarray(result)",
        "tensor = new(Tensor)",
        "tensor.array = result",
        "return tensor",
    ]


def _viewed(schema: FunctionSchema, returned: Argument) -> str | None:
    """The argument whose memory the result may show."""
    alias = returned.alias or (None)
    if alias is None:
        return None
    marks = alias.before or (alias.elements[0].before if alias.elements else frozenset())
    for argument in schema.arguments:
        if argument.alias is not None and argument.alias.before & marks:
            return _safe(argument.name)
    return None


def _stores(written: Sequence[str]) -> list[str]:
    """Lines that put the result(s) into the written argument(s)."""
    names = [_safe(name) for name in written]
    if len(names) == 1:
        return [f"{'store' if names[0] == 'self' else 'store_out'}({names[0]}, result)"]
    return [f"store_out({name}, result[{i}])" for i, name in enumerate(names)]


def _overlap_check(schema: FunctionSchema) -> list[str]:
    """Lines that look, where `self` is written and has views, for inputs that show part of the same memory."""
    inputs = [_safe(a.name) for a in schema.arguments if _kind(a.type) == "tensor" and not a.is_write]
    if not inputs or not schema.arguments[0].is_write:
        return []
    target = _safe(schema.arguments[0].name)
    return [f"if {target}._storage is not None: refuse_overlap({target}, ({', '.join(inputs)},))"]


def refuse_overlap(target: Tensor, inputs: Sequence[Tensor]) -> None:
    """Raise OperatorError if an input shows part of the memory that is written."""
    for tensor in inputs:
        if tensor._storage is target._storage and overlaps_partly(target.array, tensor.array):
            raise OperatorError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                "memory location. Please clone() the tensor before performing the operation."
            )


def _written_results(written: Sequence[str]) -> list[str]:
    return [f"return {', '.join(map(_safe, written))}"]


def fresh(result: Any) -> Tensor:
    """A new tensor of a result that shares no memory with an argument."""
    tensor = Tensor.__new__(Tensor)
    tensor.array = result if type(result) is np.ndarray else np.asarray(result)
    return tensor


def view(result: Array, source: Tensor) -> Tensor:
    """A result that may be a view of `source`: itself, a tensor on the same storage, or a new one."""
    if result is source.array:
        return source
    tensor = fresh(result)
    array = source.array
    if result.base is array or (result.base is not None and result.base is array.base) or may_share(result, array):
        tensor._storage = storage = source.storage
        tensor._base = source if source._base is None else source._base
        tensor._seen = storage.version
    return tensor


def part(result: Array, source: Tensor) -> Tensor:
    """One of the views that an operator returns together: none of them may be written to while gradients flow."""
    tensor = view(result, source)
    tensor._view_kind = "many"
    return tensor


def store(target: Tensor, result: Any) -> None:
    """Write an in-place result; raises OperatorError where shape, dtype or memory do not allow it."""
    result = np.asarray(result)
    check_cast(result.dtype, target.array.dtype)
    overwrite(target, result)


def overwrite(target: Tensor, result: Array) -> None:
    """`store` whatever the dtype of the result."""
    array = target.array
    _check_shape(array, result)
    _check_no_overlap(array)
    np.copyto(array, xp.cast(result, array.dtype), casting="unsafe")
    target.bump_version()


def _check_shape(array: Array, result: Array) -> None:
    if result.shape != array.shape:
        raise OperatorError(
            f"output with shape {list(array.shape)} doesn't match the broadcast shape {list(result.shape)}"
        )


def _check_writable(target: Tensor, result: Array) -> None:
    check_cast(result.dtype, target.array.dtype)
    _check_shape(target.array, result)


def store_out(target: Tensor, result: Any) -> None:
    """Write an out= result; the target takes the result's shape."""
    result = np.asarray(result)
    check_cast(result.dtype, target.array.dtype)
    if result.shape != target.array.shape:
        target.array = np.empty(result.shape, target.array.dtype)
        target._storage = None
    store(target, result)


def _check_no_overlap(array: Array) -> None:
    if array.flags.c_contiguous:
        return
    if any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True)):
        raise OperatorError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location.",
            hints=("clone() the tensor before performing the operation",),
        )


_ENVIRONMENT: Final[dict[str, Any]] = {
    "Tensor": Tensor, "new": object.__new__, "ndarray": np.ndarray, "asarray": np.asarray, "quiet": xp.quiet,
    "loud": xp.loud, "REFUSALS": errors.REFUSALS, "refusal": errors.refusal, "hooks": HOOKS, "fresh": fresh,
    "view": view, "part": part, "store": store, "store_out": store_out, "refuse_overlap": refuse_overlap,
    "partial": partial, "untraced": untraced,
}  # fmt: skip
