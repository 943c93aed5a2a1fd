"""Loops (see Note [The language of loops]) as LLVM's text.

In: a `Loop` and the dtypes of its arrays.  Out: the text of a module with one function, `loop`, and the kinds of its
parameters.  Raises `Unreadable` for what is no loop.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from engine.aten.stepwise import language
from engine.aten.stepwise.language import Key, Loop
from engine.fuser.loops.writer import DECLARATIONS, ELEMENTS, LLVM, Unreadable, Value, Writer


def loop_text(loop: Loop, kinds: Key) -> tuple[str, list[str]]:
    """The module, and "ptr", "i64" or "double" for each parameter."""
    definition = _definition(loop)
    writer = Writer(loop, _EXPRESSIONS, _STATEMENTS)
    parameters, cells = [], iter(kinds)
    for argument in definition.args.args:
        kind = ast.unparse(argument.annotation) if argument.annotation is not None else ""
        spelled = f"%given.{argument.arg}"
        if kind == "Buffer":
            writer.names[argument.arg] = Value("ptr", spelled, element=_element(next(cells, None)))
            parameters.append("ptr")
        elif kind in ("int", "float"):
            slot = Value("i64", spelled) if kind == "int" else Value("f64", spelled)
            writer.assign_name(argument.arg, slot)
            parameters.append("i64" if kind == "int" else "double")
        else:
            raise Unreadable(f"{argument.arg} is neither Buffer nor int nor float")
    writer.block(definition.body)
    writer.put("ret i64 0")
    names = [argument.arg for argument in definition.args.args]
    shown = ", ".join(
        f"{p} {'noalias ' if p == 'ptr' else ''}%given.{name}" for p, name in zip(parameters, names, strict=True)
    )
    body = "\n".join(f"  {line}" if not line.endswith(":") else line for line in writer.slots + writer.lines)
    return f"{DECLARATIONS}\n\ndefine i64 @loop({shown}) {{\nentry:\n{body}\n}}\n", parameters


def _definition(loop: Loop) -> ast.FunctionDef:
    if loop.tree is not None:
        assert isinstance(loop.tree, ast.FunctionDef)
        return loop.tree
    found = ast.parse(textwrap.dedent(inspect.getsource(loop.function))).body[0]
    assert isinstance(found, ast.FunctionDef)
    return found


def _element(d: np.dtype[Any] | None) -> str:
    if d is None or d.name not in ELEMENTS:
        raise Unreadable(f"no arrays of {d}")
    return d.name


# ------------------------------------------------------------------ expressions


def _if_else(w: Writer, node: ast.IfExp) -> Value:
    condition = w.truth(w.value(node.test))
    kind, (yes, no) = w.alike(w.value(node.body), w.value(node.orelse))
    return w.make(kind, f"select i1 {condition.text}, {LLVM[kind]} {yes.text}, {LLVM[kind]} {no.text}")


def _compare(w: Writer, node: ast.Compare) -> Value:
    sides = [w.value(each) for each in (node.left, *node.comparators)]
    found = [w.compare(how, a, b) for how, a, b in zip(node.ops, sides, sides[1:], strict=False)]
    total = found[0]
    for each in found[1:]:
        total = w.make("i1", f"and i1 {total.text}, {each.text}")
    return total


def _both(w: Writer, node: ast.BoolOp) -> Value:
    """The right operand is evaluated only if it matters: it may read places that exist only then."""
    is_and = isinstance(node.op, ast.And)
    slot = f"%s{len(w.slots)}"
    w.slots.append(f"{slot} = alloca i1")
    done = w.label()
    for i, each in enumerate(node.values):
        found = w.truth(w.value(each))
        w.put(f"store i1 {found.text}, ptr {slot}")
        following = w.label() if i + 1 < len(node.values) else done
        w.branch(found, *((following, done) if is_and else (done, following)))
        w.begin(following)
    return w.make("i1", f"load i1, ptr {slot}")


def _unary(w: Writer, node: ast.UnaryOp) -> Value:
    value = w.value(node.operand)
    if isinstance(node.op, ast.Not):
        return w.make("i1", f"xor i1 {w.truth(value).text}, true")
    if not isinstance(node.op, ast.USub):
        raise Unreadable(f"no {type(node.op).__name__} in loops")
    if value.literal is not None:
        return w.number(-value.literal)
    if value.kind == "i64":
        return w.make("i64", f"sub i64 0, {value.text}")
    return w.make(value.kind, f"fneg {LLVM[value.kind]} {value.text}")


def _constant(w: Writer, node: ast.Constant) -> Value:
    if not isinstance(node.value, (int, float)):
        raise Unreadable(f"{node.value!r} is no number")
    return w.number(node.value)


def _call(w: Writer, node: ast.Call) -> Value:
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    function = w.globals.get(name, getattr(builtins, name, None))
    given = [w.value(each) for each in node.args]
    if isinstance(function, Loop):
        return _written_out(w, function, given)
    make = next((make for known, make in _CALLS if known is function), None)
    if make is None:
        raise Unreadable(f"no {name} in loops")
    return make(w, *given)


def _written_out(w: Writer, called: Loop, given: list[Value]) -> Value:
    """The body of another loop, whose last statement returns its value, with names of its own."""
    definition = _definition(called)
    *body, last = definition.body
    outer, w.names = (w.names, w.globals), {}
    w.globals = called.function.__globals__
    for argument, value in zip(definition.args.args, given, strict=True):
        if value.kind == "ptr":
            w.names[argument.arg] = value
        else:
            w.assign_name(argument.arg, value)
    w.block(body)
    result = w.number(0)
    if isinstance(last, ast.Return) and last.value is not None:
        result = w.value(last.value)
    else:
        w.block([last])
    w.names, w.globals = outer
    return result


def _real(w: Writer, name: str, value: Value) -> Value:
    value = w.converted(value, "f64") if value.kind == "i64" else value
    type = LLVM[value.kind]
    return w.make(value.kind, f"call {type} @llvm.{name}.{value.kind}({type} {value.text})")


def _absolute(w: Writer, value: Value) -> Value:
    if value.kind != "i64":
        return _real(w, "fabs", value)
    negative = w.make("i64", f"sub i64 0, {value.text}")
    below = w.compare(ast.Lt(), value, w.number(0))
    return w.make("i64", f"select i1 {below.text}, i64 {negative.text}, i64 {value.text}")


def _least(w: Writer, how: ast.cmpop, first: Value, *others: Value) -> Value:
    """As Python's: a later one only if it is less (or more)."""
    for other in others:
        kind, (a, b) = w.alike(first, other)
        better = w.compare(how, b, a)
        first = w.make(kind, f"select i1 {better.text}, {LLVM[kind]} {b.text}, {LLVM[kind]} {a.text}")
    return first


def _like(w: Writer, cells: Value, value: Value) -> Value:
    return w.converted(value, ELEMENTS[cells.element][0], explicit=True)


def _times_power(w: Writer, value: Value, n: Value) -> Value:
    if value.kind != "f32" or n.kind != "f32":
        raise Unreadable("powers of two are of single precision")
    whole = w.make("i32", f"fptosi float {n.text} to i32")
    shifted = w.make("i32", f"shl i32 {w.make('i32', f'add i32 {whole.text}, 127').text}, 23")
    power = w.make("f32", f"bitcast i32 {shifted.text} to float")
    return w.make("f32", f"fmul float {value.text}, {power.text}")


def _bits(w: Writer, value: Value) -> Value:
    if value.kind != "f32":
        raise Unreadable("powers of two are of single precision")
    return w.make("i32", f"bitcast float {value.text} to i32")


def _power_in(w: Writer, value: Value) -> Value:
    power = w.make("i32", f"lshr i32 {_bits(w, value).text}, 23")
    return w.make("f32", f"sitofp i32 {w.make('i32', f'sub i32 {power.text}, 126').text} to float")


def _fraction(w: Writer, value: Value) -> Value:
    kept = w.make("i32", f"and i32 {_bits(w, value).text}, {(1 << 23) - 1}")
    return w.make("f32", f"bitcast i32 {w.make('i32', f'or i32 {kept.text}, {126 << 23}').text} to float")


_CALLS: Final[Sequence[tuple[Any, Callable[..., Value]]]] = (
    (language.double, lambda w, value: w.converted(value, "f64", explicit=True)),
    (language.like, _like),
    (language.whole, lambda w, value: w.converted(value, "i64", explicit=True)),
    (language.floor, lambda w, value: _real(w, "floor", value)),
    (language.nearest, lambda w, value: _real(w, "rint", value)),
    (language.times_power_of_two, _times_power),
    (language.power_of_two_in, _power_in),
    (language.fraction_of, _fraction),
    (language.root, lambda w, value: _real(w, "sqrt", value)),
    (abs, _absolute),
    (min, lambda w, *values: _least(w, ast.Lt(), *values)),
    (max, lambda w, *values: _least(w, ast.Gt(), *values)),
)
_EXPRESSIONS: Final[dict[type[ast.expr], Callable[[Writer, Any], Value]]] = {
    ast.Constant: _constant, ast.Name: lambda w, node: w.read_name(node.id), ast.Call: _call,
    ast.BinOp: lambda w, node: w.binary(node.op, w.value(node.left), w.value(node.right)), ast.UnaryOp: _unary,
    ast.Compare: _compare, ast.BoolOp: _both, ast.IfExp: _if_else, ast.Subscript: lambda w, node: w.load(node),
}  # fmt: skip

# ------------------------------------------------------------------ statements


def _assign(w: Writer, node: ast.Assign) -> None:
    target = node.targets[0]
    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        values = [w.value(each) for each in node.value.elts]
        for each, value in zip(target.elts, values, strict=True):
            _put(w, each, value)
        return
    found = w.value(node.value)
    for each in node.targets:
        _put(w, each, found)


def _put(w: Writer, target: ast.expr, value: Value) -> None:
    if isinstance(target, ast.Subscript):
        w.store(target, value)
    elif isinstance(target, ast.Name):
        w.assign_name(target.id, value)
    else:
        raise Unreadable(f"nothing is assigned to {ast.unparse(target)}")


def _augment(w: Writer, node: ast.AugAssign) -> None:
    before = w.value(node.target)
    _put(w, node.target, w.binary(node.op, before, w.value(node.value)))


def _if(w: Writer, node: ast.If) -> None:
    yes, no, done = w.label(), w.label(), w.label()
    w.branch(w.truth(w.value(node.test)), yes, no)
    for label, body in ((yes, node.body), (no, node.orelse)):
        w.begin(label)
        w.block(body)
        w.put(f"br label %{done}")
    w.begin(done)


def _while(w: Writer, node: ast.While) -> None:
    head, body, done = w.label(), w.label(), w.label()
    w.put(f"br label %{head}")
    w.begin(head)
    w.branch(w.truth(w.value(node.test)), body, done)
    w.begin(body)
    with w.around(done, head):
        w.block(node.body)
    w.put(f"br label %{head}")
    w.begin(done)


def _for(w: Writer, node: ast.For) -> None:
    call = node.iter
    is_range = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"
    if not is_range or not isinstance(node.target, ast.Name):
        raise Unreadable("loops go over ranges")
    assert isinstance(call, ast.Call)
    given = [w.value(each) for each in call.args]
    start, stop = (w.number(0), given[0]) if len(given) == 1 else given[:2]
    step = given[2] if len(given) == 3 else w.number(1)
    if step.literal == 0 or (len(given) == 3 and step.literal is None):
        raise Unreadable("steps are numbers that are written out")
    head, body, following, done = (w.label() for _ in range(4))
    at = f"%s{len(w.slots)}"
    w.slots.append(f"{at} = alloca i64")
    w.put(f"store i64 {start.text}, ptr {at}")
    w.put(f"br label %{head}")
    w.begin(head)
    index = w.make("i64", f"load i64, ptr {at}")
    ahead = "slt" if (step.literal or 1) > 0 else "sgt"
    w.branch(w.make("i1", f"icmp {ahead} i64 {index.text}, {stop.text}"), body, done)
    w.begin(body)
    w.assign_name(node.target.id, index)
    with w.around(done, following):
        w.block(node.body)
    w.put(f"br label %{following}")
    w.begin(following)
    before = w.make("i64", f"load i64, ptr {at}")
    w.put(f"store i64 {w.make('i64', f'add nsw i64 {before.text}, {step.text}').text}, ptr {at}")
    w.put(f"br label %{head}")
    w.begin(done)


def _leave(w: Writer, label: str) -> None:
    w.put(f"br label %{label}")
    w.begin(w.label())


def _return(w: Writer, node: ast.Return) -> None:
    value = w.number(0) if node.value is None else w.value(node.value)
    w.put(f"ret i64 {w.converted(value, 'i64').text}")
    w.begin(w.label())


def _expression(w: Writer, node: ast.Expr) -> None:
    is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    if not is_text:
        w.value(node.value)


_STATEMENTS: Final[dict[type[ast.stmt], Callable[[Writer, Any], None]]] = {
    ast.Assign: _assign, ast.AugAssign: _augment, ast.If: _if, ast.While: _while, ast.For: _for, ast.Return: _return,
    ast.Expr: _expression, ast.Break: lambda w, node: _leave(w, w.exits[-1][0]),
    ast.Continue: lambda w, node: _leave(w, w.exits[-1][1]), ast.Pass: lambda w, node: None,
}  # fmt: skip
