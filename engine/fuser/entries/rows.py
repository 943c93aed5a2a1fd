"""Programs over rows: reductions and pointwise steps on one contiguous row after the other, in LLVM's text.

In: the statements of a `Program`, which tensors and numbers they name, and the kind of element.  Out: the text of

    void rows.NAME(ptr <each result>, ptr <each tensor>, i64 rows, i64 count, <each number>)

and, where the program is one reduction, of `columns.NAME`, which does the same over another dimension than the last.

A statement gives a name to a number of the row, or fills the row `out`.  It may call `sum`, `max`, `min`, `argmax` and
`argmin` of elements, `pick(x, place)`, and what scalar expressions may call; `count` is the length of a row:

    top = max(x); out = exp(x - top); total = sum(out); out = out / total

Statements that name a tensor which a call leaves out (`weight`) are left out as well.

Note [Sums as numpy has them]
What an operator gives must not depend on whether it is native already.  So sums are made in numpy's order, which is a
good one: eight by eight, in blocks of at most 128 elements, whose sums are added up pairwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from engine.fuser.entries.folds import FOLDS, LEAF, PLACES
from engine.fuser.expression import FLOATS, HALVES, Apply, Element, Literal, Number, Unsupported, Value, typed
from engine.fuser.lower import LLVM_TYPES, Library, function_text, one_element, scalar_lines
from engine.fuser.lower import symbol as of

MOST_HALVES: Final = 4096
"""Elements of a row of halves."""
CELLS: Final = dict.fromkeys(HALVES, "i16")
"""Storage types of kinds that are computed as another kind."""


@dataclass(frozen=True, slots=True)
class Program:
    """`results` are names that the statements give: "out" for the row, else numbers of the row.

    `short` is what is done instead for rows of fewer than `few` elements.
    """

    statements: str
    results: tuple[str, ...]
    optional: tuple[str, ...] = ()
    short: str = ""
    few: int = 0


class Fill(NamedTuple):
    """Computes the row `out`."""

    value: Value


class Let(NamedTuple):
    """Computes a number of the row."""

    name: str
    value: Value


class Fold(NamedTuple):
    """Makes one number of a row of values."""

    name: str
    how: str
    value: Value


class Pick(NamedTuple):
    """Reads the element of a row at a place."""

    name: str
    row: str
    place: str


Step = Fill | Let | Fold | Pick


def steps(text: str, tensors: Sequence[str], numbers: Sequence[str], kind: str) -> list[Step]:
    """The statements, typed, with each reduction a step of its own; raises Unsupported."""
    reader = _Reader(tensors, numbers, kind)
    for statement in ast.parse(text).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                reader.statement(name, value)
            case _:
                raise Unsupported(ast.unparse(statement))
    return reader.done


@dataclass(slots=True)
class _Reader(ast.NodeTransformer):
    tensors: Sequence[str]
    numbers: Sequence[str]
    kind: str
    done: list[Step] = field(default_factory=list)
    known: list[str] = field(default_factory=lambda: ["count"])
    """The numbers of the row so far."""

    def statement(self, name: str, value: ast.expr) -> None:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            if value.func.id == "pick":
                row, place = (ast.unparse(each) for each in value.args)
                self._know(Pick(name, row, place))
                return
            if value.func.id in FOLDS:
                self._know(Fold(name, value.func.id, self._typed(self.visit(value.args[0]))))
                return
        found = self._typed(self.visit(value))
        if name == "out":
            self.done.append(Fill(found))
        else:
            self._know(Let(name, found))

    def _know(self, step: Let | Fold | Pick) -> None:
        self.done.append(step)
        self.known.append(step.name)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if not (isinstance(node.func, ast.Name) and node.func.id in FOLDS):
            self.generic_visit(node)
            return node
        name = f"{node.func.id}.{len(self.done)}".replace(".", "_")
        self._know(Fold(name, node.func.id, self._typed(self.visit(node.args[0]))))
        return ast.Name(name, ast.Load())

    def _typed(self, node: ast.expr) -> Value:
        value = typed(ast.unparse(node), [*self.tensors, "out", *self.known], self.numbers, self.kind)
        return _with_numbers(value, frozenset(self.known))


def _with_numbers(value: Value, known: frozenset[str]) -> Value:
    """Numbers of the row, which are typed as elements are, as what they are."""
    match value:
        case Element(name, kind) if name in known:
            return Number(name, kind)
        case Apply(function, operands, kind):
            return Apply(function, tuple(_with_numbers(each, known) for each in operands), kind)
    return value


def _with_element(value: Value, name: str) -> Value:
    """The number of the row of this name as an element of `out`."""
    match value:
        case Number(found, kind) if found == name:
            return Element("out", kind)
        case Apply(function, operands, kind):
            return Apply(function, tuple(_with_element(each, name) for each in operands), kind)
    return value


def names_in(value: Value, what: type) -> dict[str, str]:
    """The elements, or the numbers, of an expression with their kinds."""
    if isinstance(value, Apply):
        return {name: kind for each in value.operands for name, kind in names_in(each, what).items()}
    return {value.name: value.kind} if isinstance(value, what) and isinstance(value, (Element, Number)) else {}


# ------------------------------------------------------------------ text


@dataclass(slots=True)
class RowText:
    """The functions of one program for one kind of element."""

    name: str
    program: Program
    tensors: tuple[str, ...]
    """`x`, whose rows are gone over, and what is the same for all rows."""
    numbers: tuple[str, ...]
    stored: str
    """The kind of element in memory; halves are computed in `f32`, from rows of at most `MOST_HALVES` elements."""
    library: Library
    parts: list[str] = field(default_factory=list)
    """Functions that the others call."""

    @property
    def kind(self) -> str:
        return "f32" if self.stored in HALVES else self.stored

    @property
    def type(self) -> str:
        return LLVM_TYPES[self.kind]

    @property
    def cell(self) -> str:
        return CELLS.get(self.stored, self.type)

    def steps_of(self, text: str) -> list[Step]:
        return steps(text, self.tensors, self.numbers, self.kind)

    def functions(self) -> Iterator[str]:
        """The text of all of them; raises Unsupported."""
        whole = self.rows()
        yield from self.parts
        yield whole
        if (reduction := self.reduction()) is not None:
            yield self.columns(*reduction)

    def signature(self) -> str:
        """The parameters; the results' rows may be read again while they are made."""
        pointers = [f"ptr %{of(f'{name} at')}" for name in self.program.results]
        pointers += [f"ptr %{of(f'{name} at')}" for name in self.tensors]
        return ", ".join([*pointers, "i64 %rows", "i64 %n", *self._number_parameters()])

    def _number_parameters(self) -> list[str]:
        kind = "f64" if self.kind in FLOATS else "i64"
        return [f"{LLVM_TYPES[kind]} %{of(name)}" for name in self.numbers]

    def rows(self) -> str:
        first, is_half = self.tensors[0], self.stored in HALVES
        has_out = "out" in self.program.results
        lines = [
            f'define internal void @"rows.{self.name}.{self.stored}"({self.signature()}) noinline {{',
            "start:",
            f"  %{of('count')} = {self._count()}",
            *(self._widened_others() if is_half else self._others()),
            "  br label %row",
            "row:",
            f"  %r = phi i64 [0, %{'begin' if is_half else 'start'}], [%r.next, %done]",
            "  %offset = mul i64 %r, %n",
        ]
        for name, is_there in ((first, True), ("out", has_out)):
            target = f"{name} row" if is_half else name
            if is_there:
                lines.append(f"  %{of(target)} = getelementptr {self.cell}, ptr %{of(f'{name} at')}, i64 %offset")
        if is_half:
            lines.append(f"  call void @widen.{self.stored}(ptr %{of(first)}, ptr %{of(f'{first} row')}, i64 %n)")
        if self.program.short:
            lines += [f"  %few = icmp ult i64 %n, {self.program.few}", "  br i1 %few, label %short, label %long"]
            lines += ["short:", *self.body(self.program.short, "short"), "  br label %done", "long:"]
        else:
            lines += ["  br label %long", "long:"]
        lines += [*self.body(self.program.statements, "long"), "  br label %done", "done:"]
        if is_half and has_out:
            lines.append(f"  call void @narrow.{self.stored}(ptr %{of('out row')}, ptr %{of('out')}, i64 %n)")
        return "\n".join(
            [*lines, "  %r.next = add nuw i64 %r, 1", "  %more = icmp ult i64 %r.next, %rows",
             "  br i1 %more, label %row, label %end", "end:", "  ret void", "}"]
        )  # fmt: skip

    def _others(self) -> Iterator[str]:
        for name in self.tensors[1:]:
            yield f"  %{of(name)} = getelementptr i8, ptr %{of(f'{name} at')}, i64 0"

    def _widened_others(self) -> Iterator[str]:
        """Room for rows of halves made wide, and what is the same for all rows in it."""
        for name in (*self.tensors, "out"):
            yield f"  %{of(name)} = alloca [{MOST_HALVES} x {self.type}], align 64"
        for name in self.tensors[1:]:
            yield f"  %is.{name} = icmp ne ptr %{of(f'{name} at')}, null"
            yield f"  br i1 %is.{name}, label %widen.{name}, label %widened.{name}"
            yield f"widen.{name}:"
            yield f"  call void @widen.{self.stored}(ptr %{of(name)}, ptr %{of(f'{name} at')}, i64 %n)"
            yield f"  br label %widened.{name}"
            yield f"widened.{name}:"
        yield "  br label %begin"
        yield "begin:"

    def _count(self) -> str:
        return f"uitofp i64 %n to {self.type}" if self.kind in FLOATS else "add i64 %n, 0"

    def body(self, text: str, tag: str) -> Iterator[str]:
        """One row; values of the row are `%"of NAME"` with the tag, so that two bodies go into one function."""
        values = {"count": f"%{of('count')}"} | {name: f"%{of(name)}" for name in self.numbers}
        for i, step in enumerate(self.steps_of(text)):
            label = f"{tag}{i}"
            lines = list(self._step(step, label, values))
            given = set() if isinstance(step, Pick) else names_in(step.value, Element).keys()
            needed = [name for name in self.program.optional if name in given]
            if not needed:
                yield from lines
                continue
            (name,) = needed
            yield f"  %{label}.is = icmp ne ptr %{of(f'{name} at')}, null"
            yield f"  br i1 %{label}.is, label %{label}.do, label %{label}.on"
            yield f"{label}.do:"
            yield from lines
            yield f"  br label %{label}.on"
            yield f"{label}.on:"
        for name in self.program.results:
            if name != "out":
                is_place = values[name].endswith(".place")
                type, found = "i64" if is_place else self.cell, values[name]
                if self.stored in HALVES and not is_place:
                    found = f"%{tag}.{name}.half"
                    yield f"  {found} = call i16 @half.{self.stored}(float {values[name]})"
                yield f"  %{tag}.{name}.to = getelementptr {type}, ptr %{of(f'{name} at')}, i64 %r"
                yield f"  store {type} {found}, ptr %{tag}.{name}.to"

    def _step(self, step: Step, label: str, values: dict[str, str]) -> Iterator[str]:
        match step:
            case Fill(value):
                yield from self._fill(value, label, values)
            case Let(name, value):
                self.parts += one_element(value, self.library)
                lines, values[name] = scalar_lines(value, values, label)
                yield from lines
            case Fold(name, how, value):
                values[name] = f"%{label}.place" if how in PLACES else f"%{label}.folded"
                type = "i64" if how in PLACES else self.type
                yield f"  {values[name]} = call {type} {self._folded(how, value, label, values)}"
            case Pick(name, row, place):
                values[name] = f"%{label}.picked"
                yield f"  %{label}.at = getelementptr {self.type}, ptr %{of(row)}, i64 {values[place]}"
                yield f"  {values[name]} = load {self.type}, ptr %{label}.at"

    def _arguments(self, value: Value, values: Mapping[str, str], first: str = "") -> tuple[dict[str, str], str, str]:
        """The elements of an expression, and what to pass for them and for its numbers."""
        elements = names_in(value, Element)
        if first in elements:
            elements = {first: elements.pop(first), **elements}
        pointers = ", ".join(f"ptr %{of(name)}" for name in elements)
        numbers = "".join(f", {LLVM_TYPES[kind]} {values[name]}" for name, kind in names_in(value, Number).items())
        return elements, pointers, numbers

    def _fill(self, value: Value, label: str, values: Mapping[str, str]) -> Iterator[str]:
        elements, pointers, numbers = self._arguments(value, values, "out")
        name = f'"fill.{self.name}.{self.stored}.{label}"'
        in_place = "out" in elements
        text = function_text(name, value, elements, names_in(value, Number), self.library, in_place)
        self.parts.append(text)
        target = "" if in_place else f"ptr %{of('out')}, "
        yield f"  call void @{name}({target}{pointers}, i64 %n{numbers})"

    def _folded(self, how: str, value: Value, label: str, values: Mapping[str, str]) -> str:
        """The call that folds a row; of values that are computed as it goes, only sums."""
        if isinstance(value, Element):
            return f"@{how}.{self.kind}(ptr %{of(value.name)}, i64 %n)"
        if how != "sum":
            raise Unsupported(f"{how} of what is no row")
        _, pointers, numbers = self._arguments(value, values)
        name = f"{self.name}.{self.stored}.{label}"
        self.parts += self._sum_of(name, value)
        return f'@"sum.{name}"({pointers}, i64 %n{numbers})'

    def _sum_of(self, name: str, value: Value) -> Iterator[str]:
        """A sum of values that are computed block by block."""
        elements, given = names_in(value, Element), names_in(value, Number)
        yield function_text(f'"terms.{name}"', value, elements, given, self.library, in_place=False)
        head = [f"ptr %{of(each)}" for each in elements]
        tail = [f"{LLVM_TYPES[kind]} %{of(each)}" for each, kind in given.items()]
        parameters, first = ", ".join([*head, "i64 %n", *tail]), ", ".join([*head, "i64 %first", *tail])
        rest = ", ".join([*(f"ptr %{of(f'{each} later')}" for each in elements), "i64 %second", *tail])
        block = ", ".join(["ptr %terms", *head, "i64 %n", *tail])
        moved = "\n".join(
            f"  %{of(f'{each} later')} = getelementptr {self.type}, ptr %{of(each)}, i64 %first" for each in elements
        )
        yield f"""define internal {self.type} @"some.{name}"({parameters}) noinline {{
start:
  %terms = alloca [{LEAF} x {self.type}], align 64
  %short = icmp ule i64 %n, {LEAF}
  br i1 %short, label %leaf, label %halves
leaf:
  call void @"terms.{name}"({block})
  %sum = call {self.type} @leaf.{self.kind}(ptr %terms, i64 %n)
  ret {self.type} %sum
halves:
  %half = lshr i64 %n, 1
  %first = and i64 %half, -8
  %second = sub i64 %n, %first
{moved}
  %a = call {self.type} @"some.{name}"({first})
  %b = call {self.type} @"some.{name}"({rest})
  %both = fadd {self.type} %a, %b
  ret {self.type} %both
}}"""
        yield f"""define internal {self.type} @"sum.{name}"({parameters}) {{
  %s = call {self.type} @"some.{name}"({parameters})
  %sum = fadd {self.type} 0.0, %s
  ret {self.type} %sum
}}"""

    # -------------------------------------------------------------- other dimensions

    def reduction(self) -> tuple[Fold, Value | None] | None:
        """The program as one reduction of elements and what is made of its result, if that is all that it is."""
        if len(self.program.results) != 1 or len(self.tensors) != 1 or self.stored in HALVES:
            return None
        first, *rest = self.steps_of(self.program.statements)
        if not isinstance(first, Fold) or first.how not in COMBINED or len(rest) > 1:
            return None
        if not rest:
            return first, None
        (last,) = rest
        if not isinstance(last, Let):
            return None
        return first, _with_element(last.value, first.name)

    def columns(self, fold: Fold, last: Value | None) -> str:
        """Over a dimension with `inner` elements behind each: row by row into the result."""
        name, size = f"{self.name}.{self.stored}", self.type
        combined = Apply(COMBINED[fold.how], (Element("out", self.kind), fold.value), self.kind)
        zero = Literal(0, self.kind)
        begun = Apply("add", (zero, fold.value), self.kind) if fold.how == "sum" else fold.value
        numbers = dict.fromkeys(self.numbers, "f64" if self.kind in FLOATS else "i64")
        given = "".join(f", {p}" for p in self._number_parameters())
        texts = [
            function_text(f'"begin.{name}"', begun, {"x": self.kind}, numbers, self.library, False),
            function_text(f'"join.{name}"', combined, {"out": self.kind, "x": self.kind}, numbers, self.library, True),
        ]
        finish = ""
        if last is not None:
            more = {"count": self.kind, **numbers}
            texts.append(function_text(f'"finish.{name}"', last, {"out": self.kind}, more, self.library, True))
            finish = f'  call void @"finish.{name}"(ptr %out, i64 %inner, {size} %count{given})\n'
        parameters = ", ".join(["ptr %to", "ptr %from", "i64 %outer", "i64 %n", "i64 %inner"]) + given
        texts.append(f"""define internal void @"columns.{name}"({parameters}) noinline {{
start:
  %count = {self._count()}
  br label %block
block:
  %o = phi i64 [0, %start], [%o.next, %done]
  %far = mul i64 %o, %inner
  %out = getelementptr {size}, ptr %to, i64 %far
  %farther = mul i64 %far, %n
  %x = getelementptr {size}, ptr %from, i64 %farther
  call void @"begin.{name}"(ptr %out, ptr %x, i64 %inner{given})
  br label %check
check:
  %i = phi i64 [1, %block], [%i.next, %row]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %row, label %done
row:
  %step = mul i64 %i, %inner
  %at = getelementptr {size}, ptr %x, i64 %step
  call void @"join.{name}"(ptr %out, ptr %at, i64 %inner{given})
  %i.next = add nuw i64 %i, 1
  br label %check
done:
{finish}  %o.next = add nuw i64 %o, 1
  %again = icmp ult i64 %o.next, %outer
  br i1 %again, label %block, label %end
end:
  ret void
}}""")
        return "\n\n".join(texts)


COMBINED: Final = {"sum": "add", "max": "maximum", "min": "minimum"}
"""The reductions that go over columns, with the function that takes one more row in."""
