"""`%doc`: what is known of a name: signatures, documentation, and for a value its type.

In: a name: of a function, class, module, method, variable, operator, layer, pass or kind of node; or an object of
Python's.  Out: replies.  Rows tell of operators, the top of their files of passes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from engine.aten.dispatch import overload_cache, table
from engine.aten.dispatch.op import Op
from engine.aten.values.tensor import Tensor
from engine.frontend.compilation.compile import library_value
from engine.frontend.sugared.classes import ChosenByFlag, FunctionValue
from engine.frontend.sugared.sugared_value import SugaredValue
from engine.ir.unit import Function
from engine.lang.deferred import deferred
from engine.lang.errors import did_you_mean
from engine.passes.pipeline import ALIASES
from engine.passes.pipeline import names as pass_names
from engine.torch import nn
from engine.torch.compiled.objects import ScriptFunction, ScriptMethod
from engine.torch.jit.scripting.script_module import ScriptModule
from tsrepl.session.failures import UsageError
from tsrepl.session.inspection import operator_schemas, schema, signature
from tsrepl.session.modules import without_scopes
from tsrepl.session.node_kinds import NODE_KINDS
from tsrepl.session.replies import GraphReply, HelpReply, HelpTopic, Reply, ReportReply, SchemaReply, Section, TextReply
from tsrepl.session.settings import SETTINGS, settings_path
from tsrepl.session.workspace import Workspace

if TYPE_CHECKING:
    from tsrepl.session import module_classes
else:
    module_classes = deferred("tsrepl.session.module_classes")

_PRIM: Final = "prim::"


def doc(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%doc name`."""
    base = argument.partition(".")[0]
    if base in workspace.seen() and workspace.type_of_path(argument) is not None:
        return _value(workspace, argument)
    function = workspace.functions().get(argument) or _method(workspace, argument)
    if function is not None:
        return _function(argument, function)
    if (known := workspace.definitions.signature(argument)) is not None:
        return [SchemaReply(argument, (known,))]
    path = argument if base in workspace.seen() else workspace.definitions.spelled(argument)
    if (found := library_object(path)) is not None:
        return [*of_object(argument, found), *_rows(operator_schemas(path))]
    name = _as_operator(workspace, path)
    if operator_schemas(name) or base in workspace.definitions.outside:
        return [*_node(argument), *schema(workspace, name), *_rows(operator_schemas(name))]
    return _node(argument) or _pass(argument) or _unknown(workspace, argument)


# -- what the session has


def _value(workspace: Workspace, path: str) -> Iterator[Reply]:
    type = workspace.type_of_path(path)
    assert type is not None
    yield TextReply(f"{path}: {without_scopes(type.annotation_str)}")
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


# -- what the engine has


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
        yield SchemaReply(title, (f"{title}{_signature_of(found)}",))
        if text := inspect.getdoc(found):
            yield TextReply("\n".join(map(_paragraph, re.split(r"\n{2,}", text))))


class _Annotation(str):
    """An annotation, which signatures show without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _signature_of(found: Any) -> inspect.Signature:
    """The signature, with annotations as they are written; what a class gives goes without saying."""
    signature = inspect.signature(found)
    parameters = [each.replace(annotation=_written(each.annotation)) for each in signature.parameters.values()]
    returned = inspect.Signature.empty if isinstance(found, type) else _written(signature.return_annotation)
    return inspect.Signature(parameters, return_annotation=returned)


def _written(annotation: Any) -> Any:
    return _Annotation(annotation) if isinstance(annotation, str) else annotation


_LIBRARY_MODULES: Final = "engine.torch.nn"


def _schemas_of(found: Any) -> tuple[str, ...]:
    """The schemas of the operator, or of the functions written in TorchScript, that a function of Python stands for."""
    written = library_value(getattr(found, "torch_path", ""))
    if written is not None:
        return tuple(map(signature, _functions_of(written)))
    code = getattr(getattr(found, "__func__", found), "__code__", None)
    is_native = inspect.isbuiltin(found) and isinstance(found.__self__, Tensor)  # a kernel has taken the method
    is_operator = is_native or (code is not None and code.co_filename == overload_cache.__file__)
    return operator_schemas(f"torch.{found.__name__}") if is_operator else ()


def _functions_of(value: SugaredValue) -> list[Function]:
    if isinstance(value, ChosenByFlag):
        return [*_functions_of(value.when_true), *_functions_of(value.when_false)]
    return list(value.functions) if isinstance(value, FunctionValue) else []


def _as_operator(workspace: Workspace, path: str) -> str:
    """`x.relu` of a tensor x is the operator relu."""
    base, _, name = path.rpartition(".")
    is_value = bool(base) and workspace.type_of_path(base) is not None
    return name if is_value and operator_schemas(name) else path


def _rows(texts: Sequence[str]) -> list[Reply]:
    """The facts in the rows of these overloads: how they compute, their gradients, what they write to."""
    by_text = {entry.text: entry for name in {text.partition("(")[0].partition(".")[0] for text in texts}
               for entry in table.overloads(name)}  # fmt: skip
    facts: dict[tuple[str, str], list[str]] = {}
    for text in texts:
        entry = by_text.get(text)
        for fact in _facts(entry) if entry is not None else ():
            facts.setdefault(fact, []).append(text.partition("(")[0])
    if not facts:
        return []
    several = len(texts) > 1
    rows = tuple(
        (label, told, ", ".join(dict.fromkeys(names)) if several and len(names) < len(texts) else "")
        for (label, told), names in facts.items()
    )
    return [ReportReply("", (Section("", ("", "", "of" if any(row[2] for row in rows) else ""), rows),))]


def _facts(op: Op) -> Iterator[tuple[str, str]]:
    """Facts of a row, as (label, text)."""
    if op.alias_of:
        yield "another name of", op.alias_of
    told = op.scalar or op.expression
    if told:
        yield "computes", f"{' '.join(told.split())}, for each element"
    if op.composite:
        yield "is written as", " ".join(op.composite.split())
    for argument, formula in op.gradient.items():
        yield f"gradient of {argument}", " ".join(formula.split())
    if op.dtype:
        yield "dtype of the result", _DTYPES.get(op.dtype, op.dtype)
    yield from (("is also called as", f"a {variant}") for variant in sorted(op.variants) if variant in ("method",))
    writes = [each.name for each in op.schema.arguments if each.alias is not None and each.alias.is_write]
    if writes or op.also_writes:
        yield "writes to", ", ".join(dict.fromkeys((*writes, *op.also_writes)))
    if op.nondeterministic:
        yield "gives", "other numbers each time"


_DTYPES: Final = {
    "same": "that of the input", "floats": "that of the input, float32 of whole numbers",
    "sum": "that of the input, int64 of whole numbers", "truth": "bool", "int64": "int64", "default": "float32",
}  # fmt: skip


def _node(name: str) -> list[Reply]:
    """A kind of node; `Loop` is short for `prim::Loop`."""
    kind = name if name.startswith(_PRIM) else f"{_PRIM}{name}"
    found = NODE_KINDS.get(kind)
    if found is None:
        return []
    example: list[Reply] = [GraphReply(kind, found.example)] if found.example else []
    return [TextReply(f"{kind}: {found.meaning}"), *example]


def _pass(name: str) -> list[Reply]:
    """A pass, with its graph before and after."""
    module = ALIASES.get(name, name)
    if module not in pass_names():
        return []
    first, *rest = re.split(r"\n{2,}", inspect.cleandoc(import_module(f"engine.passes.{module}").__doc__ or ""))
    return [
        TextReply("\n".join((f"the pass {module}: {_on_one_line(first)}", *map(_paragraph, rest)))),
        TextReply(f"%passes f {module} runs it on the graph of f, and shows what it changes"),
    ]


def _paragraph(text: str) -> str:
    """A paragraph for any width: lines of prose as one, and the two sides of an example below each other."""
    if not text.startswith((" ", "graph(")):
        return _on_one_line(text)
    lines = text.split("\n")
    arrows = [line.index(_BECOMES) for line in lines if _BECOMES in line]
    if not arrows:
        return text
    if len(arrows) > 1:  # each line is an example
        sides = (line.partition(_BECOMES) for line in lines)
        return "\n".join(f"{before.rstrip()}  {arrow}  {after.strip()}" for before, arrow, after in sides)
    at = arrows[0]
    before = [*filter(None, (line[:at].rstrip() for line in lines))]
    after = inspect.cleandoc("\n" + "\n".join(line[at + 1 :] for line in lines)).split("\n")
    blanks = before[0][: len(before[0]) - len(before[0].lstrip())]
    return "\n".join([*before, f"  {_BECOMES}", *(f"{blanks}{line}" for line in after if line)])


_BECOMES: Final = "→"


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def pass_summary(name: str) -> str:
    """The first sentence about a pass."""
    text = inspect.cleandoc(import_module(f"engine.passes.{ALIASES.get(name, name)}").__doc__ or "")
    return _on_one_line(text.partition("\n\n")[0]).rstrip(".")


def settings_help() -> HelpReply:
    """The file of the reader's settings, and what may stand in it."""
    rows = tuple(HelpTopic(each.example, each.meaning) for each in SETTINGS)
    return HelpReply("Settings", (f"They stand in {settings_path()}, a line each:",), rows)


def _unknown(workspace: Workspace, name: str) -> list[Reply]:
    known = [each.name for each in workspace.bindings()]
    known += [each.partition("::")[2] for each in table.names()] + [each.removeprefix(_PRIM) for each in NODE_KINDS]
    known += [*pass_names(), *module_classes.layer_names()]
    short = name.rpartition(".")[2].rpartition("::")[2]
    raise UsageError(
        f"nothing is called '{name}'",
        hints=did_you_mean(short, known) or ("it is for functions, variables, operators, layers, passes and nodes",),
    )
