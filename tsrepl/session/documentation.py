"""`%doc`: what is known of a name: signatures, documentation, and for a value its type.

In: a name: of a function, class, module, method, operator or variable.  Out: replies.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator

from engine.ir.unit import Function
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
    else:
        yield from schema(workspace, _as_operator(workspace, argument))


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
