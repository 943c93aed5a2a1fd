"""Library functions that run as Python give what the compiled ones give, and leave to these what is theirs."""

from __future__ import annotations

from typing import Any

import pytest

import engine.torch as torch
from engine.torch.namespace.wrappers import wrapper

F = torch.nn.functional
X = torch.tensor([[1.0, -2.0, 3.0], [-0.5, 0.25, 7.0]])


def compiled(*args: Any, **kwargs: Any) -> Any:
    return "compiled", args, kwargs


def find(name: str) -> Any:
    return {"torch.relu": torch.relu, "torch.relu_": torch.relu_, "helper": lambda x: x}.get(name)


RELU = """
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.relu_(input) if inplace else torch.relu(input)
"""


def test_arguments_of_the_declared_types_need_no_program() -> None:
    relu = wrapper([RELU], find, compiled)
    assert relu is not None
    assert relu(X).tolist() == X.relu().tolist()
    assert relu(X, inplace=False).tolist() == X.relu().tolist()
    assert relu(torch.nn.Parameter(X)).requires_grad


@pytest.mark.parametrize(("args", "kwargs"), [((3,), {}), ((), {}), ((X, 1), {}), ((X,), {"in_place": True})])
def test_everything_else_is_left_to_the_compiled_function(args: Any, kwargs: Any) -> None:
    relu = wrapper([RELU], find, compiled)
    assert relu is not None
    assert relu(*args, **kwargs) == ("compiled", args, kwargs)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x: Tensor, n: int) -> Tensor:\n    while n > 0:\n        n -= 1\n    return torch.relu(x)\n",
        "def f(x: Tensor) -> bool:\n    return x.requires_grad\n",
        "def f(x: Tensor) -> Tensor:\n    return torch.unknown(x)\n",
        "def f(x: Dict[str, int]) -> int:\n    return helper(x)\n",
        "def f(x: Tensor, n: int) -> int:\n    return n // 2\n",
        "class f:\n    pass\n",
    ],
)
def test_texts_that_do_more_stay_compiled(text: str) -> None:
    assert wrapper([text], find, compiled) is None


COUNTING = """
def f(x: Tensor, sizes: BroadcastingList2[int]) -> Tensor:
    total: int = 1
    for i in range(len(sizes)):
        total *= sizes[i]
    return x if total == 1 else helper(x * total)
"""
OVERLOADS = [
    "def f(x: Tensor, n: int) -> Tensor:\n    return helper(x * n)\n",
    "def f(x: Tensor, n: List[int]) -> Tensor:\n    return helper(x * n[0])\n",
]


@pytest.mark.parametrize(("sizes", "factor"), [(3, 9), ([2, 5], 10), ((2, 2), 4), ([1, 1], 1)])
def test_loops_count_and_one_int_stands_for_a_list(sizes: Any, factor: int) -> None:
    f = wrapper([COUNTING], find, compiled)
    assert f is not None
    assert f(X, sizes).tolist() == (X * factor).tolist()


def test_the_overload_that_declares_the_types_is_the_one_that_runs() -> None:
    f = wrapper(OVERLOADS, find, compiled)
    assert f is not None
    assert f(X, 2).tolist() == f(X, [2]).tolist() == (X * 2).tolist()
    assert f(X, 2.0) == ("compiled", (X, 2.0), {})
    assert wrapper([*OVERLOADS, "def f(x: Dict[str, int]) -> int:\n    return 1\n"], find, compiled) is None


def test_what_a_text_raises_is_worded_by_the_compiled_function() -> None:
    text = "def f(x: Tensor, p: float) -> Tensor:\n    if p < 0:\n        raise ValueError('p')\n    return helper(x)\n"
    f = wrapper([text], find, compiled)
    assert f is not None
    assert f(X, 0.5) is X
    assert f(X, -0.5) == ("compiled", (X, -0.5), {})
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
        F.dropout(X, 1.5)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("relu", (X,)),
        ("elu", (X, 0.5)),
        ("softmax", (X, 1)),
        ("log_softmax", (X, -1)),
        ("layer_norm", (X, (3,))),
        ("hardtanh", (X, -1.0, 1.0)),
        ("threshold", (X, 0.5, 9.0)),
        ("cross_entropy", (X, torch.tensor([0, 2]))),
        ("embedding", (torch.tensor([1, 0]), X)),
        ("dropout", (X, 0.5, False)),
        ("smooth_l1_loss", (X, X + 1)),
        ("mse_loss", (X, X + 1)),
        ("l1_loss", (X, X[:1])),
        ("kl_div", (X, X.abs())),
        ("normalize", (X,)),
        ("adaptive_avg_pool2d", (X.reshape(1, 2, 3), (1, 2))),
        ("instance_norm", (X.reshape(1, 2, 3),)),
        ("interpolate", (X.reshape(1, 2, 3), 5)),
        ("interpolate", (X.reshape(1, 2, 3), None, 1.5)),
        ("unfold", (X.reshape(1, 1, 2, 3), (2, 2))),
        ("embedding_bag", (torch.tensor([[1, 0], [1, 1]]), X)),
    ],
)
def test_programs_and_python_get_the_same(name: str, args: Any) -> None:
    unit = torch.jit.CompilationUnit(
        f"def f({', '.join(f'a{i}: {_type(a)}' for i, a in enumerate(args))}):\n"
        f"    return torch.nn.functional.{name}({', '.join(f'a{i}' for i in range(len(args)))})\n"
    )
    assert getattr(F, name)(*args).tolist() == unit.f(*args).tolist()


def _type(value: Any) -> str:
    if isinstance(value, tuple):
        return "List[int]"
    if value is None:
        return "Optional[int]"
    return "Tensor" if isinstance(value, torch.Tensor) else type(value).__name__
