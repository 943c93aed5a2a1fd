"""Modules under trace: their types, and the end of the trace.

In: a module and all that is inside.  Out: a type for each, as every one gets a `forward` of its own; the graphs of a
trace in their usual form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.frontend.tracing.state import TracedModule, TracingState
from engine.ir.unit import DEFINING, CompilationUnit, Function
from engine.ir.verify import verify
from engine.lang.types import BOOL, NONE, TENSOR, ClassType, OptionalType, Type
from engine.passes.pipeline import run_pass
from engine.torch.jit.scripting.python_program import PYTHON, export_methods
from engine.torch.jit.scripting.script_module import ScriptModule
from engine.torch.nn.modules.module import Module


class Registry:
    """The types of traced modules, one for each, and the attribute that each tensor and submodule belongs to."""

    def __init__(self, unit: CompilationUnit) -> None:
        self.unit = unit
        self.attributes: dict[int, tuple[Any, TracedModule, str]] = {}
        self.modules: dict[int, tuple[Any, TracedModule]] = {}
        self._objects: dict[int, Object] = {}

    def add(self, module: Any, owner: TracedModule | None, name: str) -> Object:
        """The module's object; its type has attributes for tensors and submodules, and methods once they are traced.

        Raises ValueError for a module with hooks of the backward pass, which a trace would lose.
        """
        known = self._objects.get(id(module))
        if known is not None:
            return known
        if isinstance(module, ScriptModule):
            self._add_compiled(module._ivalue)
            return module._ivalue
        if module._hooks("backward") or module._hooks("backward_before"):
            raise ValueError(f"Modules that have backward hooks assigned can't be compiled: {module}")
        with DEFINING:
            type = ClassType(self.unit.mangle(PYTHON.name_of(module.__class__)), is_module=True)
            self.unit.add_type(type.qualname, type)
        made = self._objects[id(module)] = Object(type)
        traced = TracedModule(type, owner, name)
        self.modules[id(module)] = (module, traced)
        for attribute, value, declared, kind in _tensors_of(module):
            self._set(made, traced, attribute, value, declared, kind)
        self._set(made, traced, "training", module.training, BOOL)
        self._set(made, traced, "_is_full_backward_hook", None, OptionalType(BOOL))
        for child_name, child in module._modules.items():
            if child is None:
                continue  # only exported methods may ask for it
            inner = self.add(child, traced, child_name)
            self._set(made, traced, child_name, inner, inner.type)
            self._remember(child, traced, child_name)
        if self.unit is PYTHON.unit:
            export_methods(module, made)
        return made

    def compile_exports(self) -> None:
        """Compile the exported methods, which may call what was traced.  Raises CompileError."""
        for _, traced in self.modules.values():
            for method in [*traced.type.methods.values()]:
                if isinstance(method, Function):
                    method.ensure_defined()

    def _set(
        self, made: Object, traced: TracedModule, name: str, value: Any, type: Type, kind: str = "attribute"
    ) -> None:
        traced.type.add_attribute(name, type, kind)
        made.set(name, value)
        if isinstance(value, (Tensor, Object)):
            self._remember(value, traced, name)

    def _remember(self, thing: Any, owner: TracedModule, name: str) -> None:
        """Record the first attribute that holds the object."""
        self.attributes.setdefault(id(thing), (thing, owner, name))

    def _add_compiled(self, made: Object) -> None:
        """Register a compiled module, whose tensors only its own methods use."""
        self._objects[id(made)] = made


def _tensors_of(module: Module) -> Iterator[tuple[str, Tensor | None, Type, str]]:
    for table, kind in ((module._parameters, "parameter"), (module._buffers, "buffer")):
        for name, tensor in table.items():
            yield name, tensor, NONE if tensor is None else TENSOR, kind


# ------------------------------------------------------------------ the end of a trace


def finish(state: TracingState) -> None:
    """Normalize operators, and remove unused nodes and arguments, in the graphs and the calls between them."""
    scopes = list(state.scopes.values())
    for scope in reversed(scopes):
        run_pass("normalize_ops", scope.graph)
        if scope.call is not None:
            scope.order_arguments()
            scope.give_one_result()
    for scope in scopes:
        run_pass("dce", scope.graph)
        verify(scope.graph)
