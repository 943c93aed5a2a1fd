"""From an entry of the operator table to a function that runs it.

In: an `Op`.  Out: a function of all the schema's arguments in order.  What a call does is settled once,
here: which arguments are tensors to unwrap, how results are wrapped (new, view, written), which hook
may step in.  The function is written as text and compiled, so a call inspects nothing.

`HOOKS.grad` steps in where a tensor argument requires grad, `HOOKS.trace` everywhere; both are called
as hook(op, args, run), where `run(*args)` does the work without that hook, and return the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.aten import errors, xp
from engine.aten.outs import IN_DTYPE_OF_OUT, WRITE_APART, Check, check_of
from engine.aten.promotion import check_cast
from engine.aten.refused import guarded
from engine.aten.rules import is_dense, ordered_like, overlaps_partly
from engine.aten.scalar import QUICK_ENVIRONMENT, general_kernel, quick_code, scalar_kernel
from engine.aten.tensor import Tensor, fresh_lines
from engine.aten.xp import Array
from engine.lang.errors import OperatorError
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import INT, ListType, OptionalType, TensorType, Type

if TYPE_CHECKING:
    from engine.aten.op import Op

may_share: Final = np.may_share_memory
_new: Final[Callable[..., Any]] = object.__new__
Hook = Callable[["Op", tuple[Any, ...], Callable[..., Any]], Any]


@dataclass(slots=True)
class Hooks:
    """Who wants to step in; None costs one attribute read."""

    grad: Hook | None = None
    recorder: Callable[[Op, Callable[..., Any]], Callable[..., Any]] | None = None
    """Makes the function that does, for one operator and its body, what `recorded` does."""
    recorded: Hook | None = None
    """The hook of which `recorder` knows; another one in `grad` is called itself."""
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
        body = guarded(op, op.python or _composite(op))
        return _hooked(op, body, schema, grad=bool(op.gradient)) if of_tensors else body
    if op.functional is not None and op.functional.python is not None:
        return _hooked(op, _written_body(op, schema, op.functional), schema, grad=False)
    return _hooked_array(op, schema)


def array_kernel(op: Op) -> Callable[..., Any]:
    """What computes the operator's results from arrays: its kernel, or its scalar expression compiled."""
    if op.functional is not None:
        kernel = array_kernel(op.functional)
        return guarded(op, kernel) if op.schema.arguments[0].is_write else kernel
    return guarded(op, op.kernel if op.kernel is not None else scalar_kernel(op))


def _composite(op: Op) -> Callable[..., Any]:
    if HOOKS.composite is None:
        raise AssertionError(f"{op.qualified_name} is written in TorchScript, and no compiler has registered")
    return HOOKS.composite(op)


def _written_body(op: Op, schema: FunctionSchema, functional: Op) -> Callable[..., Any]:
    """For the in-place or out form of an operator made of others: run those, then write."""
    outs = [i for i, a in enumerate(schema.arguments) if a.is_write and a.kwarg_only]
    compute, check = functional.run, check_of(op.qualified_name)

    refuse = guarded(op, lambda *_: None)

    def body(*args: Any) -> Any:
        refuse(*args)
        given = args if outs or not args[0].requires_grad else (args[0].clone(), *args[1:])
        result = compute(*(arg for i, arg in enumerate(given) if i not in outs))
        if not outs:
            _check_writable(args[0], result.array)
            return args[0].copy_(result)
        targets = tuple(args[i] for i in outs)
        for target, part in zip(targets, (result,) if len(outs) == 1 else result, strict=True):
            store_out(target, part.array, check)
        return targets[0] if len(targets) == 1 else targets

    return body


def _array_body(op: Op, schema: FunctionSchema) -> tuple[list[str], dict[str, Any]]:
    """The operator over tensors, without hooks: the lines of a function, and the names in it."""
    written = [a.name for a in schema.arguments if a.is_write]
    names = [safe(a.name) for a in schema.arguments]
    passed = [_unwrapped(a) for a in schema.arguments if not (a.kwarg_only and a.is_write)]
    if op.qualified_name in IN_DTYPE_OF_OUT:
        passed[-1] = "(dtype_number(out) if dtype is None else dtype)"
    general = f"kernel({', '.join(passed)})"
    quick = quick_code(op) if op.scalar is not None else None
    environment: dict[str, Any] = {"kernel": array_kernel(op) if quick is None else guarded(op, general_kernel(op))}
    environment["check"] = check_of(op.qualified_name)
    compute = [f"result = {general}"]
    if quick is not None:
        environment |= QUICK_ENVIRONMENT
        spelled = {name: f"{safe(name)}_array" for name in quick.tensors}
        arrays = [f"{spelled[name]} = {safe(name)}.array" for name in quick.tensors]
        compute = [*arrays, *quick.lines("result = ", general, spelled)]
        shown = ", ".join(spelled[name] for name in quick.tensors)
        compute.append(f"if not result.flags.c_contiguous: result = ordered_like(result, ({shown},))")
    refused = f"raise refusal(op, ({''.join(n + ', ' for n in names)}), error) from error"
    work = [*_overlap_check(schema), *compute, *_stores(written)]
    lines = ["try:", *_indented(work), "except REFUSALS as error:", f"    {refused}"]
    if not _only_shows(schema):
        lines = ["token = switch(SILENT)", *lines, "finally:", "    loud(token)"]
    in_place = _in_place(op, schema)
    if in_place is not None:
        environment |= QUICK_ENVIRONMENT
        lines = [*in_place, *lines]
    return [*lines, *([f"return {', '.join(map(safe, written))}"] if written else _wraps(schema))], environment


def _in_place(op: Op, schema: FunctionSchema) -> list[str] | None:
    """Lines that let one function of numpy write where the operator writes, if its operands all look like that."""
    source = op.functional
    quick = None if source is None or str(source.dtype) == "bool" else quick_code(source)
    if quick is None or [a.name for a in schema.arguments if a.is_write] != list(quick.tensors[:1]):
        return None
    spelled = {name: f"{safe(name)}_array" for name in quick.tensors}
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
        *_indented(_overlap_check(schema)),
        "    token = switch(SILENT)",
        "    try:",
        f"        {call[0]}({call[1]}, {first})",
        "    except REFUSALS as error:",
        f"        raise refusal(op, ({''.join(safe(a.name) + ', ' for a in schema.arguments)}), error) from error",
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
    if len(_tensors(schema.arguments)) != 1 or any(a.is_write or a.declared == "ScalarType" for a in schema.arguments):
        return False
    return len(schema.returns) == 1 and _viewed(schema, schema.returns[0]) is not None


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _hooked_array(op: Op, schema: FunctionSchema) -> Callable[..., Any]:
    """The operator over tensors behind the hooks; all in one function, since calls are what costs."""
    names = [safe(a.name) for a in schema.arguments]
    lines, environment = _array_body(op, schema)
    body = _compiled([f"def body({', '.join(names)}):", *_indented(lines)], "body", op, **environment)
    hooks = _hook_lines(op, schema, grad=bool(_tensors(schema.arguments) and _tensors(schema.returns)))
    return _compiled([f"def run({', '.join(names)}):", *_indented([*hooks, *lines])], "run", op, body=body,
                     **environment)  # fmt: skip


def _hooked(op: Op, body: Callable[..., Any], schema: FunctionSchema, grad: bool) -> Callable[..., Any]:
    """The body behind the hooks."""
    names = [safe(a.name) for a in schema.arguments]
    hooks = _hook_lines(op, schema, grad and bool(_tensors(schema.arguments)))
    if op.name.startswith("aten::"):
        body = _refusing(op, body, names)
    lines = [f"def run({', '.join(names)}):", *_indented([*hooks, f"return body({', '.join(names)})"])]
    return _compiled(lines, "run", op, body=body)


def _refusing(op: Op, body: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """The body with whatever it may raise worded as the operator's refusal."""
    lines = [
        "try:",
        f"    return body({', '.join(names)})",
        "except REFUSALS as error:",
        f"    raise refusal(op, ({''.join(n + ', ' for n in names)}), error) from error",
    ]
    return _compiled([f"def refusing({', '.join(names)}):", *_indented(lines)], "refusing", op, body=body)


def _hook_lines(op: Op, schema: FunctionSchema, grad: bool) -> list[str]:
    args = f"({''.join(safe(a.name) + ', ' for a in schema.arguments)})"
    traced = f"if hooks.trace is not None: return hooks.trace(op, {args}, "
    if not grad:
        return [f"{traced}body)"]
    asked = " or ".join([*map(_requires_grad, _tensors(schema.arguments)), "hooks.rebased"])
    return [
        f"{traced}partial(untraced, op, body))",
        f"if ({asked}) and hooks.grad is not None:",
        f"    return recorded{args} if hooks.grad is hooks.recorded else hooks.grad(op, {args}, body)",
    ]


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
    if "body" in environment and "recorded" not in environment:
        environment["recorded"] = partial(_first_recorded, environment)
    function: Callable[..., Any] = environment[name]
    function.__qualname__ = op.qualified_name
    return function


def _first_recorded(environment: dict[str, Any], *args: Any) -> Any:
    """How an operator is recorded is worked out when it first is."""
    assert HOOKS.recorder is not None
    environment["recorded"] = HOOKS.recorder(environment["op"], environment["body"])
    return environment["recorded"](*args)


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
    return _UNWRAP[tensor_kind(argument.type)].format(safe(argument.name))


def _requires_grad(argument: Argument) -> str:
    return _REQUIRES_GRAD[tensor_kind(argument.type)].format(safe(argument.name))


def _tensors(arguments: Sequence[Argument]) -> list[Argument]:
    return [a for a in arguments if tensor_kind(a.type)]


# ------------------------------------------------------------------ results


def _wraps(schema: FunctionSchema) -> list[str]:
    """Lines that turn `result` into what the schema returns."""
    if len(schema.returns) == 1:
        return _wrap_one(schema, schema.returns[0])
    if not schema.returns:
        return ["return None"]
    return [f"return ({', '.join(f'fresh(result[{i}])' for i in range(len(schema.returns)))},)"]


def _wrap_one(schema: FunctionSchema, returned: Argument) -> list[str]:
    kind = tensor_kind(returned.type)
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
        *fresh_lines("tensor"),
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
            return safe(argument.name)
    return None


def _stores(written: Sequence[str]) -> list[str]:
    """Lines that put the result(s) into the written argument(s)."""
    names = [safe(name) for name in written]
    if len(names) == 1:
        return ["store(self, result)" if names[0] == "self" else f"store_out({names[0]}, result, check)"]
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


def refuse_overlap(target: Tensor, inputs: Sequence[Tensor]) -> None:
    """Raise OperatorError if an input shows part of the memory that is written."""
    for tensor in inputs:
        if tensor._storage is target._storage and overlaps_partly(target.array, tensor.array):
            raise _overlap()


def refuse_shared(target: Tensor, inputs: Sequence[Tensor]) -> None:
    """Raise OperatorError if an input shows any of the memory that is written."""
    for tensor in inputs:
        if tensor.array.size and tensor._storage is target._storage and may_share(tensor.array, target.array):
            raise _overlap()


def _overlap() -> OperatorError:
    return OperatorError(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
        "memory location. Please clone() the tensor before performing the operation."
    )


def fresh(result: Any) -> Tensor:
    """A new tensor of a result that shares no memory with an argument."""
    return Tensor(result if type(result) is np.ndarray else np.asarray(result))


def view(result: Array, source: Tensor) -> Tensor:
    """A result that may be a view of `source`: itself, a tensor on the same storage, or a new one."""
    array = source.array
    if result is array:
        return source
    tensor: Tensor = _new(Tensor)
    tensor.array = result if type(result) is np.ndarray else np.asarray(result)
    tensor._requires_grad = False
    tensor._grad_fn = tensor._storage = tensor._base = None
    tensor.output_nr = 0
    base = result.base
    if (base is not None and (base is array or base is array.base)) or may_share(result, array):
        storage = source._storage
        tensor._storage = storage = source.memory if storage is None else storage
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
    _check_shape(target.array, result)
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
    _check_shape(target.array, result)
    check_cast(result.dtype, target.array.dtype)


def store_out(target: Tensor, result: Any, check: Check = check_cast) -> None:
    """Write an out= result; the target takes the result's shape, and `check` says what its dtype may be."""
    result = np.asarray(result)
    check(result.dtype, target.array.dtype)
    if result.shape != target.array.shape:
        target.array = np.empty_like(result, target.array.dtype, order="K" if is_dense(result) else "C", subok=False)
        target._storage = None
    overwrite(target, result)


def _dtype_number(tensor: Tensor) -> int:
    return xp.FROM_NUMPY[tensor.array.dtype].number


def _check_no_overlap(array: Array) -> None:
    if array.flags.c_contiguous:
        return
    if any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True)):
        raise OperatorError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


_ENVIRONMENT: Final[dict[str, Any]] = {
    "Tensor": Tensor, "new": object.__new__, "ndarray": np.ndarray, "asarray": np.asarray, "switch": xp.switch,
    "SILENT": xp.SILENT, "loud": xp.loud, "REFUSALS": errors.REFUSALS, "refusal": errors.refusal, "hooks": HOOKS,
    "fresh": fresh, "view": view, "part": part, "store": store, "store_out": store_out,
    "refuse_overlap": refuse_overlap, "refuse_shared": refuse_shared, "partial": partial,
    "untraced": untraced, "dtype_number": _dtype_number, "ordered_like": ordered_like,
}  # fmt: skip
