"""What generated code notes of a stretch, so that its operators can be recorded later.

In: the nodes of a stretch that ran on arrays, and where the writer of the function has their values.  Out: the line
that hands tensors, values and results to an `aten.autograd.deferred.Stretch`, and the function that makes the nodes of
them, written when it is first needed.

    t = x.mm(w); r = torch.tanh(t)                      def make(x, k, record, made):
      a3 = x.array.dot(w.array)                             x0, x1 = x; k0, k1, = k
      a4 = tanh(a3)                                   →     t0 = hollow(k0)
      v4 = …                                                attach_0(t0, x0, x1); made.append(t0._grad_fn)
      if …: stretch_5((v1, v2), (f3, a4), (v4,))            t1 = kept(k1)
                                                            attach_1(t1, t0); made.append(t1._grad_fn)
                                                            record.through(0, t1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from engine.aten.autograd.deferred import Stretch, again, hollow, shown
from engine.aten.autograd.record import attach_results, recipe_of
from engine.aten.dispatch.op import Op
from engine.aten.dispatch.unboxed import entry, tensor_in
from engine.aten.values.tensor import Tensor, wrapped
from engine.executor.stretches import ATTACH, CONVOLUTION, DROPOUT, FIRST, NONE, RERUN, Stretches, attacher_of
from engine.ir.constants import NOT_CONSTANT, constant_value
from engine.ir.graph import Block, Node, Value
from engine.ir.ops import op_of
from engine.lang.types import OptionalType, TensorType

if TYPE_CHECKING:
    from engine.executor.source import Writer


@dataclass(eq=False, slots=True)
class Open:
    """A stretch that is being written: its nodes so far, and names that are not let go of before its end."""

    block: Block
    nodes: list[Node] = field(default_factory=list)
    inside: set[Value] = field(default_factory=set)
    forms: dict[Value, str] = field(default_factory=dict)
    """Variables with the forms of arrays that are gone."""
    postponed: list[Value] = field(default_factory=list)
    used: set[Value] = field(default_factory=set)

    def add(self, node: Node) -> None:
        self.inside.update(node.outputs)
        self.used.update(node.inputs)
        if node.kind not in ("prim::ListConstruct", "prim::ListUnpack"):
            self.nodes.append(node)

    def keeps(self, value: Value, writer: Writer) -> bool:
        """Does the stretch need what has the value's name, which nobody else does any more?  Of arrays of which only
        the form is wanted it takes that now."""
        if value in self.inside and value.node.kind == "prim::ListConstruct":
            return False
        if value in self.inside and value in writer.arrays and value not in writer.names:
            stretches = writer.forms.stretches
            assert stretches is not None
            if not stretches.reads(value):
                array = writer.arrays[value]
                self.forms[value] = name = "f" + array[1:]
                writer.line(f"{name} = ({array}.shape, {array}.dtype)")
                return False
        if value not in self.inside and value not in self.used:
            return False
        self.postponed.append(value)
        return True


class Closing:
    """The end of a stretch."""

    def __init__(self, writer: Writer, opened: Open) -> None:
        assert writer.forms.stretches is not None
        self.writer, self.opened = writer, opened
        self.stretches: Stretches = writer.forms.stretches
        self.outside: dict[Value, str] = {}
        self.logged: dict[str, str] = {}
        self.results: dict[Value, int] = {}
        self.names: dict[Value, str] = {}
        self.environment: dict[str, Any] = dict(_ENVIRONMENT)
        self.bound: dict[int, str] = {}
        self.late: dict[str, Callable[[], Any]] = {}
        """What makes the functions of these names, once nodes are made."""
        self.lines: list[str] = []
        self.depends: dict[Value, frozenset[int]] = {}

    def close(self) -> None:
        """Write the line, if any result of the stretch may have a history."""
        opened, writer = self.opened, self.writer
        self.results = {}
        for node in opened.nodes:
            for value in node.outputs:
                if value in writer.names and value in writer.arrays and isinstance(value.type, TensorType):
                    self.results[value] = len(self.results)
        for node in opened.nodes:
            self.step(node)
        depends = [self.depends.get(value, frozenset()) for value in self.results]
        needed = sorted(frozenset().union(*depends)) if depends else []
        if needed:
            self.write(depends, needed)

    def write(self, depends: Sequence[frozenset[int]], needed: Sequence[int]) -> None:
        writer = self.writer
        held = [place for value, place in self.results.items() if self.stretches.reads(value)]
        stretch = Stretch(self.maker(), depends, held)
        outside = [*self.outside]
        asked = [_asked(writer.value(outside[i]), outside[i]) for i in needed if _may_require(outside[i])]
        tensors = "".join(f"{writer.value(value)}, " for value in outside)
        values = "".join(f"{text}, " for text in self.logged)
        results = "".join(f"{writer.names[value]}, " for value in self.results)
        if asked:
            writer.stretches.append(stretch)
            writer.line(f"if {' or '.join(asked)}:")
            writer.line(f"    {writer.bind('stretch', stretch)}(({tensors}), ({values}), ({results}))")

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
            exec(compile(text, "<nodes of a stretch>", "exec"), environment)
            make: Callable[..., None] = environment["make"]
            return make

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
        """The name for what a variable of the function holds now."""
        return self.logged.setdefault(text, f"k{len(self.logged)}")

    def operand(self, value: Value) -> str:
        """What the nodes' maker calls a value."""
        if value in self.names:
            return self.names[value]
        if value.node.kind == "prim::ListConstruct" and tensor_in(value.type):
            return f"[{', '.join(map(self.operand, value.node.inputs))}]"
        constant = constant_value(value)
        if tensor_in(value.type) and constant is not None:
            return self.outside.setdefault(value, f"x{len(self.outside)}")
        if constant is None or type(constant) in (bool, int, str):
            return repr(constant)
        return self.bind("constant", constant) if constant is not NOT_CONSTANT else self.log(self.writer.value(value))

    def result(self, value: Value, source: Value | None) -> None:
        """A line that makes a tensor of what is known of a result; `source`: what it may show."""
        self.names[value] = name = f"t{len(self.names)}"
        if self.stretches.reads(value) or value in self.results:
            logged = self.log(self.writer.arrays[value])
            if source is not None:
                self.lines.append(f"{name} = shown({logged}, {self.operand(source)})")
            else:
                self.lines.append(f"{name} = wrapped({logged})")
                if value in self.results and self.stretches.reads(value):
                    self.lines.append(f"{name}._storage = record.storages[{self.results[value]}][0]")
            return
        form = self.opened.forms.get(value)
        if form is None:
            array = self.writer.arrays[value]
            form = f"({array}.shape, {array}.dtype)"
        self.lines.append(f"{name} = hollow({self.log(form)})")

    # -- steps

    def step(self, node: Node) -> None:
        if node.kind in ("prim::ListConstruct", "prim::ListUnpack"):
            return
        way = self.stretches.ways[node]
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
        """Which results depend on which tensors from outside; `through`: places with a gradient, if not all."""
        found: set[int] = set()
        for value in self.stretches.depends(node):
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
        name, mask = self.names[node.output], self.log(self.writer.masks[node])
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
    """The tensors that a node gives, the parts of its list included."""
    if isinstance(node.outputs[0].type, TensorType):
        return [*node.outputs]
    return [*node.output.uses[0].user.outputs]


def _source(node: Node) -> Value | None:
    """The tensor whose memory the results may show."""
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
