"""`%doc`: what is known of a name: signatures, documentation, and for a value its type.

In: a name: of a function, class, module, method, operator or variable; or an object of Python's.  Out: replies.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any, Final

from engine.aten.dispatch import overload_cache
from engine.frontend.compilation.compile import library_value
from engine.frontend.sugared.classes import ChosenByFlag, FunctionValue
from engine.frontend.sugared.sugared_value import SugaredValue
from engine.ir.unit import Function
from engine.torch import nn
from engine.torch.compiled.objects import ScriptFunction, ScriptMethod
from engine.torch.jit.scripting.script_module import ScriptModule
from tsrepl.session.inspection import operator_schemas, schema, signature
from tsrepl.session.replies import Reply, SchemaReply, TextReply
from tsrepl.session.workspace import Workspace


def doc(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%doc name`."""
    base = argument.partition(".")[0]
    if base in workspace.seen() and workspace.type_of_path(argument) is not None:
        yield from _value(workspace, argument)
        return
    function = workspace.functions().get(argument) or _method(workspace, argument)
    if function is not None:
        yield from _function(argument, function)
    elif (known := workspace.definitions.signature(argument)) is not None:
        yield SchemaReply(argument, (known,))
    elif (found := library_object(argument)) is not None:
        yield from of_object(argument, found)
    else:
        yield from schema(workspace, _as_operator(workspace, argument))


def library_object(path: str) -> Any:
    """The class or function of the library under a name that programs know: `nn.Linear`, `F.relu`; None for operators
    and anything else."""
    name = path.removeprefix("torch.")
    module = next((each for prefix, each in _LIBRARY if name.startswith(prefix)), None)
    return getattr(module, name.rpartition(".")[2], None) if module is not None and name.isascii() else None


_LIBRARY: Final = (("nn.functional.", nn.functional), ("F.", nn.functional), ("nn.", nn))


def library_schemas(path: str) -> tuple[str, ...]:
    """The signatures of a class or function of the library; none of anything else."""
    replies = of_object(path, library_object(path))
    return tuple(text for each in replies if isinstance(each, SchemaReply) for text in each.schemas)


def of_object(title: str, found: Any) -> Iterator[Reply]:
    """The documentation of a compiled function, method or module, an operator, or a class or function of the library;
    nothing of other objects."""
    if isinstance(found, ScriptModule):
        found = getattr(found, "forward", None)
    if isinstance(found, (ScriptFunction, ScriptMethod)):
        yield from _function(title, found._function)
    elif schemas := _schemas_of(found):
        yield SchemaReply(title, schemas)
    elif (getattr(found, "__module__", None) or "").startswith(_LIBRARY_MODULES) and callable(found):
        yield SchemaReply(title, (f"{title}{inspect.signature(found)}",))
        if text := inspect.getdoc(found):
            yield TextReply(text)


_LIBRARY_MODULES: Final = "engine.torch.nn"


def _schemas_of(found: Any) -> tuple[str, ...]:
    """The schemas of the operator, or of the functions written in TorchScript, that a function of Python stands for."""
    written = library_value(getattr(found, "torch_path", ""))
    if written is not None:
        return tuple(map(signature, _functions_of(written)))
    code = getattr(getattr(found, "__func__", found), "__code__", None)
    is_operator = code is not None and code.co_filename == overload_cache.__file__
    return operator_schemas(f"torch.{found.__name__}") if is_operator else ()


def _functions_of(value: SugaredValue) -> list[Function]:
    if isinstance(value, ChosenByFlag):
        return [*_functions_of(value.when_true), *_functions_of(value.when_false)]
    return list(value.functions) if isinstance(value, FunctionValue) else []


def _value(workspace: Workspace, path: str) -> Iterator[Reply]:
    type = workspace.type_of_path(path)
    assert type is not None
    yield TextReply(f"{path}: {type.annotation_str}")
    yield workspace.show(workspace.lookup(path), type, path)
    forward = _method(workspace, f"{path}.forward")
    if forward is not None:
        yield from _function(path, forward)


def _function(title: str, function: Function) -> Iterator[Reply]:
    yield SchemaReply(title, (signature(function),))
    if function.doc:
        yield TextReply(inspect.cleandoc(function.doc))


def _method(workspace: Workspace, path: str) -> Function | None:
    owner, _, name = path.rpartition(".")
    methods = getattr(workspace.type_of_path(owner), "methods", {}) if owner else {}
    method = methods.get(name)
    return method if isinstance(method, Function) else None


def _as_operator(workspace: Workspace, path: str) -> str:
    """`x.relu` of a tensor x is the operator relu."""
    base, _, name = path.rpartition(".")
    is_value = bool(base) and workspace.type_of_path(base) is not None
    return name if is_value and operator_schemas(name) else path
