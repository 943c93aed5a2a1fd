"""Gradient formulas, from the operator table's text to functions.

In: an entry and the name of an argument.  Out: a `Formula`: the function that evaluates the text, and what of the call
it reads.  Names in a formula are arguments, `result` (of several `result0`, `result1` or their names), `grad` (the
gradient of the first result, zeros if there is none) and `grads[i]` (of any, None if there is none); functions are
operators, methods those of tensors.  What only asks for a tensor's size (`self.size()`, `zeros_like(self)`) does not
keep the tensor: an empty stand-in of its shape is enough.

Note [Complex gradients]
The gradient of a complex number is the conjugate of what the chain rule gives.  A formula is written for real numbers;
for a complex gradient it is evaluated with the conjugate, and its outcome conjugated: that is right for every
holomorphic function.  A formula that uses conjugates, real or imaginary parts is evaluated unchanged.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from engine.aten.dispatch import calls, table
from engine.aten.dispatch.wrapping import view
from engine.aten.values import libraries, xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor, wrapped
from engine.lang.errors import OperatorError
from engine.lang.generated import define
from engine.lang.python_syntax import parse_python_expression
from engine.lang.records import dataclass
from engine.lang.schema import FunctionSchema
from engine.lang.types import FLOAT, NUMBER

if TYPE_CHECKING:
    from engine.aten.dispatch.op import Op

NO_GRADIENT: Final = "None"
"""The formula of an argument on which the result does not depend differentiably."""
NOT_IMPLEMENTED: Final = "not implemented"
"""The formula of an argument whose gradient exists, but is not known: a backward pass that needs it raises."""
NO_FORMULA: Final = frozenset({NO_GRADIENT, NOT_IMPLEMENTED})
_SIZES: Final = frozenset({"size", "numel", "dim"})
"""Methods that only look at a tensor's form."""
_FORM_AT: Final = {"zeros_like": 0, "_cat_backward": 1}
"""Functions that only look at the form of one argument, and its position."""
_OF_COMPLEX: Final = frozenset({
    "conj", "real", "imag", "mH", "sgn", "angle", "complex", "polar", "view_as_real", "view_as_complex",
    "_fft_backward", "_solve_triangular_backward", "_pinv_backward", "_svd_backward", "_eig_backward",
    "_eigh_backward", "_qr_backward", "_lu_backward", "_lu_factor_backward", "_lu_solve_backward",
    "_cholesky_backward", "_cholesky_solve_backward", "_cholesky_inverse_backward", "_lstsq_backward",
    "_matrix_exp_backward", "_var_backward", "_slogdet_backward", "_svdvals_backward", "_angle_backward",
})  # fmt: skip


class Read(NamedTuple):
    """Something a formula looks at: an argument or a result, its values or just its form."""

    is_result: bool
    place: int
    by_value: bool


class Whole(NamedTuple):
    """A call that gives the gradients of several arguments at once: evaluated once for all of them."""

    text: str
    evaluate: Callable[..., Any]
    pick: int


@dataclass(eq=False, slots=True)
class Formula:
    """`evaluate(grads, grad, *values of the reads)` is the gradient of the argument."""

    argument: int
    text: str
    reads: tuple[Read, ...]
    uses_grad: bool
    through: frozenset[int] | None
    """Indices of the results whose gradients the formula reads; None: all."""
    is_complex: bool
    """True if the formula handles complex numbers itself: see Note [Complex gradients]."""
    write: Callable[[], tuple[Callable[..., Any], Whole | None]]
    """Makes the functions, which most formulas that are looked at never need."""
    _written: tuple[Callable[..., Any], Whole | None] | None = None

    @property
    def evaluate(self) -> Callable[..., Any]:
        return self._functions()[0]

    @property
    def whole(self) -> Whole | None:
        """The function that computes several gradients at once, if this formula is one of its results."""
        return self._functions()[1]

    def _functions(self) -> tuple[Callable[..., Any], Whole | None]:
        if self._written is None:
            self._written = self.write()
        return self._written


def compile_formula(op: Op, argument: str) -> Formula:
    """The formula for one argument of an entry."""
    schema, text = op.schema, (op.gradient or op.gradient_in_place)[argument]
    if text == NOT_IMPLEMENTED:
        place = schema.index_of(argument)
        assert place is not None
        return Formula(place, text, (), True, None, True, partial(_refusing, op, argument))
    tree = ast.Expression(parse_python_expression(text))
    sources = {a.name: (False, i) for i, a in enumerate(schema.arguments)} | _results(schema)
    uses = list(_uses(tree, sources.keys() | {"grad", "grads"}))
    names = sorted({name for name, _ in uses} - {"grad", "grads"})
    values = {name for name, by_value in uses if by_value}
    index = schema.index_of(argument)
    assert index is not None, f"{op.qualified_name} has no argument {argument}"
    reads = tuple(Read(*sources[name], name in values) for name in names)
    methods = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    is_complex = not _OF_COMPLEX.isdisjoint(methods | _called(tree))
    uses_grad = any(name == "grad" for name, _ in uses)
    write = partial(_functions, op, text, names, set(names) - values)
    return Formula(index, text, reads, uses_grad, _through(tree), is_complex, write)


def _refusing(op: Op, argument: str) -> tuple[Callable[..., Any], Whole | None]:
    def refuse(*values: Any) -> Any:
        raise OperatorError(f"the derivative for '{op.name.removeprefix('aten::')}: {argument}' is not implemented.")

    return refuse, None


def _functions(op: Op, text: str, names: Sequence[str], forms: set[str]) -> tuple[Callable[..., Any], Whole | None]:
    """The function that evaluates the text, and the one for all that its call gives, if it is part of that."""
    tree = ast.Expression(parse_python_expression(text))  # which is rewritten here
    environment = {name: _operator(name) for name in _called(tree)} | _OF_FORMS
    whole = _whole(tree.body)
    _ask_forms(tree, forms)
    factors = {a.name for a in op.schema.arguments if a.type == NUMBER and a.default == 1}
    _Factors(factors).visit(tree)
    environment |= _name_overloads(tree)
    parameters, file, made = ["grads", "grad", *names], f"<gradient of {op.name}>", None
    if whole is not None:
        call = ast.unparse(whole[0])
        made = Whole(call, define("gradients", parameters, [f"return {call}"], dict(environment), file), whole[1])
    return define("gradient", parameters, [f"return {ast.unparse(tree)}"], environment, file), made


def _whole(node: ast.expr) -> tuple[ast.Call, int] | None:
    """The call of a formula like `f(grad, self)[1]`, and the index of its result."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call)):
        return None
    if not (isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int)):
        return None
    return node.value, node.slice.value


def _ask_forms(tree: ast.AST, forms: set[str]) -> None:
    """Let the text ask the forms of tensors, instead of tensors of that form, where that will do."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function, args = node.func, node.args
        if isinstance(function, ast.Attribute) and function.attr in _TO_FORM and (size_of := _size_asked(args, forms)):
            node.func, node.args = ast.Name(_TO_FORM[function.attr], ast.Load()), [function.value, size_of]
        elif isinstance(function, ast.Attribute) and _is_one_of(function.value, forms):
            node.func, node.args = ast.Name(f"_{function.attr}_of", ast.Load()), [function.value, *args]
        elif isinstance(function, ast.Name) and function.id in _FORM_AT:
            place = _FORM_AT[function.id]
            asked = args[place]
            if not (isinstance(asked, ast.Name) and asked.id in forms):
                continue
            if function.id == "zeros_like":
                node.func = ast.Name("_zeros_of", ast.Load())
            else:
                args[place] = ast.Call(ast.Name("_stand_in_of", ast.Load()), [asked], [])


def _is_one_of(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _size_asked(args: list[ast.expr], forms: set[str]) -> ast.expr | None:
    """The form whose size is the only argument, if it is."""
    if len(args) != 1 or not isinstance(args[0], ast.Call) or args[0].args:
        return None
    function = args[0].func
    is_size = isinstance(function, ast.Attribute) and function.attr == "size" and _is_one_of(function.value, forms)
    return function.value if is_size else None  # type: ignore[attr-defined]


def _name_overloads(tree: ast.AST) -> dict[str, Any]:
    """Resolve calls to the only overload that fits; returns the operators by the names in the tree."""
    found: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (op := _meant(node)) is not None:
            name = f"{node.func.id}_of_{len(node.args)}"
            found[name] = op
            node.func = ast.Attribute(ast.Name(name, ast.Load()), "impl", ast.Load())
    return found


def _meant(call: ast.Call) -> Op | None:
    """The overload that takes just these arguments; None unless it is clear which one, and that they need not be
    converted."""
    assert isinstance(call.func, ast.Name)
    known = [op for op in table.overloads(f"aten::{call.func.id}") if not any(a.is_write for a in op.schema.arguments)]
    if len(known) != 1 or call.keywords or len(call.args) != len(known[0].schema.arguments):
        return None
    types = [a.type for a in known[0].schema.arguments]
    is_plain = not any(isinstance(a, ast.Constant) and t is FLOAT for a, t in zip(call.args, types, strict=True))
    return known[0] if is_plain else None


class _Factors(ast.NodeTransformer):
    """Skips products with factors whose default is 1, unless the call gives another value."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not (isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Name) and node.right.id in self._names):
            return node
        is_one = ast.Compare(ast.Name(node.right.id, ast.Load()), [ast.Eq()], [ast.Constant(1)])
        return ast.IfExp(is_one, node.left, node)


def _through(tree: ast.AST) -> frozenset[int] | None:
    """Indices of the results whose gradients a formula reads: `grad` is that of the first."""
    nodes = list(ast.walk(tree))
    chosen = {
        id(n.value): n.slice.value
        for n in nodes
        if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Constant) and isinstance(n.slice.value, int)
    }
    found: set[int] = set()
    for name in (n for n in nodes if isinstance(n, ast.Name)):
        if name.id == "grads" and id(name) not in chosen:
            return None
        if name.id in ("grad", "grads"):
            found.add(0 if name.id == "grad" else chosen[id(name)])
    return frozenset(found)


def _results(schema: FunctionSchema) -> dict[str, tuple[bool, int]]:
    found = {"result": (True, 0)}
    for i, result in enumerate(schema.returns):
        found[f"result{i}"] = (True, i)
        if result.name and schema.index_of(result.name) is None:
            found[result.name] = (True, i)
    return found


def _uses(tree: ast.AST, known: set[str]) -> Iterator[tuple[str, bool]]:
    """Every use of a known name, and whether it looks at values."""
    formal = {id(name) for node in ast.walk(tree) for name in _asks_for_form(node)}
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in known and id(node) not in functions:
            yield node.id, id(node) not in formal


def _asks_for_form(node: ast.AST) -> Sequence[ast.AST]:
    if not isinstance(node, ast.Call):
        return []
    if isinstance(node.func, ast.Attribute) and node.func.attr in _SIZES:
        return [node.func.value]
    place = _FORM_AT.get(node.func.id) if isinstance(node.func, ast.Name) else None
    return [] if place is None else node.args[place : place + 1]


def _called(tree: ast.AST) -> set[str]:
    return {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def _operator(name: str) -> Callable[..., Any]:
    return calls.operator(name)


def stand_in(form: tuple[tuple[int, ...], xp.NumpyDtype]) -> Tensor:
    """A tensor of that shape and dtype that takes no memory."""
    shape, d = form
    if HOOKS.devices:
        return Tensor(libraries.zeros(shape, d, takes_memory=False))
    return Tensor(np.ndarray(shape, d, _ZEROS, 0, (0,) * len(shape)))


_ZEROS: Final = bytes(16)


def _size_of(form: Any, dim: int | None = None) -> Any:
    return list(form[0]) if dim is None else form[0][dim]


def _stand_in_of(form: Any) -> Any:
    """A tensor of that form; of several, a list of them."""
    if type(form) is list:
        return [_stand_in_of(each) for each in form]
    return None if form is None else stand_in(form)


def _zeros_of(form: tuple[tuple[int, ...], xp.NumpyDtype]) -> Tensor:
    return wrapped(np.zeros(*form) if not HOOKS.devices else libraries.zeros(*form))


def _expanded_to(x: Tensor, form: tuple[tuple[int, ...], xp.NumpyDtype]) -> Any:
    """`x.expand(size)`; a single number is expanded without detours."""
    array, shape = x.array, form[0]
    if x._requires_grad or type(array) is not np.ndarray or array.ndim or HOOKS.trace is not None:
        return x.expand(list(shape))
    return view(np.ndarray(shape, array.dtype, array, 0, (0,) * len(shape)), x)


def _reshaped_to(x: Tensor, form: tuple[tuple[int, ...], xp.NumpyDtype]) -> Any:
    """`x.reshape(size)`; rows of memory without gaps are reshaped without detours."""
    array, shape = x.array, form[0]
    is_plain = type(array) is np.ndarray and array.flags.c_contiguous and array.size == math.prod(shape)
    if x._requires_grad or not is_plain or HOOKS.trace is not None or array.shape == shape:
        return x.reshape(list(shape))
    return view(array.reshape(shape), x)


_TO_FORM: Final = {"expand": "_expanded_to", "reshape": "_reshaped_to"}
"""Methods that give a tensor the size of another one."""
_OF_FORMS: Final[dict[str, Any]] = {
    "_size_of": _size_of, "_numel_of": lambda form: math.prod(form[0]), "_dim_of": lambda form: len(form[0]),
    "_zeros_of": _zeros_of, "_stand_in_of": _stand_in_of, "_expanded_to": _expanded_to, "_reshaped_to": _reshaped_to,
}  # fmt: skip
"""Attributes of a tensor's form that formulas read."""
