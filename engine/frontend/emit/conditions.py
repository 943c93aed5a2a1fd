"""Conditions: `and`, `or`, `not`, `is None`, `isinstance`, and values taken as a bool.

In: the tree of a condition.  Out: a `Condition`: its bool, how it refines the types of variables, and its
outcome where that is known while compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.frontend.emit.arguments import no_keywords
from engine.frontend.emit.emitter import Emitter
from engine.frontend.emit.literals import common_type
from engine.frontend.emit.refine import Condition, Refinements, Types, can_be_none, without_none
from engine.frontend.matching.schema_match import Actual
from engine.frontend.sugared.classes import ClassValue
from engine.frontend.sugared.modules import ModuleValue
from engine.frontend.sugared.sugared_value import SugaredValue
from engine.frontend.sugared.values import SimpleValue, SpecialForm
from engine.frontend.syntax.tree import Tree
from engine.frontend.syntax.views import Apply, TupleLiteral, Var
from engine.ir.constants import constant_value
from engine.ir.graph import Block, Value
from engine.lang.errors import CompileError
from engine.lang.source import SourceRange
from engine.lang.types import (
    ANY,
    BOOL,
    ClassType,
    TupleType,
    Type,
    members_of,
    unify,
    union_of,
)  # fmt: skip


def condition(e: Emitter, tree: Tree) -> Condition:
    """Compile a condition."""
    if tree.kind in ("and", "or"):
        return _short_circuit(e, tree)
    if tree.kind == "not":
        inner = condition(e, tree.trees[0])
        value = e.insert("aten::__not__", [inner.value], tree.range)
        return Condition(value, inner.refinements.negated(), None if inner.static is None else not inner.static)
    if tree.kind in ("is", "isnot"):
        return _identity(e, tree)
    if tree.kind == "apply" and _is_test(e, tree):
        return type_test(e, tree)
    value = to_bool(e, e.expression(tree), tree.range)
    known = constant_value(value)
    if value.node.kind == "aten::is_scripting":
        known = True
    return Condition(value, Refinements(), known if isinstance(known, bool) else None)


def condition_value(e: Emitter, tree: Tree, hint: Type | None) -> SugaredValue:
    """A condition as an expression."""
    return SimpleValue(condition(e, tree).value)


def to_bool(e: Emitter, value: Value, range: SourceRange) -> Value:
    """The value as a condition."""
    try:
        cast = e.lookup("bool", range).call(e, [Actual(value, range)], (), range).as_value(e, range)
    except CompileError:
        text = f"Could not cast value of type {value.type.annotation_str} to bool"
        hints = [f"compare it with None first: {range.text} is not None"] if can_be_none(value.type) is None else []
        raise CompileError(text, range, hints=hints) from None
    if cast.type is not BOOL:
        text = f"expected a bool expression for condition but found {cast.type.annotation_str}"
        raise CompileError(text, range, hints=("let __bool__ return a bool",))
    return cast


def if_value(
    e: Emitter, range: SourceRange, test: Condition, when_true: Callable[[], Value], when_false: Callable[[], Value]
) -> Value:
    """`when_true() if test else when_false()`."""
    node = e.node("prim::If", [test.value], (), range)
    blocks = [node.add_block(), node.add_block()]
    _branch(e, blocks[0], test.refinements.true, when_true)
    _branch(e, blocks[1], test.refinements.false, when_false)
    types = [block.outputs[0].type for block in blocks]
    joined = unify(*types)
    if joined is None:
        raise CompileError(
            f"if-expression's true branch has type {types[0].annotation_str} but false branch has type "
            f"{types[1].annotation_str}",
            range,
            hints=("both must have one type; convert one, or write an if statement",),
        )
    return node.add_output(joined)


def refine(e: Emitter, types: Types, range: SourceRange | None = None) -> None:
    """Give the variables these types from here on."""
    for name, type in types.items():
        variable = e.environment.find(name)
        if not isinstance(variable, SugaredValue):
            narrowed = e.cast(e.load(name, variable, range) if variable else e.outside(name, range), type)
            narrowed.set_debug_name(name)
            e.store(name, narrowed, type, range)


def type_test(e: Emitter, tree: Tree) -> Condition:
    """`isinstance(x, T)` and `hasattr(x, "name")`."""
    view = Apply(tree)
    callee = e.sugared(view.callee)
    # In a condition the name decides, even where the program uses it for a variable.
    form = callee.form if isinstance(callee, SpecialForm) else Var(view.callee).name
    if len(view.inputs) != 2:
        raise CompileError(f"{form} expected exactly 2 arguments but found {len(view.inputs)}", tree.range)
    no_keywords(view, form)
    if form == "hasattr":
        return _has_attribute(e, view, tree)
    return _is_instance(e, view.inputs[0], view.inputs[1], tree)


def _branch(e: Emitter, block: Block, types: Types, make: Callable[[], Value]) -> None:
    with e.inside(block):
        refine(e, types)
        block.register_output(make())


def _short_circuit(e: Emitter, tree: Tree) -> Condition:
    """`a and b`, `a or b`: the second is compiled, and evaluated, only where the first does not decide."""
    left, right = tree.trees
    is_or = tree.kind == "or"
    first = condition(e, left)
    second: list[Condition] = []

    def decided() -> Value:
        return e.constant(is_or, tree.range)

    def open_() -> Value:
        second.append(condition(e, right))
        return second[0].value

    value = if_value(e, tree.range, first, decided if is_or else open_, open_ if is_or else decided)
    outcomes = (first.static, second[0].static)
    static = is_or if is_or in outcomes else None if None in outcomes else not is_or
    join = first.refinements.either if is_or else first.refinements.both
    return Condition(value, join(second[0].refinements), static)


def _identity(e: Emitter, tree: Tree) -> Condition:
    """`a is b`: decided while compiling where one side is always None and the other always or never."""
    left, right = tree.trees
    values = [e.expression(left), e.expression(right)]
    nones = [can_be_none(value.type) for value in values]
    its_is = tree.kind == "is"
    if None not in nones and any(nones):
        outcome = its_is if all(nones) else not its_is
        return Condition(e.constant(outcome, tree.range), Refinements(), outcome)
    operator = "aten::__is__" if its_is else "aten::__isnot__"
    value = e.insert(operator, values, tree.range)
    return Condition(value, _none_refinements(left, right, values, its_is), None)


def _none_refinements(left: Tree, right: Tree, values: Sequence[Value], its_is: bool) -> Refinements:
    """The refinements of `x is None`: where it holds, `x` keeps its type."""
    if right.kind != "None" and left.kind == "None":
        left, right, values = right, left, values[::-1]
    if right.kind != "None" or left.kind != "variable":
        return Refinements()
    rest = without_none(values[0].type)
    if rest is None:
        return Refinements()
    present = Refinements({Var(left).name: rest}, {})
    return present.negated() if its_is else present


def _is_test(e: Emitter, tree: Tree) -> bool:
    callee = Apply(tree).callee
    if callee.kind == "variable" and Var(callee).name in ("isinstance", "hasattr"):
        return True
    if callee.kind != "." or not callee.range.text.endswith("isinstance"):
        return False
    found = e.sugared(callee)
    return isinstance(found, SpecialForm) and found.form == "isinstance"


def _is_instance(e: Emitter, target: Tree, classes: Tree, tree: Tree) -> Condition:
    value = e.expression(target)
    tested = _flat(_listed_types(e, classes))
    positive, negative, always = _split(_flat([value.type]), tested)
    refinements = Refinements()
    if target.kind == "variable":
        name = Var(target).name
        refinements = Refinements(
            {name: common_type(positive)} if positive else {}, {name: common_type(negative)} if negative else {}
        )
    if not positive or always:
        return Condition(e.constant(bool(positive), target.range), refinements, bool(positive))
    node = e.node("prim::isinstance", [value], [BOOL], tree.range).set_attr("types", tested, "tys")
    return Condition(node.output, refinements, None)


def _split(actual: Sequence[Type], tested: Sequence[Type]) -> tuple[list[Type], list[Type], bool]:
    """The types that the value may have where the test holds, and where not; True if it always holds."""
    if any(type is ANY for type in actual):
        return list(tested), [ANY], list(tested) == [ANY]
    positive, negative, always = [], [], True
    for type in actual:
        smaller = next((type if type.is_subtype_of(t) else t for t in tested if _related(type, t)), None)
        if smaller is None:
            negative.append(type)
            always = False
            continue
        positive.append(smaller)
        if not type.is_subtype_of(smaller):
            negative.append(type)
            always = False
    return positive, negative, always


def _related(a: Type, b: Type) -> bool:
    return a.is_subtype_of(b) or b.is_subtype_of(a)


def _listed_types(e: Emitter, tree: Tree) -> list[Type]:
    """The type, or the types of a tuple of them."""
    if tree.kind == "tuple_literal":
        return [type for part in TupleLiteral(tree).inputs for type in _listed_types(e, part)]
    return [e.types.read(tree)]


def _flat(types: Sequence[Type]) -> list[Type]:
    return list(members_of(union_of(types)))


def _has_attribute(e: Emitter, view: Apply, tree: Tree) -> Condition:
    owner, name = e.sugared(view.inputs[0]), constant_value(e.expression(view.inputs[1]))
    if not isinstance(name, str):
        raise CompileError(
            "hasattr's second argument must be a string literal",
            view.inputs[1].range,
            hints=("attributes are found while compiling; for names known at run time use a dict",),
        )
    found = has_attribute(e, owner, name, "hasattr", tree.range, view.inputs[0].range)
    return Condition(e.constant(found, tree.range), Refinements(), found)


def has_attribute(
    e: Emitter, owner: SugaredValue, name: str, form: str, range: SourceRange, owner_range: SourceRange
) -> bool:
    """True if the value has the attribute, as `hasattr` and `getattr` (`form`) see it.

    Raises CompileError for values whose type tells no attributes.
    """
    if isinstance(owner, ModuleValue):
        return owner.has_attr(e, name, range)
    if isinstance(owner, ClassValue):  # its instances alone have its attributes
        return name in owner.type.methods or name in owner.type.static_methods
    type = owner.as_value(e, owner_range).type
    if isinstance(type, ClassType):
        return type.attribute(name) is not None or name in type.methods
    if isinstance(type, TupleType) and type.fields:
        return name in type.fields
    what = "an object or NamedTuple, got"
    if isinstance(type, TupleType):
        what = "a object or NamedTuple, but got a normal Tuple"
    raise CompileError(
        f"{form}'s first argument must be {what} {type.annotation_str} instead",
        range,
        hints=("only objects of classes and modules are asked; other types have what they have",),
    )
