"""Programs over tensors of any shape, and calls of them that differ in all that plans are made for.

In: a random generator.  Out: the text of a function `f` of PARAMETERS (with a helper `g`), which views, splits and
writes to tensors in loops and branches that ask for sizes, elements and None; and forms of its arguments, of which the
first two are alike, so that there is a plan, and the others come with other sizes, ranks, dtypes, gradients and None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

import numpy as np

from engine.aten.dispatch.table import find
from engine.aten.values.tensor import Tensor, wrapped

PARAMETERS: Final = "x: Tensor, y: Tensor, z: Optional[Tensor], parts: List[Tensor], n: int"
_HELPER: Final = """\
def g(a: Tensor, b: Tensor, k: int) -> Tensor:
    if k > 2:
        a.add_(k)
        return a
    c = torch.tanh(a) * 2
    for i in range(k):
        c = c + torch.relu(b) if a.dim() > 1 else c * 0.5
    return c
"""

# ------------------------------------------------------------------ programs

_POINTWISE: Final = (
    "{t} + {u}", "{t} * {u}", "{t} - {u}", "{t} * 0.5", "{t} + {i}", "torch.relu({t})", "torch.tanh({t})", "-{t}",
    "torch.sigmoid({t})", "{t}.clamp(-1, 1)", "torch.where({t} > 0, {t}, {u})", "torch.maximum({t}, {u})",
    "{t} / ({u}.abs() + 1)", "torch.exp(-{t}.abs())", "{t}.pow(2)", "torch.sqrt({t}.abs() + 1)", "{t} * {t}",
    "torch.lerp({t}, {u}, 0.25)", "torch.addcmul({t}, {u}, {u})", "{t}.masked_fill({t} < 0, 0.5)", "({t} > {u})",
    "torch.nn.functional.gelu({t})", "{t}.expand_as({u}) + 1", "torch.add({t}, {u}, alpha=2)",
)  # fmt: skip
_SHAPED: Final = (
    "{t}.sum()", "{t}.sum(0)", "{t}.sum(-1, keepdim=True)", "{t}.mean()", "{t}.amax(-1)", "torch.softmax({t}, -1)",
    "torch.cat([{t}, {u}])", "torch.cat([{t}, {t}], -1)", "torch.stack([{t}, {u}])", "{t}.mm({u}.t())",
    "torch.matmul({t}, {u}.transpose(-1, -2))", "{t}.cumsum(0)", "torch.cat({p})", "torch.stack({p}).sum(0)",
    "torch.nn.functional.layer_norm({t}, [{t}.size(-1)])", "{t}.flip(0)", "torch.zeros_like({t})", "{t}.repeat(2, 1)",
    "torch.nn.functional.pad({t}, [0, 1])", "{t}.argmax(-1)", "torch.ones({t}.size(0))", "{t}.sort(-1)[0]",
    "torch.nonzero({t} > 0)", "{t}[{t} > 0]", "{t}.index_select(0, torch.arange({t}.size(0)))", "{t}.roll(1, 0)",
    "torch.linspace(0, 1, {t}.size(0))", "torch.nn.functional.linear({t}, {u})", "torch.outer({t}[0], {u}[0])",
)  # fmt: skip
_VIEWS: Final = (
    "{t}.t()", "{t}[0]", "{t}[1:]", "{t}[:, 1:]", "{t}.view(-1)", "{t}.flatten()", "{t}.unsqueeze(0)",
    "{t}.select(0, 0)",
    "{t}.narrow(0, 0, 1)", "{t}.transpose(0, -1)", "{t}.squeeze()", "{t}.reshape(-1)", "{t}[..., 0]", "{t}[-1]",
    "{t}",
    "{t}.expand(2, -1, -1)", "{t}.diagonal()", "{t}.contiguous()", "{t}[::2]", "{t}.view({t}.size(0), -1)", "{p}[0]",
    "{p}[-1]", "{t}.unbind(0)[0]", "{t}.split(1)[-1]", "{t}.chunk(2, -1)[0]", "{t}.detach()", "{t}.unfold(0, 1, 1)",
    "{t}.view_as({t})", "{t}.swapaxes(0, -1)", "torch.broadcast_tensors({t}, {u})[0]", "{t}.movedim(0, -1)",
)  # fmt: skip
_OTHERS: Final = (
    "{t}.clone()", "{t}.to(torch.float64)", "{t}.float()", "g({t}, {u}, {i})", "{t}.long().float()", "z",
    "{t}.double()",
    "torch.tensor([1.0, 2.0, 3.0])", "torch.arange(3).float()", "torch.zeros({t}.shape)", "torch.ones(2, 3)",
    "{t}.type_as({u})", "torch.full([1, 3], {i} * 0.5)",
)  # fmt: skip
_WRITES: Final = (
    "{t}.add_(1)", "{t}.mul_({u})", "{t}.add_({u})", "{t}.zero_()", "{t} += {u}", "{t}[0] = {i}", "{t}[0] += {u}[0]",
    "{t}[..., 0] *= 2", "{t}.t().sub_(1)", "{t}.copy_({u})", "{t}.relu_()", "{t}[1:].mul_(0.5)", "{t}.clamp_(-1, 1)",
    "{t}.view(-1)[0] = 3.0", "{t}[{t} > 1] = 0.5", "{t}.unsqueeze(0).add_({u})", "{t}.fill_({i})", "{p}[0].add_(1)",
    "{p}[-1].mul_(2)", "{p}[0] += {t}", "{t}.masked_fill_({t} < 0, 0.25)", "{t}.neg_()", "{t}.select(0, -1).tanh_()",
    "torch.add({t}, 1, out={u})", "torch.mul({t}, {t}, out={u}[:1])", "torch.tanh({t}[0], out={u}[-1])",
)  # fmt: skip
_LISTS: Final = (
    "{t}.unbind(0)", "{t}.split(1)", "{t}.chunk(2)", "[{t}, {u}]", "[{t}[0], {t}[-1]]", "{p} + [{t}]", "{p}[:1]", "{p}",
    "{t}.split(1, -1)", "torch.tensor_split({t}, 2)", "[e * 2 for e in {p}]", "[{t}, {t}.t()]",
    "list(torch.broadcast_tensors({t}, {u}))",
)  # fmt: skip
_LIST_WRITES: Final = (
    "{p}.append({t})", "{p}[0] = {t}", "{p}.pop()", "{p}.reverse()", "{p}.insert(0, {t})",
    "{p}.extend({t}.unbind(0)[:2])",
)  # fmt: skip
_INTS: Final = (
    "n",
    "1",
    "2",
    "n - 1",
    "len({p})",
    "{t}.dim()",
    "{t}.size(0)",
    "{t}.numel()",
    "min(n, 2)",
    "{t}.shape[-1]",
)
_BOOLS: Final = (
    "n > 1", "{t}.size(0) > 2", "{t}.dim() == 2", "bool(({t} > 0).any())", "z is None", "{t}.requires_grad", "n == {i}",
    "len({p}) > 1",
    "{t}.dtype == torch.float32", "bool({t}.sum() > 1.3)", "{t}.is_contiguous()", "{t}.numel() == {u}.numel()",
)  # fmt: skip
_COUNTS: Final = ("n", "2", "min(n, 3)", "len({p})", "min({t}.size(0), 3)")


class _Writer:
    """Writes one function.  `known` holds the names of each type that may be used where it is."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.known = {"t": ["x", "y"], "i": ["n"], "p": ["parts"]}
        self.fresh = 0

    def text(self) -> str:
        lines = self.block(self.random.randint(4, 10), 2)
        tensors = self.random.sample(self.known["t"], self.random.randint(1, len(self.known["t"])))
        results = ", ".join([f"[{', '.join(tensors)}]", self.some("t"), self.some("p"), self.fill(_INTS)])
        body = "".join(f"    {line}\n" for line in ["if z is None:", "    z = x * 1", *lines, f"return {results}"])
        return f"{_HELPER}def f({PARAMETERS}):\n{body}"

    def some(self, type: str) -> str:
        """A name; the newest ones are more likely."""
        names = self.known[type]
        return self.random.choice(names[-3:] if self.random.random() < 0.5 else names)

    def fill(self, forms: Sequence[str]) -> str:
        """One of the forms with names in it."""
        return self.random.choice(forms).format(
            t=self.some("t"), u=self.some("t"), p=self.some("p"), i=self.random.choice(["n", "1", "2", "0"])
        )

    def bind(self, type: str, value: str, again: float = 0.25) -> str:
        names = self.known[type]
        if self.random.random() < again and len(names) > 1:
            return f"{self.random.choice(names)} = {value}"
        self.fresh += 1
        names.append(f"{type}{self.fresh}")
        return f"{names[-1]} = {value}"

    def block(self, length: int, depth: int) -> list[str]:
        known = {type: [*names] for type, names in self.known.items()}
        lines = [line for _ in range(length) for line in self.statement(depth)]
        self.known = known if depth < 2 else self.known
        return lines

    def inner(self, depth: int) -> list[str]:
        return ["    " + line for line in self.block(self.random.randint(1, 4), depth - 1)]

    def statement(self, depth: int) -> list[str]:
        kinds = _SIMPLE if depth == 0 or self.random.random() < 0.8 else _NESTED
        return self.random.choice(kinds)(self, depth)


Statement = Callable[[_Writer, int], list[str]]


def _bound(type: str, forms: Sequence[str]) -> Statement:
    return lambda w, _: [w.bind(type, w.fill(forms))]


def _plain(forms: Sequence[str]) -> Statement:
    return lambda w, _: [w.fill(forms)]


def _unpacked(w: _Writer, _: int) -> list[str]:
    value = w.fill(
        ("{t}.chunk(2)", "{t}.unbind(0)", "{t}.split(1)", "({u}, {t})", "torch.split({t}, [1, 1])", "{t}.max(-1)")
    )
    w.fresh += 2
    names = f"t{w.fresh - 1}", f"t{w.fresh}"
    w.known["t"] += names
    return [f"{', '.join(names)} = {value}"]


def _condition(w: _Writer, depth: int) -> list[str]:
    lines = [f"if {w.fill(_BOOLS)}:", *w.inner(depth)]
    return lines + (["else:", *w.inner(depth)] if w.random.random() < 0.6 else [])


def _counted(w: _Writer, depth: int) -> list[str]:
    w.fresh += 1
    return [f"for i{w.fresh} in range({w.fill(_COUNTS)}):", *w.inner(depth), *_way_out(w)]


def _elements(w: _Writer, depth: int) -> list[str]:
    w.fresh += 1
    name = f"e{w.fresh}"
    head = f"for {name} in {w.fill(('{p}[:3]', '{t}[:3]', '{t}.split(1)[:2]', '{t}.unbind(0)[:3]'))}:"
    w.known["t"].append(name)
    lines = [head, *w.inner(depth), *_way_out(w)]
    w.known["t"].remove(name)
    return lines


def _while(w: _Writer, depth: int) -> list[str]:
    w.fresh += 1
    name = f"w{w.fresh}"
    head = f"while {name} < 3 and {w.fill(_BOOLS)}:"
    return [f"{name} = 0", head, f"    {name} += 1", *w.inner(depth), *_way_out(w)]


def _without_gradients(w: _Writer, depth: int) -> list[str]:
    return ["with torch.no_grad():", *w.inner(depth)]


def _way_out(w: _Writer) -> list[str]:
    if w.random.random() < 0.7:
        return []
    return [f"    if {w.fill(_BOOLS)}:", f"        {w.random.choice(['break', 'continue'])}"]


def _failure(w: _Writer, _: int) -> list[str]:
    return [f"assert {w.fill(_BOOLS)} or n > 1, 'wrong'"]


_SIMPLE: Final[tuple[Statement, ...]] = (
    *[_bound("t", _POINTWISE)] * 6, *[_bound("t", _SHAPED)] * 3, *[_bound("t", _VIEWS)] * 4, _bound("t", _OTHERS),
    *[_plain(_WRITES)] * 4, *[_bound("p", _LISTS)] * 2, _plain(_LIST_WRITES), _unpacked, _failure,
)  # fmt: skip
_NESTED: Final[tuple[Statement, ...]] = (
    _condition, _condition, _condition, _counted, _counted, _elements, _while, _without_gradients,
)  # fmt: skip


def program(random: Random) -> str:
    """The text of a function `f`, and of `g`, which it may call."""
    return _Writer(random).text()


# ------------------------------------------------------------------ calls

_SHAPES: Final = ((2, 3), (1, 3), (4, 3), (7, 3), (0, 3), (3,), (2, 2, 3), (3, 3), (2, 1), ())
_DTYPES: Final = ("float32", "float32", "float32", "float64", "int64", "bool", "int32", "float16")
_LAYOUTS: Final[dict[str, Callable[[Any], Any]]] = {
    "plain": lambda array: array,
    "transposed": lambda array: array.T.copy().T,
    "with gaps": lambda array: np.repeat(array, 2, -1)[..., ::2] if array.ndim else array,
    "expanded": lambda array: np.broadcast_to(array[:1], array.shape) if array.ndim and len(array) else array,
}
_SHARING: Final[dict[str, Callable[[Tensor, Tensor], Tensor]]] = {
    "nothing": lambda x, y: y,
    "the tensor": lambda x, y: x,
    "the memory": lambda x, y: call("aten::view_as", x, x),
    "the last rows": lambda x, y: call("aten::slice.Tensor", x, 0, 1, None, 1) if x.array.ndim else y,
    "the first row": lambda x, y: call("aten::select.int", x, 0, 0) if x.array.ndim and len(x.array) else y,
    "the memory, transposed": lambda x, y: call("aten::transpose.int", x, 0, -1) if x.array.ndim else y,
}


def call(operator: str, *args: Any) -> Any:
    """The result of the operator."""
    found = find(operator)
    assert found is not None
    return found.run(*args)


@dataclass(frozen=True)
class Form:
    """What a call comes with.  `y` is broadcast against `x` in some way, `shared` is what it shares with `x`, `z` is
    None in some calls; `gradients` are for `x`, `y` and the other tensors, which are leaves or computed from such."""

    shape: tuple[int, ...] = (2, 3)
    other: tuple[int, ...] = (2, 3)
    dtype: str = "float32"
    has_z: bool = True
    shared: str = "nothing"
    layout: str = "plain"
    n: int = 2
    gradients: tuple[bool, bool, bool] = (False, False, False)
    gives_leaves: bool = False
    is_recorded: bool = True
    seed: int = 0

    def arguments(self) -> tuple[tuple[Any, ...], list[Tensor]]:
        """Arguments of that form, made anew, and the leaves whose gradients they have; they hold the same each time."""
        random, leaves = Random(self.seed), list[Tensor]()
        x = self._tensor(random, self.shape, self.gradients[0], leaves)
        y = _SHARING[self.shared](x, self._tensor(random, self.other, self.gradients[1], leaves))
        z, *parts = (self._tensor(random, self.shape, self.gradients[2], leaves) for _ in range(random.randint(2, 4)))
        if random.random() < 0.2:
            parts[-1] = x
        return (x, y, z if self.has_z else None, parts, self.n), leaves

    def _tensor(self, random: Random, shape: tuple[int, ...], has_gradient: bool, leaves: list[Tensor]) -> Tensor:
        values = [random.randint(-12, 12) / 4 + 0.1 for _ in range(int(np.prod(shape)))]
        array = _LAYOUTS[self.layout](np.array(values).reshape(shape).astype(self.dtype))
        made = wrapped(np.require(array, requirements="W") if self.layout != "expanded" else array)
        if not has_gradient or array.dtype.kind != "f":
            return made
        made.requires_grad = True
        leaves.append(made)
        return made if self.gives_leaves else call("aten::mul.Scalar", made, 1.0)


def forms(random: Random, count: int = 8) -> list[Form]:
    """Forms of calls, one after the other: two that are alike, others, and the first one again."""
    first = _changed(random, Form(seed=random.randrange(1000)))
    known = [first, replace(first, seed=first.seed + 1)]
    while len(known) < count:
        known.append(_changed(random, random.choice(known)) if random.random() < 0.7 else random.choice(known))
    return [*known, first]


def _changed(random: Random, form: Form) -> Form:
    """The form, with something else about it."""
    changes: tuple[Callable[[], Form], ...] = (
        lambda: _of_shape(random, form), lambda: _of_shape(random, form), lambda: _of_shape(random, form),
        lambda: replace(form, dtype=random.choice(_DTYPES)),
        lambda: replace(form, has_z=not form.has_z),
        lambda: replace(form, shared=random.choice([*_SHARING])),
        lambda: replace(form, layout=random.choice([*_LAYOUTS])),
        lambda: replace(form, gives_leaves=not form.gives_leaves),
        lambda: replace(form, n=random.randint(0, 4)),
        lambda: replace(form, gradients=tuple(random.random() < 0.5 for _ in range(3))),  # type: ignore[arg-type]
        lambda: replace(form, is_recorded=not form.is_recorded),
        lambda: replace(form, seed=form.seed + 1),
    )  # fmt: skip
    return random.choice(changes)()


def _of_shape(random: Random, form: Form) -> Form:
    shape = random.choice(_SHAPES)
    shrunk = tuple(1 if random.random() < 0.5 else size for size in shape)
    return replace(form, shape=shape, other=random.choice((shape, shape, shape, shape[-1:], shrunk)))


BATCHES: Final = (1, 2, 7, 1, 0, 2, 3, 1)


def batches(random: Random) -> list[Form]:
    """Forms that differ in the number of rows alone."""
    form = replace(Form(), gradients=(random.random() < 0.5,) * 3, seed=random.randrange(1000))
    return [replace(form, shape=(rows, 3), other=(rows, 3)) for rows in BATCHES]
