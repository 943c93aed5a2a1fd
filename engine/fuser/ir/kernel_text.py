"""Kernels as text, which is Python's syntax.

In: the text of a kernel, or of a function of numbers.  Out: the `Kernel` (`parse`) or `Function` (`parse_function`); or
the other way (`show`, which also has strides, as a second subscript, and helpers; `numbered` tells the lines of it).

    def first_where(n: i64, x: f32[n], least: f32):
        i: i64 = 0                      # a variable, which `i = ...` assigns
        limit = least * 2.0             # a name for a value
        while i < n:
            if x[i] >= limit:
                return i
            i = i + 1
        return -1

Parameters are numbers (`i64`) or buffers (`f32[n, m]`, `Out[f32[n]]`, `InOut[f32[...]]` of unknown extent).  Literals
have the type of the operand beside them or of what they are assigned to, else i64, f64 or bool; `f32(0.5)` says it, and
converts what is no literal; `x[i:8]` is a vector (Note [Vectors] in `kernel`).  `m = view(i64[...], address)` and
`m = allocate(f32[n])` are buffers, `r: i64 = function(x, address(m[0]))` is a call, `call(exp, x)` one of what is a
function of numbers as well, and `s = reduce(add, x)` accumulates.  A function of numbers is lets and a result:

    def double(x: f32) -> f32:
        twice = x * f32(2.0)
        return twice
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from math import isfinite
from typing import Any, Final

from engine.fuser.ir.externals import EXTERNALS
from engine.fuser.ir.kernel import (
    BOOL,
    FUNCTIONS,
    POINTER,
    TYPES,
    VECTORS,
    WHOLE,
    Access,
    Accumulate,
    Address,
    Allocate,
    Apply,
    Assign,
    Break,
    Buffer,
    Call,
    Constant,
    Continue,
    Declare,
    Expression,
    For,
    Function,
    If,
    Kernel,
    Let,
    Load,
    LoopKind,
    Name,
    Parameter,
    Return,
    Scalar,
    Statement,
    Store,
    View,
    While,
    apply,
    constant,
    convert,
    element_of,
    index,
    lanes_of,
)
from engine.lang.python_syntax import parse_python
from engine.lang.records import dataclass

_BINARY: Final[dict[type, str]] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_COMPARED: Final[dict[type, str]] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
_SIGN: Final[dict[type, str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_SPELLED: Final = {*TYPES, *VECTORS}
"""Types whose names convert to them."""
_ACCESS: Final[dict[str, Access]] = {"Out": "out", "InOut": "inout"}
_LOOPS: Final[dict[str, LoopKind]] = {"range": "range", "vector": "vector", "parallel": "parallel"}


def parse(text: str) -> Kernel:
    """The kernel of this text, the last one in it; those before are its helpers.  Raises SyntaxError for a mistake."""
    *helpers, kernel = (_kernel(text, each) for each in parse_python(text).body)
    return replace(kernel, helpers=tuple(helpers))


def parse_function(text: str) -> Function:
    """The function of numbers of this text.  Raises SyntaxError for a mistake."""
    (function,) = parse_python(text).body
    assert isinstance(function, ast.FunctionDef)
    parser = _Parser(text)
    parser.numbers(function.args.args)
    parameters = tuple(Scalar(each.arg, parser.types[each.arg]) for each in function.args.args)
    *lets, last = function.body
    body = tuple(each for each in parser.block(lets) if isinstance(each, Let))
    if not isinstance(last, ast.Return) or last.value is None or len(body) != len(lets):
        raise parser.refused(function)
    type = "" if function.returns is None else ast.unparse(function.returns)
    return Function(function.name, parameters, body, parser.expression(last.value, type))


def _kernel(text: str, function: ast.stmt) -> Kernel:
    assert isinstance(function, ast.FunctionDef)
    parser = _Parser(text)
    parser.numbers(function.args.args)
    parameters = tuple(parser.parameter(each) for each in function.args.args)
    marks = {ast.unparse(each) for each in function.decorator_list}
    body = parser.block(function.body)
    flags: dict[str, Any] = {mark: mark in marks for mark in _MARKS}
    return Kernel(function.name, parameters, body, **flags)


_MARKS: Final = ("any_order", "is_rare", "is_separate", "is_ahead")
"""Flags of kernels, which are written as decorators."""


@dataclass(slots=True)
class _Parser:
    text: str
    types: dict[str, str] = field(default_factory=dict)
    """The types of names and of variables."""
    buffers: dict[str, Buffer] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)

    def refused(self, node: ast.AST) -> SyntaxError:
        return SyntaxError(f"not in kernels: {ast.get_source_segment(self.text, node) or ast.dump(node)}")

    # -- parameters

    def numbers(self, found: Iterable[ast.arg]) -> None:
        """Learn the types of parameters that are numbers, which extents of those before them may be made of."""
        self.types.update((each.arg, each.annotation.id) for each in found if isinstance(each.annotation, ast.Name))

    def parameter(self, found: ast.arg) -> Parameter:
        type = found.annotation
        if isinstance(type, ast.Name):
            return Scalar(found.arg, type.id)
        access: Access = "in"
        if isinstance(type, ast.Subscript) and isinstance(type.value, ast.Name) and type.value.id in _ACCESS:
            access, type = _ACCESS[type.value.id], type.slice
        return self.buffer(found.arg, type or found, access)

    def buffer(self, name: str, type: ast.AST, access: Access) -> Buffer:
        if not isinstance(type, ast.Subscript) or not isinstance(type.value, ast.Name):
            raise self.refused(type)
        extents = type.slice.elts if isinstance(type.slice, ast.Tuple) else [type.slice]
        unknown = isinstance(type.slice, ast.Constant) and type.slice.value is ...
        shape = None if unknown else tuple(self.extent(each) for each in extents)
        steps = [each.upper for each in extents if isinstance(each, ast.Slice) and each.upper is not None]
        strides = tuple(self.expression(each, "i64") for each in steps) or None
        found = self.buffers[name] = Buffer(name, type.value.id, shape, strides, access)
        return found

    def extent(self, node: ast.expr) -> Expression:
        lower = node.lower if isinstance(node, ast.Slice) else None
        return self.expression(lower or node, "i64")

    # -- statements

    def block(self, body: Iterable[ast.stmt]) -> tuple[Statement, ...]:
        """Statements with names of their own."""
        variables, buffers = set(self.variables), dict(self.buffers)
        found = tuple(self.statement(each) for each in body if not isinstance(each, ast.Pass))
        self.variables, self.buffers = variables, buffers
        return found

    def statement(self, node: ast.stmt) -> Statement:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id=type), value=ast.expr() as value):
                return self.typed(name, type, value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return self.assigned(name, value)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name)) as target], value=value) if (
                name in self.buffers
            ):
                return Store(name, self.indices(target), self.expression(value, self.accessed(target)))
            case ast.Expr(value=ast.Call() as call):
                return self.call(call)
            case ast.If(test=test, body=body, orelse=orelse):
                return If(self.expression(test), self.block(body), self.block(orelse))
            case ast.While(test=test, body=body):
                return While(self.expression(test), self.block(body))
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id=kind), args=bounds), body=body):
                return self.loop(name, kind, bounds, body)
            case ast.Return(value=ast.expr() as value):
                return Return(self.expression(value, "i64"))
            case ast.Break():
                return Break()
            case ast.Continue():
                return Continue()
        raise self.refused(node)

    def typed(self, name: str, type: str, value: ast.expr) -> Statement:
        """A call with a result, or a variable."""
        self.types[name] = type
        if isinstance(value, ast.Call) and not self.is_function(value):
            return self.call(value, name, type)
        self.variables.add(name)
        return Declare(name, self.expression(value, type))

    def assigned(self, name: str, value: ast.expr) -> Statement:
        match value:
            case ast.Call(func=ast.Name(id="view"), args=[type, address]):
                return View(self.buffer(name, type, "inout"), self.expression(address, "i64"))
            case ast.Call(func=ast.Name(id="allocate"), args=[type]):
                return Allocate(self.buffer(name, type, "inout"))
            case ast.Call(func=ast.Name(id="reduce"), args=[ast.Name(id=function), operand]):
                return Accumulate(name, function, self.expression(operand, self.types[name]))
        if name in self.variables:
            return Assign(name, self.expression(value, self.types[name]))
        found = self.expression(value)
        self.types[name] = found.type
        return Let(name, found)

    def loop(self, name: str, kind: str, bounds: Sequence[ast.expr], body: Iterable[ast.stmt]) -> Statement:
        self.types[name] = "i64"
        found = [self.expression(each, "i64") for each in bounds]
        start, stop, step = (index(0), *found, index(1)) if len(found) == 1 else (*found, index(1))[:3]
        return For(name, start, stop, self.block(body), step, _LOOPS[kind])

    def call(self, node: ast.Call, name: str = "", type: str = "") -> Call:
        if not isinstance(node.func, ast.Name):
            raise self.refused(node)
        function, given = node.func.id, node.args
        if function == "call":
            function, given = ast.unparse(given[0]), given[1:]
        external = EXTERNALS.get(function)
        wanted = external.types(len(given)) if external else ("",) * len(given)
        operands = (self.operand(each, t) for each, t in zip(given, wanted, strict=True))
        return Call(function, tuple(operands), name, type)

    def operand(self, node: ast.expr, type: str) -> Expression:
        """An operand of a call; a buffer's name stands for its address."""
        if isinstance(node, ast.Name) and node.id in self.buffers:
            return Address(node.id, (index(0),) * self.buffers[node.id].rank)
        return self.expression(node, "" if type == POINTER else type)

    # -- expressions

    def is_function(self, node: ast.Call) -> bool:
        return isinstance(node.func, ast.Name) and (node.func.id in _SPELLED | FUNCTIONS.keys())

    def expression(self, node: ast.expr, type: str = "") -> Expression:
        """`type` is that of literals."""
        literal = _literal(node)
        if literal is not None:
            if isinstance(literal, float) and type in (*WHOLE, BOOL):
                raise self.refused(node)
            return constant(literal, type or _type_of(literal))
        match node:
            case ast.Name(id=name) if name in self.types:
                return Name(name, self.types[name])
            case ast.Subscript(value=ast.Name(id=name)) if name in self.buffers:
                return Load(name, self.indices(node), self.accessed(node))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return apply("neg", self.expression(operand, type))
            case ast.BinOp(left=left, op=op, right=right):
                return apply(_BINARY[op.__class__], *self.alike([left, right], type))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return apply(_COMPARED[op.__class__], *self.alike([left, right], ""))
            case ast.Call(func=ast.Name(id=name), args=operands):
                return self.function(node, name, operands, type)
        raise self.refused(node)

    def function(self, node: ast.AST, name: str, operands: list[ast.expr], type: str) -> Expression:
        if name == "address" and isinstance(operands[0], ast.Subscript):
            return Address(ast.unparse(operands[0].value), self.indices(operands[0]))
        if name in _SPELLED:
            literal = _literal(operands[0])
            if literal is not None and name in TYPES:
                return constant(literal, name)
            return convert(self.expression(operands[0], element_of(name)), name)
        if name == "select":
            return apply(name, self.expression(operands[0], BOOL), *self.alike(operands[1:], type))
        if name not in FUNCTIONS:
            raise self.refused(node)
        row = FUNCTIONS[name]
        wanted = type if not row.result else row.types[0] if len(row.types) == 1 else ""
        return apply(name, *self.alike(operands, wanted))

    def alike(self, nodes: Sequence[ast.expr], type: str) -> list[Expression]:
        """Operands of one type: that of those that are no literals, if there are any."""
        typed = [self.expression(each, type) for each in nodes if _literal(each) is None]
        return [self.expression(each, typed[0].type if typed else type) for each in nodes]

    def indices(self, node: ast.Subscript) -> tuple[Expression, ...]:
        found = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return tuple(self.extent(each) for each in found)

    def accessed(self, node: ast.Subscript) -> str:
        """The type of an element of a buffer, or of `x[i:8]`, those from the i-th on."""
        type = self.buffers[ast.unparse(node.value)].type
        last = node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        match last:
            case ast.Slice(upper=ast.Constant(value=int() as lanes)) if f"{type}x{lanes}" in VECTORS:
                return f"{type}x{lanes}"
            case ast.Slice():
                raise self.refused(node)
        return type


def _literal(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Constant(value="inf" | "-inf" | "nan" as text):
            return float(text)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    return None


def _type_of(literal: float) -> str:
    return BOOL if isinstance(literal, bool) else "f64" if isinstance(literal, float) else "i64"


# ------------------------------------------------------------------ printing

_SIGNS: Final = {name: _SIGN[op] for op, name in (_BINARY | _COMPARED).items()}


def show(what: Kernel | Function | Statement | Expression) -> str:
    """The text of a kernel with its helpers, a function of numbers, a statement or an expression."""
    if isinstance(what, Function):
        parameters = ", ".join(map(_parameter, what.parameters))
        head, end = f"def {what.name}({parameters}) -> {what.result.type}:", f"    return {_expression(what.result)}"
        return "\n".join([head, *(line for each in what.body for line in _indented([each])), end])
    if isinstance(what, Kernel):
        parameters = ", ".join(map(_parameter, what.parameters))
        lines = [*_marks(what), f"def {what.name}({parameters}):", *_indented(what.body)]
        return "\n\n".join([*map(show, what.helpers), "\n".join(lines)])
    if isinstance(what, Constant | Name | Load | Apply | Address):
        return _expression(what)
    return "\n".join(_statement(what))


def numbered(kernel: Kernel) -> Kernel:
    """The kernel, which knows its line in its text, as do its helpers and their statements."""
    return _numbered_kernel(kernel, 1)[0]


def _numbered_kernel(kernel: Kernel, line: int) -> tuple[Kernel, int]:
    """The kernel whose text begins at the line, and the line behind it."""
    helpers = []
    for each in kernel.helpers:
        helper, line = _numbered_kernel(each, line)
        helpers.append(helper)
        line += 1  # between functions
    line += len(_marks(kernel))
    body, end = _numbered(kernel.body, line + 1)
    return replace(kernel, body=body, helpers=tuple(helpers), line=line), end


def _numbered(body: Sequence[Statement], line: int) -> tuple[tuple[Statement, ...], int]:
    found = list[Statement]()
    for statement in body:
        at, line = line, line + 1
        match statement:
            case For() | While():
                inner, line = _numbered(statement.body, line)
                statement = replace(statement, body=inner)
            case If():
                inner, line = _numbered(statement.body, line)
                orelse, line = _numbered(statement.orelse, line + 1) if statement.orelse else ((), line)
                statement = replace(statement, body=inner, orelse=orelse)
        found.append(replace(statement, line=at))
    return tuple(found), line if found else line + 1


def _marks(kernel: Kernel) -> list[str]:
    return [f"@{mark}" for mark in _MARKS if getattr(kernel, mark)]


def _parameter(parameter: Parameter) -> str:
    if isinstance(parameter, Scalar):
        return f"{parameter.name}: {parameter.type}"
    text, access = _buffer(parameter), {each: name for name, each in _ACCESS.items()}.get(parameter.access)
    return f"{parameter.name}: {access}[{text}]" if access else f"{parameter.name}: {text}"


def _buffer(buffer: Buffer) -> str:
    if buffer.shape is None:
        return f"{buffer.type}[...]"
    if buffer.strides is None:
        return f"{buffer.type}[{_listed(buffer.shape)}]"
    sizes = zip(map(_expression, buffer.shape), map(_expression, buffer.strides), strict=False)
    return f"{buffer.type}[{', '.join(f'{extent}:{stride}' for extent, stride in sizes)}]"


def _listed(expressions: Sequence[Expression]) -> str:
    return ", ".join(map(_expression, expressions)) or "()"


def _indented(body: Sequence[Statement]) -> list[str]:
    return ["    " + line for each in body for line in _statement(each)] or ["    pass"]


def _statement(of: Statement) -> list[str]:
    match of:
        case Let(name=name, value=value) | Assign(name=name, value=value):
            return [f"{name} = {_expression(value)}"]
        case Declare(name=name, value=value):
            return [f"{name}: {value.type} = {_expression(value)}"]
        case Accumulate(name=name, function=function, value=value):
            return [f"{name} = reduce({function}, {_expression(value)})"]
        case Store(buffer=buffer, indices=indices, value=value):
            return [f"{_access(buffer, indices, value.type)} = {_expression(value)}"]
        case For(index=name, body=body, kind=kind):
            return [f"for {name} in {kind}({_bounds(of)}):", *_indented(body)]
        case While(condition=condition, body=body):
            return [f"while {_expression(condition)}:", *_indented(body)]
        case If(condition=condition, body=body, orelse=orelse):
            rest = ["else:", *_indented(orelse)] if orelse else []
            return [f"if {_expression(condition)}:", *_indented(body), *rest]
        case Return(value=value):
            return [f"return {_expression(value)}"]
        case Allocate(buffer=made):
            return [f"{made.name} = allocate({_buffer(made)})"]
        case View(buffer=made, address=address):
            return [f"{made.name} = view({_buffer(made)}, {_expression(address)})"]
        case Call(function=function, operands=operands, name=name, type=type):
            result = f"{name}: {type} = " if name else ""
            head = [] if function not in FUNCTIONS else [function]
            given = ", ".join([*head, *map(_expression, operands)])
            return [f"{result}{'call' if head else function}({given})"]
    return ["break" if isinstance(of, Break) else "continue"]


def _bounds(loop: For) -> str:
    if loop.step != index(1):
        return _listed((loop.start, loop.stop, loop.step))
    return _listed((loop.stop,) if loop.start == index(0) else (loop.start, loop.stop))


def _expression(of: Expression) -> str:
    match of:
        case Constant(value=value, type=type):
            is_plain = type in ("i64", "f64", BOOL) and isfinite(value)
            return _number(value) if is_plain else f"{type}({_number(value)})"
        case Name(name=name):
            return name
        case Load(buffer=buffer, indices=indices, type=type):
            return _access(buffer, indices, type)
        case Address(buffer=buffer, indices=indices):
            return f"address({buffer}[{_listed(indices)}])"
    if of.function in _SIGNS and len(of.operands) == 2:
        left, right = map(_operand, of.operands)
        return f"{left} {_SIGNS[of.function]} {right}"
    if of.function == "convert" and isinstance(of.operands[0], Constant):
        literal = of.operands[0]  # whose type, if it were not said, would be that of the conversion
        return f"{of.type}({literal.type}({_number(literal.value)}))"
    name = of.type if of.function == "convert" else of.function
    return f"{name}({_listed(of.operands)})"


def _access(buffer: str, indices: Sequence[Expression], type: str) -> str:
    lanes = f":{lanes_of(type)}" if type in VECTORS else ""
    return f"{buffer}[{_listed(indices)}{lanes}]"


def _number(value: float) -> str:
    return repr(value) if isfinite(value) else f'"{value}"'


def _operand(of: Expression) -> str:
    text = _expression(of)
    return f"({text})" if isinstance(of, Apply) and of.function in _SIGNS else text
