"""Programs that mean something, for comparing ways to run them.

In: a random generator.  Out: the text of a function `f` of PARAMETERS (with a helper `g` that it may call), and
arguments for it.  The programs do what optimization passes have to be careful with: writes to tensors, lists and
dicts through views and other names, in branches and loops that may not run, values that come back as results or stay
in the caller's lists, prints, errors, early exits, constants worth folding.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from engine.aten.values.tensor import tensor

PARAMETERS: Final = "x: Tensor, y: Tensor, n: int, c: bool, ints: List[int], parts: List[Tensor]"
_HELPER: Final = """\
def g(a: Tensor, l: List[int], k: int) -> Tensor:
    if k > 2:
        a.add_(k)
        l.append(k)
        return a
    b = a * 2
    for i in range(k):
        b += l[0] if len(l) > 0 else i
    return b
"""
_TYPES: Final = {"t": "Tensor", "i": "int", "b": "bool", "l": "List[int]", "p": "List[Tensor]"}


class _Writer:
    """Writes one function.  `known` holds the names of each type that may be used where it is."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.known = {"t": ["x", "y"], "i": ["n"], "b": ["c"], "l": ["ints"], "p": ["parts"]}
        self.fresh = 0

    def some(self, type: str) -> str:
        return self.random.choice(self.known[type])

    def text(self) -> str:
        lines = self.block(self.random.randint(4, 9), 2)
        shared = "[x, y]" if self.random.random() < 0.2 else self.some("p")
        result = f"return {self.some('t')}, {self.some('t')}, {self.some('i')}, {self.some('l')}, {shared}"
        return f"{_HELPER}def f({PARAMETERS}):\n" + "".join(f"    {line}\n" for line in [*lines, result])

    def block(self, length: int, depth: int) -> list[str]:
        known = {type: list(names) for type, names in self.known.items()}
        lines = [line for _ in range(length) for line in self.statement(depth)]
        self.known = known if depth < 2 else self.known
        return lines

    def inner(self, depth: int) -> list[str]:
        return ["    " + line for line in self.block(self.random.randint(1, 3), depth - 1)]

    def statement(self, depth: int) -> list[str]:
        kinds = _SIMPLE if depth == 0 or self.random.random() < 0.75 else _NESTED
        return self.random.choice(kinds)(self, depth)

    def new(self, type: str, value: str) -> list[str]:
        """Bind a name, an old one at times."""
        names = self.known[type]
        if self.random.random() < 0.4 and len(names) > 1:
            return [f"{self.random.choice(names)} = {value}"]
        self.fresh += 1
        name = f"{type}{self.fresh}"
        names.append(name)
        return [f"{name} = {value}"]

    # -- expressions

    def tensor(self) -> str:
        t, forms = self.some("t"), _TENSORS
        return self.random.choice(forms).format(
            t=t, u=self.some("t"), i=self.int(1), p=self.some("p"), l=self.some("l")
        )

    def int(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.4:
            return self.random.choice([self.some("i"), str(self.random.randint(0, 4))])
        form = self.random.choice(_INTS)
        return form.format(
            i=self.int(depth - 1), j=self.int(depth - 1), l=self.some("l"), p=self.some("p"), b=self.bool(0)
        )

    def bool(self, depth: int = 1) -> str:
        if depth == 0 or self.random.random() < 0.3:
            return self.random.choice([self.some("b"), "True", "False"])
        form = self.random.choice(_BOOLS)
        return form.format(
            i=self.int(1), j=self.int(1), b=self.bool(0), d=self.bool(0), l=self.some("l"), t=self.some("t")
        )


_COUNTS: Final = ("min(n, 4)", "2", "3", "0", "min(len(ints), 3)", "min(n - 1, 3)", "9")
_TENSORS: Final = (
    "{t} + {u}", "{t} * 2", "{t} - {i}", "torch.neg({t})", "torch.relu({t})", "{t}.t()", "{t}.t()", "{t}[0]", "{t}",
    "{t}.view(-1)", "{t}.reshape(-1)", "{t}.contiguous()", "{t}.clone()", "{t}.detach()", "torch.zeros(2, 2)",
    "torch.ones(2, 2)", "torch.tensor([[1., 2.], [3., 4.]])", "torch.cat([{t}, {u}])[:2]", "torch.stack([{t}, {u}])[0]",
    "{p}[0]", "{p}[{i}]", "g({t}, {l}, {i})", "{t}.mm({u})", "torch.broadcast_tensors([{t}, {u}])[0]",
    "{t}.chunk(2)[0]", "{t}.expand(2, 2)", "{t}.unbind()[0]", "torch.full([2, 2], {i})", "{t}.to(torch.float32)",
)  # fmt: skip
_INTS: Final = (
    "{i} + {j}", "{i} * {j}", "{i} - {j}", "{i} // {j}", "len({l})", "{l}[{i}]", "len({p})", "{i} + 0", "{i} * 1",
    "({i} if {b} else {j})", "int({b})", "{i} + 2 + 3", "min({i}, {j})",
)  # fmt: skip
_BOOLS: Final = (
    "{i} < {j}", "{i} == {i}", "not ({b})", "{b} and {d}", "{b} or {i} > {j}", "{l} == {l}", "bool(({t} > 0).all())",
    "{t} is None", "{t}.dim() == 2",
)  # fmt: skip
_WRITES: Final = (
    "{t}.add_({u})", "{t}.add_({i})", "{t}.mul_(2)", "{t}.zero_()", "{t}.fill_({i})", "{t} += {u}", "{t}[0] = {i}",
    "{t}[0] += {u}[0]", "{t}.t().add_(1)", "{t}.copy_({u})", "{t}.relu_()", "{t}.sub_({u})",
)  # fmt: skip
_LIST_WRITES: Final = (
    "{l}.append({i})", "{l}[0] = {i}", "{l}.insert(0, {i})", "{l}.pop()", "{l}.reverse()", "{l}.extend({m}[:2])",
    "{p}.append({t})", "{p}[0] = {t}", "{p}[0].add_(1)", "{p}.pop()", "{p}.append({t}.clone())", "{l} += [1, {i}]",
)  # fmt: skip

Statement = Callable[[_Writer, int], list[str]]


def _write(w: _Writer, depth: int) -> list[str]:
    return [w.random.choice(_WRITES).format(t=w.some("t"), u=w.some("t"), i=w.int(1))]


def _list_write(w: _Writer, depth: int) -> list[str]:
    form = w.random.choice(_LIST_WRITES)
    return [form.format(l=w.some("l"), m=w.some("l"), i=w.int(1), p=w.some("p"), t=w.some("t"))]


def _two_names(w: _Writer, depth: int) -> list[str]:
    one, two = f"t{w.fresh + 1}", f"t{w.fresh + 2}"
    w.fresh += 2
    value = w.random.choice(["{t}, {u}", "({t} + 1, {u})", "{t}.chunk(2)", "torch.broadcast_tensors([{t}, {u}])"])
    line = f"{one}, {two} = {value.format(t=w.some('t'), u=w.some('t'))}"
    w.known["t"] += [one, two]
    return [line]


def _dictionary(w: _Writer, depth: int) -> list[str]:
    w.fresh += 1
    name = f"d{w.fresh}"
    made = f"{name} = {{'a': {w.some('t')}, 'b': {w.some('t')}}}"
    change = f"{name}['{w.random.choice('abc')}'] = {w.some('t')}"
    return [made, change, *w.new("t", f"{name}['{w.random.choice('abc')}']")]


def _optional(w: _Writer, depth: int) -> list[str]:
    w.fresh += 1
    name = f"o{w.fresh}"
    made = f"{name}: Optional[Tensor] = {w.some('t')} if {w.bool()} else None"
    return [made, f"if {name} is not None:", f"    {name}.add_({w.int(1)})", f"    print({name}.sum())"]


def _condition(w: _Writer, depth: int) -> list[str]:
    lines = [f"if {w.bool()}:", *w.inner(depth)]
    if w.random.random() < 0.6:
        lines += ["else:", *w.inner(depth)]
    return lines


def _counted(w: _Writer, depth: int) -> list[str]:
    w.fresh += 1
    head = f"for i{w.fresh} in range({w.random.choice(_COUNTS)}):"
    w.known["i"].append(f"i{w.fresh}")
    lines = [head, *w.inner(depth), *_way_out(w)]
    w.known["i"].pop()
    return lines


def _elements(w: _Writer, depth: int) -> list[str]:
    w.fresh += 1
    type, source = w.random.choice([("i", w.some("l")), ("t", w.some("p")), ("t", w.some("t"))])
    w.known[type].append(f"e{w.fresh}")
    lines = [f"for e{w.fresh} in {source}[:3]:", *w.inner(depth), *_way_out(w)]
    w.known[type].pop()
    return lines


def _while(w: _Writer, depth: int) -> list[str]:
    w.fresh += 1
    name = f"w{w.fresh}"
    return [f"{name} = 0", f"while {name} < 3 and ({w.bool()}):", f"    {name} += 1", *w.inner(depth), *_way_out(w)]


def _way_out(w: _Writer) -> list[str]:
    if w.random.random() < 0.6:
        return []
    return [f"    if {w.bool()}:", f"        {w.random.choice(['break', 'continue'])}"]


def _failure(w: _Writer, depth: int) -> list[str]:
    if w.random.random() < 0.5:
        return [f"assert {w.bool()}, 'wrong'"]
    return [f"if {w.bool()} and not ({w.bool()}):", "    raise ValueError('bad')"]


_SIMPLE: Final[tuple[Statement, ...]] = (
    *[lambda w, d: w.new("t", w.tensor())] * 5,
    lambda w, d: w.new("i", w.int()),
    lambda w, d: w.new("b", w.bool()),
    lambda w, d: w.new("l", w.random.choice((f"[{w.int(1)}, {w.int(1)}]", w.some("l") + "[1:]", w.some("l"), "[3]"))),
    lambda w, d: w.new("p", w.random.choice((f"[{w.some('t')}, {w.some('t')}]", w.some("p"), w.some("p") + " + [x]"))),
    *[_write] * 4, *[_list_write] * 2, _two_names, _dictionary, _optional, _failure,
    lambda w, d: [f"print({w.random.choice([w.some('t') + '.sum()', w.int(1), w.some('l')])})"],
)  # fmt: skip
_NESTED: Final[tuple[Statement, ...]] = (_condition, _condition, _counted, _elements, _while)


def program(random: Random) -> str:
    """The text of a function `f`, and of `g`, which it may call."""
    return _Writer(random).text()


def arguments(random: Random) -> tuple[Any, ...]:
    """Arguments for `f`; tensors are all of one shape, now and then one and the same."""
    x = tensor([[random.randint(-3, 3) + 0.5 for _ in range(2)] for _ in range(2)])
    y = x if random.random() < 0.15 else tensor([[1.0, -2.0], [random.randint(-2, 2) + 0.25, 4.0]])
    parts = [random.choice([x, y, tensor([[1.0, 1.0], [2.0, 2.0]])]) for _ in range(random.randint(1, 3))]
    ints = [random.randint(-2, 4) for _ in range(random.randint(0, 4))]
    return x, y, random.randint(0, 4), random.random() < 0.5, ints, parts
