"""Single operators as kernels, for calls from Python.

In: operators of the table, as they are first used (`HOOKS.native`).  Out: at first an implementation that notes the
time spent in it; once compiling pays, stubs of kernels for arguments like those of that call take `Op.impl`, `Op.body`
and methods of `Tensor`.  For arguments that no kernel is made for they call the operator's function in Python.

Tensors and numbers are arguments of the kernel; flags, dimensions and arguments left at their default are what it is
made for.  Pointwise operators on contiguous tensors of the same sizes have one kernel for all ranks; those that write
to their first argument have only such kernels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import field, replace
from types import FunctionType
from typing import Any, Final

import numpy as np

from engine.aten.autograd.formula import Read
from engine.aten.autograd.specialised_recording import plan_of
from engine.aten.dispatch.op import Op
from engine.aten.python import binding
from engine.aten.values.hooks import HOOKS
from engine.aten.values.libraries import as_strided
from engine.aten.values.tensor import Tensor
from engine.fuser.backend import tiering
from engine.fuser.backend.cpython_abi import AbiError
from engine.fuser.backend.machine import MachineError
from engine.fuser.groups.from_graph import NotFused, has_kernel, is_fusible, is_pointwise, is_view, lower, lower_view
from engine.fuser.groups.products import PRODUCTS
from engine.fuser.groups.windows import WINDOWS
from engine.fuser.ir.kernel import FLOATS, Buffer, For, Statement, Store
from engine.fuser.stubs import stub
from engine.fuser.stubs.binding import (
    Argument,
    Binding,
    FixedArgument,
    History,
    Kept,
    Result,
    TensorArgument,
    ViewResult,
)
from engine.fuser.stubs.methods import Method, method
from engine.ir.constants import insert_constant
from engine.ir.graph import Graph
from engine.lang.records import dataclass
from engine.lang.types import FLOAT, INT, NUMBER, OptionalType, TensorType, Type

MAX_KERNELS: Final = 4
"""The number of different kernels of an operator that calls try, and of those that record."""
MAX_LONG_KERNELS: Final = 16
"""The same for products and windows, which take much longer than the looks at guards that fail."""

# ------------------------------------------------------------------ one operator as a kernel


def binding_of(op: Op, args: Sequence[Any]) -> Binding:
    """A kernel of the operator for arguments like these; raises NotFused."""
    found = _functional(op.functional or op, args)
    return found if op.functional is None else _in_place(found)


def _functional(op: Op, args: Sequence[Any]) -> Binding:
    graph, examples, fixed = Graph(), [], {}
    is_flat = is_pointwise(op) and _are_alike(args)
    inputs = []
    for i, (argument, value) in enumerate(zip(op.schema.arguments, args, strict=True)):
        if _is_given(op, argument, value) and not _is_default(argument, value):
            inputs.append(graph.add_input(argument.name, _type_of(value, argument.type)))
            examples.append(_flat_example(value) if is_flat and isinstance(value, Tensor) else value)
        else:
            fixed[i] = FixedArgument(argument.name, tuple(value) if type(value) is list else value)
            if not _is_fixable(fixed[i]) or (value is None and not isinstance(argument.type, OptionalType)):
                raise NotFused(graph.return_node, "no kernel is made for such arguments")
            inputs.append(insert_constant(graph, value))
    node = graph.append(op.name, inputs, [each.type for each in op.schema.returns])
    node.op = op
    if not is_fusible(node):
        raise NotFused(node, "no kernel holds this operator with such arguments")
    graph.register_output(node.output)
    found = lower_view(graph, examples) if is_view(op) else lower(graph, examples)
    given = iter(found.arguments)
    arguments = [fixed[i] if i in fixed else next(given) for i in range(len(args))]
    found = replace(found, arguments=_with_missing(op, arguments))
    return _flat(found) if is_flat else found


_OPERANDS: Final = (NUMBER, OptionalType(NUMBER))


_PLACES: Final[dict[str, tuple[str, ...]]] = {"aten::select": ("index",), "aten::slice": ("start", "end")}
"""Arguments that are places in a tensor."""


def _is_given(op: Op, argument: Any, value: Any) -> bool:
    """True for what calls give anew: tensors, floats, and ints that are operands or places."""
    is_number = argument.type in _OPERANDS or argument.name in _PLACES.get(op.name, ())
    return isinstance(value, Tensor) or type(value) is float or (type(value) is int and is_number)


def _is_default(argument: Any, value: Any) -> bool:
    return type(value) is int and argument.has_default and type(argument.default) is int and value == argument.default


def _is_fixable(argument: FixedArgument) -> bool:
    value = argument.value
    if isinstance(value, tuple):
        return all(type(each) is int for each in value)
    return type(value) in (int, bool, type(None)) or (type(value) is str and value.isascii())


def _type_of(value: Any, declared: Type) -> Type:
    return {float: FLOAT, int: INT}.get(type(value), declared)


def _with_missing(op: Op, arguments: Sequence[Argument]) -> tuple[Argument, ...]:
    """The arguments, of which the last ones may be missing where they have the values of their defaults."""
    made = [*arguments]
    for i in reversed(range(len(made))):
        argument, declared = made[i], op.schema.arguments[i]
        wanted = tuple(declared.default) if type(declared.default) is list else declared.default
        if not isinstance(argument, FixedArgument) or not declared.has_default:
            break
        if type(argument.value) is not type(wanted) or argument.value != wanted:
            break
        made[i] = replace(argument, may_be_missing=True, is_named=declared.kwarg_only)
    return tuple(made)


def _are_alike(args: Sequence[Any]) -> bool:
    """True if the tensors are contiguous and of the same sizes."""
    arrays = [value.array for value in args if isinstance(value, Tensor)]
    are_plain = all(type(array) is np.ndarray and array.flags.c_contiguous for array in arrays)
    return are_plain and len({array.shape for array in arrays}) == 1


def _flat_example(value: Tensor) -> Tensor:
    """A tensor of one dimension with as many elements (but two at least), which are not read."""
    array = value.array
    return Tensor(as_strided(np.zeros(1, array.dtype), (max(array.size, 2),), (array.itemsize,)))


def _flat(found: Binding) -> Binding:
    arguments = [replace(a, layout="flat") if isinstance(a, TensorArgument) else a for a in found.arguments]
    results = [replace(r, is_flat=True) if isinstance(r, Result) else r for r in found.results]
    return replace(found, arguments=tuple(arguments), results=tuple(results))


def _in_place(found: Binding) -> Binding:
    """The kernel that writes its result to the first argument."""
    x, (result,), kernel = found.arguments[0], found.results, found.kernel
    is_flat = isinstance(x, TensorArgument) and x.layout == "flat"
    if not isinstance(x, TensorArgument) or not isinstance(result, Result) or not is_flat or result.type != x.type:
        raise NotFused(Graph().return_node, "no result that the first argument holds")
    body = tuple(_storing(each, result.name, x.name) for each in kernel.body)
    kept = [each for each in kernel.parameters if each.name != result.name]
    parameters = [
        replace(each, access="inout") if isinstance(each, Buffer) and each.name == x.name else each for each in kept
    ]
    arguments = (replace(x, is_written=True), *found.arguments[1:])
    written = replace(kernel, parameters=tuple(parameters), body=body)
    return replace(found, kernel=written, arguments=arguments, results=(Result(x.name, x.type, None),))


def _storing(statement: Statement, before: str, after: str) -> Statement:
    """The statement, which stores to another buffer."""
    if isinstance(statement, Store) and statement.buffer == before:
        return replace(statement, buffer=after)
    if isinstance(statement, For):
        return replace(statement, body=tuple(_storing(each, before, after) for each in statement.body))
    return statement


def history_of(op: Op, found: Binding, args: Sequence[Any]) -> History | None:
    """The history of the kernel's result for calls that record as this one; None where Python has to look closer."""
    needed = [i for i, value in enumerate(args) if isinstance(value, Tensor) and value.requires_grad]
    plan = plan_of(op, tuple(needed))
    result = found.results[0]
    if plan is None or len(found.results) != 1 or not isinstance(result, (Result, ViewResult)):
        return None
    if result.type not in FLOATS:
        return None
    names = [each.name for each in found.arguments]
    kept = [_kept(op, found, read) for read in plan.reads]
    constants = [args[op.schema.index_of(each.name) or 0] for each in kept if each.kind == "constant"]
    return History(
        sources=tuple(names[formula.argument] for formula, _ in plan.formulas),
        recording=tuple(names[i] for i in needed),
        kept=tuple(kept),
        plan=plan,
        constants=tuple([*each] if type(each) is list else each for each in constants),
    )


def _kept(op: Op, found: Binding, read: Read) -> Kept:
    if read.is_result:
        return Kept("tensor" if read.by_value else "form", found.results[0].name)
    argument = found.arguments[read.place]
    if isinstance(argument, TensorArgument):
        return Kept("tensor" if read.by_value else "form", argument.name)
    return Kept("constant" if isinstance(argument, FixedArgument) else "given", argument.name)


# ------------------------------------------------------------------ operators on their way to kernels


@dataclass(eq=False, slots=True)
class _Watched:
    """An operator whose time in Python is counted.  Kernels come first that were asked for last."""

    op: Op
    left: int = field(init=False)
    """Looks that are still taken in vain."""
    tried: set[Hashable] = field(default_factory=set)
    kernels: list[Binding] = field(default_factory=list)
    bodies: list[Binding] = field(default_factory=list)
    """Kernels for tensors that record."""

    def __post_init__(self) -> None:
        self.left = 4 * self.most

    @property
    def is_long(self) -> bool:
        """True for products and windows, whose kernels go by sizes."""
        return self.op.name in PRODUCTS or self.op.name in WINDOWS

    @property
    def most(self) -> int:
        """Kernels kept of those that record and of the others; four times as many kinds of arguments are tried."""
        return MAX_LONG_KERNELS if self.is_long else MAX_KERNELS

    def install(self) -> None:
        """Let what the compile mode asks for serve as the operator."""
        if tiering.mode() == "off":
            self.op.give_back()
            return
        self.op.take(*self.bound(self.kernels, self.bodies))

    def bound(
        self, kernels: Sequence[Binding], bodies: Sequence[Binding]
    ) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
        """The operator and its body with these kernels before them; raises AbiError, MachineError."""
        python = self.op.compiled
        fallback = self.counting() if self.left else python.run
        impl = stub.bind(self.op.name, kernels, fallback, role="operator")
        return impl, stub.bind(self.op.name, bodies, python.body, role="body") if bodies else None

    def counting(self) -> Callable[..., Any]:
        """The operator's function in Python, which has a kernel made once enough time was spent in it."""
        run = self.op.compiled.run
        if tiering.mode() == "eager":
            return lambda *args: self.op.impl(*args) if self.wants(args) and self.compile(args) else run(*args)
        spent, clock, limit = 0, time.perf_counter_ns, tiering.WORTH

        def counted(*args: Any) -> Any:
            nonlocal spent
            start = clock()
            result = run(*args)
            spent += clock() - start
            if spent > limit:
                spent = 0
                if self.wants(args):
                    example = [_example(value) for value in args]
                    tiering.in_background(lambda: self.compile_later(example))
            return result

        return counted

    def wants(self, args: Sequence[Any]) -> bool:
        """True if a kernel for such arguments is to be made, which no one has tried before."""
        if tiering.mode() == "off" or HOOKS.trace is not None or not tiering.asks_for_kernels():
            return False
        pattern = _pattern(args), _sizes(args) if self.is_long else ()
        if pattern not in self.tried and len(self.tried) < 4 * self.most:
            self.tried.add(pattern)
            return True
        self.left -= 1
        if self.left == 0:
            self.install()
        return False

    def compile_later(self, args: Sequence[Any]) -> None:
        if tiering.mode() != "off":
            self.compile(args)

    def compile(self, args: Sequence[Any]) -> bool:
        """Make a kernel for such arguments, and use it; false where there is none."""
        with tiering.compiling():
            try:
                self.add(binding_of(self.op, args), args)
            except (NotFused, AbiError, MachineError):
                return False
            except Exception as error:
                tiering.note_failure(error)
                return False
            return True

    def add(self, found: Binding, args: Sequence[Any]) -> None:
        records = _records(args)
        if records and (self.op.python is not None or self.op.functional is not None):
            return  # what is recorded are calls of other operators, or writes
        found = replace(found, history=history_of(self.op, found, args) if records else None)
        kernels, bodies = self.kernels, self.bodies
        if records:
            bodies = _with_first(found, bodies, self.most)
        serves_calls = found.history is not None or not records
        if serves_calls:
            kernels = _with_first(found, kernels, self.most)
        self.bound(kernels, bodies)  # which raises before anything has changed
        self.kernels, self.bodies = kernels, bodies
        self.install()
        if serves_calls and _leaves_out_names(self.op, found):
            for name in _method_names(self.op):
                _take_method(name, found)


def _with_first(found: Binding, kernels: Sequence[Binding], most: int) -> list[Binding]:
    """The kernels with this one first, without the last one of too many that record, or of those that do not."""
    made = [found, *kernels]
    alike = [i for i, each in enumerate(made) if (each.history is None) == (found.history is None)]
    if len(alike) > most:
        del made[alike[-1]]
    return made


def _leaves_out_names(op: Op, found: Binding) -> bool:
    """True if no argument has to be given that methods take by name only."""
    pairs = zip(found.arguments, op.schema.arguments, strict=True)
    return all(isinstance(made, FixedArgument) and made.is_named for made, declared in pairs if declared.kwarg_only)


def _pattern(args: Sequence[Any]) -> Hashable:
    """The arguments as far as they decide the kernel."""
    is_flat = _are_alike(args)
    return (is_flat, *(_part(value, is_flat) for value in args))


def _sizes(args: Sequence[Any]) -> Hashable:
    return tuple(value.array.shape for value in args if isinstance(value, Tensor))


def _part(value: Any, is_flat: bool) -> Hashable:
    if isinstance(value, Tensor):
        array = value.array
        layout = array.dtype if is_flat and array.ndim else (array.dtype, array.ndim, array.flags.c_contiguous)
        return layout, value.requires_grad
    if type(value) is list:
        return tuple(each if type(each) is int else type(each) for each in value)
    return type(value), (value if type(value) in (int, bool, str) else None)


def _records(args: Sequence[Any]) -> bool:
    return any(isinstance(value, Tensor) and value.requires_grad for value in args)


def _example(value: Any) -> Any:
    """The value, or for a tensor another one of its dtype, sizes and strides that holds no memory and is not read."""
    if not isinstance(value, Tensor) or type(value.array) is not np.ndarray:
        return value
    array = value.array
    shown = as_strided(np.zeros(1, array.dtype), array.shape, array.strides)
    return Tensor(shown).requires_grad_(value.requires_grad)


_watched: Final[dict[str, _Watched]] = {}


def watch(op: Op) -> None:
    """Count the time spent in an operator that has kernels."""
    if op.compiled.written is not None and _has_form(op):
        _watched[op.qualified_name] = watched = _Watched(op)
        if tiering.mode() != "off":
            watched.install()


def _has_form(op: Op) -> bool:
    if not all(isinstance(each.type, TensorType) for each in op.schema.returns):
        return False
    if op.functional is None:
        return has_kernel(op) and (op.gives_new or is_view(op))
    writes = [each.is_write for each in op.schema.arguments]
    return writes[0] and not any(writes[1:]) and is_pointwise(op.functional) and has_kernel(op.functional)


# ------------------------------------------------------------------ methods

_SPECIAL: Final[dict[str, tuple[str, ...]]] = {
    "add": ("__add__", "__radd__"), "sub": ("__sub__",), "rsub": ("__rsub__",), "mul": ("__mul__", "__rmul__"),
    "div": ("__truediv__",), "floor_divide": ("__floordiv__",), "remainder": ("__mod__",), "pow": ("__pow__",),
    "eq": ("__eq__",), "ne": ("__ne__",), "lt": ("__lt__",), "le": ("__le__",), "gt": ("__gt__",), "ge": ("__ge__",),
    "neg": ("__neg__",), "matmul": ("__matmul__",), "abs": ("__abs__",), "add_": ("__iadd__",), "sub_": ("__isub__",),
    "mul_": ("__imul__",), "div_": ("__itruediv__",),
}  # fmt: skip
"""Python's operators that are nothing but an operator of the table."""


@dataclass(eq=False, slots=True)
class _Bound:
    """A method of tensors that tries kernels, those of all overloads."""

    method: Method
    python: Callable[..., Any]
    kernels: list[Binding] = field(default_factory=list)


_methods: Final[dict[str, _Bound]] = {}


def _method_names(op: Op) -> Iterator[str]:
    name = op.name.removeprefix("aten::")
    if "method" in op.variants and op.name != name:
        yield name
    yield from _SPECIAL.get(name, ())


def _take_method(name: str, found: Binding) -> None:
    """Let the kernel serve calls of the method, unless somebody has put another kind of thing there."""
    if name not in _methods:
        python = binding.member(name)
        if not isinstance(python, FunctionType):
            return
        _methods[name] = _Bound(method(Tensor, name, python), python)
        if tiering.mode() != "off":  # it may have changed while the kernel was made
            binding.take(name, _methods[name].method.descriptor)
    bound = _methods[name]
    kernels = _with_first(found, bound.kernels, MAX_KERNELS)
    bound.method.call(stub.bind(name, kernels, bound.python, role="method"))
    bound.kernels = kernels


def _follow_mode() -> None:
    """Let what the compile mode asks for serve as the operators and methods, also where a kernel was taken over."""
    HOOKS.python_only = tiering.mode() == "off"
    for watched in [*_watched.values()]:
        watched.install()
    for name, bound in _methods.items():
        if tiering.mode() == "off":
            binding.give_back(name)
        else:
            binding.take(name, bound.method.descriptor)


tiering.when_mode_changes(_follow_mode)
HOOKS.native = watch
