"""Splits a graph into a forward and a backward one.

In: a graph of operators, arguments of a call, and which of them require gradients.  Out: a `Gradient`: `forward`, whose
first results are those of the graph and whose others are what the backward graphs need; and on demand, for the results
that have gradients, a `Backward`.

    graph(%x, %y):                     forward(%x, %y):                   backward(%g, %y, %z):
      %m = aten::mul(%x, %y)             %m = aten::mul(%x, %y)             %1 = aten::mul(%z, %z)
      %z = aten::tanh(%m)         →      %z = aten::tanh(%m)                %2 = aten::rsub(%1, 1, 1)
      return (%z)                        return (%z)                        %3 = aten::mul(%g, %2)
                                                                            %4 = aten::mul(%3, %y)
                                       x requires grad, y does not          return (%4)

Both are for arguments of the sizes that they were made for; see `specialising`.  Results without a gradient count as
zeros that nothing is computed with: there is a backward graph for each set of results that have gradients.

Note [Gradients of gradients]
A backward pass that is itself recorded runs the backward graph like any other.  What it takes from the forward graph
must then have a history: intermediate values that require grad are results of the forward graph whose gradients may be
asked for, too.  To tell what their backward graph needs of the forward one, it is written once, for all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from typing import Any, Final

from engine.aten.autograd.node import Form
from engine.aten.autograd.record import recipe_of
from engine.aten.dispatch.grad_mode import with_recording
from engine.aten.dispatch.op import Op
from engine.aten.values import libraries
from engine.aten.values.tensor import Tensor
from engine.aten.values.xp import COMPLEX, FLOATING, FROM_NUMPY
from engine.executor.autodiff.formulas import (
    FormulaGraph,
    differentiable_arguments,
    formula_graph,
    not_implemented,
    owner_of_formulas,
)
from engine.executor.autodiff.specialising import Item, NotDifferentiable, Specialiser, Step, stand_in
from engine.ir.graph import Graph, Value
from engine.ir.rewriting.dead_code import remove_dead_code
from engine.lang.errors import EngineError
from engine.lang.records import dataclass
from engine.lang.types import TENSOR

_COMPLEX: Final = "complex numbers are left to the tape"
_MOST: Final = 8
"""Rounds until the values that backward graphs need are all known."""


@dataclass(frozen=True, slots=True)
class Backward:
    """`graph` takes gradients of the results, in their order, then the kept values numbered `kept`; it gives those of
    the inputs numbered `inputs`."""

    graph: Graph
    kept: Sequence[int]
    inputs: Sequence[int]


@dataclass(eq=False, slots=True)
class Gradient:
    """`forward` takes the inputs numbered `taken`, those that are not the same in all calls.

    Its results are those of the original, then the `temporaries`.  `kept` are the values that backward graphs may need:
    the number of an input (is_input), or of a result.
    """

    forward: Graph
    taken: Sequence[int]
    inputs: Sequence[Item]
    results: Sequence[Item]
    """All results of `forward`; the `count` first are those of the original."""
    count: int
    differentiable: frozenset[int]
    """The numbers of the results through which gradients flow."""
    kept: Sequence[tuple[bool, int]]
    _tape: Tape
    _known: dict[frozenset[int], Backward | None] = field(default_factory=dict)

    def backward(self, given: Iterable[int]) -> Backward | None:
        """The backward graph for gradients of the results with those numbers; None where `full` has to do."""
        wanted = frozenset(given)
        if wanted not in self._known:
            try:
                self._known[wanted] = self._write(wanted)
            except Exception:  # no real values are there any more: of a matrix of ones there is no inverse
                self._known[wanted] = None
        return self._known[wanted]

    @property
    def full(self) -> Backward:
        """The backward graph for gradients of all results that can have one."""
        found = self._known[self.differentiable]
        assert found is not None
        return found

    def prepare(self) -> None:
        """Write the graphs that are most likely needed, and forget the values of the call that this was made for."""
        usual = frozenset(i for i in self.differentiable if i < self.count)
        self._known |= {given: self._write(given) for given in {usual, self.differentiable}}
        self._tape.forget(self.inputs)

    def _write(self, given: Collection[int]) -> Backward:
        written = self._tape.backward([self.results[i] for i in sorted(given)])
        places = {item: place for place, item in enumerate(self._tape.kept)}
        inputs = [i for i, item in enumerate(self.inputs) if item in written.found]
        for i in inputs:
            written.graph.register_output(written.found[self.inputs[i]])
        remove_dead_code(written.graph)
        kept = _drop_unused(written, places)
        return Backward(written.graph, kept, inputs)


@dataclass(eq=False, slots=True)
class Written:
    """A backward graph without results yet: the gradients `found`, and the inputs for values that it needs."""

    graph: Graph
    found: dict[Item, Value]
    needed: dict[Item, Item]


def _drop_unused(written: Written, places: dict[Item, int]) -> list[int]:
    kept: list[int] = []
    for item, stand in written.needed.items():
        assert stand.value is not None
        if stand.value.has_uses:
            kept.append(places[item])
        else:
            written.graph.block.erase_input(stand.value.offset)
    return kept


def differentiate(graph: Graph, arguments: Sequence[Any], required: Sequence[bool]) -> Gradient:
    """Split the graph, which has no control flow.  Raises NotDifferentiable, and what its operators raise."""
    return with_recording(False, _differentiate, graph, arguments, required)


def _differentiate(graph: Graph, arguments: Sequence[Any], required: Sequence[bool]) -> Gradient:
    forward = Specialiser(Graph())
    inputs, items, taken = [], {}, []
    for place, (value, argument) in enumerate(zip(graph.inputs, arguments, strict=True)):
        if isinstance(argument, list) and any(isinstance(each, Tensor) for each in argument):
            raise NotDifferentiable(value.uses[0].user, "it takes a list of tensors from elsewhere")
        is_given = isinstance(argument, (Tensor, float))
        item = forward.add_input(argument, value.type, value.name) if is_given else Item(argument)
        taken += [place] * is_given
        inputs.append(item)
        items[value] = item
    forward.run(graph.nodes(), items)
    outputs = [items[value] for value in graph.outputs]
    _check_memory(outputs, inputs)
    tape = Tape(forward.steps, [item for item, needs in zip(inputs, required, strict=True) if needs])
    kept = _needed(tape, inputs, outputs)
    results = [*outputs, *(item for item in kept if item not in {*inputs} and item not in {*outputs})]
    for item in results:
        if item.value is None:
            raise NotDifferentiable(None, "a result is no tensor of its own")
        forward.graph.register_output(item.value)
    places = {item: (False, i) for i, item in enumerate(results)} | {item: (True, i) for i, item in enumerate(inputs)}
    tape.kept = kept
    through = frozenset(i for i, item in enumerate(results) if item in tape.active)
    found = Gradient(forward.graph, taken, inputs, results, len(outputs), through, [places[i] for i in kept], tape)
    found.prepare()
    return found


def _check_memory(outputs: Sequence[Item], inputs: Sequence[Item]) -> None:
    """Raise NotDifferentiable where a result shows the memory of something else, which has to stay so."""
    arrays = [item.example.array for item in (*outputs, *inputs) if isinstance(item.example, Tensor)]
    for place, array in enumerate(arrays[: len(outputs)]):
        if any(libraries.may_share_memory(array, other) for other in arrays[place + 1 :]):
            raise NotDifferentiable(None, "a result shares memory with what it is made of")


def _needed(tape: Tape, inputs: Sequence[Item], outputs: Sequence[Item]) -> list[Item]:
    """The values that backward graphs need.  See Note [Gradients of gradients]."""
    kept: dict[Item, None] = {}
    for _ in range(_MOST):
        given = dict.fromkeys(item for item in (*outputs, *kept) if item in tape.active and item not in {*inputs})
        written = tape.backward([*given])
        for item in inputs:
            if item in written.found:
                written.graph.register_output(written.found[item])
        remove_dead_code(written.graph)
        found = {item: None for item, stand in written.needed.items() if stand.value and stand.value.has_uses}
        if found.keys() <= kept.keys():
            return [*kept]
        kept |= found
    raise NotDifferentiable(None, "its derivatives need ever more values")


# ------------------------------------------------------------------ backwards through the operators


@dataclass(eq=False, slots=True)
class Tape:
    """The operators of a forward graph.  `active` are the values that gradients flow through."""

    steps: Sequence[Step]
    required: Sequence[Item]
    active: set[Item] = field(default_factory=set)
    made: dict[Item, Step] = field(default_factory=dict)
    kept: Sequence[Item] = ()

    def __post_init__(self) -> None:
        if any(item.example.array.dtype in COMPLEX for item in _tensors(self.required)):
            raise NotDifferentiable(None, _COMPLEX)
        self.active = {item for item in self.required if _is_real(item.example)}
        for step in self.steps:
            for output in _tensors(step.outputs):
                self.made[output] = step
            self.active |= self._flows(step)

    def _flows(self, step: Step) -> set[Item]:
        """The results that have gradients."""
        taken = [i for i, item in enumerate(step.inputs) if not self.active.isdisjoint(_tensors([item]))]
        if not taken:
            return set()
        outputs = [*_tensors(step.outputs)]
        op = owner_of_formulas(step.op)
        known, through = differentiable_arguments(op), recipe_of(op).through
        if any(item.example.array.dtype in COMPLEX for item in (*_tensors(step.inputs), *outputs)):
            raise NotDifferentiable(step.origin, _COMPLEX)
        if not op.gradient and any(_is_real(item.example) for item in outputs):
            raise NotDifferentiable(step.origin, f"{op.name} has no formula for its gradient")
        if not_implemented(op) & {*taken}:
            raise NotDifferentiable(step.origin, f"{op.name} has no formula for one of its gradients")
        if not {*taken} & {*known}:
            return set()
        if any(formula_graph(op, i) is None for i in known):
            raise NotDifferentiable(step.origin, f"the formula of {op.name} is no TorchScript")
        return {item for i, item in enumerate(outputs) if _is_real(item.example) and (through is None or i in through)}

    def backward(self, given: Sequence[Item]) -> Written:
        """Gradients of everything, from those of these values."""
        return with_recording(False, lambda: _Writer(self, given).write())

    def forget(self, inputs: Iterable[Item]) -> None:
        """Let examples hold no memory: backward graphs that are written later need their sizes."""
        steps = [*self.steps]
        for item in {*inputs, *(item for step in steps for item in (*step.inputs, *step.outputs))}:
            for each in (item, *(item.parts or ())):
                if isinstance(each.example, Tensor) and each.value is not None:
                    each.example = stand_in(each.example)
            if item.parts is not None:
                item.example = [each.example for each in item.parts]


def _is_real(example: Any) -> bool:
    return isinstance(example, Tensor) and example.array.dtype in FLOATING


def _tensors(items: Iterable[Item]) -> Iterable[Item]:
    """The single tensors of items."""
    for item in items:
        if item.parts is not None:
            yield from (part for part in item.parts if isinstance(part.example, Tensor))
        elif isinstance(item.example, Tensor):
            yield item


class _Writer:
    """Writes one backward graph."""

    def __init__(self, tape: Tape, given: Sequence[Item]) -> None:
        self.tape, self.given = tape, given
        self.into = Specialiser(Graph(), may_share=True)
        self.gradients: dict[Item, Item] = {}
        self.needed: dict[Item, Item] = {}
        self.again: dict[Item, Item] = {}

    def write(self) -> Written:
        for item in self.given:
            self.add(item, self.into.add_input(_ones(item)))
        for step in reversed(self.tape.steps):
            self.step(step)
        found = {item: self.into.place(g, TENSOR) for item, g in self.gradients.items()}
        return Written(self.into.graph, found, self.needed)

    def add(self, item: Item, gradient: Item) -> None:
        before = self.gradients.get(item)
        self.gradients[item] = gradient if before is None else self.into.call("aten::add.Tensor", before, gradient, 1)

    def step(self, step: Step) -> None:
        if all(self.gradients.get(item) is None for item in _tensors(step.outputs)):
            return
        op = owner_of_formulas(step.op)
        for place in differentiable_arguments(op):
            wanted = [item for item in _tensors([step.inputs[place]]) if item in self.tape.active]
            formula = formula_graph(op, place)
            if wanted and formula is not None and self._has_gradients(step, formula):
                self._distribute(step.inputs[place], self._evaluate(step, formula))

    def _has_gradients(self, step: Step, formula: FormulaGraph) -> bool:
        read = [part for i in formula.gradients for part in _tensors([step.outputs[i]])]
        return not read or any(part in self.gradients for part in read)

    def _evaluate(self, step: Step, formula: FormulaGraph) -> Item:
        items: dict[Value, Item] = {}
        for source, value in zip(formula.sources, formula.graph.inputs, strict=True):
            if source.kind == "gradient":
                of = step.outputs[source.place]
                items[value] = self.gradients.get(of, Item(None)) if source.may_miss else self._gradient(of)
            else:
                given = step.inputs if source.kind == "argument" else step.outputs
                items[value] = self.need(given[source.place])
        try:
            self.into.run(formula.graph.nodes(), items)
        except (NotDifferentiable, EngineError) as why:  # what it refuses is the tape's to refuse, in backward passes
            raise NotDifferentiable(step.origin, f"the gradient of {step.op.name}: {why}") from why
        return items[formula.graph.outputs[0]]

    def _gradient(self, item: Item) -> Item:
        """The gradient of a result, zeros if it has none."""
        if item.parts is not None:
            parts = [self._gradient(part) for part in item.parts]
            return Item([part.example for part in parts], None, parts)
        found = self.gradients.get(item)
        if found is not None or not isinstance(item.example, Tensor):
            return found or Item(None)
        return self.into.zeros(item)

    def _distribute(self, argument: Item, gradient: Item) -> None:
        if argument.parts is None:
            self._arrive(argument, gradient)
            return
        parts = gradient.parts
        if parts is None:
            raise NotDifferentiable(None, "the gradient of a list is none")
        for item, part in zip(argument.parts, parts, strict=True):
            self._arrive(item, part)

    def _arrive(self, item: Item, gradient: Item) -> None:
        if item in self.tape.active and gradient.example is not None:
            self.add(item, self._fitted(gradient, Form(*item.form)))

    def _fitted(self, gradient: Item, form: Form) -> Item:
        """The gradient in the form of what it is for: summed where that was broadcast, and of its dtype."""
        shape = gradient.example.array.shape
        if shape != form.shape:
            lead = len(shape) - len(form.shape)
            dims = [*range(lead), *(i + lead for i, n in enumerate(form.shape) if n == 1 != shape[i + lead])]
            if dims:
                gradient = self.into.call("aten::sum.dim_IntList", gradient, dims, len(dims) > lead, None)
            if gradient.example.array.shape != form.shape:
                gradient = self.into.call("aten::reshape", gradient, [*form.shape])
        if gradient.example.array.dtype != form.dtype:
            gradient = self.into.call("aten::to.dtype", gradient, FROM_NUMPY[form.dtype].number, False, False, None)
        return gradient

    # -- values of the forward graph

    def need(self, item: Item) -> Item:
        """A value of the forward graph, in this one."""
        if item.is_known:
            return Item(item.example)
        if item.parts is not None:
            parts = [self.need(part) for part in item.parts]
            return Item(item.example, None, parts)
        found = self.again.get(item) or self.needed.get(item)
        if found is not None:
            return found
        step = self.tape.made.get(item)
        if step is not None and _is_view(step.op):
            self._show_again(step)
            return self.again[item]
        found = self.needed[item] = Item(item.example, self.into.graph.add_input("", TENSOR))
        assert found.value is not None
        found.value.set_type(item.value.type if item.value is not None else TENSOR)
        return found

    def _show_again(self, step: Step) -> None:
        """Make the views of an operator anew."""
        assert step.source is not None
        inputs, examples = [self.need(each) for each in step.inputs], [each.example for each in step.outputs]
        made = self.into.again(step.source, step.op, inputs, examples)
        self.again.update(zip(_tensors(step.outputs), _tensors(made), strict=True))


def _is_view(op: Op) -> bool:
    """True if results show the memory of arguments: backward graphs make these anew."""
    return not op.gives_new


def _ones(item: Item) -> Any:
    """An example of a gradient."""
    return Tensor(item.example.array.copy())
