"""Recording: what happens to an operator when an argument requires grad.

In: the operator, its arguments, the function that does its work.  Out: its result, with a node attached that holds
what the gradient formulas read.  What can be settled once for an operator is its `Recipe`, what can be settled once
for the set of its arguments that require grad is a `Plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from engine.aten.autograd import views
from engine.aten.autograd.formula import NO_GRADIENT, Formula, Read, Whole, compile_formula
from engine.aten.autograd.names import node_name
from engine.aten.autograd.node import Edge, Form, Gradient, Node, Saved, edge_of, fitted, used_twice
from engine.aten.autograd.saving import Packed, save
from engine.aten.dispatch.compile import tensor_kind
from engine.aten.dispatch.compose import run
from engine.aten.dispatch.grad_mode import MODE, with_recording
from engine.aten.values import libraries, promotion, xp
from engine.aten.values.tensor import Tensor, wrapped
from engine.lang.errors import OperatorError
from engine.lang.generated import define
from engine.lang.records import dataclass
from engine.lang.types import ListType

if TYPE_CHECKING:
    from engine.aten.dispatch.op import Op


@dataclass(eq=False, slots=True)
class Plan:
    """The values to keep, and the formulas to evaluate with them."""

    recipe: Recipe
    formulas: tuple[tuple[Formula, tuple[int, ...]], ...]
    reads: tuple[Read, ...]
    holds: bool | None
    """True if a tensor is kept; None if that depends on the call."""
    step: Step | None = None
    """The backward step, written out when it is first taken."""


@dataclass(eq=False, slots=True)
class Recipe:
    """The facts about recording calls of one operator.

    `formulas` are by argument, `gives_list` says that it returns a list of tensors, `written` is the argument that an
    in-place operator writes, `only_out` says that it writes to an `out=` argument, `is_made_of_others` that its body
    runs operators, `through` which results have a gradient (None: all).
    """

    op: Op
    name: str
    formulas: dict[int, Formula]
    is_known: bool
    gives_list: bool
    written: int | None
    only_out: bool
    is_made_of_others: bool
    through: frozenset[int] | None
    plans: dict[tuple[int, ...], Plan] = field(default_factory=dict)

    @property
    def begins_with_first(self) -> bool:
        """True if all that formulas ask of gradients is that of the first result, which is a tensor."""
        return not self.gives_list and (len(self.op.schema.returns) == 1 or self.through == _FIRST)

    @property
    def is_plain(self) -> bool:
        """True if nothing is written and the body runs no operators."""
        return self.written is None and not (self.only_out or self.is_made_of_others)

    def plan(self, needed: tuple[int, ...]) -> Plan:
        found = self.plans.get(needed)
        if found is None:
            formulas = [self.formulas[i] for i in needed if i in self.formulas]
            reads = tuple(dict.fromkeys(read for formula in formulas for read in formula.reads))
            slots = [tuple(reads.index(read) for read in formula.reads) for formula in formulas]
            found = Plan(self, tuple(zip(formulas, slots, strict=True)), reads, _holds(self, reads))
            self.plans[needed] = found
        return found


_FIRST: Final = frozenset({0})


def _holds(recipe: Recipe, reads: Sequence[Read]) -> bool | None:
    kinds = {kind_of(recipe, read) for read in reads if read.by_value} - {""}
    return "tensor" in kinds or (None if kinds else False)


_recipes: Final[dict[Op, Recipe]] = {}


def recipe_of(op: Op) -> Recipe:
    found = _recipes.get(op)
    if found is None:
        found = _recipes[op] = _recipe(op)
    return found


def _recipe(op: Op) -> Recipe:
    source = op.functional or op
    gradient = source.gradient or source.gradient_in_place
    formulas = [compile_formula(source, name) for name, text in gradient.items() if text != NO_GRADIENT]
    written = [i for i, a in enumerate(op.schema.arguments) if a.is_write]
    is_out = any(op.schema.arguments[i].kwarg_only for i in written)
    returns = op.schema.returns
    return Recipe(
        op=op,
        name=node_name(op),
        formulas={formula.argument: formula for formula in formulas},
        is_known=bool(gradient),
        gives_list=bool(returns) and isinstance(returns[0].type, ListType),
        written=None if is_out or not written else written[0],
        only_out=is_out,
        is_made_of_others=op.python is not None,
        through=_differentiable_results(formulas),
    )


def _differentiable_results(formulas: Sequence[Formula]) -> frozenset[int] | None:
    """Those that some formula reads the gradient of."""
    if not formulas or any(formula.through is None for formula in formulas):
        return None
    return frozenset().union(*(formula.through or () for formula in formulas))


Step = Callable[["OperatorNode", list[Gradient]], Sequence[Gradient]]
"""From the gradients of a node's results to what the formulas give for its edges, which may have to be `fitted`."""


class OperatorNode(Node):
    """The gradient of one call of an operator, by its formulas."""

    __slots__ = ("kept", "plan")

    def __init__(self, plan: Plan, edges: Sequence[Edge | None], kept: Sequence[Any]) -> None:
        super().__init__(edges)
        self.plan = plan
        self.kept: Sequence[Any] | None = kept

    @property
    def recipe(self) -> Recipe:
        return self.plan.recipe

    def name(self) -> str:
        return self.recipe.name if self.recipe.is_known else "NotImplemented"

    def apply(self, gradients: list[Gradient]) -> Sequence[Gradient]:
        return [
            None if edge is None or gradient is None else fitted(gradient, edge[2])
            for edge, gradient in zip(self.edges, self.step(gradients), strict=True)
        ]

    def step(self, gradients: list[Gradient]) -> Sequence[Gradient]:
        """The values of the formulas."""
        step = self.plan.step
        if step is None:
            step = self.plan.step = _written_step(self.plan)
        return step(self, gradients)

    def apply_formulas(self, gradients: list[Gradient]) -> Sequence[Gradient]:
        """The step, whatever the formulas and gradients are like."""
        if self.kept is None:
            raise used_twice()
        plan = self.plan
        recipe = plan.recipe
        if not recipe.is_known:
            raise OperatorError(f"derivative for {recipe.op.name} is not implemented")
        given = gradients if gradients[0] is not None and not recipe.gives_list else self._with_zeros(gradients)
        has_complex = any([g is not None and g.array.dtype in xp.COMPLEX for g in given])  # noqa: C419  (quicker)
        values = [_unpacked(value, self) for value in self.kept]
        found: list[Gradient] = []
        wholes: dict[str, Any] = {}
        for formula, slots in plan.formulas:
            read = [values[slot] for slot in slots]
            if formula.whole is not None:
                gradient = _picked(formula, formula.whole, has_complex, given, read, wholes)
            elif has_complex:
                gradient = _computed(formula.evaluate, formula.is_complex, given, read)
            else:
                gradient = formula.evaluate(given, given[0], *read)
            if type(gradient) is Tensor or gradient is None:
                found.append(gradient)
            else:
                found += gradient
        return found

    def _with_zeros(self, gradients: list[Gradient]) -> list[Gradient]:
        """The gradients, with zeros where formulas do not expect that there may be none."""
        if self.recipe.gives_list:
            return [_or_zeros(g, form) for g, form in zip(gradients, self.outputs, strict=True)]
        if gradients[0] is None and any(formula.uses_grad for formula, _ in self.plan.formulas):
            return [_or_zeros(None, self.outputs[0]), *gradients[1:]]
        return gradients

    def held(self) -> Sequence[Any]:
        return self.kept or ()

    def release(self) -> None:
        holds = self.plan.holds
        if holds or (holds is None and self.kept is not None and any(map(_holds_tensor, self.kept))):
            self.kept = None


def _written_step(plan: Plan) -> Step:
    """The backward step where there is one real gradient to start from, and a tensor for each formula."""
    arguments = plan.recipe.op.schema.arguments
    is_general = not (plan.recipe.is_known and plan.recipe.begins_with_first)
    if is_general or any(isinstance(arguments[f.argument].type, ListType) for f, _ in plan.formulas):
        return OperatorNode.apply_formulas
    lines = [
        "kept, grad = node.kept, gradients[0]",
        "if kept is None or grad is None or grad.array.dtype in COMPLEX:",
        "    return node.apply_formulas(gradients)",
    ]
    environment: dict[str, Any] = {"unpacked": _unpacked, "COMPLEX": xp.COMPLEX, "MODE": MODE, "wrapped": wrapped}
    for slot, read in enumerate(plan.reads):
        lines += _unpacking(plan.recipe, read, slot)
    wholes: dict[str, str] = {}
    found: list[str] = []
    for place, (formula, slots) in enumerate(plan.formulas):
        call = f"formula{place}(gradients, grad{''.join(f', value{slot}' for slot in slots)})"
        environment[f"formula{place}"] = formula.evaluate if formula.whole is None else formula.whole.evaluate
        if formula.whole is not None:
            if formula.whole.text not in wholes:
                lines.append(f"whole{place} = {call}")
            call = f"{wholes.setdefault(formula.whole.text, f'whole{place}')}[{formula.whole.pick}]"
        found.append("grad" if formula.text == "grad" else call)
    lines.append(f"return ({''.join(f'{each}, ' for each in found)})")
    return define("step", ["node", "gradients"], lines, environment, f"<{plan.recipe.op.qualified_name} backward>")


def _unpacking(recipe: Recipe, read: Read, slot: int) -> list[str]:
    """Lines that get the value of a formula's name out of what was kept."""
    if not read.by_value or not kind_of(recipe, read):
        return [f"value{slot} = kept[{slot}]"]
    if kind_of(recipe, read) != "tensor":
        return [f"value{slot} = unpacked(kept[{slot}], node)"]
    return [
        f"value{slot} = kept[{slot}].unpack(node)",
        f"if value{slot}._requires_grad and not MODE.enabled:",
        f"    value{slot} = wrapped(value{slot}.array, value{slot}._storage)",
    ]


def kind_of(recipe: Recipe, read: Read) -> str:
    """ "tensor", "tensor?" and the like, or "" for what is no tensor."""
    return "tensor" if read.is_result else tensor_kind(recipe.op.schema.arguments[read.place].type)


def _or_zeros(gradient: Gradient, form: tuple[tuple[int, ...], xp.NumpyDtype]) -> Tensor:
    return Tensor(libraries.zeros(*form)) if gradient is None else gradient


def _picked(
    formula: Formula, whole: Whole, has_complex: bool, gradients: list[Gradient], values: list[Any],
    wholes: dict[str, Any],
) -> Any:  # fmt: skip
    """One of the gradients of a call that gives several; `wholes` are those that were made for other arguments."""
    found = wholes.get(whole.text)
    if found is None:
        is_plain = formula.is_complex or not has_complex
        found = wholes[whole.text] = _computed(whole.evaluate, is_plain, gradients, values)
    return found[whole.pick]


def _computed(evaluate: Callable[..., Any], is_plain: bool, gradients: list[Gradient], values: list[Any]) -> Any:
    """The value of a formula, as it stands or for complex gradients.  See Note [Complex gradients]."""
    if is_plain:
        return evaluate(gradients, gradients[0], *values)
    turned = [_conjugate(g) for g in gradients]
    found = evaluate(turned, turned[0], *values)
    return [_conjugate(g) for g in found] if isinstance(found, (list, tuple)) else _conjugate(found)


def _conjugate(gradient: Gradient) -> Gradient:
    is_complex = gradient is not None and gradient.array.dtype in xp.COMPLEX
    return run("conj_physical", gradient) if is_complex else gradient


def record(op: Op, args: tuple[Any, ...], body: Callable[..., Any]) -> Any:
    """Run the operator; its results know how gradients get back to the arguments.  Raises OperatorError."""
    if not MODE.enabled:
        return mark(body(*args))
    recipe = recipe_of(op)
    needed = tuple(i for i, value in enumerate(args) if _requires_grad(value))
    if recipe.written is not None and args[recipe.written]._view_kind == "no_grad":
        views.check_write(args[recipe.written])
    if not needed:
        return body(*args)
    if recipe.only_out:
        raise OperatorError(
            f"{op.name.removeprefix('aten::')}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad.",
            hints=("use the form without out=",),
        )
    if recipe.written is not None:
        return _record_write(recipe, needed, args, body)
    return _record(recipe, needed, args, body)


def _record(recipe: Recipe, needed: tuple[int, ...], args: tuple[Any, ...], body: Callable[..., Any]) -> Any:
    plan = recipe.plan(needed)
    if not plan.formulas and recipe.is_known:
        return _run(recipe, args, body)
    result = _run(recipe, args, body)
    if any(result is args[i] for i in needed):
        return result
    results = result if isinstance(result, (tuple, list)) else (result,)
    if not any(isinstance(r, Tensor) and promotion.rank(r.array.dtype) >= 2 for r in results):
        return result
    node = OperatorNode(plan, _edges(plan, args), [_kept(read, args, results) for read in plan.reads])
    _attach(node, results)
    return result


def _record_write(recipe: Recipe, needed: tuple[int, ...], args: tuple[Any, ...], body: Callable[..., Any]) -> Any:
    """The same for an operator that writes: the history of what is written, and of its base, becomes another."""
    assert recipe.written is not None
    target: Tensor = args[recipe.written]
    views.check_write(target)
    if promotion.rank(target.array.dtype) < 2:
        return _run(recipe, args, body)
    plan = recipe.plan(needed)
    edges = _edges(plan, args)
    kept = [None if read.is_result else _kept(read, args, (), recipe.written) for read in plan.reads]
    before, array = views.place_of(target), target.array
    result = _run(recipe, args, body)
    for slot, read in enumerate(plan.reads):
        if read.is_result:
            kept[slot] = _kept(read, args, (target,))
    node = OperatorNode(plan, edges, kept)
    node.outputs = [Form(target.array.shape, target.array.dtype)]
    of_target = 0 if plan.formulas and plan.formulas[0][0].argument == recipe.written else None
    views.rebase(target, node, of_target, before, target.array is not array)
    return result


def _run(recipe: Recipe, args: tuple[Any, ...], body: Callable[..., Any]) -> Any:
    return with_recording(False, body, *args) if recipe.is_made_of_others else body(*args)


def _requires_grad(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.requires_grad
    return type(value) is list and any(isinstance(t, Tensor) and t.requires_grad for t in value)


def _edges(plan: Plan, args: tuple[Any, ...]) -> list[Edge | None]:
    edges: list[Edge | None] = []
    for formula, _ in plan.formulas:
        value = args[formula.argument]
        edges += [edge_of(t) for t in value] if isinstance(value, list) else [edge_of(value)]
    return edges


def _kept(read: Read, args: tuple[Any, ...], results: Sequence[Any], written: int | None = None) -> Any:
    """The part of an argument or a result that a node keeps."""
    value = results[read.place] if read.is_result else args[read.place]
    if isinstance(value, list):
        return [_kept_tensor(v, read, False) if isinstance(v, Tensor) else v for v in value]
    return _kept_tensor(value, read, written == read.place) if isinstance(value, Tensor) else value


def _kept_tensor(tensor: Tensor, read: Read, is_written: bool) -> Any:
    if not read.by_value:
        return Form(tensor.array.shape, tensor.array.dtype)
    if is_written:
        return save(views.copy_with_history(tensor))
    return save(tensor, read.place if read.is_result else -1)


def _unpacked(value: Any, node: Node) -> Any:
    kind = type(value)
    if kind is Saved or kind is Packed:
        tensor: Tensor = value.unpack(node)
        if tensor._requires_grad and not MODE.enabled:
            return wrapped(tensor.array, tensor._storage)
        return tensor
    return [_unpacked(v, node) for v in value] if kind is list else value


def _holds_tensor(value: Any) -> bool:
    return type(value) in (Saved, Packed) or (type(value) is list and any(map(_holds_tensor, value)))


def _attach(node: OperatorNode, results: Sequence[Any]) -> None:
    node.outputs = [_form(result) for result in results]
    known = node.recipe.through
    for i, result in enumerate(results):
        if isinstance(result, Tensor) and promotion.rank(result.array.dtype) >= 2 and (known is None or i in known):
            result.attach(node, i)


def _form(result: Any) -> Form:
    return Form(result.array.shape, result.array.dtype) if isinstance(result, Tensor) else Form((), xp.FLOAT32)


def mark(result: Any) -> Any:
    """Views that are made while nothing is recorded."""
    for part in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(part, Tensor) and part._base is not None and not part._requires_grad:
            part._view_kind = "no_grad"
            views.watch(part)
    return result
