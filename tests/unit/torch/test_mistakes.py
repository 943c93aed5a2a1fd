"""Mistakes give PyTorch's kinds of errors, and say which operator was called with what, and how to call it."""

from __future__ import annotations

import re

import pytest

import engine.torch as torch
from engine.lang.errors import ArgumentError
from tests.unit.torch.mistakes import MISTAKES, answer

X = torch.arange(6.0).reshape(2, 3)


def test_the_kinds_of_errors_are_the_original_s() -> None:
    assert len(MISTAKES) > 500
    found = [(program, kind, answer(torch, program)) for kind, program in MISTAKES]
    wrong = [f"{program}: {mine[0]} is not {kind}: {mine[1]}" for program, kind, mine in found if mine[0] != kind]
    assert not wrong, "\n".join(wrong)


def test_no_mistake_shows_what_is_inside() -> None:
    texts = [answer(torch, program)[1] for _, program in MISTAKES]
    assert not [text for text in texts if "engine/" in text or "NoneType' object" in text or not text.strip()]


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("torch.mm(x)", "mm() received an invalid combination of arguments: (float32[2, 3]): argument 'mat2'"),
        ("torch.add(x, 'a')", "argument 'other' (position 2) must be Tensor, not str"),
        ("torch.cat([x, 1])", "must be tuple of Tensors, not list with int at position 1"),
        ("torch.zeros(2, foo=1)", "there is no argument 'foo'"),
        ("torch.zeros(2, dtype='float32')", "argument 'dtype' must be a dtype, not str"),
        ("torch.zeros(2, shape=1)", "it takes zeros(SymInt[] size"),
        ("x.sum(keepdim=1, dmi=2)", "it takes sum.dim_IntList(int[1]? dim, bool keepdim=False"),
        ("x.transpose(0)", "argument 'dim1' (position 2) is missing"),
        ("x.view(2.0, 3)", "argument 'size' (position 1) must be tuple of ints, not list with float at position 0"),
        ("x.argmax(0, True, 3)", "2 positional arguments at most, not 3"),
        ("torch.sum(x, 0, dim=1)", "argument 'dim' is given by position and by keyword"),
        ("F.cross_entropy(x, torch.tensor([0, 5]))", "in torch.nn.functional.cross_entropy(float32[2, 3], int64[2])"),
        ("F.relu(3)", "in torch.nn.functional.relu(3)"),
        ("F.softmax(x, dim=5)", "in torch.nn.functional.softmax(float32[2, 3], dim=5)"),
        ("nn.Conv2d(3, 4, 1, groups=2)", "divisible by groups: 3, 4 by 2"),
        ("nn.init.calculate_gain('nothing')", "there are leaky_relu, linear, sigmoid"),
        ("torch.jit.trace(lambda x: x)", "write torch.jit.trace(f, (x, y))"),
        ("torch.jit.freeze(torch.jit.script(nn.Linear(1, 1)).eval(), ['wieght'])", "did you mean 'weight'?"),
        ("torch.optim.SGD([g * 2], 0.1)", "give what it is computed from"),
        (
            "torch.optim.lr_scheduler.StepLR(torch.optim.SGD([g], 0.1), 1, last_epoch=3)",
            "begin anew with last_epoch=-1",
        ),
        ("torch.optim.lr_scheduler.CyclicLR(torch.optim.Adagrad([g]), 0.1, 0.2)", "write cycle_momentum=False"),
    ],
)
def test_messages_name_the_call_and_what_is_wrong(program: str, text: str) -> None:
    assert text in answer(torch, program)[1]


def test_the_nearest_signature_comes_first() -> None:
    told = answer(torch, "x.sum('rows', True)")[1]
    assert re.search(r"Hint: it takes (\S+)\(", told)[1] == "sum.dim_IntList"  # type: ignore[index]


def test_programs_keep_runtime_errors() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(x, torch.tensor([7, 8]))

    scripted = torch.jit.script(forward)
    with pytest.raises(RuntimeError) as caught:
        scripted(X)
    assert not isinstance(caught.value, IndexError)
    with pytest.raises(ArgumentError) as refused:
        scripted("text")
    assert not isinstance(refused.value, TypeError)


@pytest.mark.parametrize(
    ("program", "same"),
    [
        ("torch.sum(input=x, axis=0)", "torch.sum(x, 0)"),
        ("x.sum(axis=1, keepdims=True)", "x.sum(1, True)"),
        ("torch.add(input=x, other=x, alpha=2)", "torch.add(x, x, alpha=2)"),
        ("x.norm(dim=1)", "torch.linalg.vector_norm(x, dim=1)"),
        ("x.norm('fro')", "torch.linalg.vector_norm(x)"),
    ],
)
def test_other_names_of_arguments(program: str, same: str) -> None:
    names = {"torch": torch, "x": X}
    for _ in range(2):  # the second call runs from a plan
        assert torch.allclose(eval(program, names), eval(same, names))


def test_layouts_and_memory_formats_are_words() -> None:
    assert (repr(torch.strided), repr(X.layout), repr(torch.channels_last)) == (
        "torch.strided", "torch.strided", "torch.channels_last",
    )  # fmt: skip
    assert isinstance(torch.strided, torch.layout)
    assert isinstance(torch.channels_last, torch.memory_format)
    turned = torch.zeros(1, 2, 3, 4).contiguous(memory_format=torch.channels_last)
    assert turned.stride() == (24, 1, 8, 2)
    assert turned.is_contiguous(memory_format=torch.channels_last)

    def forward(x: torch.Tensor) -> tuple[int, torch.Tensor]:
        return torch.channels_last, x.contiguous(memory_format=torch.channels_last)

    number, again = torch.jit.script(forward)(torch.zeros(1, 2, 3, 4))
    assert (number, again.stride()) == (2, (24, 1, 8, 2))


def test_sizes_are_integers() -> None:
    assert torch.Size([torch.tensor(3), 2]) == (3, 2)
    with pytest.raises(TypeError, match="item 1 is a str"):
        torch.Size([2, "3"])
