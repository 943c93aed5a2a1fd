"""The making of plans: a graph is specialised, optimized, and gets its function.

In: a function's graph after the required passes, and a key of its `SpecReader`.  Out: an `ExecutionPlan`.  A module of
its own, since a call that runs before there is a plan for it needs none of this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from engine.aten.values.tensor import Tensor
from engine.executor.bytecode.code import Code
from engine.executor.bytecode.operations import CALLEES
from engine.executor.codegen.fusion_groups import FUSION_GROUP, dissolve, is_fusion_group
from engine.executor.codegen.source import FUNCTION, NO_SLOTS, GeneratedSource, NotGenerated, Slot, generate
from engine.executor.plans import verifying
from engine.executor.plans.differentiation import PlanDifferentiation
from engine.executor.plans.fusion import PlanFusion
from engine.executor.plans.history import Maker, Origin, PlanHistory, passes_of
from engine.executor.plans.kept_plans import KeptPlan
from engine.executor.plans.lowered import SETTINGS as FUSION
from engine.executor.plans.pipelines import (
    AFTER_UNROLLING,
    POST_DERIVATIVE,
    PRE_DERIVATIVE,
    PRE_SPECIALISATION,
    UNROLLING,
)
from engine.executor.plans.plan import GRADIENTS_RECORDED, PLAN, RUNTIME, ExecutionPlan
from engine.executor.plans.scalar_plans import ScalarPlan, is_scalar
from engine.executor.plans.spec import Key, SpecReader
from engine.executor.plans.tiers import Run
from engine.executor.profiling.bailouts import BAIL_OUT
from engine.ir.aliasing.alias_db import AliasDb
from engine.ir.clone import copy_graph
from engine.ir.constants import constant_value, insert_constant
from engine.ir.facts.inference import resized_memory
from engine.ir.graph import Graph, Node, Value
from engine.ir.ops import op_of
from engine.lang.deferred import pattern_of
from engine.lang.generated import compile_function
from engine.lang.interpreter_settings import collecting_rarely
from engine.lang.records import dataclass
from engine.lang.scalars import CPU
from engine.lang.types import ANY, DEVICE, ClassType, InterfaceType, OptionalType, TensorType, TupleType, Type


@collecting_rarely()
def make_plan(
    name: str, generic: Callable[[], Graph], reader: SpecReader, key: Key, *, inlines: bool = True,
    kind: str = FUSION_GROUP, kept: KeptPlan | None = None,
    place: Callable[[], KeptPlan | None] = lambda: None,
    refuse: Callable[[str], object] = lambda difference: None,
) -> ExecutionPlan:  # fmt: skip
    """Specialise and optimize a copy of the generic graph, and generate its function; groups are nodes of this kind.

    Graphs that were `kept` are taken as they are, and the generic one is not asked for; where they are compared with
    what that does, and do something else, `refuse` is told.  `place` gives the place for graphs with groups, which
    takes long to find.
    """
    start = time.perf_counter()
    history = PlanHistory()

    def made(history: PlanHistory) -> Graph:
        return _optimized(specialise(generic(), reader, key, history, inlines=inlines), history)

    found = kept.find("plan") if kept is not None else None
    maker: Maker = "another program"
    if kept is not None and found is None and kept.is_made_beside():
        found, maker = kept.find("plan"), "the worker"
    if found is not None:
        optimized = found.graph
        history.restart(optimized, partial(passes_of, made))
        history.origin = Origin(maker, found.made)
    else:
        optimized = history.made(made, lambda graph: graph)
        if kept is not None:
            kept.keep("plan", optimized)
    doubts = _Doubts(lambda: Code(generic(), name), refuse) if verifying.is_wanted() else None
    plan = _plan_of(name, optimized, reader, key, history, kind, kept, place, doubts)
    history.seconds = time.perf_counter() - start
    return plan


def finish_plan(
    name: str, graph: Graph, reader: SpecReader, key: Key, history: PlanHistory, kind: str
) -> ExecutionPlan:
    """The plan of a specialised graph: optimized, with its function; groups are nodes of this kind."""
    return _plan_of(name, _optimized(graph, history), reader, key, history, kind)


def _optimized(graph: Graph, history: PlanHistory) -> Graph:
    """The specialised graph, optimized in place."""
    if history.run(UNROLLING, graph):
        history.run(AFTER_UNROLLING, graph)
    # Graphs with inputs that require grad are to be split here, before anything that has no derivative.
    history.run(POST_DERIVATIVE, graph)
    return graph


def _plan_of(
    name: str, graph: Graph, reader: SpecReader, key: Key, history: PlanHistory, kind: str,
    kept: KeptPlan | None = None, place: Callable[[], KeptPlan | None] = lambda: None, doubts: _Doubts | None = None,
) -> ExecutionPlan:  # fmt: skip
    plan = ExecutionPlan(name, reader.spec(key), graph, history=history)
    if doubts is not None and history.origin is not None and kept is not None:
        plan.doubts.append(kept.forget)
    try:
        _generate(plan, reader, key, kind, kept, place, doubts)
    except NotGenerated as why:
        plan.reason = str(why)
    except (SyntaxError, RecursionError) as error:
        plan.reason = f"blocks are nested too deeply for Python: {error}"
    return plan


@dataclass(frozen=True, slots=True)
class _Doubts:
    """Plans from disk, or parts of them, are compared with the code; `refuse` is told of what does something else."""

    meaning: Callable[[], Code]
    refuse: Callable[[str], object]

    def entry(self, plan: ExecutionPlan, run: Run) -> Run:
        """The plan's function, whose first call is compared while there is something to doubt."""
        if not plan.doubts:
            return run

        def trust() -> None:
            if plan.entry is compared:  # or something else came meanwhile
                plan.entry = run
                plan.doubts.clear()

        def refuse(difference: str) -> None:
            while plan.doubts:
                plan.doubts.pop()()
            verifying.tell(plan.history, plan.name, "a plan", difference)
            self.refuse(difference)

        compared = verifying.verified(run, self.meaning, trust, refuse)
        return compared


def specialise(graph: Graph, reader: SpecReader, key: Key, history: PlanHistory, *, inlines: bool = True) -> Graph:
    """A copy of the graph, with the key's facts in its types, that can still be differentiated; with `inlines`, its
    calls are inlined."""
    specialised = copy_graph(graph)
    for group in [*filter(is_fusion_group, specialised.all_nodes())]:
        dissolve(group)
    history.begin(graph)
    if inlines:
        history.run(("inline",), specialised, simplify=False)  # all is simplified at once, further down
    history.run(PRE_SPECIALISATION, specialised)
    start = time.perf_counter()
    refine_inputs(specialised, reader, key)
    history.note("refine_inputs", specialised, len(reader.paths) > 0, time.perf_counter() - start)
    history.run(PRE_DERIVATIVE, specialised)
    return specialised


def refine_inputs(graph: Graph, reader: SpecReader, key: Key) -> None:
    """Write the key's facts into the types of the inputs, except the rank of tensors that may get another shape.

    An optional one is a tensor or the constant None from here on.
    """
    db: AliasDb | None = None
    resized = 0
    for path, spec in zip(reader.paths, reader.spec(key).tensors, strict=True):
        value = graph.inputs[path[0]]
        if spec is None:
            if isinstance(value.type, OptionalType):
                _replace_by_none(graph, value)
            continue
        if db is None:
            db = AliasDb(graph)
            resized = resized_memory(graph, db)
        type = spec.type
        if db.has_writers(value):
            sizes = None if db.memory_of([value]) & resized else type.sizes
            type = TensorType(spec.dtype, sizes, None, None, spec.device)
        value.set_type(_replaced(value.type, path[1:], type))


def _replace_by_none(graph: Graph, value: Value) -> None:
    with graph.inserting_at(next(iter(graph.nodes()), graph.return_node)):
        value.replace_all_uses_with(insert_constant(graph, None))


def _replaced(type: Type, path: tuple[int, ...], part: TensorType) -> Type:
    if not path or not isinstance(type, TupleType):
        return part if isinstance(type, (TensorType, OptionalType)) else type
    elements = [*type.elements]
    elements[path[0]] = _replaced(elements[path[0]], path[1:], part)
    return TupleType(tuple(elements), type.name, type.fields, type.defaults)


def _generate(
    plan: ExecutionPlan, reader: SpecReader, key: Key, kind: str, kept: KeptPlan | None,
    place: Callable[[], KeptPlan | None], doubts: _Doubts | None,
) -> None:  # fmt: skip
    unfused, accelerator = plan.graph, reader.accelerator(key)
    may_record = key[0] or any(node.kind in _MAY_SWITCH_GRADIENTS for node in unfused.all_nodes())
    records = may_record and not is_gradient_free(unfused, key)
    is_anywhere = reader.device is None or _may_name_devices(unfused)

    def write(graph: Graph, groups: Mapping[Node, Slot] = NO_SLOTS) -> tuple[GeneratedSource, Run]:
        # Where tensors may be anywhere, every operator is called as a function of tensors, which looks where they are.
        source = generate(graph, records=records or is_anywhere, name=plan.name, groups=groups)
        environment = {**source.environment, **RUNTIME.functions(), PLAN: (plan, source)}
        return source, compile_function(source.text, FUNCTION, environment, f"<plan of {plan.name}>")

    def install(source: GeneratedSource, run: Run) -> None:
        plan.generated, plan.entry = source, run if doubts is None else doubts.entry(plan, run)

    def doubt(remove: Callable[[], object]) -> None:
        if doubts is not None:
            plan.doubts.append(remove)

    def install_fused(graph: Graph, source: GeneratedSource, run: Run) -> None:
        plan.graph, plan._code = graph, None
        install(source, run)

    def enter_by(run: Run) -> None:
        plan.entry = run

    def run_unfused() -> None:
        install_fused(unfused, *write(unfused))

    compiler = FUSION.compiler_for(accelerator)
    plan.why_unfused = (
        "tensors may be on several devices" if is_anywhere and accelerator is None
        else GRADIENTS_RECORDED if records
        else "there is no compiler" if compiler is None
        else "no kernel holds any of it" if not any(map(compiler.is_fusible, unfused.all_nodes()))
        else ""
    )  # fmt: skip
    if is_anywhere and (accelerator is None or compiler is None):
        install(*write(unfused))
        return
    if is_scalar(unfused):
        source, run = write(unfused)
        plan.scalar = ScalarPlan(plan.name, unfused, run, lambda: plan.entry, partial(install, source), doubt)
        plan.scalar.start()
        return
    if records:
        plan.differentiation = PlanDifferentiation(
            plan.name, unfused, partial(make_plan, kind=kind), write, install_fused, run_unfused, lambda: plan.entry,
            enter_by, plan.history, accelerator,
        )  # fmt: skip
        plan.differentiation.start()
        return
    if plan.why_unfused or compiler is None:
        install(*write(unfused))
        return
    plan.fusion = PlanFusion(
        plan.name, unfused, compiler, write, install_fused, run_unfused, lambda: plan.entry, enter_by, kind=kind,
        accelerator=accelerator, history=plan.history, kept=kept, place=place, doubt=doubt,
    )  # fmt: skip
    plan.fusion.start()


def _may_name_devices(graph: Graph) -> bool:
    """True if the graph may create tensors on a new device."""
    given = any(value.type is DEVICE for value in graph.inputs)
    return given or any(map(_may_name_a_device, graph.all_nodes()))


_QUANTIZING: Final = (
    "quantized::", "aten::quantize_per_", "aten::_make_per_", "aten::_empty_affine", "aten::_empty_per_",
)  # fmt: skip


_OF_NUMBERS: Final = pattern_of("_dynamic|_prepack|embedding.*(byte|4bit)|make_quantized")
"""Parts of names of quantization operators that return no quantized tensor."""


def _may_name_a_device(node: Node) -> bool:
    if node.kind.startswith(_QUANTIZING) and not _OF_NUMBERS.search(node.kind):
        return True  # quantized arrays are no plain ones either
    if node.kind in ("aten::cuda", "prim::device"):
        return node.kind == "aten::cuda"
    return any(value.type is DEVICE and constant_value(value) != CPU for value in node.outputs)


# -- gradients

_WITHOUT_TENSORS_OF_OTHERS: Final = frozenset(
    f"prim::{kind}"
    for kind in "Constant If Loop TupleConstruct NamedTupleConstruct TupleUnpack TupleIndex TupleSlice ListConstruct "
    "ListUnpack DictConstruct ConstantChunk Print isinstance".split()
) | {BAIL_OUT}
"""Kinds of nodes without an operator whose tensors come from their inputs."""


_MAY_SWITCH_GRADIENTS: Final = frozenset({"aten::set_grad_enabled", "aten::wait", "prim::awaitable_wait", *CALLEES})


def is_gradient_free(graph: Graph, key: Key) -> bool:
    """True if no tensor in the graph can require grad."""
    if any(part is not None and part[2] for part in key[1:]):
        return False
    if any(_may_hold_others(value.type) for value in graph.inputs if value.has_uses):
        return False
    return all(map(_keeps_gradients_away, graph.all_nodes()))


def _may_hold_others(type: Type, *, inside: bool = False) -> bool:
    """True if a value of the type may hold a tensor that the key does not describe."""
    if isinstance(type, OptionalType) and isinstance(type.element, TensorType):
        return inside
    if isinstance(type, TensorType):
        return inside
    if isinstance(type, (ClassType, InterfaceType)) or type is ANY:
        return True
    inside = inside or not isinstance(type, TupleType)
    return any(_may_hold_others(part, inside=inside) for part in type.contained())


def _keeps_gradients_away(node: Node) -> bool:
    if node.kind in _WITHOUT_TENSORS_OF_OTHERS:
        constant = constant_value(node.outputs[0]) if node.kind == "prim::Constant" else None
        return not (isinstance(constant, Tensor) and constant.requires_grad)
    op = op_of(node)
    if op is None or node.kind in ("aten::requires_grad_", "aten::set_grad_enabled"):
        return False
    wishes = zip(op.schema.arguments, node.inputs, strict=False)
    return all(constant_value(value) in (False, None) for a, value in wishes if a.name == "requires_grad")
