"""Programs of classes, enums, named tuples and modules that Python code hands to the compiler."""

# ruff: noqa: B028, RUF012, UP006, UP007, UP035
# mypy: ignore-errors
import math
import types
import warnings
from enum import Enum
from math import sqrt
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union
from warnings import warn

import engine.torch as torch
from engine.torch import Tensor, nn

DTYPE = torch.float64
PAIR = (2, 3.5)
layer = nn.Linear(2, 2)


class Color(Enum):
    RED = 1
    BLUE = 2


class Span(NamedTuple):
    start: int
    end: float = 2.0


class Ordered:
    """Methods come by name, class variables do not count, what is unused raises."""

    limit = 7

    def __init__(self, x: int):
        self.x = x

    def b(self) -> int:
        return self.x

    @property
    def twice(self) -> int:
        return self.x * 2

    @torch.jit.unused
    def odd(self) -> int:
        return (lambda: 3)()

    @staticmethod
    def plus(a: int, b: int = 1) -> int:
        return a + b

    @classmethod
    def make(cls, a: int):
        return cls(a)

    def a(self) -> int:
        return Ordered.plus(self.b())

    def __lt__(self, other: "Ordered") -> bool:
        return self.x < other.x


def uses_ordered(n: int) -> Tuple[int, int, int]:
    p = Ordered(n)
    return p.a(), p.twice, Ordered.plus(n, 5)


def uses_unused(n: int) -> int:
    return Ordered(n).odd()


def names_members(c: Color) -> Tuple[List[int], str, bool, bool]:
    values: List[int] = []
    for each in Color:
        values.append(each.value)
    return values, c.name, c == Color.RED, c is Color.RED


def shows_member(c: Color) -> str:
    return str(c)


def default_member(c: Color = Color.BLUE) -> int:
    return c.value


def makes_span(x: int) -> Dict[str, Span]:
    return {"a": Span(x), "b": Span(end=3.0, start=1)}


def imported_functions(x: float) -> float:
    warn("careful")
    warnings.warn("very careful")
    return sqrt(x) + math.floor(x)


def whole_default(x: Tensor, by: float = 1, to: Tuple[int, float] = PAIR) -> Tensor:
    return x * by + to[1]


def outside_layer(x: Tensor) -> Tensor:
    return layer(x)


def asserted(x: Tensor) -> bool:
    torch._assert(x.dim() == 1, "one dimension")
    return torch.jit.is_tracing()


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 3
        self.weight = nn.Parameter(torch.ones(2))
        self.parts = [1]

    @torch.jit.export
    def __getstate__(self):
        return (self.n + 1, self.weight, self.parts, self.training)

    @torch.jit.export
    def __setstate__(self, state):
        self.n = state[0]
        self.weight = state[1]
        self.parts = state[2]
        self.training = state[3]

    def forward(self, x: Tensor) -> Tensor:
        return x * self.n


class Methods(nn.Module):
    """A forward of another name, one with the name of something inside, a static method by the class's name."""

    def __init__(self):
        super().__init__()
        self.square = math.sqrt

    def _forward(self, x: Tensor) -> Tensor:
        return Methods.triple(x) + self.square(4.0)

    def impl(self, x: Tensor) -> Tensor:
        return self._forward(x)

    @staticmethod
    def triple(x: Tensor) -> Tensor:
        return x * 3

    @torch.jit.unused
    @property
    def odd(self):
        return lambda: 3

    forward = impl


class Plain(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


def doubled(self, x: Tensor) -> Tensor:
    return x * 2


def replaced() -> Plain:
    made = Plain()
    made.forward = types.MethodType(doubled, made)
    return made


@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Container(nn.Module):
    step: Step

    def __init__(self, step):
        super().__init__()
        self.step = step

    def forward(self, x: Tensor) -> Tensor:
        return self.step(x)


# -- refused


class AttributeInBranch:
    def __init__(self, n: int):
        if n > 0:
            self.n = n
        else:
            self.n = 2


class BrokenMethod:
    def __init__(self, n: int):
        self.n = n

    def never_called(self) -> int:
        return nowhere(self.n)  # noqa: F821


class ClassVariable:
    limit: int = 3

    def __init__(self, n: int):
        self.n = n

    def over(self) -> int:
        return self.limit


class Pairs(Enum):
    A = (1, 2)


class EmptyDefault(NamedTuple):
    parts: List[int] = []


class TensorDefault(NamedTuple):
    value: Tensor = torch.ones(1)


def branch_attribute() -> int:
    return AttributeInBranch(1).n


def broken_method() -> int:
    return BrokenMethod(1).n


def class_variable() -> int:
    return ClassVariable(1).over()


def pairs(p: Pairs) -> int:
    return 1


def empty_default(x: EmptyDefault) -> int:
    return 1


def tensor_default(x: TensorDefault) -> int:
    return 1


def mutable_default(x: List[int] = []) -> int:  # noqa: B006
    return 1


def positional_only(x: int, /, y: int) -> int:
    return y


def bare_list(x: List) -> int:
    return 1


def bare_tuple(x: Tuple) -> int:
    return 1


def bare_optional(x: Optional) -> int:
    return 1


def dtype_by_name(x: Tensor) -> Tensor:
    return x.to(DTYPE)


def member_as_key(c: Color) -> int:
    return {c: 1}[c]


@torch.jit._overload
def either(x: int) -> int: ...


@torch.jit._overload
def either(x: Tensor) -> Tensor: ...  # noqa: F811


def either(x):  # noqa: F811
    return x + 1


REFUSED = [
    (branch_attribute, "First assignment cannot be in a control-flow block"),
    (broken_method, "nowhere"),
    (class_variable, "limit"),
    (pairs, "Cannot create Enum with value type"),
    (empty_default, "empty list, whose type is not known"),
    (tensor_default, "Tensors are not supported as default NamedTuple fields"),
    (mutable_default, "Mutable default parameters are not supported"),
    (positional_only, "positional-only parameters aren't supported"),
    (bare_list, "Attempted to use List without a contained type"),
    (bare_tuple, "Attempted to use Tuple without a contained type"),
    (bare_optional, "Attempted to use Optional without a contained type"),
    (dtype_by_name, "python value of type 'dtype' cannot be used as a value"),
    (member_as_key, "Cannot create dict for key type 'Enum<"),
    (either, "cannot be directly compiled because it is overloaded"),
    (torch.add, "is built in and cannot be compiled"),
]


def with_hooks(pre: Any = None, post: Any = None) -> nn.Module:
    made = Plain()
    if pre is not None:
        made.register_forward_pre_hook(pre)
    if post is not None:
        made.register_forward_hook(post)
    return made


def wrong_inputs(self, input: Tuple[int], output: Tensor) -> Tensor:
    return output


def wrong_result(self, input: Tuple[Tensor]) -> Tuple[int]:
    return (1,)


def wrong_output(self, input: Tuple[Tensor], output: int) -> int:
    return output


def one_result(self, input: Tuple[Tensor]) -> Tensor:
    return input[0] + 1


def keeps(self, input: Tuple[Tensor], output: Tensor) -> None:
    pass


HOOKS = [
    (with_hooks(post=wrong_inputs), r"wrong inner types for the input tuple argument. Received type: 'Tuple\[int\]'"),
    (with_hooks(pre=wrong_result), r"returned the wrong type of: 'Tuple\[int\]'"),
    (with_hooks(post=wrong_output), "wrong type for the output argument. Received type: 'int'"),
]


def either_or_none(x: Union[int, str, None]) -> bool:
    return x is None
