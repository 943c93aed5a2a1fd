"""`torch.jit`: compile, call, inspect, save and load programs.

In: text, Python functions and classes, archives.  Out: `ScriptFunction`s and `ScriptModule`s.
"""

from __future__ import annotations

import builtins
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial as _partial
from typing import TYPE_CHECKING, Any, TypeVar
from typing import Final as Final

from engine.aten.values.awaits import Await as Await
from engine.aten.values.hooks import HOOKS, NOT_TRACED
from engine.executor.calls.call import fork_call
from engine.executor.concurrency.futures import Future as Future
from engine.executor.concurrency.futures import launch
from engine.executor.concurrency.futures import wait as wait
from engine.executor.interpreter.budget import Budget, BudgetedRunner
from engine.executor.plans import executor
from engine.frontend.compilation.compile import compile_source
from engine.frontend.names.resolve import ChainedResolver, TextResolver
from engine.frontend.python.modifiers import MODIFIER as MODIFIER
from engine.ir import unit as ir_unit
from engine.ir.unit import DEFINING
from engine.lang import scalars
from engine.lang.deferred import deferred
from engine.lang.errors import CompileError, did_you_mean
from engine.lang.errors import Error as Error
from engine.serialize.archive import PathOrFile, load_archive
from engine.torch.compiled import types as types
from engine.torch.compiled.objects import ScriptFunction as ScriptFunction
from engine.torch.compiled.objects import ScriptMethod as ScriptMethod
from engine.torch.compiled.objects import ScriptObject as ScriptObject
from engine.torch.jit.scripting.names_seen import names_seen
from engine.torch.jit.scripting.script_module import ScriptModule as ScriptModule
from engine.torch.jit.scripting.script_module import UncompiledModule as UncompiledModule
from engine.torch.jit.scripting.script_module import wrap
from engine.torch.namespace.missing_names import refuse_unknown_names

if TYPE_CHECKING:  # names of `_LATE`
    from engine.frontend.python import overloads as _overloads
    from engine.frontend.python import resolver as _resolver
    from engine.frontend.python import trees as _trees
    from engine.frontend.python.module_description import AnnotatedValue as Attribute  # noqa: F401
    from engine.torch.compiled import graphs as _graphs
    from engine.torch.compiled.graphs import Block as Block
    from engine.torch.compiled.graphs import Graph as Graph
    from engine.torch.compiled.graphs import Node as Node
    from engine.torch.compiled.graphs import Use as Use
    from engine.torch.compiled.graphs import Value as Value
    from engine.torch.compiled.graphs import parse_ir as parse_ir
    from engine.torch.jit import flags as flags
    from engine.torch.jit import internal as internal
    from engine.torch.jit import logging as logging
    from engine.torch.jit import passes as passes
    from engine.torch.jit import tensorexpr as tensorexpr
    from engine.torch.jit import upgraders as upgraders
    from engine.torch.jit.scripting import graph_functions as _graph_functions
    from engine.torch.jit.scripting import python_program as _program
    from engine.torch.jit.scripting.freezing import freeze as freeze
    from engine.torch.jit.scripting.freezing import optimize_for_inference as optimize_for_inference
    from engine.torch.jit.scripting.freezing import run_frozen_optimizations as run_frozen_optimizations
    from engine.torch.jit.scripting.graph_functions import IgnoreContextManager as IgnoreContextManager
    from engine.torch.jit.scripting.graph_functions import ScriptProfile as ScriptProfile
    from engine.torch.jit.scripting.graph_functions import awaitable as awaitable
    from engine.torch.jit.scripting.graph_functions import awaitable_nowait as awaitable_nowait
    from engine.torch.jit.scripting.graph_functions import awaitable_wait as awaitable_wait
    from engine.torch.jit.scripting.graph_functions import function_from_graph as function_from_graph
    from engine.torch.jit.scripting.graph_functions import interpret_graph as interpret_graph
    from engine.torch.jit.scripting.graph_functions import unwrap_optional as unwrap_optional
    from engine.torch.jit.scripting.python_program import clear_class_registry as clear_class_registry
    from engine.torch.jit.scripting.script import script as script
    from engine.torch.jit.settings import _hide_source_ranges as _hide_source_ranges
    from engine.torch.jit.settings import _unique_state_dict as _unique_state_dict
    from engine.torch.jit.settings import export_opnames as export_opnames
    from engine.torch.jit.settings import fuser as fuser
    from engine.torch.jit.settings import isinstance as isinstance
    from engine.torch.jit.settings import optimized_execution as optimized_execution
    from engine.torch.jit.settings import set_fusion_strategy as set_fusion_strategy
    from engine.torch.jit.settings import strict_fusion as strict_fusion
    from engine.torch.jit.tracing.trace import TracerWarning as TracerWarning
    from engine.torch.jit.tracing.trace import TracingCheckError as TracingCheckError
    from engine.torch.jit.tracing.trace import get_trace_graph as get_trace_graph
    from engine.torch.jit.tracing.trace import is_tracing as is_tracing
    from engine.torch.jit.tracing.trace import script_if_tracing as script_if_tracing
    from engine.torch.jit.tracing.trace import trace as trace
    from engine.torch.jit.tracing.trace import trace_module as trace_module
else:
    _graphs = deferred("engine.torch.compiled.graphs")
    _overloads = deferred("engine.frontend.python.overloads")
    _resolver = deferred("engine.frontend.python.resolver")
    _trees = deferred("engine.frontend.python.trees")
    _program = deferred("engine.torch.jit.scripting.python_program")
    _graph_functions = deferred("engine.torch.jit.scripting.graph_functions")

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class CompilationUnit:
    """Functions compiled from text, each an attribute.  Raises CompileError.

    The text may use the names of Python that are seen where the unit is made, or `_frames_up` calls further out.
    """

    def __init__(self, source: str | None = None, filename: str = "<string>", *, _frames_up: int = 0) -> None:
        self._unit = ir_unit.CompilationUnit()
        if source is not None:
            self.define(source, filename, _frames_up=_frames_up + 1)

    def define(self, source: str, filename: str = "<string>", rcb: Any = None, *, _frames_up: int = 0) -> None:
        """Compile the functions of the text and add them; after a CompileError none are added."""
        names = names_seen(_frames_up + 1)
        own = {name: value for name, value in names.items() if value is sys.modules["engine.torch"]}
        python = _partial(_resolver.PythonResolver, _program.PYTHON)
        resolver = ChainedResolver(python(own), TextResolver(self._unit), python(names))
        compile_source(source, resolver, self._unit, filename, classes=False)

    def create_function(self, name: str, graph: Graph) -> ScriptFunction:
        """Add a function with a copy of the graph as its body."""
        return _graph_functions.function_from_graph(name, graph, self._unit)

    def find_function(self, name: str) -> ScriptFunction | None:
        function = self._unit.settled().find_function(name)
        return ScriptFunction(function) if function else None

    def get_functions(self) -> list[ScriptFunction]:
        return [ScriptFunction(function) for function in [*self._unit.settled().functions.values()]]

    def __getattr__(self, name: str) -> ScriptFunction:
        found = None if name.startswith("__") or name == "_unit" else self.find_function(name)
        if found is None:
            known = vars(self)["_unit"].settled().functions if "_unit" in vars(self) else ()
            hint = "".join(f"; {h}" for h in did_you_mean(name, known))
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'{hint}")
        return found

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._unit.settled().functions})

    def __iter__(self) -> Iterator[ScriptFunction]:
        return iter(self.get_functions())

    def __repr__(self) -> str:
        return f"<CompilationUnit {', '.join(self._unit.settled().functions) or 'empty'}>"


def last_executed_optimized_graph() -> Graph | None:
    """The optimized graph that ran last; None before the first run."""
    found = executor.last_executed_optimized_graph()
    return None if found is None else _graphs.Graph(found)


# -- archives


def load(
    path: PathOrFile,
    map_location: scalars.device | str | None = None,
    _extra_files: dict[str, Any] | None = None,
    _restore_shapes: bool = False,
    *,
    budget: Budget | None = None,
    mmap: bool = True,
    lazy: bool = True,
) -> ScriptModule:
    """The module in an archive; the contents of the records named in `_extra_files` are stored in that dict.

    Code of the archive that runs during loading (`__setstate__`) has a budget.  With `mmap`, the tensors of a file of
    16 MB or more are read when they are first used; truncating the file in place meanwhile ends the process
    (saving over it is safe).  With `lazy`, a method is compiled, and its errors are raised, when it is first
    needed; without, all methods are compiled at once.  With `_restore_shapes`, graphs of traced methods have the sizes
    that they were traced with.  Raises ArchiveError, BudgetExceeded.
    """
    run = BudgetedRunner(budget or Budget())
    module: ScriptModule = wrap(
        load_archive(path, _extra_files, map_location, run, mapped=mmap, lazy=lazy, with_shapes=_restore_shapes)
    )
    return module


def save(
    target: ScriptModule | ScriptFunction, path: PathOrFile, _extra_files: Mapping[str, str | bytes] | None = None
) -> None:
    """Write a module or function to an archive.  Raises ArchiveError, CompileError."""
    target.save(path, _extra_files)


def save_jit_module_to_flatbuffer(
    m: ScriptModule, f: PathOrFile, _extra_files: Mapping[str, str | bytes] | None = None
) -> None:
    """Write a module as a flatbuffer for phones, with its code and with bytecode.  Raises ArchiveError."""
    m._save_for_lite_interpreter(f, _extra_files, _use_flatbuffer=True)


# -- words of TorchScript, which have little effect in Python


def annotate(_type: Any, value: T) -> T:
    """The value; in TorchScript it has the given type."""
    return value


def is_scripting() -> bool:
    """False in Python; True in TorchScript."""
    return False


def fork(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """Start the function and return its future.

    Compiled functions run on another thread, and their errors are raised by `wait`.  Plain Python functions run at
    once, on this thread, as in PyTorch.
    """
    if builtins.isinstance(function, ScriptModule) and not function._ivalue.type.forward_pre_hooks:
        function = function if function._ivalue.type.forward_hooks else function.forward
    if HOOKS.tracer is not None:
        traced = HOOKS.tracer.fork(function, args, kwargs, Future.completed)
        if traced is not NOT_TRACED:
            return traced  # type: ignore[no-any-return]
    if HOOKS.trace is None and builtins.isinstance(function, ScriptFunction):
        return fork_call(function._function, args, kwargs)
    if HOOKS.trace is None and builtins.isinstance(function, ScriptMethod):
        return fork_call(function._function, (function.owner, *args), kwargs)
    return launch(lambda: function(*args, **kwargs))


def _marked(modifier: str) -> Callable[[F], F]:
    def mark(function: F) -> F:
        parts = (function.fget, function.fset) if builtins.isinstance(function, property) else (function,)
        for part in parts:
            if part is not None:
                setattr(part, MODIFIER, modifier)
        return function

    return mark


unused: Final = _marked("unused")
"""Marks a function that is not compiled; a program that calls it raises."""
export: Final = _marked("export")
"""Marks a method that is compiled although `forward` does not call it."""
script_method: Final = _marked("script_method")
"""Marks a method that is compiled in a class derived from ScriptModule."""


def ignore(function: Any = None, *, drop: bool = False, drop_on_export: bool | None = None) -> Any:
    """Mark a function that stays in Python: programs call it there (with `drop`, they raise instead).

    `drop_on_export` is an older name of `drop`, and warns.
    """
    if drop_on_export:
        warnings.warn(
            "ignore(drop_on_export=True) has been deprecated. TorchScript will now drop the function call on "
            "compilation. Use torch.jit.unused now.",
            FutureWarning,
            stacklevel=2,
        )
        drop = True
    mark = _marked("unused" if drop else "ignore")
    return mark if function is None else mark(function)


def interface(cls: type) -> type:
    """Make the class an interface of the methods it declares.  Raises CompileError for a class with bases."""
    bases = [base for base in cls.__bases__ if base is not object and "_torchscript_module" not in vars(base)]
    if bases:
        raise CompileError(
            "TorchScript interface does not support inheritance yet. Please directly derive it from nothing, or from "
            f"nn.Module: '{cls.__name__}' is derived from '{bases[0].__name__}'",
            hints=("write all its methods out",),
        )
    setattr(cls, _resolver.INTERFACE, True)
    with DEFINING, _program.PYTHON.attempt():
        _program.PYTHON.type_of(cls)
    return cls


def overload(function: F) -> F:
    """Declare one signature of the function or method that follows.  Raises CompileError for one with a body."""
    _overloads.declare_overload(function)
    _overloads.refuse_body(_trees.tree_from_function(function))
    return function


overload_method: Final = overload
_overload, _overload_method, _fork, _wait = overload, overload_method, fork, wait
_Await, _drop = Await, _marked("drop")
RecursiveScriptModule, TracedModule, TopLevelTracedModule = ScriptModule, ScriptModule, ScriptModule


def _homes(module: str, names: str) -> dict[str, str]:
    return {name: f"{__name__}.{module}:{name.removeprefix('_')}" for name in names.split()}


_LATE: Final[dict[str, str]] = {
    **{name: f"{__name__}.{name}" for name in "flags internal logging mobile passes tensorexpr upgraders".split()},
    "Attribute": "engine.frontend.python.module_description:AnnotatedValue",
    **{name: f"engine.torch.compiled.graphs:{name}" for name in "Block Graph Node Use Value parse_ir".split()},
    **_homes("scripting.python_program", "clear_class_registry"),
    **_homes("scripting.script", "script"),
    **_homes("scripting.freezing", "freeze optimize_for_inference run_frozen_optimizations"),
    **_homes(
        "scripting.graph_functions",
        "function_from_graph interpret_graph IgnoreContextManager ScriptProfile awaitable awaitable_nowait "
        "awaitable_wait unwrap_optional _IgnoreContextManager _ScriptProfile _awaitable _awaitable_nowait "
        "_awaitable_wait _unwrap_optional",
    ),
    **_homes(
        "settings",
        "export_opnames fuser isinstance optimized_execution set_fusion_strategy strict_fusion _isinstance "
        "_set_fusion_strategy",
    ),
    **dict.fromkeys(("_hide_source_ranges", "_unique_state_dict"), f"{__name__}.settings"),
    **_homes(
        "tracing.trace",
        "TracerWarning TracingCheckError get_trace_graph is_tracing script_if_tracing trace trace_module "
        "_get_trace_graph _script_if_tracing",
    ),
    **_homes("passes", "_register_decomposition"),
}
"""Names that loading an archive does without, and their homes."""
refuse_unknown_names(__name__, _LATE)
del annotations  # the name is PyTorch's for a module, and not the feature's that is imported above
