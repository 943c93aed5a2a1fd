"""Freezing: a module whose attributes are constants in the code of its methods.

In: a compiled module in eval mode, and the names to preserve.  Out: a new module with its own class.

    %l : Linear = prim::GetAttr[name="l"](%self)
    %weight : Tensor = prim::GetAttr[name="weight"](%l)      →     %self.l.weight : Float(3, 2, …) = prim::Constant[…]()

Calls are inlined, those of interfaces too.  What a method writes to stays an attribute, and so does all that could be
such a thing: attributes of modules that are handed on to who knows where, tensors that share memory with one that is
written to, containers of tensors where some tensor of unknown origin is.  Methods and attributes that nothing uses any
more are dropped, and so are the hooks of the module itself, as in the reference; those of modules inside are inlined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any, Final

import numpy as np

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.aliasing.mutability import is_mutable_type
from engine.ir.clone import copy_graph
from engine.ir.constants import insert_constant, type_of
from engine.ir.evaluate import can_be_constant
from engine.ir.graph import Graph, Node, Value
from engine.ir.unit import Function
from engine.lang.errors import ArgumentError, did_you_mean
from engine.lang.records import dataclass
from engine.lang.types import (
    TENSOR,
    ClassType,
    DictType,
    InterfaceType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
)
from engine.passes.pipeline import run_pass, run_pipeline
from engine.torch.jit.scripting.python_program import PYTHON
from engine.torch.jit.scripting.script_module import ScriptModule, wrap

_CLEAN_UP: Final = (
    "constant_propagation", "dce", "cse", "fold_conv_dims", "constant_propagation", "dce", "constant_pooling",
)  # fmt: skip
_NUMERICS: Final = (
    "fold_frozen_conv_bn", "fold_frozen_conv_add_or_sub", "fold_frozen_conv_mul_or_div", "fold_frozen_linear_bn",
)  # fmt: skip
_Key = tuple[int, str]
"""An object's id, and the name of one of its attributes."""


def freeze(
    mod: Any, preserved_attrs: Sequence[str] | None = None, optimize_numerics: bool = True, **wishes: Any
) -> ScriptModule:
    """The module frozen and optimized.  Raises ArgumentError for anything but a compiled module in eval mode."""
    if not isinstance(mod, ScriptModule):
        raise ArgumentError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your "
            "'nn.Module'."
        )
    if mod._ivalue.type.slot("training") is not None and mod._ivalue.get("training"):
        raise ArgumentError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    names = list(preserved_attrs or ())
    frozen = freeze_module(mod, names)
    methods = [name for name in names if name in frozen._ivalue.type.methods]
    run_frozen_optimizations(frozen, optimize_numerics, methods)
    return frozen


def run_frozen_optimizations(
    mod: ScriptModule, optimize_numerics: bool = True, preserved_methods: Sequence[str] | None = None
) -> None:
    """Remove dropout, and fold constants into the weights of convolutions and linear layers until nothing changes.

    Folding changes results by rounding; without `optimize_numerics` it is left out.
    """
    methods = mod._ivalue.type.methods
    for name in dict.fromkeys(("forward", *(preserved_methods or ()))):
        function = methods.get(name)
        if isinstance(function, Function):
            _optimize(function.graph, optimize_numerics)
            function.executor = None


def optimize_for_inference(mod: Any, other_methods: Sequence[str] | None = None) -> ScriptModule:
    """The module frozen, if it is not yet, and optimized.  Raises ArgumentError for anything but a compiled module."""
    if not isinstance(mod, ScriptModule):
        raise ArgumentError(
            "optimize_for_inference expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace "
            "to script your 'nn.Module'."
        )
    if mod._ivalue.type.slot("training") is None:
        run_frozen_optimizations(mod, True, other_methods)
        return mod
    return freeze(mod.eval(), other_methods)


def _optimize(graph: Graph, optimize_numerics: bool) -> None:
    run_pass("remove_dropout", graph)
    while optimize_numerics and run_pipeline(_NUMERICS, graph):
        pass
    run_pass("dce", graph)


def freeze_module(
    module: ScriptModule,
    preserved: Sequence[str] = (),
    freeze_interfaces: bool = True,
    preserve_parameters: bool = False,
) -> ScriptModule:
    """A copy of the module with its attributes as constants in its code, except those that are preserved or written to.

    Raises ArgumentError if the module has no attribute or method of a preserved name.
    """
    frozen: ScriptModule = wrap(_Freezer(module._ivalue, freeze_interfaces, preserve_parameters).frozen(preserved))
    return frozen


@dataclass
class _MethodCopy:
    """A copy of a method's graph; `owners` maps its values to the modules that they stand for, with their paths."""

    function: Function
    graph: Graph
    owners: dict[Value, tuple[Object, str]] = field(default_factory=dict)


class _Freezer:
    """The freezing of one module.

    `kept` are the attributes that remain, `whole` the ids of modules that remain with all in them, and `used` the names
    that the new code and the preserved names still ask of each module.
    """

    def __init__(self, original: Object, freeze_interfaces: bool, preserve_parameters: bool) -> None:
        self._root = _copied(original, {})
        self._interfaces = freeze_interfaces
        self._parameters = preserve_parameters
        self._kept: set[_Key] = set()
        self._whole: set[int] = set()
        self._used: dict[int, set[str]] = {}

    def frozen(self, preserved: Sequence[str]) -> Object:
        type = self._root.type
        for name in preserved:
            if name not in type.methods:
                self._preserve(name)
        wanted = [name for name in type.methods if name == "forward" or name in preserved]
        methods = [self._inlined(type.methods[name]) for name in wanted]
        for method in methods:
            self._find_writes(method)
        for method in methods:
            self._insert_constants(method)
        return self._assembled(methods)

    def _inlined(self, function: Any) -> _MethodCopy:
        method = _MethodCopy(function, copy_graph(function.graph))
        while True:
            run_pass("inline", method.graph)
            method.owners = dict(_owners(method.graph, self._root))
            if not (self._interfaces and self._resolve_interfaces(method)):
                return method

    def _resolve_interfaces(self, method: _MethodCopy) -> bool:
        """Give values of interface types their modules' own classes; True if that makes more calls inlinable."""
        found = [(v, o) for v, (o, _) in method.owners.items() if isinstance(v.type, InterfaceType)]
        written = {(id(o), n.attr("name")) for n, (o, _) in _accesses(method, "prim::SetAttr")}
        for value, owner in found:
            node = value.node
            if (id(method.owners[node.inputs[0]][0]), node.attr("name")) in written:
                continue
            value.set_type(owner.type)
        return any(not isinstance(value.type, InterfaceType) for value, _ in found)

    # -- what has to stay

    def _preserve(self, path: str) -> None:
        """Keep the attribute under a dotted name.  Raises ArgumentError."""
        owner: Any = self._root
        *parents, name = path.split(".")
        for part in (*parents, name):
            if not isinstance(owner, Object) or owner.type.slot(part) is None:
                type = owner.type if isinstance(owner, Object) else self._root.type
                known = [*(slot.name for slot in type.attributes), *type.methods]
                raise ArgumentError(f"Unknown name: {path}", hints=did_you_mean(part, known))
            self._used.setdefault(id(owner), set()).add(part)
            holder, owner = owner, owner.get(part)
        self._keep(holder, name)

    def _keep(self, owner: Object, name: str) -> None:
        """Keep the attribute, and everything inside it if it is a module."""
        if (id(owner), name) in self._kept:
            return
        self._kept.add((id(owner), name))
        value = owner.get(name)
        if isinstance(value, Object) and value.type.is_module:
            self._keep_all(value)

    def _keep_all(self, owner: Object) -> None:
        self._whole.add(id(owner))
        for attribute in owner.type.attributes:
            self._keep(owner, attribute.name)

    def _find_writes(self, method: _MethodCopy) -> None:
        for node, (owner, _) in _accesses(method, "prim::SetAttr"):
            self._keep(owner, node.attr("name"))
        for value, (owner, _) in method.owners.items():
            if any(user.kind not in ("prim::GetAttr", "prim::SetAttr") or at for user, at in value.uses):
                self._keep_all(owner)
        self._find_memory_writes(method)

    def _find_memory_writes(self, method: _MethodCopy) -> None:
        """Find the written attributes by an alias analysis of a copy of the graph with attributes as constants."""
        graph = copy_graph(method.graph)
        places: dict[_Key, tuple[Object, list[Value]]] = {}
        probe = _MethodCopy(method.function, graph, dict(_owners(graph, self._root)))
        for node, (owner, _) in list(_accesses(probe, "prim::GetAttr")):
            if node.output in probe.owners or not is_mutable_type(node.output.type):
                continue
            key = (id(owner), node.attr("name"))
            _, values = places.setdefault(key, (owner, []))
            stand_in = values[0] if values else _stand_in(graph, node.output.type)
            values.append(stand_in)
            node.output.replace_all_uses_with(stand_in)
        db = AliasDb(graph)
        loose = any(db.writes_to_wildcard(node) for node in graph.all_nodes())
        written = []
        for (_, name), (owner, values) in places.items():
            if db.has_writers(values[0]) or (loose and _holds_tensors(values[0].type)):
                self._keep(owner, name)
                written += _tensors_in(owner.get(name))
        for (_, name), (owner, _) in places.items():
            if any(_share_memory(a, b) for a in _tensors_in(owner.get(name)) for b in written):
                self._keep(owner, name)

    # -- constants

    def _insert_constants(self, method: _MethodCopy) -> None:
        graph = method.graph
        start = next(iter(graph.nodes()), graph.return_node)
        made: dict[_Key, Value] = {}
        for node, (owner, path) in list(_accesses(method, "prim::GetAttr")):
            name = node.attr("name")
            if node.output in method.owners or not self._is_constant(owner, name):
                continue
            key = (id(owner), name)
            if key not in made:
                made[key] = _constant(start, owner.get(name), node.output.type, f"self.{path}{name}")
            node.output.replace_all_uses_with(made[key])
        run_pipeline(_CLEAN_UP, graph)

    def _is_constant(self, owner: Object, name: str) -> bool:
        attribute = owner.type.attribute(name)
        if attribute is None or (id(owner), name) in self._kept:
            return False
        if self._parameters and attribute.kind == "parameter":
            return False
        return can_be_constant(_detached(owner.get(name)))

    # -- the new module

    def _assembled(self, methods: Sequence[_MethodCopy]) -> Object:
        for method in methods:
            for node, (owner, _) in _accesses(method, None):
                self._used.setdefault(id(owner), set()).add(node.attr("name"))
        made: dict[int, Object] = {}
        result = self._trimmed(self._root, made)
        for method in methods:
            for value, (owner, _) in method.owners.items():
                if id(owner) in made and isinstance(value.type, ClassType):
                    value.set_type(made[id(owner)].type)
            new = result.type
            function = Function(f"{new.qualname}.{method.function.name}", doc=method.function.doc)
            schema = method.function.schema
            first = replace(schema.arguments[0], type=new)
            function.define(replace(schema, arguments=(first, *schema.arguments[1:])), method.graph)
            new.methods[function.name] = PYTHON.unit.add_function(function)
        return result

    def _trimmed(self, old: Object, made: dict[int, Object]) -> Object:
        """The module with the attributes alone that are used, and a class of its own; one that stays whole itself."""
        if old is not self._root and id(old) in self._whole:
            return old
        if id(old) in made:
            return made[id(old)]
        new = ClassType(PYTHON.unit.mangle(old.type.qualname), is_module=True)
        PYTHON.unit.add_type(new.qualname, new)
        result = made[id(old)] = Object(new, [])
        for attribute in old.type.attributes:
            if attribute.name not in self._used.get(id(old), ()):
                continue
            value, type = old.get(attribute.name), attribute.type
            if isinstance(value, Object) and value.type.is_module:
                value = self._trimmed(value, made)
                type = value.type if isinstance(type, ClassType) or id(old.get(attribute.name)) in made else type
            new.add_attribute(attribute.name, type, attribute.kind)
            result.set(attribute.name, value)
        return result


def _owners(graph: Graph, root: Object) -> Iterator[tuple[Value, tuple[Object, str]]]:
    """The values that are modules: `self`, and modules read from its attributes."""
    found: dict[Value, tuple[Object, str]] = {graph.inputs[0]: (root, "")}
    yield graph.inputs[0], (root, "")
    for node in graph.all_nodes():
        if node.kind != "prim::GetAttr" or node.inputs[0] not in found:
            continue
        owner, path = found[node.inputs[0]]
        value = owner.get(node.attr("name"))
        if isinstance(value, Object) and value.type.is_module:
            found[node.output] = (value, f"{path}{node.attr('name')}.")
            yield node.output, found[node.output]


def _accesses(method: _MethodCopy, kind: str | None) -> Iterator[tuple[Node, tuple[Object, str]]]:
    """The nodes that get or set attributes of modules, with the module."""
    for node in list(method.graph.all_nodes()):
        if node.kind in ((kind,) if kind else ("prim::GetAttr", "prim::SetAttr")) and node.inputs[0] in method.owners:
            yield node, method.owners[node.inputs[0]]


def _copied(original: Object, done: dict[int, Object]) -> Object:
    """A copy of the module and its submodules; it shares tensors and everything else."""
    if id(original) not in done:
        copy = done[id(original)] = Object(original.type, list(original.slots))
        copy.slots = [_copied(v, done) if isinstance(v, Object) and v.type.is_module else v for v in original.slots]
    return done[id(original)]


def _stand_in(graph: Graph, type: Type) -> Value:
    node = graph.create("prim::Constant", (), [type])
    return graph.block.prepend(node).output


def _constant(start: Node, value: Any, declared: Type, name: str) -> Value:
    value = _detached(value)
    with start.graph.inserting_at(start):
        type = type_of(value) if isinstance(value, Tensor) or value is None else declared
        return insert_constant(start.graph, value, type).set_debug_name(name)


def _detached(value: Any) -> Any:
    """The value with its tensors detached."""
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, (list, tuple)):
        return type(value)(_detached(part) for part in value)
    return {key: _detached(part) for key, part in value.items()} if isinstance(value, dict) else value


def _tensors_in(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for part in parts for tensor in _tensors_in(part)]


def _share_memory(a: Tensor, b: Tensor) -> bool:
    return bool(np.may_share_memory(a.array, b.array))


def _holds_tensors(type: Type) -> bool:
    """True if the type is that of a mutable value, or of a container of them, other than a plain tensor."""
    if isinstance(type, OptionalType):
        return type.element != TENSOR and _holds_tensors(type.element)
    if isinstance(type, (ListType, DictType, TupleType)):
        return any(map(is_mutable_type, type.contained()))
    return not isinstance(type, TensorType) and is_mutable_type(type)
