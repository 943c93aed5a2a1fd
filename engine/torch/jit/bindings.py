"""Functions that `torch._C` alone has about the JIT: schemas, compiling from trees and traces, types of values.

In: names, trees, graphs, Python values.  Out: schemas, functions, facts, under the signatures that `torch._C` has.
`engine.torch._C` is the table that gives them their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from engine.aten.dispatch import calls, table
from engine.aten.values.ivalue import Object
from engine.aten.values.tensor import Tensor
from engine.executor.conversion.from_python import Mismatch, from_python
from engine.frontend.compilation.compile import declare
from engine.frontend.python.attribute_types import NoType, type_of_value
from engine.frontend.python.resolver import PythonResolver
from engine.frontend.syntax.tree import Tree
from engine.ir.graph import Graph
from engine.ir.unit import DEFINING
from engine.ir.verify import verify
from engine.lang import schema_parser, types
from engine.lang.errors import ArgumentError
from engine.passes.pipeline import run_pass
from engine.torch.compiled.facade import unwrap, wrap
from engine.torch.compiled.objects import ScriptFunction
from engine.torch.compiled.types import Type
from engine.torch.jit.scripting.python_program import PYTHON
from engine.torch.jit.tracing.trace import trace_as

# -- schemas and shapes


def parse_schema(text: str) -> Any:
    """The schema of the text.  Raises SchemaError."""
    return wrap(schema_parser.parse_schema(text))


def get_all_schemas() -> list[Any]:
    """The schemas of all operators."""
    return [wrap(entry.schema) for entry in table.entries()]


def get_schemas_for_operator(name: str) -> list[Any]:
    """The schemas of the operator's overloads."""
    return [wrap(entry.schema) for entry in table.overloads(name)]


def _infer_size(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """The sizes to which tensors of these sizes broadcast.  Raises OperatorError."""
    found: list[int] = calls.call("_infer_size", (list(first), list(second)), {})
    return found


def ivalue_debug_python_object(value: Any) -> Any:
    """The value itself: programs hold Python's objects as they are."""
    return value


# -- compiling


def script_compile(qualname: str, definition: Tree, rcb: Callable[[str], Any], defaults: Mapping[str, Any]) -> Any:
    """The function of a syntax tree, whose names `rcb` looks up.  Raises CompileError."""
    names = {name: value for name in _names_in(definition) if (value := rcb(name)) is not None}
    with DEFINING, PYTHON.attempt():
        prefix = PYTHON.unit.mangle(qualname).rpartition(".")[0]
        (function,) = declare(PYTHON.unit, [definition], PythonResolver(PYTHON, names), prefix)
        function.ensure_defined()
    return ScriptFunction(function)


def _names_in(tree: Tree) -> set[str]:
    """The names that the tree's text mentions, in annotations as well."""
    own = {str(child) for child in tree.children if not isinstance(child, Tree)} if tree.kind == "ident" else set()
    return own.union(*(_names_in(child) for child in tree.children if isinstance(child, Tree)))


def create_function_from_trace(
    qualname: str,
    func: Callable[..., Any],
    input_tuple: Any,
    var_lookup_fn: Callable[..., str] | None = None,
    strict: bool = True,
    force_outplace: bool = False,
    argument_names: Sequence[str] = (),
) -> ScriptFunction:
    """The function as it runs on the inputs, under that name.  Raises CompileError."""
    return trace_as(qualname, func, input_tuple, strict)


# -- types of values


class InferredType:
    """The type of a Python value, or the reason, a text, why there is none."""

    def __init__(self, found: Any) -> None:
        self._type: Any = None if isinstance(found, str) else found
        self._reason = found if isinstance(found, str) else ""

    def type(self) -> Any:
        """The type.  Raises ArgumentError where there is none."""
        if self._type is None:
            text = "Tried to get the type from an InferredType but the type is null. Reason: "
            raise ArgumentError(f"{text}{self._reason}")
        return self._type

    def success(self) -> bool:
        return self._type is not None

    def reason(self) -> str:
        return self._reason


def try_infer_type(value: Any) -> InferredType:
    """The type that the value has in programs."""
    try:
        return InferredType(wrap(type_of_value(value, PYTHON.type_of)))
    except NoType as error:
        return InferredType(str(error))


def assert_is_instance(value: Any, type: Type) -> None:
    """Raise ArgumentError unless the value is of the type."""
    wanted: types.Type = unwrap(type)
    try:
        from_python(wanted)(value)
    except Mismatch as error:
        raise ArgumentError(f"{value!r} is not of type {wanted.annotation_str}: {error}".rstrip(": ")) from None


# -- nested values as lists of tensors


def flatten(value: Any) -> tuple[list[Tensor], Any]:
    """The tensors in nested tuples, lists and dicts, and a description from which `unflatten` puts them together."""
    tensors: list[Tensor] = []

    def described(part: Any) -> Any:
        if isinstance(part, Tensor):
            tensors.append(part)
            return len(tensors) - 1
        if isinstance(part, dict):
            return (dict, tuple((key, described(part[key])) for key in part))
        if isinstance(part, (list, tuple)):
            return (type(part), tuple(map(described, part)))
        if part is None or isinstance(part, str):
            return (None, part)
        raise ArgumentError(f"Only tuples, lists and Variables are supported, but got {type(part).__name__}")

    layout = described(value)
    return tensors, layout


def unflatten(tensors: Sequence[Tensor], layout: Any) -> Any:
    """The value whose tensors these are."""
    if isinstance(layout, int):
        return tensors[layout]
    kind, parts = layout
    if kind is None:
        return parts
    if kind is dict:
        return {key: unflatten(tensors, part) for key, part in parts}
    return kind(unflatten(tensors, part) for part in parts)


# -- graphs


def erase_non_input_shape_information(graph: Any) -> None:
    """Forget the shapes and dtypes of all values but the graph's inputs."""
    body: Graph = unwrap(graph)
    kept = [(value, value.type) for value in body.inputs]
    run_pass("erase_shape_information", body)
    for value, type in kept:
        value.set_type(type)


def lint(graph: Any) -> None:
    """Check the graph's invariants.  Raises AssertionError."""
    verify(unwrap(graph))


# -- facts about the build


def object_is_non_holding(value: Any) -> bool:
    """False: objects own what they hold."""
    return False


def ivalue_tags_match(first: Any, second: Any) -> bool:
    """True if the two modules have the same names with values of the same types."""
    return _shape(first._module._ivalue) == _shape(second._module._ivalue)


def _shape(value: Object) -> list[Any]:
    """The names of a module's attributes, with their types, submodules' own inside."""
    return [
        (each.name, _shape(held) if isinstance(held := value.get(each.name), Object) else str(each.type))
        for each in value.type.attributes
    ]


def cuda_compiled_version() -> int:
    """0: the engine is not compiled against CUDA."""
    return 0


def never() -> bool:
    """False."""
    return False


def llvm_enabled() -> bool:
    """True: kernels are compiled by LLVM."""
    return True


HAS_LAPACK: Final = True
"""numpy's linear algebra does what LAPACK does."""
HAS_MKL: Final = False
