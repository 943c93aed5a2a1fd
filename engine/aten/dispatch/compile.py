"""From an entry of the operator table to the functions that run it.

In: an `Op`.  Out: its `Compiled`: a function of all the schema's arguments in order, which is its body (see `body`)
behind the hooks that may step in, and the body alone.  They are written as text and compiled, so a call inspects
nothing; the text reads the slots of its operator (`op.body`, `op.recorded`) when it is called.

`HOOKS.grad` steps in where a tensor argument requires grad, `HOOKS.trace` everywhere; both are called
as hook(op, args, run), where `run(*args)` does the work without that hook, and return the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.aten.dispatch import device_dispatch, errors
from engine.aten.dispatch.body import Body, array_body, requires_grad, safe, tensors_of
from engine.aten.dispatch.dtype_support import guarded
from engine.aten.dispatch.out_checks import check_of
from engine.aten.dispatch.wrapping import check_writable, store_out
from engine.aten.values.hooks import HOOKS
from engine.aten.values.hot_helpers import HOT
from engine.aten.values.tensor import Tensor
from engine.lang.generated import define, indented
from engine.lang.schema import FunctionSchema

if TYPE_CHECKING:
    from engine.aten.dispatch.op import Op


class Written(NamedTuple):
    """What an operator's function does while nobody traces it: lines in terms of the schema's arguments, and the
    objects they name."""

    lines: Sequence[str]
    environment: Mapping[str, Any]


class Compiled(NamedTuple):
    """The functions of an operator in Python.

    `run` looks at the hooks, `body` does not; without `written` both are one function that is not about tensors.
    `text` is the body as text, where it runs on arrays.
    """

    run: Callable[..., Any]
    body: Callable[..., Any]
    written: Written | None = None
    text: Body | None = None


def compile_op(op: Op) -> Compiled:
    """The operator as functions of all its arguments, positionally; the schema's results come back."""
    schema, python, source = op.schema, op.python, op.functional
    if schema.is_vararg and python is not None:
        return Compiled(python, python)
    if python is None and op.composite is not None:
        python = _composite(op)
    if python is not None:
        work = guarded(op, python)
        if not (tensors_of(schema.arguments) or tensors_of(schema.returns)):
            return Compiled(work, work)
        return _behind_hooks(op, schema, _calling(op, schema, work), grad=bool(op.gradient))
    if source is not None and source.python is not None:
        work = _then_written(schema, guarded(op, lambda *_: None), source)
        return _behind_hooks(op, schema, _calling(op, schema, work), grad=False)
    text = array_body(op)
    written = Written([*text.lines, f"return {text.result}"], text.environment)
    return _behind_hooks(op, schema, written, grad=bool(tensors_of(schema.returns)), text=text)


def _composite(op: Op) -> Callable[..., Any]:
    if HOOKS.composite is None:
        raise AssertionError(f"{op.qualified_name} is written in TorchScript, and no compiler has registered")
    return HOOKS.composite(op)


def _then_written(schema: FunctionSchema, refuse: Callable[..., Any], source: Op) -> Callable[..., Any]:
    """For the in-place or out form of an operator made of others: run those, then write."""
    outs = [i for i, a in enumerate(schema.arguments) if a.is_write and a.kwarg_only]
    check = check_of(schema.qualified_name)

    def work(*args: Any) -> Any:
        refuse(*args)
        given = args if outs or not args[0].requires_grad else (args[0].clone(), *args[1:])
        result = source.impl(*(arg for i, arg in enumerate(given) if i not in outs))
        if not outs:
            check_writable(args[0], result.array)
            return args[0].copy_(result)
        targets = tuple(args[i] for i in outs)
        for target, part in zip(targets, (result,) if len(outs) == 1 else result, strict=True):
            store_out(target, part.array, check)
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
    asked = " or ".join([*map(requires_grad, tensors_of(schema.arguments)), "hooks.rebased"])
    return [
        f"if ({asked}) and hooks.grad is not None:",
        f"    return op.recorded{args} if hooks.grad is hooks.recorded else hooks.grad(op, {args}, op.body)",
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


_ENVIRONMENT: Final[dict[str, Any]] = {
    "hooks": HOOKS, "hot": HOT, "partial": partial, "untraced": untraced, "REFUSALS": errors.REFUSALS,
    "refusal": errors.refusal, "worked": device_dispatch.worked,
}  # fmt: skip
