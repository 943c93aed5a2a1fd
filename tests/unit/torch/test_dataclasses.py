"""Dataclasses in programs: each feature that Python has runs as in Python, or is refused in words."""

from __future__ import annotations

import dataclasses
import enum
import io
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any, Dict, Final, List, Optional, Tuple  # noqa: UP035

import pytest

import engine.torch as torch
from engine.torch import Tensor, nn

pytestmark = pytest.mark.usefixtures("mode")

# ruff: noqa: UP006, UP045


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Defaults:
    x: int
    y: float = 2
    s: str = "a"
    t: Optional[Tensor] = None
    c: Color = Color.BLUE
    inf: float = math.inf
    neg: int = -3
    both: Tuple[int, float] = (1, 2.5)
    b: bool = True


@dataclass(order=True)
class Base:
    a: int
    b: int = 3

    def total(self) -> int:
        return self.a + self.b

    @property
    def twice(self) -> int:
        return 2 * self.a

    @staticmethod
    def three() -> int:
        return 3


@dataclass(order=True)
class Derived(Base):
    c: float = 1.5

    def more(self) -> float:
        return self.total() + self.c + self.twice


@dataclass
class Deeper(Derived):
    a: int = 10
    e: Optional[List[int]] = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.e = [self.a]

    def total(self) -> int:
        return -self.a


class Undecorated(Derived):
    def least(self) -> int:
        return self.a


class Mixin:
    def shouted(self) -> str:
        return "!"


@dataclass
class Mixed(Base, Mixin):
    d: int = 4


@dataclass(frozen=True)
class Frozen:
    x: float

    def moved(self) -> Frozen:
        return Frozen(self.x + 1)


@dataclass(frozen=True)
class SetsItself:
    a: int
    b: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "b", self.a + 1)


@dataclass
class Outer:
    inner: Frozen
    n: int


@dataclass
class Keywords:
    a: int
    first: int = 1
    _: KW_ONLY
    b: int = 2
    c: int


@dataclass(slots=True)
class Slots:
    a: int
    b: List[int]


@dataclass(eq=False, init=False)
class Own:
    a: int

    def __init__(self, a: int) -> None:
        self.a = a * 2


@dataclass
class Scaled:
    value: int
    by: InitVar[int] = 3
    derived: int = field(init=False, default=7)
    late: float = field(init=False)

    def __post_init__(self, by: int) -> None:
        self.value = self.value * by
        self.late = float(by)


@dataclass
class Uncompared:
    """Its fields have no `==` in TorchScript."""

    both: Tuple[int, str]
    table: Dict[str, int]


Made = dataclasses.make_dataclass("Made", [("p", int), ("q", float, 2.5)])


def defaults(n: int) -> Tuple[float, str, Optional[Tensor], bool, float, int, Tuple[int, float], bool, float]:
    a, b = Defaults(n), Defaults(n, 3.0, "z", torch.ones(2), Color.RED)
    return a.y, a.s, a.t, a.c == Color.BLUE, a.inf, a.neg, a.both, a.b, b.y


def inheritance(n: int) -> Tuple[int, float, bool, bool, bool, bool, Optional[List[int]], int, int, int]:
    d, e, g = Derived(n), Derived(n, 4), Deeper()
    return d.total(), d.more(), d < e, d == Derived(n), d != e, d >= e, g.e, g.total(), g.a, Derived.three()


def bases(n: int) -> Tuple[int, bool, str, int, int]:
    u, m = Undecorated(n), Mixed(n)
    return u.least(), u == Undecorated(n), m.shouted(), m.total(), m.d


def nested(n: int) -> Tuple[bool, bool, bool, float]:
    o, p = Outer(Frozen(float(n)), 2), Outer(Frozen(float(n)).moved(), 2)
    return o == p, o == Outer(Frozen(float(n)), 2), o != p, p.inner.x


def features(n: int) -> Tuple[int, int, int, int, bool, int, int, int, float, int, int]:
    k, s, w, q, r, z = Keywords(n, c=5), Slots(n, [n]), Own(n), Scaled(n), Scaled(n, by=2), SetsItself(n)
    return k.a, k.b, k.c, k.first, s == Slots(n, [n]), w.a, q.value, q.derived, q.late, r.value, z.b


def made_in_python(n: int) -> Tuple[int, float, bool]:
    m = Made(n)
    return m.p, m.q, m == Made(n, 2.5)


def uncompared(n: int) -> Tuple[str, int]:
    u = Uncompared((n, "a"), {"k": n})
    return u.both[1], u.table["k"]


PROGRAMS: Final = (defaults, inheritance, bases, nested, features, made_in_python, uncompared)


def again(program: Any) -> Any:
    file = io.BytesIO()
    torch.jit.save(program, file)
    file.seek(0)
    return torch.jit.load(file)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_programs_tell_what_python_tells(program: Callable[[int], Any]) -> None:
    scripted: Any = torch.jit.script(program)
    for n in (3, 3, 4):
        assert repr(scripted(n)) == repr(program(n)).replace("(2, 'a', N", "(2.0, 'a', N")
        assert repr(again(scripted)(n)) == repr(scripted(n))


def moves(p: Derived) -> Derived:
    return Derived(p.a + 1, p.b, p.c)


def moves_all(ps: List[Frozen]) -> Dict[str, Frozen]:
    return {str(i): p.moved() for i, p in enumerate(ps)}


def test_instances_go_in_and_come_out() -> None:
    scripted: Any = torch.jit.script(moves)
    found = scripted(Derived(1))
    assert found == Derived(2) and Derived(2) == found and isinstance(found, Derived)
    assert repr(found) == repr(Derived(2)).replace("Derived", type(found).__name__)
    assert (found.total(), found.twice) == (5, 4)
    every: Any = torch.jit.script(moves_all)
    assert every([Frozen(1.0), Frozen(2.0)])["1"].x == 3.0


class Configured(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.settings = Outer(Frozen(2.0), 3)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.settings.inner.x + self.settings.n


def test_a_module_may_hold_one() -> None:
    scripted: Any = torch.jit.script(Configured())
    assert scripted(torch.ones(1)).item() == again(scripted)(torch.ones(1)).item() == 5.0


@dataclass
class Factory:
    xs: List[int] = field(default_factory=list)


@dataclass
class Unknown:
    z: Nothing  # type: ignore[name-defined]  # noqa: F821


@dataclass
class WithObject:
    z: Frozen = Frozen(1.0)


@dataclass
class Node:
    v: int
    next: Optional[Node] = None


def uses_factory() -> List[int]:
    return Factory().xs


def uses_unknown() -> int:
    return Unknown(1).z  # type: ignore[no-any-return]


def uses_object() -> float:
    return WithObject().z.x


def uses_node() -> int:
    return Node(1).v


def sets_frozen() -> float:
    f = Frozen(1.0)
    f.x = 2.0  # type: ignore[misc]
    return f.x


def compares_uncompared() -> bool:
    return Uncompared((1, "a"), {"k": 1}) == Uncompared((1, "a"), {"k": 1})


REFUSED: Final[dict[Callable[[], Any], str]] = {
    uses_factory: "Default factory initializers are not supported in TorchScript dataclasses: 'xs'",
    uses_unknown: "Unknown type name 'Nothing' (of field 'z' of dataclass 'Unknown')",
    uses_object: "the default of field 'z' is an object",
    uses_node: "recursively contain instances of themselves",
    sets_frozen: "cannot assign to field 'x': dataclass 'Frozen' is frozen",
    compares_uncompared: "dataclass makes it, but for these fields not",
}


def test_a_default_factory_is_not_implemented() -> None:
    with pytest.raises(NotImplementedError, match="Default factory"):
        torch.jit.script(uses_factory)


@pytest.mark.parametrize("program", REFUSED, ids=lambda each: each.__name__)
def test_what_no_program_has_is_refused_in_words(program: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.jit.script(program)
    assert REFUSED[program] in str(caught.value) and "<--- HERE" in str(caught.value)
