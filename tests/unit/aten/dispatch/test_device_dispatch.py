"""Tensors on a device: where they are made, how they move, what they refuse."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.values import libraries
from engine.lang.errors import OperatorAssertionError, OperatorError, OperatorTypeError
from tests.table.device_double import double

CUDA = torch.device("cuda", 0)


@pytest.fixture(params=["double", pytest.param("gpu", marks=pytest.mark.gpu)])
def cuda(request: pytest.FixtureRequest) -> Iterator[None]:
    """A device: the double everywhere, and a GPU where there is one."""
    if request.param == "double":
        with double():
            yield
        return
    try:
        libraries.library("cuda")
    except OperatorError as error:
        pytest.skip(str(error).partition("\n")[0])
    yield


def test_without_a_gpu_the_error_says_what_is_missing() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(OperatorAssertionError, match=r"cupy|NVIDIA GPU"):
        torch.ones(2, device="cuda")
    with pytest.raises(OperatorError, match="No CUDA GPUs are available"):
        torch.cuda.current_device()
    assert torch.cuda.device_count() == 0


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, device="cuda"), lambda: torch.arange(3, device="cuda:0"),
        lambda: torch.full((2,), 3.0, device=CUDA), lambda: torch.tensor([1, 2], device="cuda"),
        lambda: torch.rand(3, device="cuda"), lambda: torch.ones(2).cuda(), lambda: torch.ones(2).to("cuda"),
        lambda: torch.zeros_like(torch.ones(2), device="cuda"), lambda: torch.ones(2).cuda() + torch.tensor(2.0),
        lambda: torch.ones(2, device="cuda").new_tensor([1.0]), lambda: torch.eye(2, device="cuda")[0],
    ],
)  # fmt: skip
def test_tensors_are_made_on_the_device_that_is_named(make: Any) -> None:
    made = make()
    assert made.device == CUDA
    assert made.is_cuda and not made.is_cpu
    assert made.cpu().device == torch.device("cpu")


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    "mix", [lambda x, y: x + y, lambda x, y: y @ x, lambda x, y: torch.cat([x, y]), lambda x, y: x.add_(y)]
)
def test_operands_on_two_devices_are_refused(mix: Any) -> None:
    message = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
    with pytest.raises(OperatorError, match=message):
        mix(torch.ones(2, 2, device="cuda"), torch.ones(2, 2))


@pytest.mark.usefixtures("cuda")
def test_what_is_on_a_device_is_no_array_of_numpy_s() -> None:
    x = torch.ones(2, device="cuda")
    with pytest.raises(OperatorTypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()
    assert x.tolist() == [1.0, 1.0]
    assert x.__cuda_array_interface__["shape"] == (2,)
    assert repr(x) == "tensor([1., 1.], device='cuda:0')"


@pytest.mark.usefixtures("cuda")
def test_writes_go_to_views_and_come_from_everywhere() -> None:
    x = torch.zeros(2, 3, device="cuda")
    x[0] = 1
    x[:, 1] = torch.tensor([5.0, 6.0])
    x[1].copy_(torch.tensor([7.0, 8.0, 9.0]))
    assert x.tolist() == [[1, 5, 1], [7, 8, 9]]
    assert x[torch.tensor([1])].tolist() == [[7, 8, 9]]


@pytest.mark.usefixtures("cuda")
def test_gradients_are_where_their_tensors_are() -> None:
    here = torch.ones(3, requires_grad=True)
    there = torch.ones(3, device="cuda", requires_grad=True)
    (here.cuda() * there.relu() * 2).sum().backward()
    assert (here.grad.device, there.grad.device) == (torch.device("cpu"), CUDA)
    assert here.grad.tolist() == there.grad.tolist() == [2, 2, 2]


@pytest.mark.usefixtures("cuda")
def test_a_model_learns_the_same_on_a_device() -> None:
    def losses(place: str) -> list[float]:
        torch.manual_seed(0)
        layers = torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.Flatten()
        model = torch.nn.Sequential(*layers, torch.nn.Linear(18, 4)).to(place)
        x, target = torch.randn(3, 1, 5, 5).to(place), torch.tensor([0, 2, 3]).to(place)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        found = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    np.testing.assert_allclose(losses("cuda"), losses("cpu"), rtol=1e-4)


@pytest.mark.usefixtures("cuda")
def test_random_numbers_of_a_device_come_from_its_own_stream() -> None:
    torch.cuda.manual_seed(3)
    first = torch.randn(5, device="cuda").tolist()
    torch.manual_seed(3)
    assert torch.randn(5, device="cuda").tolist() == first
    state = torch.cuda.get_rng_state()
    second = torch.rand(3, device="cuda").tolist()
    torch.cuda.set_rng_state(state)
    assert torch.rand(3, device="cuda").tolist() == second != first


@pytest.mark.usefixtures("cuda")
def test_copies_pickles_and_files_keep_the_device() -> None:
    x = torch.arange(4.0, device="cuda")
    file = io.BytesIO()
    torch.save({"x": x}, file)
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), _loaded(file), _loaded(file, "cuda:0")):
        assert again.device == CUDA
        assert again.tolist() == [0, 1, 2, 3]
    assert _loaded(file, "cpu").device == torch.device("cpu")


def _loaded(file: io.BytesIO, place: str | None = None) -> Any:
    file.seek(0)
    return torch.load(file, map_location=place)["x"]


@pytest.mark.usefixtures("cuda")
def test_scripts_run_where_their_tensors_are() -> None:
    @torch.jit.script
    def f(x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros(x.shape, device=x.device)
        for _ in range(3):
            y = y + x.relu()
        return y

    for _ in range(3):
        y = f(torch.ones(2, device="cuda"))
    assert y.tolist() == [3, 3]
    assert y.device == CUDA


def test_the_cpu_is_as_it_was_when_the_device_is_gone() -> None:
    with double():
        torch.ones(2, device="cuda")
    assert libraries.loaded() == []
    assert (torch.ones(2) + 1).tolist() == [2, 2]
