"""`torch.jit.trace`: programs recorded while they run.

In: a Python function or module, and example inputs.  Out: a `ScriptFunction` or `ScriptModule` with the
operations on the examples; decisions made in Python (branches, numbers of iterations) are fixed.  Calls of submodules
become methods of their own types.  Afterwards the trace is checked against the program, see `trace_check`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from typing import Any

from engine.aten.values.tensor import Tensor
from engine.frontend.python.modifiers import ORIGINAL
from engine.frontend.tracing.calls import fresh
from engine.frontend.tracing.position import TracerWarning as TracerWarning
from engine.frontend.tracing.position import warn
from engine.frontend.tracing.state import Scope, TraceOptions, TracingState, current
from engine.frontend.tracing.tracer import recording
from engine.frontend.tracing.values import add_input, add_output, input_type
from engine.ir.graph import Graph
from engine.ir.unit import DEFINING, CompilationUnit, Function
from engine.lang.errors import ArgumentError, ArgumentTypeError
from engine.torch.compiled.graphs import Graph as GraphOf
from engine.torch.compiled.objects import ScriptFunction, ScriptMethod
from engine.torch.jit.scripting.emit_hooks import emitted_function, emitted_module
from engine.torch.jit.scripting.enabled import ENABLED
from engine.torch.jit.scripting.graph_functions import defined
from engine.torch.jit.scripting.module_handle import TRACED_INPUTS
from engine.torch.jit.scripting.python_program import PYTHON
from engine.torch.jit.scripting.script import script
from engine.torch.jit.scripting.script_module import ScriptModule, wrap
from engine.torch.jit.tracing.trace_check import TracingCheckError as TracingCheckError
from engine.torch.jit.tracing.trace_check import check
from engine.torch.jit.tracing.traced_modules import Registry, finish
from engine.torch.nn.modules.module import Module


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Sequence[Any] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    *,
    example_kwarg_inputs: Mapping[str, Any] | None = None,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    _store_inputs: bool = True,
) -> Any:
    """Compile the function or module as it runs on the example inputs: a tensor, or a tuple of arguments.

    Operators are recorded as they are called, in place or not; with `_force_outplace`, writes give new tensors in the
    trace.  With `_store_inputs`, archives of the module keep the types of the inputs.  The other arguments with an
    underscore are accepted and change nothing.

    With `check_trace` the program is traced again and the results are compared, on `check_inputs` if given.  Without
    `strict` the program may return lists and dicts.  Raises CompileError, TracingCheckError.
    """
    if not ENABLED.now:
        return func
    if isinstance(func, ScriptModule):
        warn(
            "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as is.",
            UserWarning,
        )
        return func
    owner = getattr(func, "__self__", None)
    if isinstance(owner, Module):
        if func.__name__ != "forward":
            raise AttributeError(
                f"trace doesn't support compiling individual module's functions; use trace_module(module, "
                f"{{'{func.__name__}': inputs}})"
            )
        func = owner
    options = TraceOptions(strict, _force_outplace)
    examples = [_Example.of(example_inputs, example_kwarg_inputs)]
    checks = examples if check_inputs is None else [_Example.of(each, None) for each in check_inputs]
    if isinstance(func, Module):
        wanted = {"forward": checks} if check_trace else {}
        module = _trace_methods(func, {"forward": examples}, wanted, check_tolerance, options, _store_inputs)
        return emitted_module(module)
    if not callable(func):
        raise ArgumentError(f"cannot trace a {type(func).__name__}", hints=("functions and modules can be traced",))
    traced = _trace_function(func, examples[0], options, PYTHON.unit)
    for example in checks if check_trace else ():
        again = partial(_trace_function, func, example.copy(), options, CompilationUnit())
        check(traced, again, func, example.run_copy, check_tolerance)
    return emitted_function(traced)


def trace_module(
    mod: Module,
    inputs: Mapping[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Sequence[Mapping[str, Any]] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    *,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> ScriptModule:
    """Compile methods of the module as they run on example inputs, whose types archives keep with `_store_inputs`.

    Raises CompileError, TracingCheckError."""

    def example(value: Any) -> _Example:
        return _Example.of(None, value) if example_inputs_is_kwarg else _Example.of(value, None)

    examples = {name: [example(value)] for name, value in inputs.items()}
    checks = examples
    if check_inputs is not None:
        checks = {name: [example(each[name]) for each in check_inputs] for name in inputs}
    wanted = checks if check_trace else {}
    return _trace_methods(mod, examples, wanted, check_tolerance, TraceOptions(strict), _store_inputs)


def is_tracing() -> bool:
    """True if this thread is recording a trace."""
    return current() is not None


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is compiled when a trace calls it, which preserves its control flow."""

    @wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return script(fn)(*args, **kwargs) if is_tracing() else fn(*args, **kwargs)

    setattr(wrapper, ORIGINAL, fn)
    return wrapper


def get_trace_graph(
    f: Any,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> Any:
    """The graph of one run, and its result; a module's parameters and buffers are inputs of the graph.

    With `return_inputs`, the inputs of the graph come third: the arguments, and what the module holds.
    """
    example = _Example.of(args, None)
    example.kwargs.update(kwargs or {})
    state = TracingState(Scope(Graph()), TraceOptions(strict, _force_outplace))
    _add_inputs(state, f, example)
    named = {**dict(f.named_parameters()), **dict(f.named_buffers())} if isinstance(f, Module) else {}
    inputs = (*example.args, *(tensor.clone() for tensor in named.values()))
    for name, tensor in named.items():
        add_input(state, tensor, name)
    with recording(state):
        result = example.run(f)
    add_output(state, result)
    finish(state)
    return (GraphOf(state.graph), result, inputs) if return_inputs else (GraphOf(state.graph), result)


# ------------------------------------------------------------------ examples


class _Example:
    """The arguments of one run."""

    def __init__(self, args: Iterable[Any], kwargs: Mapping[str, Any], taken: Iterable[int] = ()) -> None:
        seen = set(taken)
        self.args = [fresh(each, seen) for each in args]
        self.kwargs = {name: fresh(each, seen) for name, each in kwargs.items()}

    @classmethod
    def of(cls, inputs: Any, kwargs: Mapping[str, Any] | None) -> _Example:
        if kwargs is not None and inputs is not None:
            raise ArgumentError(
                "example inputs are given both by position and by name",
                hints=("give example_inputs or example_kwarg_inputs",),
            )
        if kwargs is None and inputs is None:
            raise ArgumentTypeError(
                "example inputs are needed to trace a program", hints=("write torch.jit.trace(f, (x, y))",)
            )
        if kwargs is not None:
            return cls((), kwargs)
        return cls(inputs if isinstance(inputs, (tuple, list)) else [inputs], {})

    def copy(self) -> _Example:
        """The same values in other memory."""
        return _Example(map(_copied, self.args), {name: _copied(each) for name, each in self.kwargs.items()})

    def apart_from(self, tensors: Iterable[int]) -> _Example:
        """The same values, where the tensors with these `id`s are others in the same memory."""
        return _Example(self.args, self.kwargs, tensors)

    def run(self, callee: Callable[..., Any]) -> Any:
        return callee(*self.args, **self.kwargs)

    def run_copy(self, callee: Callable[..., Any]) -> Any:
        return self.copy().run(callee)


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        copy = value.detach().clone()
        copy.requires_grad = value.requires_grad
        return copy
    if isinstance(value, (list, tuple)):
        parts = [_copied(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return {key: _copied(part) for key, part in value.items()} if isinstance(value, dict) else value


def _add_inputs(state: TracingState, callee: Any, example: _Example) -> None:
    """Add a graph input for each argument; keyword arguments in the order of the callee's declaration."""
    names = _argument_names(callee)
    for index, value in enumerate(example.args):
        input_type((value,))
        add_input(state, value, names[index] if index < len(names) else "")
    order = [name for name in names if name in example.kwargs]
    for name in [*order, *(name for name in example.kwargs if name not in order)]:
        input_type((example.kwargs[name],))
        add_input(state, example.kwargs[name], name)


def _argument_names(callee: Any) -> list[str]:
    """The names of the callee's arguments; empty if it takes any number of them."""
    function = callee.forward if isinstance(callee, Module) else callee
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return named if len(named) == len(parameters) else []


# ------------------------------------------------------------------ functions


def _trace_function(
    func: Callable[..., Any], example: _Example, options: TraceOptions, unit: CompilationUnit
) -> ScriptFunction:
    state = TracingState(Scope(Graph()), options)
    _add_inputs(state, func, example)
    with recording(state):
        result = example.run(func)
    add_output(state, result)
    finish(state)
    with DEFINING:
        return ScriptFunction(defined(unit, unit.mangle(_name_of(func)), state.graph))


def trace_as(qualname: str, func: Callable[..., Any], inputs: Any, strict: bool = True) -> ScriptFunction:
    """The function as it runs on the inputs, under that name.  Raises CompileError."""
    traced = _trace_function(func, _Example.of(inputs, None), TraceOptions(strict), CompilationUnit())
    with DEFINING:
        return ScriptFunction(defined(PYTHON.unit, PYTHON.unit.mangle(qualname), traced._function.graph))


def _name_of(func: Any) -> str:
    name = PYTHON.name_of(func if hasattr(func, "__name__") else type(func))
    return name.replace("<lambda>", "_lambda").replace("<locals>.", "")


# ------------------------------------------------------------------ modules


def _trace_methods(
    module: Module,
    examples: Mapping[str, Sequence[_Example]],
    checks: Mapping[str, Sequence[_Example]],
    tolerance: float,
    options: TraceOptions,
    store_inputs: bool,
) -> ScriptModule:
    traced = _traced_module(module, examples, options, PYTHON.unit)
    for name in examples if store_inputs else ():
        function = traced._ivalue.type.methods[name]
        assert isinstance(function, Function)
        function.examples = tuple(value.type for value in function.graph.inputs[1:])
        given = [*examples[name][0].args, *examples[name][0].kwargs.values()]
        TRACED_INPUTS.setdefault(traced._ivalue, {})[name] = given
    for name, each_check in checks.items():
        for example in each_check:
            again = partial(_traced_again, module, name, example, options)
            check(getattr(traced, name), again, getattr(module, name), example.run_copy, tolerance)
    return traced


def _traced_again(module: Module, name: str, example: _Example, options: TraceOptions) -> ScriptMethod:
    """Trace the method once more, in a separate unit."""
    traced = _traced_module(module, {name: [example.copy()]}, options, CompilationUnit())
    method: ScriptMethod = getattr(traced, name)
    return method


def _traced_module(
    module: Module, examples: Mapping[str, Sequence[_Example]], options: TraceOptions, unit: CompilationUnit
) -> ScriptModule:
    registry = Registry(unit)
    made = registry.add(module, None, "")
    for name, (example, *_) in examples.items():
        _trace_method(registry, module, name, example, options)
    registry.compile_exports()
    wrapped: ScriptModule = wrap(made)
    return wrapped


def _trace_method(registry: Registry, module: Module, name: str, example: _Example, options: TraceOptions) -> None:
    root = registry.modules[id(module)][1]
    scope = Scope(Graph(), root, method=name)
    scope.graph.add_input("self", root.type)
    state = TracingState(scope, options, attributes=registry.attributes, modules=registry.modules)
    callee = module if name == "forward" else getattr(module, name)
    example = example.apart_from(registry.attributes)  # a parameter that is an argument, too, is another tensor there
    _add_inputs(state, callee, example)
    with recording(state):
        result = example.run(callee)
    add_output(state, result)
    finish(state)
    for each in state.scopes.values():
        if each.is_fork:
            continue
        assert each.module is not None
        type = each.module.type
        type.methods[each.method] = defined(registry.unit, f"{type.qualname}.{each.method}", each.graph)
