"""The mode that a program was saved in: where it trains, and where chance is in it.

In: a `Survey`.  Out: the mode, and the calls that run in that mode.  Whether a flag is true is told by the attributes
`training` of the modules whose code reads it, and by what callers pass; nothing runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import field
from typing import Final

from engine.ir.constants import constant_value
from engine.ir.graph import Block, Node, Value
from engine.ir.ops import is_nondeterministic, op_of
from engine.ir.unit import Function
from engine.lang.counts import counted
from engine.lang.records import dataclass
from engine.lang.types import BOOL, ClassType, FunctionType
from engine.serialize.container.qualified_names import HOLDER
from engine.serialize.inspect.survey import Survey

_FLAGS: Final = ("train", "training", "use_input_stats")
"""Arguments of operators that say whether a model is trained."""
_RATES: Final = ("dropout", "dropout_p")
"""Arguments that say how much is dropped out, of operators that do something else, too."""
_PROBABILITIES: Final = ("p", *_RATES)


def mode_of(seen: Survey) -> str:
    """`eval`, `training`, or of how many modules the two are; "" for modules without a mode."""
    modules = [each for _, each in seen.modules() if each.type.qualname != HOLDER]
    flags = [each.get("training") for each in modules if each.type.slot("training") is not None]
    training = sum(flag is True for flag in flags)
    if not flags:
        return ""
    if training in (0, len(flags)):
        return "training" if training else "eval"
    return f"training in {counted(training, 'module')}, eval in {len(flags) - training:,}"


@dataclass(slots=True, eq=False)
class Modes:
    """The calls of one program by what they do in the mode that it is in."""

    seen: Survey
    _training: dict[str, set[bool]] = field(default_factory=lambda: defaultdict(set))
    _calls: dict[int, list[tuple[Value, ...]]] = field(default_factory=lambda: defaultdict(list))
    _owners: dict[int, tuple[Function, int]] = field(default_factory=dict)
    _known: dict[int, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for _, module in self.seen.modules():
            if module.type.slot("training") is not None:
                self._training[module.type.qualname].add(module.get("training") is True)
        for function in self.seen.functions:
            for index, value in enumerate(function.graph.inputs):
                self._owners[id(value)] = (function, index)
            for node in function.graph.all_nodes():
                callee = callee_of(node)
                if callee is not None:
                    is_method = node.kind == "prim::CallMethod"
                    self._calls[id(callee)].append(tuple(node.inputs if is_method else node.inputs[1:]))

    def random(self) -> list[str]:
        """The operators that draw random numbers, by name."""
        return sorted({node.kind for node in self._live() if self._draws(node)})

    def dropping(self) -> bool:
        """True if dropout is active."""
        switches = {*_FLAGS, *_RATES}
        return any(self._draws(node) and not switches.isdisjoint(dict(self._given(node))) for node in self._live())

    def adapting(self) -> bool:
        """True if batch norm changes its statistics."""
        return any(
            given.get("running_mean") is not None
            and constant_value(given["running_mean"]) is not None
            and self._flag(node)
            for node in self._live()
            for given in (dict(self._given(node)),)
        )

    def _draws(self, node: Node) -> bool:
        """True for an operator that draws random numbers, if its flag is on and its probability is not 0."""
        given = self._given(node)
        if not is_nondeterministic(node) and not any(name in _RATES for name, _ in given):
            return False
        rate = next((value for name, value in given if name in _PROBABILITIES), None)
        flag = next((value for name, value in given if name in _FLAGS), None)
        return self._drops_with(rate, flag, 0)

    def _drops_with(self, rate: Value | None, flag: Value | None, depth: int) -> bool:
        """True if somewhere in the program the flag is on while the rate is not 0."""
        owners = [
            self._owners[id(value)][0] for value in (rate, flag) if value is not None and id(value) in self._owners
        ]
        calls = self._calls[id(owners[0])] if owners else []
        if not calls or depth > _DEEPEST:
            return not (rate is not None and self._is_zero(rate)) and (flag is None or self._is_true(flag))

        def passed(value: Value | None, call: tuple[Value, ...]) -> Value | None:
            owner = self._owners.get(id(value))
            return call[owner[1]] if owner is not None and owner[0] is owners[0] and owner[1] < len(call) else value

        return any(self._drops_with(passed(rate, call), passed(flag, call), depth + 1) for call in calls)

    def _given(self, node: Node) -> list[tuple[str, Value]]:
        """The arguments of the operator by name."""
        op = op_of(node)
        names = [argument.name for argument in op.schema.arguments] if op is not None else []
        return list(zip(names, node.inputs, strict=False))

    def _flag(self, node: Node) -> bool:
        """The flag of the operator that says that a model is trained; True where it has none."""
        return next((self._is_true(value) for name, value in self._given(node) if name in _FLAGS), True)

    def _is_true(self, value: Value) -> bool:
        """True if the flag is on somewhere in the program."""
        constant = constant_value(value)
        if isinstance(constant, (bool, int)):
            return bool(constant)
        if id(value) not in self._known:
            self._known[id(value)] = False  # what goes in a circle adds nothing
            self._known[id(value)] = self._read(value)
        return self._known[id(value)]

    def _read(self, value: Value) -> bool:
        node = value.node
        if node.kind == "prim::GetAttr" and node.attr("name") == "training":
            type = node.inputs[0].type
            return True in self._training[type.qualname] if isinstance(type, ClassType) else False
        if node.kind == "aten::__not__":
            return not self._is_true(node.inputs[0])
        owner = self._owners.get(id(value))
        if owner is not None:
            function, index = owner
            return any(self._is_true(call[index]) for call in self._calls[id(function)] if index < len(call))
        return any(True in flags for flags in self._training.values())

    def _is_zero(self, value: Value, depth: int = 0) -> bool:
        """True if the number is certainly 0: a constant, what a branch of the mode gives, or what all callers pass."""
        node, owner = value.node, self._owners.get(id(value))
        if depth > _DEEPEST:
            return False
        if owner is not None:
            passed = [call[owner[1]] for call in self._calls[id(owner[0])] if owner[1] < len(call)]
            return bool(passed) and all(self._is_zero(each, depth + 1) for each in passed)
        if node.kind == "prim::If" and self._asks_for_mode(node.inputs[0]):
            branch = node.blocks[0 if self._is_true(node.inputs[0]) else 1]
            return self._is_zero(branch.outputs[list(node.outputs).index(value)], depth + 1)
        return bool(constant_value(value) == 0)

    def _asks_for_mode(self, value: Value) -> bool:
        """True if the mode decides: constants, attributes `training`, arguments that callers pass."""
        node = value.node
        if node.kind == "aten::__not__":
            return self._asks_for_mode(node.inputs[0])
        if id(value) in self._owners:
            function, _ = self._owners[id(value)]
            return value.type == BOOL and id(function) in self._calls
        is_flag = node.kind == "prim::GetAttr" and node.attr("name") == "training"
        return is_flag or isinstance(constant_value(value), bool)

    def _live(self) -> Iterator[Node]:
        """The nodes outside of branches that a flag closes."""
        for function in self.seen.functions:
            if function.name not in _UNUSUAL:
                yield from self._of_block(function.graph.block)

    def _of_block(self, block: Block) -> Iterator[Node]:
        for node in block.nodes():
            yield node
            blocks = list(node.blocks)
            if node.kind == "prim::If" and self._asks_for_mode(node.inputs[0]):
                blocks = [blocks[0 if self._is_true(node.inputs[0]) else 1]]
            for each in blocks:
                yield from self._of_block(each)
            if node.has_attribute("Subgraph"):
                yield from self._of_block(node.attr("Subgraph").block)


_DEEPEST: Final = 20
"""Steps back from a number that are followed."""
_UNUSUAL: Final = ("__setstate__", "__getstate__", "reset_parameters")


def callee_of(node: Node) -> Function | None:
    """The function that the node calls."""
    found: object = None
    if node.kind == "prim::CallFunction" and isinstance(node.inputs[0].type, FunctionType):
        found = node.inputs[0].type.function
    elif node.kind == "prim::CallMethod" and isinstance(node.inputs[0].type, ClassType):
        found = node.inputs[0].type.methods.get(node.attr("name"))
    return found if isinstance(found, Function) else None
