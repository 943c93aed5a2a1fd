"""Calls from Python: the boundary between dynamic and typed.

In: a function, Python arguments.  Out: a Python result.  Arguments are matched with the schema (positions, keywords,
defaults) and converted, see `from_python` and `to_python`; an ArgumentError names the function, the argument, the type
that is wanted and what was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from engine.aten.values import libraries
from engine.aten.values.hooks import HOOKS
from engine.aten.values.parameter import Parameter
from engine.aten.values.tensor import Tensor
from engine.executor.concurrency.futures import Future
from engine.executor.conversion.from_python import Mismatch, from_python
from engine.executor.conversion.to_python import to_python
from engine.executor.interpreter.interpreter import Hook, InterpreterState, fork_function, run
from engine.executor.plans.executor import CALLS, GraphExecutor, executor_of
from engine.ir.unit import Function
from engine.lang.errors import ArgumentError, EngineError, did_you_mean
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import BOOL, FLOAT, INT, STR, TENSOR, ListType, OptionalType, Type

_MAX_SHOWN = 200


def call_function(
    function: Function, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, hooks: Sequence[Hook] = ()
) -> Any:
    """Call the function.  Raises ArgumentError, ExecutionError; CompileError when it was not compiled before."""
    if HOOKS.tracer is not None:
        return HOOKS.tracer.call(function, args, kwargs or {}, _call)
    return _call(function, args, kwargs, hooks)


def _call(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any] | None, hooks: Sequence[Hook] = ()) -> Any:
    executor: GraphExecutor = function.executor or executor_of(function)
    boundary: Boundary = executor.boundary or boundary_of(executor)
    inputs = boundary.plain_inputs(args) if not kwargs else None
    if inputs is None:
        inputs = boundary.inputs(args, kwargs or {})
    token = libraries.DEFAULT_DEVICE.set_aside() if HOOKS.devices else None
    try:
        result = InterpreterState(executor.code, hooks).run(*inputs) if hooks else boundary.run(executor, inputs)
    finally:
        if token is not None:
            libraries.DEFAULT_DEVICE.restore(token)
    return boundary.result(result) if boundary.result else result


def _early(executor: GraphExecutor, inputs: Sequence[Any]) -> Any:
    """The same as `run`, for the first calls, which are timed."""
    try:
        return executor.timed(run, executor, inputs)
    finally:
        if not executor.is_early:
            executor.boundary.run = run


def _positional_call(function: Function) -> Callable[..., Any] | None:
    """The call of a function that Python has called before, where results need no conversion."""
    boundary = executor_of(function).boundary
    is_plain = isinstance(boundary, Boundary) and boundary.result is None
    return (lambda *args: _call(function, args, None)) if is_plain else None


CALLS.of = _positional_call


def fork_call(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Future:
    """Start the call on another thread; the future is of its Python result.  Raises ArgumentError."""
    boundary = boundary_of(executor_of(function))
    running = fork_function(function, boundary.inputs(args, kwargs))
    return running.converted(boundary.result) if boundary.result else running


def boundary_of(executor: GraphExecutor) -> Boundary:
    """The function's boundary, made at its first call."""
    if executor.boundary is None:
        executor.boundary = Boundary(executor.function.schema)
    assert isinstance(executor.boundary, Boundary)
    return executor.boundary


class Boundary:
    """The conversions of a schema: `inputs` for arguments, `result` for the returned value (None: it needs none).
    `run` is what runs an executor on such inputs."""

    __slots__ = ("_converters", "_plain", "_positional", "_rest", "result", "run", "schema")

    def __init__(self, schema: FunctionSchema) -> None:
        self.schema = schema
        self._converters = [_converter(argument) for argument in schema.arguments]
        self._positional = sum(not argument.kwarg_only for argument in schema.arguments)
        self._plain = [_plain_types(argument.type) for argument in schema.arguments]
        self._rest = [_defaults_from(i, schema.arguments) for i in range(self._positional + 1)]
        self.run: Callable[[GraphExecutor, Sequence[Any]], Any] = _early
        self.result = to_python(schema.returns[0].type) if len(schema.returns) == 1 else None

    def plain_inputs(self, args: Sequence[Any]) -> Sequence[Any] | None:
        """The arguments with defaults appended, if none needs a conversion, as is usual; else None."""
        count = len(args)
        if count > self._positional or (rest := self._rest[count]) is None:
            return None
        for value, types in zip(args, self._plain, strict=False):
            if type(value) not in types or (type(value) is int and not -_HIGH <= value < _HIGH):
                return None
        return (*args, *rest)

    def inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """A value for each argument of the schema.  Raises ArgumentError."""
        if kwargs or len(args) != self._positional or len(args) != len(self._converters):
            return self._matched(args, kwargs)
        try:
            return [convert(value) for convert, value in zip(self._converters, args, strict=True)]
        except (Mismatch, EngineError):
            return self._matched(args, kwargs)  # which finds out whose fault it was

    def _matched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        self._check_count(len(args))
        unused = dict(kwargs)
        values: list[Any] = []
        for position, argument in enumerate(self.schema.arguments):
            if position < len(args):
                values.append(self._convert(position, args[position]))
            elif argument.name in unused:
                values.append(self._convert(position, unused.pop(argument.name)))
            elif argument.has_default:
                values.append(_default(argument))
            else:
                missing = f"{self._name} is missing value for argument '{argument.name}'"
                raise ArgumentError(f"{missing}. {self._declaration}", hints=self._misspelt(unused))
        if unused:
            raise self._unwanted(next(iter(unused)))
        return values

    def _convert(self, position: int, value: Any) -> Any:
        try:
            return self._converters[position](value)
        except (Mismatch, EngineError) as error:
            reason = str(error)
        argument = self.schema.arguments[position]
        # To print a tensor that is traced would warn, although the error may never be shown: others try another form.
        shown = repr(value) if HOOKS.tracer is None else _type_name(value)
        lines = [
            f"{self._name} {argument.mismatch(_type_name(value))}",
            f"Position: {position}",
            f"Value: {shown if len(shown) <= _MAX_SHOWN else shown[:_MAX_SHOWN] + '...'}",
            self._declaration,
        ]
        raise ArgumentError("\n".join(lines), hints=[reason] if reason else []) from None

    def _check_count(self, given: int) -> None:
        most = len(self.schema.arguments)
        if given > most:
            counts = f"expected at most {most} argument(s) but received {given} argument(s)"
            raise ArgumentError(f"{self._name} {counts}. {self._declaration}")
        if given > self._positional:
            name = self.schema.arguments[self._positional].name
            raise ArgumentError(
                f"{self._name} takes {self._positional} positional argument(s) but {given} was/were given. "
                f"{self._declaration}",
                hints=[f"write {name}=..."],
            )

    def _unwanted(self, name: str) -> ArgumentError:
        if self.schema.index_of(name) is not None:
            return ArgumentError(
                f"Argument '{name}' specified both as positional and keyword argument. {self._declaration}"
            )
        known = [argument.name for argument in self.schema.arguments]
        return ArgumentError(
            f"Unknown keyword argument '{name}' for operator '{self.schema.name}'. {self._declaration}",
            hints=did_you_mean(name, known),
        )

    def _misspelt(self, keywords: Iterable[str]) -> list[str]:
        known = [argument.name for argument in self.schema.arguments]
        wrong = [keyword for keyword in keywords if keyword not in known]
        return [", ".join([f"there is no argument '{each}'", *did_you_mean(each, known)]) for each in wrong]

    @property
    def _name(self) -> str:
        return f"{self.schema.name}()"

    @property
    def _declaration(self) -> str:
        return f"Declaration: {self.schema}"


_THEMSELVES: Final[Mapping[Type, frozenset[type]]] = {
    TENSOR: frozenset({Tensor, Parameter}), INT: frozenset({int}), FLOAT: frozenset({float}), BOOL: frozenset({bool}),
    STR: frozenset({str}),
}  # fmt: skip
_HIGH: Final = 2**63


def _plain_types(of: Type) -> frozenset[type]:
    """The Python types whose values need no conversion to the type."""
    if isinstance(of, OptionalType):
        inner = _plain_types(of.element)
        return inner | {type(None)} if inner else inner
    return _THEMSELVES.get(of, frozenset())


def _defaults_from(place: int, arguments: Sequence[Argument]) -> tuple[Any, ...] | None:
    """The defaults of the arguments from that place on; None if one has none, or a default that each call copies."""
    rest = arguments[place:]
    if not all(a.has_default and type(a.default) in _UNCHANGING for a in rest):
        return None
    return tuple(map(_default, rest))


_UNCHANGING: Final = frozenset({int, float, bool, str, type(None)})


def _converter(argument: Argument) -> Callable[[Any], Any]:
    """The argument's conversion; one number is broadcast to a list of fixed length, as `int[2]`."""
    convert, length = from_python(argument.type), argument.broadcast
    if length is None:
        return convert
    return lambda value: convert([value] * length if isinstance(value, (int, float)) else value)


def _default(argument: Argument) -> Any:
    """The default as a call takes it: a schema's tuple as a new list; a program's own list is shared between calls."""
    value = argument.default
    if argument.broadcast is not None and isinstance(value, (int, float)):
        return [value] * argument.broadcast
    return list(value) if isinstance(value, tuple) and isinstance(argument.type, ListType) else value


def _type_name(value: Any) -> str:
    fields = getattr(value, "_fields", None)
    name = type(value).__name__
    return f"{name} (aka NamedTuple({', '.join(fields)}))" if fields else name
