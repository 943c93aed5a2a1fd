"""Modules to be compiled.  What PyTorch makes of them is in `recorded_modules.txt`: `import torch` in the place of the
first import gives the same program there."""

# ruff: noqa: UP006, UP035, UP045
from collections.abc import Callable
from enum import Enum
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple

import engine as torch
from engine import Tensor, nn


class Containers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.ReLU()])
        self.named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        self.seq = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Tanh(), nn.Identity()))
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(2)) for _ in range(2)])
        self.weights = nn.ParameterDict({"w": nn.Parameter(torch.ones(2))})

    def forward(self, x: Tensor) -> Tuple[Tensor, List[Tensor], int]:
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        for key, module in self.named.items():
            print(key)
            x = module(x)
        for key in self.named:
            print(key)
        for first, second in zip(self.layers, self.seq):  # noqa: B905
            x = second(first(x))
        for scale in self.scales:
            x = x + scale
        x = self.named["a"](x) + self.weights["w"]
        x = self.layers[-1](x)
        if "a" in self.named:
            x = x + len(self.layers)
        for name, _child in self.named_children():
            print(name)
        return self.seq(x), [m(x) for m in self.named.values()], len(self.named)


class Members(nn.Module):
    """Methods, properties, static methods, attributes that are set, children that are None."""

    limit: Final[int]

    def __init__(self) -> None:
        super().__init__()
        self.limit = 3
        self.count = 0
        self.down: Optional[nn.Module] = None
        self.register_buffer("mean", torch.zeros(2))
        self.register_parameter("bias", None)
        self.activation = torch.relu

    def helper(self, x: Tensor, n: int = 2) -> Tensor:
        return x + n

    @property
    def twice(self) -> int:
        return 2 * self.limit

    @staticmethod
    def less(x: Tensor) -> Tensor:
        return x - 1

    @torch.jit.export
    def reset(self) -> None:
        self.count = 0

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        if self.down is not None:
            x = self.down(x)
        if hasattr(self, "missing"):
            x = self.missing(x)
        if self.training and self.bias is None:
            self.mean = x.mean(0)
        extra: Optional[Tensor] = getattr(self, "extra", None)
        if extra is not None:
            x = x + extra
        return self.less(self.activation(self.helper(x))) * self.twice + self.count + self.mean


class Color(Enum):
    RED = "r"
    GREEN = "g"


class Point(NamedTuple):
    x: Tensor
    label: str


class Counter:
    def __init__(self, start: int):
        self.count = start

    def add(self, by: int) -> int:
        self.count += by
        return self.count


class Attributes(nn.Module):
    __constants__ = ("sizes", "mode")
    maybe: Optional[int]
    empty: List[int]
    point: Point

    def __init__(self) -> None:
        super().__init__()
        self.sizes, self.mode = [4, -1], "sum"
        self.maybe = None
        self.empty = []
        self.point = Point(torch.ones(1), "p")
        self.color = Color.RED
        self.counter = Counter(2)
        self.device, self.dtype = torch.device("cpu"), torch.float64
        self.by_name = {"a": 1}
        self.tensors = [torch.ones(2)]
        self.annotated = torch.jit.Attribute({}, Dict[str, int])

    def forward(self, x: Tensor, k: str) -> Tuple[Tensor, Optional[int]]:
        x = x.reshape(self.sizes)
        if self.mode == "sum":
            x = x.sum(1, keepdim=True)
        if self.color == Color.GREEN:
            self.maybe = self.by_name[k]
        self.empty.append(len(self.annotated))
        x = x.to(self.dtype) + self.point.x + self.tensors[0]
        return x + self.counter.add(1), self.maybe


def after(self: Any, input: Tuple[Tensor], output: Tensor) -> Tensor:
    return output + 1


def before(self: Any, input: Tuple[Tensor]) -> Tuple[Tensor]:
    return (input[0] * 2,)


def watching(self: Any, input: Tuple[Tensor]) -> None:
    print("called")


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()
        self.relu.register_forward_pre_hook(before)
        self.relu.register_forward_pre_hook(watching)
        self.relu.register_forward_hook(after)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(x)


class Overloaded(nn.Module):
    @torch.jit._overload_method
    def more(self, x: int) -> int:
        pass

    @torch.jit._overload_method
    def more(self, x: Tensor) -> Tensor:  # noqa: F811
        pass

    def more(self, x):  # noqa: F811
        return x + 1

    def forward(self, x: Tensor) -> Tensor:
        return self.more(x) + self.more(2)


@torch.jit.interface
class Activation(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass

    def gain(self, k: int) -> int:
        pass


class Steep(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2

    def gain(self, k: int) -> int:
        return k + 1


class Choice(nn.Module):
    act: Activation

    def __init__(self) -> None:
        super().__init__()
        self.act = Steep()
        self.all = nn.ModuleList([nn.ReLU(), nn.Tanh()])
        self.steep = nn.ModuleList([Steep(), Steep()])

    def forward(self, x: Tensor) -> Tensor:
        return self.act(x) + self.act.gain(3) + self.act.forward(x)


def scale(by: Any) -> nn.Module:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by = by

        def forward(self, x: Tensor) -> Tensor:
            if isinstance(self.by, int):
                return x * self.by
            return x + self.by[0]

    return Scale()


class Mangled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = scale(3), scale([1.5]), scale(5)

    def forward(self, x: Tensor) -> Tensor:
        return self.a(self.b(x)) - self.c(x)


class Ignoring(nn.Module):
    @torch.jit.ignore
    def in_python(self, x: Tensor, n: int) -> List[int]:
        return [n, x.numel()]

    @torch.jit.unused
    def never(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor, flag: bool = False) -> List[int]:
        if flag:
            x = self.never(x)
        return self.in_python(x, 3)


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.ones(2)

    @torch.jit.export
    def __getstate__(self) -> Tuple[Tensor, bool]:  # type: ignore[override]
        return self.weight * 2, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[Tensor, bool]) -> None:
        self.weight = state[0] / 2
        self.training = state[1]

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight


class Forking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()

    def branch(self, x: Tensor, k: int) -> Tensor:
        return self.relu(x) * k

    def forward(self, x: Tensor) -> Tensor:
        future = torch.jit.fork(self.branch, x, 2)
        with torch.no_grad():
            y = self.relu(x)
        return torch.jit.wait(future) + y


PROGRAMS: Dict[str, Callable[[], nn.Module]] = {
    **{cls.__name__: cls for cls in (
        Containers, Members, Attributes, Hooked, Overloaded, Choice, Mangled, Ignoring, Packed, Forking,
    )},
    "Linear": lambda: nn.Linear(2, 3),
    "Conv2d": lambda: nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2, bias=False),
    "BatchNorm2d": lambda: nn.BatchNorm2d(2),
    "LayerNorm": lambda: nn.LayerNorm([2, 3]),
    "Embedding": lambda: nn.Embedding(5, 3, padding_idx=1),
    "Dropout": lambda: nn.Dropout(0.2),
    "GELU": lambda: nn.GELU("tanh"),
    "MaxPool2d": lambda: nn.MaxPool2d(2),
}  # fmt: skip
