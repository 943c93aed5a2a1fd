"""Hooks of scripted modules: which are taken, what they change, and the words in which others are refused."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import engine.torch as torch
from engine.lang.errors import CompileError
from engine.torch import nn

# mypy: disable-error-code="no-untyped-def, misc"


class Inner(nn.Module):
    def named(self, text: str) -> str:
        return text

    def forward(self, text: str) -> str:
        return self.named(text) + " in"


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, text: str) -> str:
        return self.inner(text + " out")


class OfTuple(nn.Module):
    def forward(self, pair: tuple[int, int]) -> int:
        return pair[0]


class OfTwo(nn.Module):
    def forward(self, number: int, text: str) -> str:
        return text


class OfNothing(nn.Module):
    def forward(self) -> None:
        pass


Hooks = Sequence[Callable[..., Any]]


def hooked(module: nn.Module, before: Hooks = (), after: Hooks = ()) -> nn.Module:
    for hook in before:
        module.register_forward_pre_hook(hook)
    for hook in after:
        module.register_forward_hook(hook)
    return module


def within(before: Hooks = (), after: Hooks = ()) -> nn.Module:
    outer = Outer()
    hooked(outer.inner, before, after)
    return outer


def marks(self, input: tuple[str], output: str):
    return output + "!"


def looks(self, input: tuple[str], output: str):
    assert len(input) == 1


def wraps(self, input: tuple[str], output: str):
    return (output,)


def unwraps(self, input: tuple[str], output: tuple[str]):
    return output[0] + "?"


def changes(self, input: tuple[str]) -> tuple[str]:
    return (input[0] + "+",)


def gives_one(self, input: tuple[str]) -> str:
    return input[0] + "-"


def passes(self, input: tuple[str]) -> None:
    pass


def by_comment(self, input):
    # type: (Tuple[str]) -> str
    return input[0] + "#"


def of_nothing(self, input: tuple[()], output: None):
    pass


@pytest.mark.parametrize(("module", "expected"), [
    (hooked(Outer(), after=[marks]), "a out in!"),
    (hooked(Outer(), after=[looks]), "a out in"),
    (hooked(Outer(), after=[marks, looks, marks]), "a out in!!"),
    (hooked(Outer(), after=[wraps, unwraps]), "a out in?"),
    (within(after=[marks]), "a out in!"),
    (within(after=[wraps, unwraps]), "a out in?"),
    (hooked(Outer(), [changes, passes, changes]), "a++ out in"),
    (within([changes, gives_one]), "a out+- in"),
    (within([by_comment], [marks]), "a out# in!"),
])  # fmt: skip
def test_hooks_need_no_annotation_of_what_they_return(module: Any, expected: str) -> None:
    assert module("a") == expected
    assert torch.jit.script(module)("a") == expected


def test_hooks_without_annotation_run_in_archives() -> None:
    compiled = torch.jit.script(within([changes], [looks, marks]))
    with torch.jit.optimized_execution(False):
        assert compiled("a") == "a out+ in!"
    assert torch.jit.load(io.BytesIO(compiled.save_to_buffer()))("a") == "a out+ in!"


def test_a_hook_of_a_module_without_arguments() -> None:
    assert torch.jit.script(hooked(OfNothing(), after=[of_nothing]))() is None


def taken(first: Any) -> Any:
    def hook(self, input: tuple[str], output: str):
        return output

    def pre(self, input: tuple[str]) -> None:
        pass

    hook.__name__ = pre.__name__ = "taken"
    return hook if first else pre


def named(self, input: tuple[str], output: str):
    return output


def untyped(self, input):
    return input


def list_input(self, input: list[str], output: str):
    return input[5]


def two_inputs(self, input: tuple[str, str], output: str):
    return input[5]


def none_input(self, input: tuple[None], output: str):
    return output


def untyped_output(self, input: tuple[str], output):
    return output


def short(self, input: tuple[str]):
    return input


def long(self, input: tuple[str], more: int) -> None:
    pass


def unannotated(self, input: tuple[str]):
    return input


def number(self, input: tuple[str]) -> int:
    return input[5]


def other_tuple(self, input: tuple[str]) -> tuple[int]:
    return (1,)


def flat(self, input: tuple[tuple[int, int]]) -> tuple[int, int]:
    return input[0]


def one_of_two(self, input: tuple[int, str]) -> tuple[int]:
    return (input[0],)


def single_of_two(self, input: tuple[int, str]) -> str:
    return input[1]


def expects_number(self, input: tuple[int]) -> None:
    pass


def returns_number(self, input: tuple[()]) -> tuple[int]:
    return (1,)


REFUSED = [
    (hooked(Outer(), after=[list_input]),
     "Hook 'list_input' on module 'Outer' expected the input argument to be typed as a Tuple but found type: "
     "'List[str]' instead."),
    (hooked(Outer(), after=[two_inputs]),
     "has the wrong number of contained types for the input argument's Tuple. Received type: 'Tuple[str, str]'"),
    (within(after=[none_input]),
     "Hook 'none_input' on module 'Inner' has the wrong inner types for the input tuple argument. Received type: "
     "'Tuple[NoneType]'"),
    (hooked(Outer(), after=[untyped_output]),
     "has the wrong type for the output argument. Received type: 'Tensor'. Expected type: 'str'"),
    (hooked(Outer(), after=[wraps, marks]),
     "Hook 'marks' on module 'Outer' has the wrong type for the output argument. Received type: 'str'. "
     "Expected type: 'Tuple[str]'"),
    (hooked(Outer(), after=[short]), "was expected to only have exactly 3 inputs but it had 2 inputs"),
    (hooked(Outer(), [long]), "Pre-hook 'long' on module 'Outer' was expected to only have exactly 2 inputs but it "
     "had 3 inputs"),
    (hooked(Outer(), [untyped]), "expected the input argument to be typed as a Tuple but found type: 'Tensor' instead"),
    (hooked(Outer(), [unannotated]), "is missing a return annotation. Return annotations are required"),
    (within([number]), "Pre-hook 'number' on module 'Inner' returned the wrong type of: 'int'"),
    (hooked(Outer(), [other_tuple]), "of: 'Tuple[int]'. The returned tuple contains the wrong inner types"),
    (hooked(OfTuple(), [flat]), "When forward has a single tuple input argument, the return needs to be 'None' or a "
     "nested tuple containing forward's input tuple argument as in: 'Tuple[Tuple[int, int]]'"),
    (hooked(OfTwo(), [one_of_two]), "The returned tuple contains the wrong number of contained types"),
    (hooked(OfTwo(), [single_of_two]), "returned the wrong type of: 'str'"),
    (hooked(OfNothing(), [expects_number]), "was expecting Tuple[()] as the input type. Received type: 'Tuple[int]'"),
    (hooked(OfNothing(), [returns_number]),
     "Was expecting either 'None' or 'Tuple[()]' since forward had no arguments"),
    (hooked(Outer(), [taken(False), taken(False)]), "Pre-hook 'taken' on Outer has at least two different python "
     "definitions. Please use unique names for all hooks."),
    (hooked(Outer(), [taken(False)], [taken(True)]), "Pre-hook 'taken' on Outer has at least two different python"),
    (within(after=[named]), "because a method or hook with that name already exists."),
    (hooked(nn.Module(), [passes]), "Couldn't find method: 'forward' on class: '"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "message"), REFUSED)
def test_hooks_that_do_not_fit_are_refused_before_their_bodies_are_read(module: Any, message: str) -> None:
    with pytest.raises(CompileError, match=re.escape(message)):
        torch.jit.script(module)


def test_a_hook_may_have_the_name_of_a_method_that_nothing_compiles() -> None:
    class Uncalled(nn.Module):
        def named(self) -> None:
            pass

        def forward(self, text: str) -> str:
            return text

    assert torch.jit.script(hooked(Uncalled(), after=[named]))("a") == "a"
