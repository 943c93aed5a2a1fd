"""Loops (see Note [The language of loops] in `engine.aten.stepwise.language`) as kernels.

In: a `Loop` and the dtypes of its arrays.  Out: a `Kernel` of the loop's parameters; arrays are flat.  Raises
`Unreadable` for what is no loop.

A variable has the type of what is first assigned to it, and is declared when the kernel begins, since Python's
variables live in the whole function.  Elements are computed with in f32, f64, i64 or bool, whatever their dtype.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final

from engine.aten.stepwise import language
from engine.aten.stepwise.language import Key, Loop
from engine.fuser.groups.fusion_group import TYPES
from engine.fuser.ir.kernel import (
    BOOL,
    FLOATS,
    HALVES,
    WHOLE,
    Assign,
    Break,
    Buffer,
    Constant,
    Continue,
    Declare,
    Expression,
    For,
    If,
    Kernel,
    Load,
    Name,
    Parameter,
    Return,
    Scalar,
    Statement,
    Store,
    While,
    apply,
    constant,
    convert,
    index,
)
from engine.lang.python_syntax import parse_python
from engine.lang.records import dataclass

Value = Expression | int | float | bool
"""An expression; or a number that is written out, which goes with any type."""


class Unreadable(Exception):
    """The function is not in the part of Python that loops are in."""


def kernel_of(loop: Loop, kinds: Key) -> Kernel:
    """The loop for arrays of these dtypes."""
    definition, reader = _definition(loop), _Reader(loop.function.__globals__)
    arrays, parameters = iter(kinds), list[Parameter]()
    for argument in definition.args.args:
        kind = ast.unparse(argument.annotation) if argument.annotation is not None else ""
        if kind == "Buffer":
            d = next(arrays)
            if d not in TYPES:
                raise Unreadable(f"no arrays of {d}")
            buffer = Buffer(argument.arg, TYPES[d], None, access="inout")
            reader.buffers[argument.arg] = buffer
            parameters.append(buffer)
        elif kind in ("int", "float"):
            scalar = Scalar(f"given_{argument.arg}", "i64" if kind == "int" else "f64")
            parameters.append(scalar)
            reader.assign(argument.arg, Name(scalar.name, scalar.type))
        else:
            raise Unreadable(f"{argument.arg} is neither Buffer nor int nor float")
    reader.block(definition.body)
    declared = (Declare(name.name, constant(0, name.type)) for name in reader.variables)
    return Kernel("loop", tuple(parameters), (*declared, *reader.statements), loop.any_order)


def _definition(loop: Loop) -> ast.FunctionDef:
    found = parse_python(textwrap.dedent(inspect.getsource(loop.function))).body[0]
    assert isinstance(found, ast.FunctionDef)
    return found


def computed(type: str) -> str:
    """The type in which elements of a type are computed with."""
    return "f32" if type in HALVES else "i64" if type in WHOLE else type


def type_of(value: Value) -> str:
    if isinstance(value, bool):
        return BOOL
    return "i64" if isinstance(value, int) else "f64" if isinstance(value, float) else value.type


_ORDER: Final = (BOOL, "i64", "f32", "f64")


@dataclass(slots=True)
class _Reader:
    """`names`: of the function that is read now -> variables; `statements`: those of the block that is read now."""

    globals: dict[str, Any]
    names: dict[str, Name] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    variables: list[Name] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)

    # -- names and types

    def fresh(self, name: str, type: str) -> Name:
        taken = {each.name for each in self.variables}
        spelled, count = name, 1
        while spelled in taken:
            spelled, count = f"{name}_{count}", count + 1
        made = Name(spelled, type)
        self.variables.append(made)
        return made

    def assign(self, name: str, value: Value) -> None:
        if name in self.buffers:
            raise Unreadable(f"{name} is an array")
        if name not in self.names:
            self.names[name] = self.fresh(name, type_of(value))
        variable = self.names[name]
        self.statements.append(Assign(variable.name, self.converted(value, variable.type)))

    def converted(self, value: Value, type: str, is_said: bool = False) -> Expression:
        """The value in another type; precision changes only where that is said, or for a literal."""
        if isinstance(value, (int, float)):
            if type in ("i64", BOOL) and isinstance(value, float) and not is_said:
                raise Unreadable(f"{value} is no whole number")
            return constant(value, type)
        widens = (value.type == "i64" and type in FLOATS) or (value.type == BOOL and type == "i64")
        if value.type != type and not (is_said or widens):
            raise Unreadable(f"{value.type} is not converted to {type} by itself")
        return convert(value, type)

    def alike(self, *values: Value) -> list[Expression]:
        """The values in the type that all of them go with."""
        types = [type_of(each) for each in values]
        typed = [t for t, each in zip(types, values, strict=True) if not isinstance(each, (int, float))]
        type = max(typed or types, key=_ORDER.index)
        if type == "i64" and any(t in FLOATS for t in types):
            type = "f64"
        return [self.converted(each, type) for each in values]

    def truth(self, value: Value) -> Expression:
        return convert(self.converted(value, type_of(value)), BOOL)

    def kept(self, value: Expression) -> Expression:
        """The value as it is now, whatever is assigned later."""
        if isinstance(value, Constant):
            return value
        name = f"t{len(self.variables)}"
        variable = self.fresh(name, value.type)
        self.statements.append(Assign(variable.name, value))
        return variable

    @contextmanager
    def into(self) -> Iterator[list[Statement]]:
        """Statements of an inner block."""
        outer, self.statements = self.statements, []
        yield self.statements
        self.statements = outer

    # -- expressions

    def value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=int() | float() as found):
                return found
            case ast.Name(id=name):
                return self.name(name)
            case ast.Subscript():
                return self.element(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(op, self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return apply("bitnot", self.truth(self.value(operand)))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                positive = self.value(operand)
                return -positive if isinstance(positive, (int, float)) else apply("neg", positive)
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self.compared([left, *others], ops)
            case ast.BoolOp(op=op, values=values):
                return self.lazily(isinstance(op, ast.And), values)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition = self.truth(self.value(test))
                return apply("select", condition, *self.alike(self.value(body), self.value(orelse)))
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.call(name, [*map(self.value, args)])
        raise Unreadable(f"no {type(node).__name__} in loops")

    def name(self, name: str) -> Value:
        if name in self.names:
            return self.names[name]
        if name in self.buffers:
            return Name(name, _ARRAY)
        found = self.globals.get(name)
        if not isinstance(found, (int, float)):
            raise Unreadable(f"{name} has no value")
        return found

    def array(self, node: ast.expr) -> Buffer:
        name = node.id if isinstance(node, ast.Name) else ""
        if name not in self.buffers:
            raise Unreadable(f"{ast.unparse(node)} is no array")
        return self.buffers[name]

    def element(self, node: ast.Subscript) -> Expression:
        buffer = self.array(node.value)
        return convert(Load(buffer.name, (self.place(node.slice),), buffer.type), computed(buffer.type))

    def place(self, node: ast.expr) -> Expression:
        found = self.value(node)
        if type_of(found) != "i64":
            raise Unreadable(f"{ast.unparse(node)} is no whole number")
        return self.converted(found, "i64")

    def binary(self, op: ast.operator, a: Value, b: Value) -> Value:
        if isinstance(op, ast.Pow) and b in (2, 3) and isinstance(b, (int, float)):
            squared = self.binary(ast.Mult(), a, a)
            return squared if b == 2 else self.binary(ast.Mult(), squared, a)
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            return self.folded(op, a, b)
        x, y = self.alike(a, b)
        if x.type == BOOL or (isinstance(op, ast.Div) and x.type == "i64"):
            wanted = "f64" if isinstance(op, ast.Div) else "i64"
            x, y = convert(x, wanted), convert(y, wanted)
        name = (_REAL if x.type in FLOATS else _ON_WHOLE).get(type(op))
        if name is None:
            raise Unreadable(f"no {type(op).__name__} of {x.type}")
        return apply(name, x, y)

    def folded(self, op: ast.operator, a: float, b: float) -> Value:
        if type(op) not in _FOLDED:
            raise Unreadable(f"no {type(op).__name__} of numbers")
        found: float = _FOLDED[type(op)](a, b)
        return found

    def compared(self, nodes: Sequence[ast.expr], ops: Sequence[ast.cmpop]) -> Expression:
        sides = [self.value(each) for each in nodes]
        found = [self.compare(op, a, b) for op, a, b in zip(ops, sides, sides[1:], strict=False)]
        total = found[0]
        for each in found[1:]:
            total = apply("bitand", total, each)
        return total

    def compare(self, op: ast.cmpop, a: Value, b: Value) -> Expression:
        name = _COMPARED.get(type(op))
        x, y = self.alike(a, b)
        if name is None or (x.type == BOOL and name not in ("eq", "ne")):
            raise Unreadable(f"no {type(op).__name__} of {x.type}")
        return apply(name, x, y)

    def lazily(self, is_and: bool, nodes: Sequence[ast.expr]) -> Expression:
        """Each operand is computed only if it matters: it may read places that exist only then."""
        result = self.fresh("both" if is_and else "either", BOOL)
        self.statements.append(Assign(result.name, self.truth(self.value(nodes[0]))))
        if len(nodes) > 1:
            with self.into() as inner:
                rest = self.lazily(is_and, nodes[1:])
                inner.append(Assign(result.name, rest))
            condition = result if is_and else apply("bitnot", result)
            self.statements.append(If(condition, tuple(inner)))
        return result

    # -- calls

    def call(self, name: str, given: list[Value]) -> Value:
        function = self.globals.get(name, getattr(builtins, name, None))
        if isinstance(function, Loop):
            return self.inlined(function, given)
        make = next((make for known, make in _CALLS if known is function), None)
        if make is None:
            raise Unreadable(f"no {name} in loops")
        return make(self, *given)

    def inlined(self, called: Loop, given: Sequence[Value]) -> Value:
        """The body of another loop, whose last statement returns its value, with names of its own."""
        definition = _definition(called)
        *body, last = definition.body
        names, buffers = dict[str, Name](), dict[str, Buffer]()
        outer = self.names, self.buffers, self.globals
        for argument, value in zip(definition.args.args, given, strict=True):
            if isinstance(value, Name) and value.type == _ARRAY:
                buffers[argument.arg] = self.buffers[value.name]
            else:
                names[argument.arg] = self.fresh(argument.arg, type_of(value))
                variable = names[argument.arg]
                self.statements.append(Assign(variable.name, self.converted(value, variable.type)))
        self.names, self.buffers, self.globals = names, buffers, called.function.__globals__
        self.block(body)
        result: Value = 0
        if isinstance(last, ast.Return) and last.value is not None:
            found = self.value(last.value)
            result = found if isinstance(found, (int, float)) else self.kept(found)
        else:
            self.block([last])
        self.names, self.buffers, self.globals = outer
        return result

    # -- statements

    def block(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                found = [self.kept(self.converted(v, type_of(v))) for v in map(self.value, values)]
                for target, each in zip(targets, found, strict=True):
                    self.put(target, each)
            case ast.Assign(targets=targets, value=value):
                result = self.value(value)
                for target in targets:
                    self.put(target, result)
            case ast.AugAssign(target=target, op=op, value=value):
                self.put(target, self.binary(op, self.value(target), self.value(value)))
            case ast.If(test=test, body=body, orelse=orelse):
                self.branch(self.truth(self.value(test)), body, orelse)
            case ast.While(test=test, body=body, orelse=[]):
                self.repeat(test, body)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=args), body=body):
                self.count(name, args, body)
            case ast.Return(value=value):
                code = self.value(value) if value is not None else 0
                self.statements.append(Return(self.converted(code, "i64")))
            case ast.Break():
                self.statements.append(Break())
            case ast.Continue():
                self.statements.append(Continue())
            case ast.Expr(value=ast.Call() as call):
                self.value(call)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass  # a docstring
            case _:
                raise Unreadable(f"no {type(node).__name__} in loops")

    def put(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.assign(target.id, value)
            return
        if not isinstance(target, ast.Subscript):
            raise Unreadable(f"nothing is assigned to {ast.unparse(target)}")
        buffer = self.array(target.value)
        stored = convert(self.converted(value, computed(buffer.type)), buffer.type)
        self.statements.append(Store(buffer.name, (self.place(target.slice),), stored))

    def branch(self, condition: Expression, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        with self.into() as yes:
            self.block(body)
        with self.into() as no:
            self.block(orelse)
        self.statements.append(If(condition, tuple(yes), tuple(no)))

    def repeat(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        """A condition that takes statements is looked at within the loop."""
        with self.into() as inner:
            condition = self.truth(self.value(test))
            if inner:
                inner.append(If(apply("bitnot", condition), (Break(),)))
                condition = constant(True, BOOL)
            self.block(body)
        self.statements.append(While(condition, tuple(inner)))

    def count(self, name: str, args: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        given = [self.value(each) for each in args]
        start, stop = (0, given[0]) if len(given) == 1 else given[:2]
        step = given[2] if len(given) == 3 else 1
        if not isinstance(step, int) or step == 0:
            raise Unreadable("steps are numbers that are written out")
        first, last = (self.kept(self.converted(each, "i64")) for each in (start, stop))
        at = Name(f"at_{name}_{len(self.variables)}", "i64")
        with self.into() as inner:
            self.assign(name, at)
            self.block(body)
        self.statements.append(For(at.name, first, last, tuple(inner), index(step)))


_ARRAY: Final = "array"
"""The type of the name of an array, which only calls of loops are given."""
_REAL: Final[dict[type, str]] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_ON_WHOLE: Final[dict[type, str]] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "quotient", ast.Mod: "rest",
    ast.BitAnd: "bitand", ast.BitOr: "bitor", ast.BitXor: "bitxor", ast.LShift: "shift_left",
    ast.RShift: "shift_right",
}  # fmt: skip
_COMPARED: Final[dict[type, str]] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
_FOLDED: Final[dict[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.LShift: operator.lshift,
}  # fmt: skip

# ------------------------------------------------------------------ functions of loops


def _said(type: str) -> Callable[[_Reader, Value], Expression]:
    return lambda r, value: r.converted(value, type, is_said=True)


def _like(r: _Reader, array: Value, value: Value) -> Expression:
    assert isinstance(array, Name)
    return r.converted(value, computed(r.buffers[array.name].type), is_said=True)


def _whole(r: _Reader, value: Value) -> Expression:
    return convert(r.converted(value, type_of(value)), "i64")


def _real(name: str) -> Callable[[_Reader, Value], Expression]:
    def make(r: _Reader, value: Value) -> Expression:
        given = r.converted(value, "f64") if type_of(value) == "i64" else r.converted(value, type_of(value))
        return apply(name, given)

    return make


def _absolute(r: _Reader, value: Value) -> Expression:
    return apply("abs", r.converted(value, type_of(value)))


def _extreme(name: str) -> Callable[..., Expression]:
    """As Python's: a later one only if it is less (or more)."""

    def make(r: _Reader, first: Value, *others: Value) -> Expression:
        found = first
        for other in others:
            a, b = r.alike(found, other)
            found = apply("select", apply(name, b, a), b, a)
        return r.converted(found, type_of(found))

    return make


_CALLS: Final[Sequence[tuple[Any, Callable[..., Value]]]] = (
    (language.double, _said("f64")),
    (language.like, _like),
    (language.whole, _whole),
    (language.floor, _real("floor")),
    (language.nearest, _real("round")),
    (language.root, _real("sqrt")),
    (abs, _absolute),
    (min, _extreme("lt")),
    (max, _extreme("gt")),
)
