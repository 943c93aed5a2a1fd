"""From an entry of the operator table to a function that runs it.

In: an `Op`.  Out: a function of all the schema's arguments in order: its body (see `body`) behind the hooks that may
step in.  The function is written as text and compiled, so a call inspects nothing.

`HOOKS.grad` steps in where a tensor argument requires grad, `HOOKS.trace` everywhere; both are called
as hook(op, args, run), where `run(*args)` does the work without that hook, and return the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.aten.dispatch import device_dispatch, errors
from engine.aten.dispatch.body import Body, array_body, indented, requires_grad, safe, tensors_of
from engine.aten.dispatch.dtype_support import guarded
from engine.aten.dispatch.out_checks import check_of
from engine.aten.dispatch.wrapping import check_writable, store_out
from engine.aten.values import hot_helpers
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.lang.schema import FunctionSchema

if TYPE_CHECKING:
    from engine.aten.dispatch.op import Op


def compile_op(op: Op) -> Callable[..., Any]:
    """The operator as a function of all its arguments, positionally; the schema's results come back."""
    schema = op.schema
    if schema.is_vararg and op.python is not None:
        return op.python
    of_tensors = bool(tensors_of(schema.arguments) or tensors_of(schema.returns))
    if op.python is not None or op.composite is not None:
        body = guarded(op, op.python or _composite(op))
        return _changing(op, _hooked(op, body, schema, grad=bool(op.gradient))) if of_tensors else body
    if op.functional is not None and op.functional.python is not None:
        return _hooked(op, _written_body(op, schema, op.functional), schema, grad=False)
    return _changing(op, _hooked_array(op))


def _changing(op: Op, run: Callable[..., Any]) -> Callable[..., Any]:
    """The operator's function, unless somebody has another one for it."""
    changing = None if HOOKS.native is None else HOOKS.native(op, run)
    if changing is None:
        return run
    _WRITTEN.pop(op, None)  # what it does now it will not do for long
    return changing


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
            check_writable(args[0], result.array)
            return args[0].copy_(result)
        targets = tuple(args[i] for i in outs)
        for target, part in zip(targets, (result,) if len(outs) == 1 else result, strict=True):
            store_out(target, part.array, check)
        return targets[0] if len(targets) == 1 else targets

    return body


def _hooked_array(op: Op) -> Callable[..., Any]:
    """The operator over tensors behind the hooks; all in one function, since calls are what costs."""
    schema, text = op.schema, array_body(op)
    names = [safe(a.name) for a in schema.arguments]
    lines = [*text.lines, f"return {text.result}"]
    body = compiled("body", names, lines, op, text.environment)
    grad = _grad_lines(schema) if tensors_of(schema.arguments) and tensors_of(schema.returns) else []
    environment = {**text.environment, "body": body, "recorded": _Recorded(op, body, text)}
    _WRITTEN[op] = Written([*grad, *lines], {**_ENVIRONMENT, **environment})
    return compiled("run", names, [_trace_line(schema, bool(grad)), *grad, *lines], op, environment)


class Written(NamedTuple):
    """What an operator's function does where nobody traces it: lines in terms of the schema's arguments, and what
    they know."""

    lines: Sequence[str]
    environment: Mapping[str, Any]


_WRITTEN: Final[dict[Op, Written]] = {}


def written(op: Op) -> Written | None:
    """What the operator does, for functions that do the same; None where it is not written as one function."""
    return _WRITTEN.get(op) if op.run is not None else None


def _hooked(op: Op, work: Callable[..., Any], schema: FunctionSchema, grad: bool) -> Callable[..., Any]:
    """A function of tensors behind the hooks."""
    names = [safe(a.name) for a in schema.arguments]
    given = ", ".join(names)
    lines = [f"return work({given}) if not hooks.devices else worked(op, work, {given})"]
    if op.name.startswith("aten::"):
        refused = f"    raise refusal(op, {_all_arguments(schema)}, error) from error"
        lines = ["try:", *indented(lines), "except REFUSALS as error:", refused]
    body = compiled("body", names, lines, op, {"work": work})
    grad_lines = _grad_lines(schema) if grad and tensors_of(schema.arguments) else []
    environment = {"work": work, "body": body, "recorded": _Recorded(op, body, None)}
    _WRITTEN[op] = Written([*grad_lines, *lines], {**_ENVIRONMENT, "op": op, **environment})
    return compiled("run", names, [_trace_line(schema, bool(grad_lines)), *grad_lines, *lines], op, environment)


def _trace_line(schema: FunctionSchema, asks_for_grad: bool) -> str:
    body = "partial(untraced, op, body)" if asks_for_grad else "body"
    return f"if hooks.trace is not None: return hooks.trace(op, {_all_arguments(schema)}, {body})"


def _grad_lines(schema: FunctionSchema) -> list[str]:
    args = _all_arguments(schema)
    asked = " or ".join([*map(requires_grad, tensors_of(schema.arguments)), "hooks.rebased"])
    return [
        f"if ({asked}) and hooks.grad is not None:",
        f"    return recorded{args} if hooks.grad is hooks.recorded else hooks.grad(op, {args}, body)",
    ]


def _all_arguments(schema: FunctionSchema) -> str:
    return f"({''.join(safe(a.name) + ', ' for a in schema.arguments)})"


def untraced(op: Op, body: Callable[..., Any], *args: Any) -> Any:
    """What an operator does while it is traced: what it would do otherwise."""
    if HOOKS.grad is not None and (HOOKS.rebased or any(map(_has_grad, args))):
        return HOOKS.grad(op, args, body)
    return body(*args)


def _has_grad(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_grad, value))
    return isinstance(value, Tensor) and value._requires_grad


def compiled(
    name: str, parameters: Sequence[str], lines: Sequence[str], op: Op, more: Mapping[str, Any]
) -> Callable[..., Any]:
    """A function of the operator, written as text that knows what the operator's function knows, and `more`."""
    function = define(name, parameters, lines, {**_ENVIRONMENT, "op": op, **more}, f"<{op.qualified_name}>")
    function.__qualname__ = op.qualified_name
    return function


def define(
    name: str, parameters: Sequence[str], lines: Sequence[str], environment: dict[str, Any], file: str = "<aten::call>"
) -> Callable[..., Any]:
    """The function of that text, which knows the environment."""
    text = "\n".join([f"def {name}({', '.join(parameters)}):", *indented(lines)])
    exec(compile(text, file, "exec"), environment)
    hot_helpers.join(environment)
    if isinstance(recorded := environment.get("recorded"), _Recorded):
        recorded.join(environment)
    function: Callable[..., Any] = environment[name]
    return function


class _Recorded:
    """How an operator is recorded is worked out when it first is: then the function for it takes this one's place."""

    def __init__(self, op: Op, body: Callable[..., Any], text: Body | None) -> None:
        self.op, self.body, self.text = op, body, text
        self._environments: list[dict[str, Any]] = []
        self._found: Callable[..., Any] | None = None

    def join(self, environment: dict[str, Any]) -> None:
        """There is a place to take in this environment."""
        self._environments.append(environment)
        if self._found is not None:
            environment["recorded"] = self._found

    def __call__(self, *args: Any) -> Any:
        assert HOOKS.recorder is not None
        self._found = HOOKS.recorder(self.op, self.body, self.text)
        for environment in self._environments:
            environment["recorded"] = self._found
        return self._found(*args)


_ENVIRONMENT: Final[dict[str, Any]] = {
    "hooks": HOOKS, "partial": partial, "untraced": untraced, "REFUSALS": errors.REFUSALS, "refusal": errors.refusal,
    "worked": device_dispatch.worked,
}  # fmt: skip
