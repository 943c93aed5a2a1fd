"""Compiled objects and tensors as notebooks show them.

In: a function, graph, module or tensor that is a cell's result.  Out: its forms by MIME type.  The engine knows nothing
of notebooks: the extension tells IPython.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from IPython.core.interactiveshell import InteractiveShell

from engine.aten.values.tensor import Tensor
from engine.torch.compiled.graphs import Graph
from engine.torch.compiled.objects import ScriptFunction, ScriptMethod
from engine.torch.jit.scripting.script_module import ScriptModule
from tsrepl.magics.display import Bundle, bundle, has_page, show
from tsrepl.magics.words import as_magics
from tsrepl.session.inspection import code_reply, graph_reply, signature
from tsrepl.session.modules import module_node, short_name
from tsrepl.session.replies import GraphReply, ModuleReply, Reply, SchemaReply, ValueReply
from tsrepl.session.values import statistics, tensor_facts


def _function(value: Any) -> Sequence[Reply]:
    function = value._function
    shown = SchemaReply(function.name, (signature(function),)), code_reply(function.name, function)
    return (*shown, graph_reply(function.name, function)) if has_page() else shown


def _graph(value: Graph) -> Sequence[Reply]:
    return (GraphReply("graph", str(value), graph=value._ir),)


def _module(value: Any) -> Sequence[Reply]:
    names = InteractiveShell.instance().user_ns.items()
    known = (name for name, each in names if each is value and not name.startswith("_"))
    name = next(known, short_name(value._ivalue.type))
    return (as_magics(ModuleReply(name, module_node(name, value._ivalue))),)


def _tensor(value: Tensor) -> Sequence[Reply]:
    facts = tensor_facts(value)
    if value.numel() > 1 and not value.is_quantized:
        facts = f"{facts}  {statistics(value)}"
    return (ValueReply(value, "Tensor", repr(value), facts),)


_FORMS: Final[dict[type[Any], Callable[[Any], Sequence[Reply]]]] = {
    ScriptFunction: _function,
    ScriptMethod: _function,
    Graph: _graph,
    ScriptModule: _module,
    Tensor: _tensor,
}


def set_formats(shell: InteractiveShell) -> None:
    """Let IPython show the objects by these forms."""
    formatter: Any = shell.display_formatter
    for kind, replies in _FORMS.items():
        formatter.mimebundle_formatter.for_type(kind, _bundle_of(replies))
        if has_page():
            formatter.ipython_display_formatter.for_type(kind, partial(_show, replies))


def leave_formats(shell: InteractiveShell) -> None:
    """Let IPython show them by their `__repr__` again."""
    formatter: Any = shell.display_formatter
    for kind in _FORMS:
        formatter.mimebundle_formatter.pop(kind, None)
        formatter.ipython_display_formatter.pop(kind, None)


def _show(replies_of: Callable[[Any], Sequence[Reply]], value: Any) -> None:
    for reply in replies_of(value):
        show(reply)


def _bundle_of(replies_of: Callable[[Any], Sequence[Reply]]) -> Callable[..., Bundle]:
    """All replies as one output; a view is that of the last one that has one."""

    def forms(value: Any, include: Any = None, exclude: Any = None) -> Bundle:
        found = [bundle(reply)[0] for reply in replies_of(value)]
        joined = {"text/html": "".join(each["text/html"] for each in found)}
        text = "\n".join(each["text/plain"] for each in found)
        return {**{key: form for each in found for key, form in each.items()}, **joined, "text/plain": text}

    return forms
