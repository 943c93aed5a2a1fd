"""Freezing: a module whose attributes are constants in the code of its methods.

In: a compiled module in eval mode, and the names to preserve.  Out: a new module with its own class.

    %l : Linear = prim::GetAttr[name="l"](%self)
    %weight : Tensor = prim::GetAttr[name="weight"](%l)      →     %self.l.weight : Float(3, 2, …) = prim::Constant[…]()

Calls are inlined, those of interfaces too, and those in forks.  What a method writes to stays an attribute, and so do
attributes of modules that are handed on to who knows where, and values that share memory with one that is written to.
In a module in training mode, parameters and buffers stay.  Methods and attributes that nothing uses any more are
dropped, from modules inside too; modules of one class keep the same names.  The hooks of the module itself go, as in
the reference; those of modules inside are inlined.
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
from engine.ir.unit import DEFINING, Function
from engine.lang.errors import ArgumentError, did_you_mean
from engine.lang.records import dataclass
from engine.lang.types import (
    ClassType,
    InterfaceType,
    Type,
)
from engine.passes.pipeline import run_pass, run_pipeline
from engine.torch.compiled.graphs import inline_with_forks
from engine.torch.compiled.objects import overload_methods
from engine.torch.jit.scripting.python_program import PYTHON
from engine.torch.jit.scripting.script_module import ScriptModule, wrap

_FLAGS: Final = ("peephole", "constant_propagation_immutable_types", "peephole")
"""Passes that take the branches which flags decide."""
_CLEAN_UP: Final = (
    "constant_propagation", "dce", "cse", "fold_conv_dims", "constant_propagation", "dce", "lower_simple_tuples",
    "constant_pooling",
)  # fmt: skip
_NUMERICS: Final = (
    "fold_frozen_conv_bn", "fold_frozen_conv_add_or_sub", "fold_frozen_conv_mul_or_div", "fold_frozen_linear_bn",
)  # fmt: skip
_ACCESSES: Final = ("prim::GetAttr", "prim::SetAttr")
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
    """Remove dropout and `detach`, and fold constants into the weights of convolutions and linear layers, until nothing
    changes.

    Folding changes results by rounding; without `optimize_numerics` it is left out.
    """
    methods = mod._ivalue.type.methods
    for name in dict.fromkeys((*_forward_of(mod._ivalue.type), *(preserved_methods or ()))):
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
    run_pass("eliminate_no_ops", graph)
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

    Raises ArgumentError if the module has no attribute or method of a preserved name (`inner.weight` for one inside),
    and for modules that cannot be frozen: those that return themselves, choose a module at run time or write to an
    interface, and those where a write may reach a value that two attributes share.
    """
    frozen: ScriptModule = wrap(_Freezer(module._ivalue, freeze_interfaces, preserve_parameters).frozen(preserved))
    return frozen


def _forward_of(type: ClassType) -> list[str]:
    """The names of `forward`: its own, those of its signatures, or none."""
    return ["forward"] if "forward" in type.methods else [each.name for each in overload_methods(type, "forward")]


@dataclass
class _MethodCopy:
    """A copy of a method's graph; `owners` maps its values to the objects that they stand for, with their paths."""

    function: Function
    graph: Graph
    owner: tuple[Object, str]
    owners: dict[Value, tuple[Object, str]] = field(default_factory=dict)

    def find_owners(self) -> None:
        self.owners = dict(_owners(self.graph, {self.graph.inputs[0]: self.owner}))

    def graphs(self) -> Iterator[Graph]:
        """The graph, and those that its forks run."""
        yield from _with_forks(self.graph)

    def accesses(self, *kinds: str) -> list[tuple[Node, tuple[Object, str]]]:
        """The nodes that get or set attributes of known objects, with the object."""
        return [
            (node, self.owners[node.inputs[0]])
            for graph in self.graphs()
            for node in graph.all_nodes()
            if node.kind in (kinds or _ACCESSES) and node.inputs[0] in self.owners
        ]


class _Freezer:
    """The freezing of one module.

    `kept` are the attributes that remain, `whole` the ids of modules that remain with all in them, and `used` the names
    that the new code and the preserved names still ask of the modules of each class.
    """

    def __init__(self, original: Object, freeze_interfaces: bool, preserve_parameters: bool) -> None:
        self._root = copied(original)
        self._interfaces = freeze_interfaces
        self._training = original.type.slot("training") is not None and original.get("training")
        self._parameters = preserve_parameters or self._training
        self._kept: set[_Key] = set()
        self._whole: set[int] = set()
        self._used: dict[ClassType, set[str]] = {}

    def frozen(self, preserved: Sequence[str]) -> Object:
        names = dict.fromkeys((*_forward_of(self._root.type), *preserved))
        found = [self._preserve(name) for name in names]
        methods = [self._inlined(*method) for method in found if method is not None]
        for method in methods:
            self._find_assignments(method)
        for method in methods:
            self._find_writes(method)
        for method in methods:
            self._insert_constants(method)
        return self._assembled(methods)

    def _inlined(self, function: Any, owner: tuple[Object, str]) -> _MethodCopy:
        if any(result.type == self._root.type for result in function.schema.returns):
            raise ArgumentError("attempted to freeze a module that return itself")
        method = _MethodCopy(function, copy_graph(function.graph), owner)
        while True:
            inline_with_forks(method.graph)
            method.find_owners()
            if not (self._interfaces and self._resolve_interfaces(method)):
                return method

    def _resolve_interfaces(self, method: _MethodCopy) -> bool:
        """Give values of interface types their modules' own classes; True if that makes more calls inlinable."""
        for node, (owner, _) in method.accesses("prim::SetAttr"):
            attribute = owner.type.attribute(node.attr("name"))
            if attribute is not None and isinstance(attribute.type, InterfaceType):
                raise ArgumentError(
                    f"Freezing does not support SetAttr on an interface type. SetAttr is attempted on "
                    f"'{node.attr('name')}'",
                    node.range,
                )
        found = [(value, owner) for value, (owner, _) in method.owners.items() if isinstance(value.type, InterfaceType)]
        for value, owner in found:
            value.set_type(owner.type)
        return bool(found)

    # -- what has to stay

    def _preserve(self, path: str) -> tuple[Any, tuple[Object, str]] | None:
        """Keep the attribute under a dotted name; of a method, the method and its owner.  Raises ArgumentError."""
        owner: Any = self._root
        *parents, name = path.split(".")
        for part in parents:
            self._check_name(owner, part, path)
            owner = self._use(owner, part)
        if isinstance(owner, Object) and name in owner.type.methods:
            return owner.type.methods[name], (owner, "".join(f"{part}." for part in parents))
        self._check_name(owner, name, path)
        self._use(owner, name)
        self._keep(owner, name)
        return None

    def _check_name(self, owner: Any, name: str, path: str) -> None:
        if isinstance(owner, Object) and owner.type.slot(name) is not None:
            return
        type = owner.type if isinstance(owner, Object) else self._root.type
        known = [*(slot.name for slot in type.attributes), *type.methods]
        raise ArgumentError(f"Unknown name: {path}", hints=did_you_mean(name, known))

    def _use(self, owner: Object, name: str) -> Any:
        self._used.setdefault(owner.type, set()).add(name)
        return owner.get(name)

    def _keep(self, owner: Object, name: str) -> None:
        """Keep the attribute, and everything inside it if it is a module."""
        if (id(owner), name) in self._kept:
            return
        self._kept.add((id(owner), name))
        value = owner.get(name)
        if isinstance(value, Object):
            self._keep_all(value)

    def _keep_all(self, owner: Object) -> None:
        self._whole.add(id(owner))
        for attribute in owner.type.attributes:
            self._use(owner, attribute.name)
            self._keep(owner, attribute.name)

    def _find_assignments(self, method: _MethodCopy) -> None:
        for node, (owner, _) in method.accesses("prim::SetAttr"):
            self._keep(owner, node.attr("name"))
        for value, (owner, _) in method.owners.items():
            if any(user.kind != "prim::fork" and (user.kind not in _ACCESSES or at) for user, at in value.uses):
                self._keep_all(owner)

    def _find_writes(self, method: _MethodCopy) -> None:
        for graph in method.graphs():
            for node in graph.all_nodes():
                self._check_node(node, method)
            self._find_memory_writes(graph, method)

    def _check_node(self, node: Node, method: _MethodCopy) -> None:
        """Refuse what cannot be frozen; what is written to in an object that may be any of its class stays in all."""
        if node.kind == "prim::ModuleContainerIndex":
            raise ArgumentError("Freezing modules containing prim::ModuleContainerIndex is not supported", node.range)
        if node.kind == "prim::SetAttr" and node.inputs[0] not in method.owners:
            for owner, _ in method.owners.values():
                if owner.type == node.inputs[0].type:
                    self._keep(owner, node.attr("name"))

    def _find_memory_writes(self, original: Graph, method: _MethodCopy) -> None:
        """Find the written attributes by an alias analysis of a copy of the graph with attributes as constants."""
        graph = copy_graph(original)
        places: dict[_Key, tuple[Object, list[Value]]] = {}
        given = zip(graph.inputs, original.inputs, strict=True)
        owners = dict(_owners(graph, {copy: method.owners[value] for copy, value in given if value in method.owners}))
        for node in list(graph.all_nodes()):
            if node.kind != "prim::GetAttr" or node.inputs[0] not in owners:
                continue
            if node.output in owners:
                continue
            owner, _ = owners[node.inputs[0]]
            if not is_mutable_type(node.output.type):
                self._settle(node, owner)
                continue
            _, values = places.setdefault((id(owner), node.attr("name")), (owner, []))
            stand_in = values[0] if values else _stand_in(graph, node.output.type)
            values.append(stand_in)
            node.output.replace_all_uses_with(stand_in)
        run_pipeline(_FLAGS, graph)
        db = AliasDb(graph)
        is_fork = original is not method.graph
        for (_, name), (owner, values) in places.items():
            if db.has_writers(values[0]) or (is_fork and db.escapes(values[0])):
                self._keep(owner, name)
        memory = [values[0] for _, values in places.values() if not db.has_writers(values[0])]
        loose = any(db.writes_to_wildcard(node) or db.writes_to_alias(node, memory) for node in graph.all_nodes())
        self._keep_what_overlaps([(owner, name) for (_, name), (owner, _) in places.items()], loose)

    def _settle(self, node: Node, owner: Object) -> None:
        """Give a number or flag that will be a constant as one: some operators write to memory in training alone."""
        if self._is_constant(owner, node.attr("name")):
            with node.graph.inserting_at(node):
                known = insert_constant(node.graph, owner.get(node.attr("name")), node.output.type)
            node.output.replace_all_uses_with(known)

    def _keep_what_overlaps(self, places: Sequence[tuple[Object, str]], loose: bool) -> None:
        """Keep what shares memory with what is kept.

        No analysis tells which attributes are reached by `loose` writes, those to memory inside containers.  Raises
        ArgumentError if two share some then.
        """
        parts = [(owner, name, list(_mutable_parts(owner.get(name)))) for owner, name in places]
        kept = [part for owner, name, inside in parts for part in inside if (id(owner), name) in self._kept]
        whole: list[Any] = []
        seen: list[Any] = []
        for owner, name, inside in parts:
            value = owner.get(name)
            if _overlap(inside, kept):
                self._keep(owner, name)
            elif loose and not _overlap([value], whole):
                if _overlap(inside, seen):
                    raise ArgumentError(f"module contains attributes values that overlaps {value}: {name}")
                whole.append(value)
                seen += inside

    # -- constants

    def _insert_constants(self, method: _MethodCopy) -> None:
        made: dict[tuple[Graph, _Key], Value] = {}
        for node, (owner, path) in method.accesses("prim::GetAttr"):
            name = node.attr("name")
            if node.output in method.owners or not self._is_constant(owner, name):
                continue
            graph = node.graph
            key = (graph, (id(owner), name))
            if key not in made:
                start = next(iter(graph.nodes()), graph.return_node)
                made[key] = _constant(start, owner.get(name), node.output.type, f"self.{path}{name}")
            node.output.replace_all_uses_with(made[key])
        for graph in method.graphs():
            run_pipeline(_CLEAN_UP, graph)

    def _is_constant(self, owner: Object, name: str) -> bool:
        attribute = owner.type.attribute(name)
        if attribute is None or (id(owner), name) in self._kept:
            return False
        if self._parameters and attribute.kind in ("parameter", "buffer"):
            return False
        if self._training and name == "training":
            return False
        return can_be_constant(_detached(owner.get(name)))

    # -- the new module

    def _assembled(self, methods: Sequence[_MethodCopy]) -> Object:
        for method in methods:
            for node, (owner, _) in method.accesses():
                self._use(owner, node.attr("name"))
        made: dict[int, Object] = {}
        result = self._trimmed(self._root, made)
        for method in methods:
            for value, (owner, _) in method.owners.items():
                if id(owner) in made and isinstance(value.type, ClassType):
                    value.set_type(made[id(owner)].type)
        for method in methods:
            if id(method.owner[0]) in made:
                _define(method, made[id(method.owner[0])].type)
        return result

    def _trimmed(self, old: Object, made: dict[int, Object]) -> Object:
        """The module with the attributes alone that are used, and a class of its own; one that stays whole itself."""
        if old is not self._root and id(old) in self._whole:
            return old
        if id(old) in made:
            return made[id(old)]
        with DEFINING:
            new = ClassType(PYTHON.unit.mangle(old.type.qualname), is_module=True)
            PYTHON.unit.add_type(new.qualname, new)
        result = made[id(old)] = Object(new, [])
        for attribute in old.type.attributes:
            if attribute.name not in self._used.get(old.type, ()):
                continue
            value, type = old.get(attribute.name), attribute.type
            if isinstance(value, Object) and value.type.is_module:
                value = self._trimmed(value, made)
                type = value.type if isinstance(type, ClassType) or id(old.get(attribute.name)) in made else type
            new.add_attribute(attribute.name, type, attribute.kind)
            result.set(attribute.name, value)
        return result


def _define(method: _MethodCopy, owner: ClassType) -> None:
    """Give the class the method."""
    function = Function(f"{owner.qualname}.{method.function.name}", doc=method.function.doc)
    schema = method.function.schema
    first = replace(schema.arguments[0], type=owner)
    function.define(replace(schema, arguments=(first, *schema.arguments[1:])), method.graph)
    owner.methods[function.name] = PYTHON.unit.add_function(function)


def _with_forks(graph: Graph) -> Iterator[Graph]:
    yield graph
    for node in graph.find_all_nodes("prim::fork"):
        yield from _with_forks(node.attr("Subgraph"))


def _owners(graph: Graph, found: dict[Value, tuple[Object, str]]) -> Iterator[tuple[Value, tuple[Object, str]]]:
    """The values that are known objects: those `found` among the inputs, and objects read from their attributes."""
    yield from list(found.items())
    for node in graph.all_nodes():
        if node.kind == "prim::fork":
            body = node.attr("Subgraph")
            inputs = zip(body.inputs, node.inputs, strict=True)
            yield from _owners(body, {inner: found[value] for inner, value in inputs if value in found})
        elif node.kind == "prim::GetAttr" and node.inputs[0] in found:
            owner, path = found[node.inputs[0]]
            value = owner.get(node.attr("name"))
            if isinstance(value, Object):
                found[node.output] = (value, f"{path}{node.attr('name')}.")
                yield node.output, found[node.output]


def copied(original: Object) -> Object:
    """A copy of the module and its submodules; it shares tensors and everything else."""
    return _copied(original, {})


def _copied(original: Object, done: dict[int, Object]) -> Object:
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
    """The value with its tensors detached; the value itself if none of them needs that."""
    if can_be_constant(value):
        return value
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, (list, tuple)):
        return type(value)(_detached(part) for part in value)
    return {key: _detached(part) for key, part in value.items()} if isinstance(value, dict) else value


def _mutable_parts(value: Any) -> Iterator[Any]:
    """The value, and what it holds at any depth, as far as it can be written to."""
    if isinstance(value, (Tensor, list, dict, Object)):
        yield value
    inside = value.values() if isinstance(value, dict) else value.slots if isinstance(value, Object) else value
    if isinstance(value, (dict, list, tuple, Object)):
        for part in inside:
            yield from _mutable_parts(part)


def _overlap(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """True if one of the first is, or shares memory with, one of the others."""
    return any(_share_memory(a, b) for a in some for b in others)


def _share_memory(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return bool(np.may_share_memory(a.array, b.array))
    return a is b
