"""Compiled objects and tensors as notebooks show them.

In: a function, graph, module or tensor that is a cell's result.  Out: its forms by MIME type.  The engine knows nothing
of notebooks: the extension tells IPython.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from IPython.core.interactiveshell import InteractiveShell

from engine.aten.values.tensor import Tensor
from engine.torch.compiled.graphs import Graph
from engine.torch.compiled.objects import ScriptFunction, ScriptMethod
from engine.torch.jit.scripting.script_module import ScriptModule
from tsrepl.magics.display import WIDTH
from tsrepl.render.html import to_html
from tsrepl.render.terminal import to_text
from tsrepl.session.inspection import code_reply, signature
from tsrepl.session.modules import module_node, short_name
from tsrepl.session.replies import GraphReply, ModuleReply, Reply, SchemaReply, ValueReply
from tsrepl.session.values import statistics, tensor_facts


def _function(value: Any) -> Sequence[Reply]:
    function = value._function
    return SchemaReply(function.name, (signature(function),)), code_reply(function.name, function)


def _graph(value: Graph) -> Sequence[Reply]:
    return (GraphReply("graph", str(value)),)


def _module(value: Any) -> Sequence[Reply]:
    name = short_name(value._ivalue.type)
    return (ModuleReply(name, module_node(name, value._ivalue)),)


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


def leave_formats(shell: InteractiveShell) -> None:
    """Let IPython show them by their `__repr__` again."""
    formatter: Any = shell.display_formatter
    for kind in _FORMS:
        formatter.mimebundle_formatter.pop(kind, None)


def _bundle_of(replies_of: Callable[[Any], Sequence[Reply]]) -> Callable[..., dict[str, str]]:
    def bundle(value: Any, include: Any = None, exclude: Any = None) -> dict[str, str]:
        replies = replies_of(value)
        text = "".join(to_text(reply, WIDTH) for reply in replies).rstrip("\n")
        return {"text/html": "".join(map(to_html, replies)), "text/plain": text}

    return bundle
