"""Hooks of modules, compiled with them.

In: Python functions that run before or after a module's `forward`.  Out: functions of the module's type that are no
methods: `hook(self, input: Tuple[...], output: T) -> U`, called wherever the module is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from engine.frontend.python.trees import tree_from_function
from engine.frontend.syntax.tree import Tree
from engine.ir.unit import Function
from engine.lang.errors import CompileError
from engine.lang.records import dataclass
from engine.lang.schema import FunctionSchema
from engine.lang.source import SourceRange
from engine.lang.types import NONE, ClassType, TupleType, Type

Declare = Callable[[Tree, Callable[..., Any]], Function]
"""Declares a function whose first argument is the module, and signs it with what its text tells of its schema."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook of a module, which may not be compiled yet: what its errors call it, and where it is written."""

    function: Function
    what: str
    range: SourceRange
    before: bool

    def refused(self, how: str, hint: str) -> CompileError:
        return CompileError(f"{self.what} {how}", self.range, hints=(hint,))


def declare_hooks(
    type: ClassType, pre_hooks: Sequence[Callable[..., Any]], hooks: Sequence[Callable[..., Any]], declare: Declare
) -> list[Hook]:
    """Add the hooks to the type; pre-hooks come first in the result.  Raises CompileError for two of one name."""
    made: dict[str, tuple[Callable[..., Any], Hook]] = {}
    after = [_declared(type, function, "Hook", made, declare) for function in hooks]
    before = [_declared(type, function, "Pre-hook", made, declare) for function in pre_hooks]
    type.forward_hooks.extend(hook.function for hook in after)
    type.forward_pre_hooks.extend(hook.function for hook in before)
    return [*before, *after]


def _declared(
    type: ClassType,
    function: Callable[..., Any],
    kind: str,
    made: dict[str, tuple[Callable[..., Any], Hook]],
    declare: Declare,
) -> Hook:
    if not inspect.isfunction(function):
        raise CompileError(
            f"a {kind.lower()} on module '{type.name}' is a {function.__class__.__name__}, and no function",
            hints=("take it off before compiling, or write it as a function",),
        )
    name = function.__name__
    if name in made and made[name][0] is function:
        return made[name][1]
    if name in made:
        raise CompileError(
            f"{kind} '{name}' on {type.name} has at least two different python definitions. "
            "Please use unique names for all hooks."
        )
    if name in type.methods:
        raise _taken(type, name)
    tree = tree_from_function(function)
    hook = Hook(declare(tree, function), f"{kind} '{name}' on module '{type.name}'", tree.range, kind == "Pre-hook")
    made[name] = function, hook
    return hook


def _taken(type: ClassType, name: str) -> CompileError:
    return CompileError(
        f"Can't define hook: {name} on class: {type.qualname} because a method or hook with that name already exists.",
        hints=("give the hook another name",),
    )


def compile_hooks(type: ClassType, hooks: Sequence[Hook]) -> None:
    """Compile the hooks of a type whose methods are compiled.  Raises CompileError for those that do not fit `forward`.

    What the text tells of a hook is looked at before its body: that belongs to other types, if the hook does.
    """
    for hook in hooks:
        if hook.function.name in type.methods:
            raise _taken(type, hook.function.name)
    forward = type.methods.get("forward")
    if not isinstance(forward, Function):
        raise CompileError(
            f"Couldn't find method: 'forward' on class: '{type.qualname}'", hints=("hooks run around forward",)
        )
    inputs = TupleType(tuple(argument.type for argument in forward.schema.arguments[1:]))
    result = forward.schema.returns[0].type
    for hook in hooks:
        _check_inputs(hook, inputs, result)
        if hook.before:
            _check_pre_hook_result(hook, inputs)
        hook.function.ensure_defined()
        if not hook.before:
            given = hook.function.schema.returns[0].type
            result = result if given == NONE else given


def _check_inputs(hook: Hook, inputs: TupleType, result: Type) -> None:
    """Raises CompileError unless the hook takes the tuple of inputs, and the result if it runs behind `forward`."""
    schema: FunctionSchema = hook.function.signature
    shown = f"self, input: {inputs.annotation_str}" + ("" if hook.before else f", output: {result.annotation_str}")
    hint = f"its parameters are ({shown})"
    wanted, found = 2 if hook.before else 3, len(schema.arguments)
    if found != wanted:
        how = f"was expected to only have exactly {wanted} inputs but it had {found} inputs"
        raise hook.refused(how, hint)
    taken = schema.arguments[1].type
    if not isinstance(taken, TupleType):
        how = f"expected the input argument to be typed as a Tuple but found type: '{taken.annotation_str}' instead."
        raise hook.refused(how, hint)
    if taken != inputs:
        raise hook.refused(f"{_misfit_of_inputs(taken, inputs)} Received type: '{taken.annotation_str}'", hint)
    if not hook.before and schema.arguments[2].type != result:
        received, expected = schema.arguments[2].type.annotation_str, result.annotation_str
        how = f"has the wrong type for the output argument. Received type: '{received}'. Expected type: '{expected}'"
        raise hook.refused(how, hint)


def _misfit_of_inputs(taken: TupleType, inputs: TupleType) -> str:
    if not inputs.elements:
        return "was expecting Tuple[()] as the input type."
    if len(taken.elements) != len(inputs.elements):
        return "has the wrong number of contained types for the input argument's Tuple."
    return "has the wrong inner types for the input tuple argument."


def _check_pre_hook_result(hook: Hook, inputs: TupleType) -> None:
    """Raises CompileError unless a pre-hook returns None, the tuple of inputs, or the one input that is no tuple."""
    returns = hook.function.signature.returns
    single = inputs.elements[0] if len(inputs.elements) == 1 else None
    allowed = [NONE, inputs] if single is None or isinstance(single, TupleType) else [NONE, single, inputs]
    hint = f"a pre-hook returns {' or '.join(type.annotation_str for type in allowed)} here"
    if not returns:
        how = "is missing a return annotation. Return annotations are required, please add one."
        raise hook.refused(how, hint)
    given = returns[0].type
    if given not in allowed:
        how = f"returned the wrong type of: '{given.annotation_str}'"
        why = _misfit_of_result(given, inputs) if isinstance(given, TupleType) else ""
        raise hook.refused(f"{how}. {why}" if why else how, hint)


def _misfit_of_result(given: TupleType, inputs: TupleType) -> str:
    if not inputs.elements:
        return "Was expecting either 'None' or 'Tuple[()]' since forward had no arguments"
    if inputs.elements == (given,):
        return (
            "When forward has a single tuple input argument, the return needs to be 'None' or a nested tuple "
            f"containing forward's input tuple argument as in: '{inputs.annotation_str}'"
        )
    if len(given.elements) != len(inputs.elements):
        return "The returned tuple contains the wrong number of contained types"
    return "The returned tuple contains the wrong inner types"
