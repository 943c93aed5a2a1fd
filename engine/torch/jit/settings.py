"""Settings and queries of `torch.jit`: type tests, optimization settings, syntax trees, operator names.

In: values, functions, settings.  Out: facts about them; no result depends on settings about optimization.
"""

from __future__ import annotations

import builtins
import inspect
import types
import typing
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, get_args

from engine.aten.values.ivalue import Object
from engine.aten.values.submodules import each_module
from engine.executor.plans.switches import optimized_execution as optimized_execution
from engine.executor.profiling.settings import PROFILING, FusionStrategy, Specialisation
from engine.frontend.names.type_annotations import no_contained_type
from engine.frontend.python.resolver import BARE, PythonResolver
from engine.frontend.python.trees import tree_from_function
from engine.frontend.syntax.tree import Tree
from engine.fuser.backend import tiering
from engine.ir.clone import copy_graph
from engine.ir.graph import Block
from engine.ir.ops import op_of
from engine.ir.unit import Function
from engine.lang.errors import ArgumentError
from engine.lang.types import InterfaceType
from engine.passes.pipeline import run_pass
from engine.torch.compiled.graphs import Graph
from engine.torch.compiled.types import wrap
from engine.torch.jit import flags
from engine.torch.jit.scripting.python_program import PYTHON

_EMPTY: Final = (
    "The inner type of a container is lost when calling torch.jit.isinstance in eager mode. For example, List[int] "
    "would become list and therefore falsely return True for List[float] or List[str]."
)


def isinstance(obj: Any, target_type: Any) -> bool:
    """True if the value is of the type, parameters such as in `List[int]` included; warns that an empty container is of
    every such type.  Raises CompileError for a `List` of nothing said, ArgumentError for what is no type.
    """
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, each) for each in target_type)
    if builtins.isinstance(target_type, (list, dict, set, frozenset)):
        raise ArgumentError("The second argument to `torch.jit.isinstance` must be a type or a tuple of types")
    if target_type in BARE:
        raise no_contained_type(BARE[target_type], None)
    origin, args = typing.get_origin(target_type), typing.get_args(target_type)
    if target_type is Any:
        return True
    if origin is None:
        return builtins.isinstance(obj, type(None) if target_type is None else target_type)
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, each) for each in args)
    if not builtins.isinstance(obj, origin):
        return False
    if not obj:
        warnings.warn(_EMPTY, stacklevel=2)
    if origin is dict:
        return all(isinstance(key, args[0]) and isinstance(value, args[1]) for key, value in obj.items())
    if origin is tuple:
        return len(obj) == len(args) and all(isinstance(v, arg) for v, arg in zip(obj, args, strict=True))
    return all(isinstance(each, args[0]) for each in obj)


def _unique_state_dict(module: Any, keep_vars: bool = False) -> dict[str, Any]:
    """The module's state, each tensor under its first name only; detached unless `keep_vars`."""
    first = {id(value): (name, value) for name, value in reversed(module.state_dict(keep_vars=True).items())}
    found = dict(reversed(first.values()))
    return found if keep_vars else {name: value.detach() for name, value in found.items()}


@contextmanager
def _hide_source_ranges() -> Iterator[None]:
    """While the block runs, printed graphs do not show the source lines of nodes."""
    before = Graph.set_global_print_source_ranges(False)
    try:
        yield
    finally:
        Graph.set_global_print_source_ranges(before)


_WITH_PROFILES: Final = {"none": False, "fuser0": False, "fuser1": True, "fuser2": True, "fuser3": True}
"""PyTorch's fusers, and whether they work on profiles.  One fuser stands for all of them but `none`."""


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """While the block runs, new plans are made from profiles, or without for `fuser0`; for `none` no machine code is
    made or used, in any thread.

    Raises ValueError for an unknown fuser.
    """
    if name not in _WITH_PROFILES:
        raise ValueError(f"unrecognized fuser option (fuser_name: {name}); there are none and fuser0 to fuser3")
    profiling, compiling = flags.set_profiling_mode(_WITH_PROFILES[name]), tiering.mode()
    tiering.set_mode("off" if name == "none" else compiling)
    try:
        yield
    finally:
        flags.set_profiling_mode(profiling)
        tiering.set_mode(compiling)


class strict_fusion:
    """`with strict_fusion():` accepts the request that everything inside be fused, without effect."""

    def __enter__(self) -> None: ...

    def __exit__(self, *exception: object) -> None: ...


def set_fusion_strategy(strategy: FusionStrategy) -> list[tuple[Specialisation, int]]:
    """Have so many plans of each kind made from profiles, the next one once guards fail; the strategy before.

    A static plan guards the sizes that it was profiled with.  A dynamic one leaves open those that varied before it,
    or all of them where no static one came before.  Raises ValueError for an unknown kind.
    """
    if any(kind not in get_args(Specialisation) or depth < 0 for kind, depth in strategy):
        raise ValueError("a fusion strategy is made of ('STATIC', depth) and ('DYNAMIC', depth)")
    before = [*PROFILING.strategy]
    PROFILING.strategy = tuple(strategy)
    return before


def get_jit_def(fn: Callable[..., Any], *_: Any) -> Tree:
    """The syntax tree of a Python function.  Raises CompileError for syntax that TorchScript does not support."""
    return tree_from_function(fn)


def export_opnames(m: Any) -> list[str]:
    """The qualified names of the operators that a compiled module's methods call, and those of the submodules that are
    behind interfaces."""
    return sorted({name for module in _called(m._ivalue) for name in _operators_of(module)})


def enable_mobile_interface_call_export() -> None:
    """No effect: `export_opnames` always names the operators behind interfaces."""


def _called(module: Object) -> Iterator[Object]:
    """The module, and those of its submodules whose methods no inlined graph shows."""
    yield module
    for _, inner in each_module(module):
        for attribute in inner.type.attributes:
            if builtins.isinstance(attribute.type, InterfaceType):
                yield inner.get(attribute.name)


def _operators_of(module: Object) -> Iterator[str]:
    for method in module.type.methods.values():
        assert builtins.isinstance(method, Function)
        graph = copy_graph(method.graph)
        run_pass("inline", graph)
        yield from _operators(graph.block)


def _operators(block: Block) -> Iterator[str]:
    for node in block.nodes():
        op = op_of(node)
        if op is not None:
            yield op.qualified_name
        for inner in node.blocks:
            yield from _operators(inner)


def argument_names(fn: Callable[..., Any]) -> list[str]:
    """The names of the positional arguments; empty for a callable without a Python signature."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return []
    return [each.name for each in parameters if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]


get_callable_argument_names: Final = argument_names
_IS_ASTUNPARSE_INSTALLED: Final = True
"""Python's own `ast.unparse` is there."""
_IS_MONKEYTYPE_INSTALLED: Final = False
"""Types are not inferred from observed calls."""


def annotation_type(ann: Any, loc: Any = None, rcb: Any = None) -> Any:
    """The type that a Python annotation means.  Raises CompileError."""
    return wrap(PythonResolver(PYTHON, {}).annotation(ann))
