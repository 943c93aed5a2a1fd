"""Hooks of modules, compiled with them.

In: Python functions that run before or after a module's `forward`.  Out: functions of the module's type that are no
methods: `hook(self, input: Tuple[...], output: T) -> U`, called wherever the module is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.frontend.names.type_annotations import dotted_name
from engine.frontend.python.trees import tree_from_function
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Def, Subscript
from engine.ir.unit import Function
from engine.lang.errors import CompileError
from engine.lang.schema import FunctionSchema
from engine.lang.types import NONE, Callee, ClassType, TupleType, Type

Declare = Callable[[Tree, Callable[..., Any]], Function]
"""Declares a method of the module."""


def declare_hooks(
    type: ClassType, pre_hooks: Sequence[Callable[..., Any]], hooks: Sequence[Callable[..., Any]], declare: Declare
) -> None:
    """Add the hooks to the type.  Raises CompileError for one that is not annotated as hooks must be."""
    made: dict[str, tuple[Callable[..., Any], Function]] = {}
    for target, functions, what, parameters in (
        (type.forward_pre_hooks, pre_hooks, "Pre-hook", 2), (type.forward_hooks, hooks, "Hook", 3),
    ):  # fmt: skip
        for function in functions:
            target.append(_declared(type, function, what, parameters, made, declare))


def _declared(
    type: ClassType,
    function: Callable[..., Any],
    what: str,
    parameters: int,
    made: dict[str, tuple[Callable[..., Any], Function]],
    declare: Declare,
) -> Callee:
    name = function.__name__
    if name in made and made[name][0] is function:
        return made[name][1]
    if name in made or name in type.methods:
        raise CompileError(f"{what} '{name}' on module '{type.name}' has the name of another hook or method")
    tree = tree_from_function(function)
    _check(Def(tree), f"{what} '{name}' on module '{type.name}'", parameters)
    hook = declare(tree, function)
    type.methods.pop(name, None)
    made[name] = function, hook
    return hook


def _check(view: Def, what: str, parameters: int) -> None:
    found = view.decl.params
    hint = ", ".join(["self", "input: Tuple[...]", "output: ..."][:parameters])
    if len(found) != parameters:
        raise CompileError(
            f"{what} was expected to take {parameters} inputs, but takes {len(found)}", view.range, hints=(hint,)
        )
    if view.decl.returns is None:
        raise CompileError(
            f"{what} is missing a return annotation. Return annotations are required, please add one.",
            view.range,
            hints=("a hook that changes nothing returns None",),
        )
    annotation = found[1].annotation
    if annotation is None or not _is_tuple(annotation):
        shown = "Tensor" if annotation is None else annotation.range.text
        raise CompileError(
            f"{what} expected the input argument to be typed as a Tuple but found type: '{shown}' instead.",
            view.range,
            hints=(f"its parameters are ({hint})",),
        )


def check_hooks(type: ClassType) -> None:
    """Raises CompileError for hooks that do not fit the module's `forward`, all of them compiled by now."""
    forward = type.methods.get("forward")
    if not isinstance(forward, Function):
        return
    inputs = TupleType(tuple(argument.type for argument in forward.schema.arguments[1:]))
    result = forward.schema.returns[0].type
    for hook in type.forward_pre_hooks:
        given = _check_inputs(hook, inputs, f"Pre-hook '{hook.name}' on module '{type.name}'")
        single = inputs.elements[0] if len(inputs.elements) == 1 else NONE
        if given not in (NONE, inputs) and (given != single or isinstance(single, TupleType)):
            raise CompileError(
                f"Pre-hook '{hook.name}' on module '{type.name}' returned the wrong type of: '{given.annotation_str}'",
                hints=(f"a pre-hook returns None or what forward takes: {inputs.annotation_str}",),
            )
    for hook in type.forward_hooks:
        what = f"Hook '{hook.name}' on module '{type.name}'"
        given = _check_inputs(hook, inputs, what)
        taken = hook.schema.arguments[2].type
        if taken != result:
            raise CompileError(
                f"{what} has the wrong type for the output argument: '{taken.annotation_str}'",
                hints=(f"it gets '{result.annotation_str}'",),
            )
        result = result if given == NONE else given


def _check_inputs(hook: Callee, inputs: TupleType, what: str) -> Type:
    """The type that the hook returns.  Raises CompileError unless it takes the tuple of inputs."""
    taken = hook.schema.arguments[1].type
    if taken != inputs:
        raise CompileError(
            f"{what} has the wrong inner types for the input tuple argument. Received type: '{taken.annotation_str}'",
            hints=(f"forward takes {inputs.annotation_str}",),
        )
    schema: FunctionSchema = hook.schema
    return schema.returns[0].type


def _is_tuple(annotation: Tree) -> bool:
    name = dotted_name(Subscript(annotation).value) if annotation.kind == "subscript" else None
    return (name or "").rpartition(".")[2] in ("Tuple", "tuple")
