"""Parameters are tensors of a class of their own; what is computed from them is not."""

import copy
import pickle

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.values.parameter import Parameter, as_parameter
from engine.torch import nn


def test_parameters_know_their_class():
    p = nn.Parameter(torch.ones(2))
    assert type(p) is nn.Parameter is Parameter
    assert isinstance(p, torch.Tensor)
    assert not isinstance(torch.ones(2), nn.Parameter)
    assert all(type(each) is nn.Parameter for each in nn.Linear(2, 2).parameters())


@pytest.mark.parametrize(
    "make",
    [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p)), lambda p: p.requires_grad_(False)],
)
def test_copies_are_parameters(make):
    made = make(nn.Parameter(torch.ones(2)))
    assert type(made) is nn.Parameter
    assert repr(made).startswith("Parameter containing:\n")


@pytest.mark.parametrize(
    "use", [lambda p: p + 1, lambda p: p.data, lambda p: p.detach(), lambda p: p.view(2, 1), lambda p: p.clone()]
)
def test_what_is_computed_is_a_plain_tensor(use):
    assert type(use(nn.Parameter(torch.ones(2)))) is torch.Tensor


def test_operators_take_parameters_on_either_side():
    p, x = nn.Parameter(torch.tensor([2.0, 3.0]), requires_grad=False), torch.tensor([1.0, 5.0])
    assert (x * p).tolist() == (p * x).tolist() == [2, 15]
    assert (x < p).tolist() == [True, False]
    x += p
    assert x.tolist() == [3, 8]


def test_programs_derive_classes():
    class Scale(nn.Parameter):
        pass

    made = Scale(torch.ones(1))
    assert type(made) is Scale
    assert isinstance(made, nn.Parameter)
    assert type(copy.deepcopy(made)) is Scale


def test_a_tensor_becomes_a_parameter():
    x = torch.from_numpy(np.ones(2, np.float32))
    assert as_parameter(x) is x
    assert type(x) is Parameter


def test_scripted_functions_take_parameters():
    scripted = torch.jit.CompilationUnit("def f(x, w):\n    return x * w\n").f
    assert scripted(torch.ones(2), nn.Parameter(torch.full((2,), 3.0))).tolist() == [3, 3]


def test_shapes_that_are_not_known_yet():
    lazy = nn.UninitializedParameter()
    assert type(lazy) is nn.UninitializedParameter
    assert isinstance(lazy, nn.Parameter)
    layer = nn.LazyLinear(2)
    layer(torch.ones(1, 3))
    assert type(layer.weight) is nn.Parameter
