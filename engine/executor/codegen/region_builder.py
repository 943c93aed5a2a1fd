"""The code at the end of a deferred region, which keeps what recording its operators later needs.

In: the nodes of a region that ran on arrays, and the variables of their values.  Out: the line that hands tensors,
values and results to an `aten.autograd.deferred.DeferredRegion`, and the function that makes the autograd nodes of
them, compiled when it is first needed.

    t = x.mm(w); r = torch.tanh(t)                      def make(x, k, record, made):
      a3 = x.array.dot(w.array)                             x0, x1 = x; k0, k1, = k
      a4 = tanh(a3)                                   →     t0 = hollow(k0)
      v4 = …                                                attach_0(t0, x0, x1); made.append(t0._grad_fn)
      if …: region_5((v1, v2), (f3, a4), (v4,))            t1 = kept(k1)
                                                            attach_1(t1, t0); made.append(t1._grad_fn)
                                                            record.through(0, t1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from engine.aten.autograd.deferred import DeferredRegion, again, hollow, shown
from engine.aten.autograd.record import attach_results, recipe_of
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.unboxed import entry, tensor_in
from engine.aten.values.tensor import Tensor, wrapped
from engine.executor.codegen.builder import FunctionBuilder
from engine.executor.codegen.deferred_regions import (
    ATTACH,
    CONVOLUTION,
    DROPOUT,
    FIRST,
    NONE,
    RERUN,
    DeferredRegions,
    attacher_of,
)
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Block, Node, Value
from engine.ir.ops import op_of
from engine.lang.generated import compile_function
from engine.lang.types import OptionalType, TensorType


@dataclass(eq=False, slots=True)
class OpenRegion:
    """A region that is being written: its nodes so far, and the variables that are kept until its end."""

    block: Block
    nodes: list[Node] = field(default_factory=list)
    inside: set[Value] = field(default_factory=set)
    forms: dict[Value, str] = field(default_factory=dict)
    """Variables that hold shape and dtype of arrays that were let go of."""
    postponed: list[Value] = field(default_factory=list)
    used: set[Value] = field(default_factory=set)

    def add(self, node: Node) -> None:
        self.inside.update(node.outputs)
        self.used.update(node.inputs)
        if node.kind not in ("prim::ListConstruct", "prim::ListUnpack"):
            self.nodes.append(node)

    def keeps(self, value: Value, out: FunctionBuilder, regions: DeferredRegions) -> bool:
        """True if the region needs the value's variable, which has no other uses left.  If it needs only shape and
        dtype of an array, these are stored here and the array may go."""
        if value in self.inside and value.node.kind == "prim::ListConstruct":
            return False
        if value in self.inside and value in out.arrays and value not in out.names and not regions.reads(value):
            array = out.arrays[value]
            self.forms[value] = name = "f" + array[1:]
            out.line(f"{name} = ({array}.shape, {array}.dtype)")
            return False
        if value not in self.inside and value not in self.used:
            return False
        self.postponed.append(value)
        return True


class RegionBuilder:
    """Writes the end of a region: the line that hands its values over, and the function that makes its history."""

    def __init__(self, out: FunctionBuilder, regions: DeferredRegions, opened: OpenRegion) -> None:
        self.out, self.regions, self.opened = out, regions, opened
        self.outside: dict[Value, str] = {}
        self.logged: dict[str, str] = {}
        self.results: dict[Value, int] = {}
        self.names: dict[Value, str] = {}
        self.environment: dict[str, Any] = dict(_ENVIRONMENT)
        self.bound: dict[int, str] = {}
        self.late: dict[str, Callable[[], Any]] = {}
        """Makers of the functions of these names, called when the nodes are made."""
        self.lines: list[str] = []
        self.depends: dict[Value, frozenset[int]] = {}

    def close(self) -> DeferredRegion | None:
        """Write the line; returns the region, or None if no result of it can have a history."""
        opened, out = self.opened, self.out
        self.results = {}
        for node in opened.nodes:
            for value in node.outputs:
                if value in out.names and value in out.arrays and isinstance(value.type, TensorType):
                    self.results[value] = len(self.results)
        for node in opened.nodes:
            self.step(node)
        depends = [self.depends.get(value, frozenset()) for value in self.results]
        needed = sorted(frozenset().union(*depends)) if depends else []
        return self._write(depends, needed) if needed else None

    def _write(self, depends: Sequence[frozenset[int]], needed: Sequence[int]) -> DeferredRegion | None:
        out = self.out
        held = [place for value, place in self.results.items() if self.regions.reads(value)]
        region = DeferredRegion(self.maker(), depends, held)
        outside = [*self.outside]
        asked = [_asked(out.value(outside[i]), outside[i]) for i in needed if _may_require(outside[i])]
        tensors = "".join(f"{out.value(value)}, " for value in outside)
        values = "".join(f"{text}, " for text in self.logged)
        results = "".join(f"{out.names[value]}, " for value in self.results)
        if not asked:
            return None
        out.line(f"if {' or '.join(asked)}:")
        out.line(f"    {out.bind('region', region)}(({tensors}), ({values}), ({results}))")
        return region

    def maker(self) -> Callable[[], Callable[..., None]]:
        lines = [
            "def make(x, k, record, made):",
            f"    ({''.join(f'{name}, ' for name in self.outside.values())}) = x",
            f"    ({''.join(f'{name}, ' for name in self.logged.values())}) = k",
            *(f"    {line}" for line in self.lines),
        ]
        environment, late, text = self.environment, self.late, "\n".join(lines)

        def write() -> Callable[..., None]:
            environment.update((name, make()) for name, make in late.items())
            return compile_function(text, "make", environment, "<nodes of a deferred region>")

        return write

    # -- names

    def bind(self, what: str, thing: Any) -> str:
        if id(thing) not in self.bound:
            self.bound[id(thing)] = name = f"{what}_{len(self.bound)}"
            self.environment[name] = thing
        return self.bound[id(thing)]

    def bind_late(self, what: str, op: Op, make: Callable[[], Any]) -> str:
        """A function of the operator, made when it is needed: most histories are never asked for."""
        name = f"{what}_of_{self.bind('op', op)}"
        self.late[name] = make
        return name

    def log(self, text: str) -> str:
        """The name, in the function that makes the history, of the present value of a variable."""
        return self.logged.setdefault(text, f"k{len(self.logged)}")

    def operand(self, value: Value) -> str:
        """The expression for a value in the function that makes the nodes."""
        if value in self.names:
            return self.names[value]
        if value.node.kind == "prim::ListConstruct" and tensor_in(value.type):
            return f"[{', '.join(map(self.operand, value.node.inputs))}]"
        constant = constant_value(value)
        if tensor_in(value.type) and constant is not None:
            return self.outside.setdefault(value, f"x{len(self.outside)}")
        if constant is None or type(constant) in (bool, int, str):
            return repr(constant)
        return self.bind("constant", constant) if constant is not NOT_CONSTANT else self.log(self.out.value(value))

    def result(self, value: Value, source: Value | None) -> None:
        """Write a line that makes a tensor for a result; `source`: the tensor of which it may be a view."""
        self.names[value] = name = f"t{len(self.names)}"
        if self.regions.reads(value) or value in self.results:
            logged = self.log(self.out.arrays[value])
            if source is not None:
                self.lines.append(f"{name} = shown({logged}, {self.operand(source)})")
            else:
                self.lines.append(f"{name} = wrapped({logged})")
                if value in self.results and self.regions.reads(value):
                    self.lines.append(f"{name}._storage = record.storages[{self.results[value]}][0]")
            return
        form = self.opened.forms.get(value)
        if form is None:
            array = self.out.arrays[value]
            form = f"({array}.shape, {array}.dtype)"
        self.lines.append(f"{name} = hollow({self.log(form)})")

    # -- steps

    def step(self, node: Node) -> None:
        if node.kind in ("prim::ListConstruct", "prim::ListUnpack"):
            return
        way = self.regions.ways[node]
        operands = [self.operand(value) for value in node.inputs]
        values = _tensors_of(node)
        self._note_dependence(node, values, recipe_of(way.op).through)
        if way.kind == RERUN:
            self._rerun(node, way.op, operands, values)
        elif way.kind == DROPOUT:
            self._dropout(node, operands)
        else:
            source = _source(node)
            for value in values:
                self.result(value, source)
            names = [self.names[value] for value in values]
            self._attach(way.kind, way.op, node, names, operands)
        for value in values:
            if value in self.results and self.depends.get(value):
                self.lines.append(f"record.through({self.results[value]}, {self.names[value]})")

    def _note_dependence(self, node: Node, values: Iterable[Value], through: frozenset[int] | None) -> None:
        """Note the tensors from outside that the results depend on; `through`: places with a gradient, if not all."""
        found: set[int] = set()
        for value in self.regions.depends(node):
            inputs = value.node.inputs if value.node.kind == "prim::ListConstruct" else [value]
            for each in inputs:
                if each in self.depends:
                    found |= self.depends[each]
                elif each in self.outside:
                    found.add([*self.outside].index(each))
        for place, value in enumerate(values):
            self.depends[value] = frozenset(found if through is None or place in through else ())

    def _attach(self, kind: str, op: Op, node: Node, names: Sequence[str], operands: Sequence[str]) -> None:
        if kind == NONE:
            return
        arguments = ", ".join(operands)
        if kind == ATTACH:
            function = self.bind_late("attach", op, partial(attacher_of, op))
            self.lines.append(f"{function}({names[0]}, {arguments})")
        elif kind == CONVOLUTION:
            own = op_of(node)
            assert own is not None
            n = own.schema.arguments[3].broadcast or 0
            function = self.bind_late("convolved", own, lambda: _convolved(n, attacher_of(op), own.run))
            self.lines.append(f"{names[0]} = {function}(made, {names[0]}, {arguments})")
        else:
            results = names
            if kind == FIRST:
                count = len(op.schema.arguments)
                arguments, results = ", ".join(operands[:count]), [names[0], "None", "None"]
            given = "".join(f"{name}, " for name in results)
            self.lines.append(f"attach_results({self.bind('op', op)}, ({arguments}, ), ({given}))")
        if kind != CONVOLUTION:
            self.lines.append(f"made.append({names[0]}._grad_fn)")

    def _rerun(self, node: Node, op: Op, operands: Sequence[str], values: Sequence[Value]) -> None:
        for value in values:
            self.names[value] = f"t{len(self.names)}"
        targets = ", ".join(self.names[value] for value in values)
        function = self.bind_late("run", op, lambda: op.run)
        self.lines.append(f"{targets} = again(made, {function}, {', '.join(operands)})")

    def _dropout(self, node: Node, operands: Sequence[str]) -> None:
        self.result(node.output, None)
        name, mask = self.names[node.output], self.log(self.out.masks[node])
        self.lines.append(f"{name} = dropped({name}, {mask}, {operands[0]}, made)")


def _convolved(n: int, attach: Any, run: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def convolved(
        made: list[Any],
        result: Tensor,
        x: Tensor,
        w: Tensor,
        b: Tensor | None,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
    ) -> Tensor:
        if x.array.ndim != n + 2:
            return again(made, run, x, w, b, stride, padding, dilation, groups)  # type: ignore[no-any-return]
        attach(result, x, w, b, stride, padding, dilation, False, [0] * n, groups)
        made.append(result._grad_fn)
        return result

    return convolved


def _tensors_of(node: Node) -> list[Value]:
    """The tensors that a node returns, including the parts of a list."""
    if isinstance(node.outputs[0].type, TensorType):
        return [*node.outputs]
    return [*node.output.uses[0].user.outputs]


def _source(node: Node) -> Value | None:
    """The tensor of which the results may be views."""
    op = op_of(node)
    assert op is not None
    returned = op.schema.returns[0].alias
    return node.inputs[0] if returned is not None else None


def _may_require(value: Value) -> bool:
    constant = constant_value(value)
    if isinstance(constant, Tensor):
        return constant.requires_grad
    return not (isinstance(value.type, TensorType) and value.type.requires_grad is False)


def _asked(name: str, value: Value) -> str:
    asked = f"{name}._requires_grad or {name}._base is not None"
    return f"{name} is not None and ({asked})" if isinstance(value.type, OptionalType) else asked


def _dropped(result: Tensor, mask: Any, source: Tensor, made: list[Any]) -> Tensor:
    """The result of a dropout: the same tensor, or its product with the mask."""
    if mask is None:
        return source
    attach = attacher_of(entry("mul.Tensor"))
    assert attach is not None
    attach(result, source, wrapped(mask))
    made.append(result._grad_fn)
    return result


_ENVIRONMENT: Final[dict[str, Any]] = {
    "wrapped": wrapped, "hollow": hollow, "shown": shown, "attach_results": attach_results, "dropped": _dropped,
    "again": again,
}  # fmt: skip
