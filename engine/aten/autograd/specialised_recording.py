"""Recording without detours, for the operators that most programs are made of.

In: an operator that takes tensors (or one list of them), writes to none, and returns one; or that takes one and returns
several.  Out: a function of its arguments that does what `record.record` does: the same nodes, written out for this
operator and each choice of arguments that require grad, so that a call looks at nothing that could be known before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from engine.aten.autograd.formula import Read
from engine.aten.autograd.node import Gradient, Saved, next_number, source_of
from engine.aten.autograd.record import OperatorNode, Plan, Recipe, kind_of, mark, recipe_of, record
from engine.aten.dispatch.compile import safe, tensor_kind
from engine.aten.dispatch.compose import run as run_operator
from engine.aten.dispatch.device_dispatch import CROSSING
from engine.aten.dispatch.grad_mode import MODE
from engine.aten.dispatch.op import Body
from engine.aten.values import promotion, xp
from engine.aten.values.hooks import HOOKS
from engine.aten.values.storage import storage_of
from engine.aten.values.tensor import Tensor
from engine.lang.generated import define
from engine.lang.records import dataclass
from engine.lang.scalars import device
from engine.lang.types import ListType, OptionalType, TensorType

if TYPE_CHECKING:
    from engine.aten.dispatch.op import Op

_MOST: Final = 3
"""More tensors that might require grad have too many combinations."""
_new: Final[Callable[..., Any]] = object.__new__


def recorder(op: Op, body: Callable[..., Any], text: Body | None) -> Callable[..., Any]:
    """The function that runs the operator where an argument requires grad; `text` is the text of `body`."""
    run = _recorder(op, body, text)
    if op.name not in CROSSING:
        return run
    return lambda *args: run(*args) if not HOOKS.devices else _crossed(run, args)


def _crossed(run: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Run an operator that moves tensors to other devices; their gradients are moved back."""
    homes = [value.device for value in args if isinstance(value, Tensor) and value.requires_grad]
    result = run(*args)
    if isinstance(result, Tensor) and result.grad_fn is not None and any(home != result.device for home in homes):
        result.grad_fn.register_hook(MovedBack(homes))
    return result


@dataclass(frozen=True, slots=True)
class MovedBack:
    """The hook of an operator that has moved tensors from these devices: it brings their gradients there."""

    homes: Sequence[device]

    def __call__(self, found: Sequence[Gradient], _: Sequence[Gradient]) -> Sequence[Gradient]:
        return tuple(
            each if each is None else run_operator("to.prim_Device", each, home, None, False, False)
            for each, home in zip(found, self.homes, strict=True)
        )


def _recorder(op: Op, body: Callable[..., Any], text: Body | None) -> Callable[..., Any]:
    recipe = recipe_of(op)
    tensors = _tensors(recipe)
    if recipe.is_plain and _gives_several(recipe):
        return _recorder_of_several(recipe, body)
    if tensors is None or not recipe.is_plain or recipe.through not in (None, frozenset({0})):
        return lambda *args: record(op, args, body)
    names = [safe(a.name) for a in op.schema.arguments]
    args = ", ".join(names)
    quiet = f"body({args})" if op.schema.returns[0].alias is None else f"mark(body({args}))"
    lines = [
        "if hooks.rebased or hooks.paused:",
        f"    if hooks.rebased: return record(op, ({args},), body)",
        f"    if not MODE.enabled: return {quiet}",
        *(text.lines if text else ()),
        f"result = {text.result if text else f'body({args})'}",
        "d = result.array.dtype",
        "if d is not f32 and rank(d) < 2: return result",
    ]
    if op.schema.returns[0].alias is not None:
        lines.append(f"if {' or '.join(f'result is {name}' for name in (names[i] for i in tensors))}: return result")
    environment: dict[str, Any] = {**(text.environment if text else {}), **_ENVIRONMENT, "op": op, "body": body}
    lines += _choices(recipe, tensors, names, environment)
    return define("recorded", names, lines, environment, f"<{op.qualified_name} recorded>")


def plan_of(op: Op, needed: tuple[int, ...]) -> Plan | None:
    """The plan of nodes for these arguments, for native code that makes nodes itself, of tensors of the host alone;
    None where it is not that simple."""
    recipe = recipe_of(op)
    if not recipe.is_known or recipe.gives_list or recipe.only_out or recipe.written is not None:
        return None
    plan = recipe.plan(needed)
    return plan if plan.formulas else None


def _tensors(recipe: Recipe) -> list[int] | None:
    """The places of the tensors (or of the one list of them) that may require grad, where the result is a tensor."""
    returns = recipe.op.schema.returns
    if len(returns) != 1 or not isinstance(returns[0].type, TensorType):
        return None
    kinds = {i: kind for i, a in enumerate(recipe.op.schema.arguments) if (kind := tensor_kind(a.type))}
    if list(kinds.values()) == ["tensor[]"]:
        return list(kinds)
    found = [i for i, kind in kinds.items() if "[]" not in kind]
    lists = {i: kind for i, kind in kinds.items() if "[]" in kind}
    are_lists_fixed = all(kind[-1] == "]" and i not in recipe.formulas for i, kind in lists.items())
    return found if 0 < len(found) <= _MOST and are_lists_fixed else None


def _choices(recipe: Recipe, tensors: list[int], names: list[str], environment: dict[str, Any]) -> Iterator[str]:
    """For each set of tensors that may require grad, the largest first: the lines that make the node."""
    is_optional = [isinstance(a.type, OptionalType) for a in recipe.op.schema.arguments]
    if [i for i, a in enumerate(recipe.op.schema.arguments) if tensor_kind(a.type)] == tensors[:1]:
        yield from _record(recipe, (tensors[0],), names, environment)
        return
    for count in range(len(tensors), 0, -1):
        for needed in combinations(tensors, count):
            asked = [
                f"({names[i]} is not None and {names[i]}._requires_grad)" if is_optional[i]
                else f"{names[i]}._requires_grad"
                for i in needed
            ]  # fmt: skip
            yield f"if {' and '.join(asked)}:"
            yield from (f"    {line}" for line in _record(recipe, needed, names, environment))
    yield "return result"


def _record(recipe: Recipe, needed: tuple[int, ...], names: list[str], environment: dict[str, Any]) -> Iterator[str]:
    plan = recipe.plan(needed)
    if not plan.formulas and recipe.is_known:
        yield "return result"
        return
    plan_name = "plan_" + "_".join(map(str, needed))
    environment[plan_name] = plan
    sources = ""
    for formula, _ in plan.formulas:
        name = names[formula.argument]
        if isinstance(recipe.op.schema.arguments[formula.argument].type, ListType):
            sources += f"*[source_of(t) if t._requires_grad else None for t in {name}], "
            continue
        yield f"if {name}._base is not None or {name}.output_nr: from_{name} = source_of({name})"
        yield f"elif (from_{name} := {name}._grad_fn) is None: from_{name} = {name}"
        sources += f"from_{name}, "
    kinds = [kind_of(recipe, read) for read in plan.reads]
    kept = "".join(f"{_kept(read, names, kind)}, " for read, kind in zip(plan.reads, kinds, strict=True))
    yield f"return attach(result, {plan_name}, ({sources}), ({kept}))"


# ------------------------------------------------------------------ several results


def _gives_several(recipe: Recipe) -> bool:
    """True if one tensor becomes several, of which nothing is kept."""
    schema = recipe.op.schema
    kinds = [kind for a in schema.arguments if (kind := tensor_kind(a.type))]
    are_tensors = recipe.gives_list or (len(schema.returns) > 1 and all(tensor_kind(a.type) for a in schema.returns))
    return kinds == ["tensor"] and are_tensors and recipe.is_known


def _recorder_of_several(recipe: Recipe, body: Callable[..., Any]) -> Callable[..., Any]:
    """For an operator with one tensor, like `chunk` or `sort`."""
    op = recipe.op
    names = [safe(a.name) for a in op.schema.arguments]
    args = ", ".join(names)
    place = next(i for i, a in enumerate(op.schema.arguments) if tensor_kind(a.type))
    plan = recipe.plan((place,))
    if not plan.formulas:
        return lambda *args: record(op, args, body)
    kept = "".join(f"{_kept_of_several(recipe, read, names)}, " for read in plan.reads)
    lines = [
        f"if hooks.rebased or hooks.paused: return record(op, ({args},), body)",
        f"results = body({args})",
        f"return attach_several(results, plan, (source_of({names[place]}),), ({kept}))",
    ]
    environment = {**_ENVIRONMENT, "op": op, "body": body, "plan": plan, "attach_several": _attach_several}
    return define("recorded", names, lines, environment, f"<{op.qualified_name} recorded>")


def _kept_of_several(recipe: Recipe, read: Read, names: list[str]) -> str:
    name = f"results[{read.place}]" if read.is_result else names[read.place]
    if not kind_of(recipe, read):
        return name
    if not read.by_value:
        return f"form_of({name})"
    return f"Saved({name}, {read.place})" if read.is_result else f"saved({name})"


def _attach_several(results: Sequence[Tensor], plan: Plan, sources: Sequence[Any], kept: Sequence[Any]) -> Any:
    """`attach` for all results through which gradients flow."""
    node: OperatorNode = _new(OperatorNode)
    node._edges = None
    node.sources, node.plan, node.kept = sources, plan, kept
    node.sequence = next_number()
    node.tensor_hooks = node.retained = node.hooks = node.prehooks = None
    node.outputs = forms = [(array.shape, array.dtype) for array in [result.array for result in results]]
    through = plan.recipe.through
    for i, result in enumerate(results):
        d = forms[i][1]
        if (d is xp.FLOAT32 or promotion.rank(d) >= 2) and (through is None or i in through):
            result._grad_fn = node
            result._requires_grad = True
            result.output_nr = i
    return results


# ------------------------------------------------------------------ what is kept


def _kept(read: Read, names: list[str], kind: str) -> str:
    name = "result" if read.is_result else names[read.place]
    if not kind:
        return name
    if "[]" in kind:
        kept = "saved(t)" if read.by_value else "form_of(t)"
        return f"[t if t is None else {kept} for t in {name}]"
    if not read.by_value:
        kept = f"form_of({name})"
    else:
        kept = "saved_result(result)" if read.is_result else f"saved({name})"
    return f"(None if {name} is None else {kept})" if kind == "tensor?" else kept


# ------------------------------------------------------------------ what the written functions call


def attach(result: Tensor, plan: Plan, sources: Sequence[Any], kept: Sequence[Any]) -> Tensor:
    """Give a result its node: `OperatorNode` with what it needs, but for the edges, which are made of the sources."""
    array = result.array
    node: OperatorNode = _new(OperatorNode)
    node._edges = None
    node.sources, node.plan, node.kept = sources, plan, kept
    node.sequence = next_number()
    node.tensor_hooks = node.retained = node.hooks = node.prehooks = None
    node.outputs = ((array.shape, array.dtype),)
    result._grad_fn = node
    result._requires_grad = True
    return result


def form_of(tensor: Tensor) -> tuple[tuple[int, ...], xp.NumpyDtype]:
    """The shape and dtype of a tensor that is not kept itself."""
    return tensor.array.shape, tensor.array.dtype


def saved(tensor: Tensor) -> Saved:
    """`Saved(tensor)`."""
    made: Saved = _new(Saved)
    made.held = tensor
    storage = tensor._storage
    made.version = 0 if storage is None else storage.version
    made.output = -1
    return made


def saved_result(tensor: Tensor) -> Saved:
    """`Saved(tensor, 0)`."""
    storage = tensor._storage
    if storage is None:
        storage = tensor._storage = storage_of(tensor.array)
    made: Saved = _new(Saved)
    made.held, made.storage = tensor.array, storage
    made.version = storage.version
    made.output = 0
    return made


_ENVIRONMENT: Final[dict[str, Any]] = {
    "hooks": HOOKS, "MODE": MODE, "record": record, "mark": mark, "f32": xp.FLOAT32, "rank": promotion.rank,
    "attach": attach, "form_of": form_of, "saved": saved, "saved_result": saved_result, "source_of": source_of,
    "Saved": Saved,
}  # fmt: skip
