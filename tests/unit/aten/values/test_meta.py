"""Tensors on `meta`: forms without numbers."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import engine
import engine.torch as torch
from engine.aten.values import libraries


@pytest.fixture(autouse=True)
def _unloaded() -> Iterator[None]:
    yield
    libraries.unload("meta")


def _form(*sizes: int) -> torch.Tensor:
    return torch.empty(sizes, device="meta")


def test_a_tensor_tells_its_form() -> None:
    x = _form(3, 2)
    assert (x.shape, x.stride(), x.dtype) == ((3, 2), (2, 1), torch.float32)
    assert (x.is_meta, x.is_cpu, x.is_cuda, x.get_device(), str(x.device)) == (True, False, False, -1, "meta")
    assert repr(x) == "tensor(..., device='meta', size=(3, 2))"
    assert repr(x.double()) == "tensor(..., device='meta', size=(3, 2), dtype=torch.float64)"
    assert x.to("meta:0") is x.to("meta") is x
    assert torch.ones(2, 3).t().to("meta").stride() == (1, 3)


def test_views_share_their_addresses() -> None:
    x = _form(4, 3)
    view = x.t()[1:, ::2]
    assert view.storage_offset() == 1 and view.stride() == (1, 6)
    assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert (x + 1).untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


READS: dict[str, Callable[[torch.Tensor], Any]] = {
    "item": lambda x: x.sum().item(), "float": lambda x: float(x[0, 0]), "bool": lambda x: bool(x.sum()),
    "tolist": lambda x: x.tolist(), "cpu": lambda x: x.cpu(), "to": lambda x: x.to("cpu"), "numpy": lambda x: x.numpy(),
    "equal": lambda x: torch.equal(x, x), "allclose": lambda x: torch.allclose(x, x), "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0], "unique": lambda x: x.unique(), "copy": lambda x: torch.ones(3, 2).copy_(x),
    "int": lambda x: int(x.argmax()), "index": lambda x: [1, 2, 3][x.argmax()], "truth": lambda x: 1 if x.any() else 2,
}  # fmt: skip


@pytest.mark.parametrize("read", READS)
def test_numbers_are_refused(read: str) -> None:
    with pytest.raises((RuntimeError, TypeError), match="meta"):
        READS[read](_form(3, 2))


def test_writes_go_nowhere() -> None:
    x = _form(3, 2)
    version = x._version
    assert x.add_(1) is x and x.fill_(2) is x and x.copy_(torch.ones(3, 2)) is x and x.zero_() is x
    x[0] = 5.0
    x[:, 1] += torch.ones(3, device="meta")
    assert x._version > version and x.shape == (3, 2)
    with pytest.raises(RuntimeError):
        x.add_(_form(4, 3, 2))


def test_forms_take_no_memory_and_products_no_time() -> None:
    size = 2**16
    x = _form(size // 8, size)
    assert (x @ x.t()).shape == (size // 8, size // 8)
    assert (x * 2 + x).exp().shape == x.shape


def test_random_numbers_stay_those_of_the_program() -> None:
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    torch.randn(3, device="meta")
    _form(3).normal_()
    torch.nn.Linear(3, 4, device="meta")
    assert torch.equal(torch.rand(2), expected)


def test_operands_elsewhere_are_refused_but_for_numbers() -> None:
    with pytest.raises(RuntimeError, match="meta and cpu"):
        _form(3) + torch.ones(3)
    assert (_form(3) + torch.tensor(1.0)).is_meta


def test_what_is_made_after_a_form_may_be_elsewhere() -> None:
    x = _form(3, 2)
    assert torch.equal(torch.zeros_like(x, device="cpu"), torch.zeros(3, 2))
    assert torch.empty_like(x, device="cpu").is_cpu and torch.ones_like(x).is_meta and x.new_zeros(2).is_meta


def test_copies_keep_what_is_shared() -> None:
    x = _form(3, 2)
    for made in (copy.deepcopy([x, x[1:]]), pickle.loads(pickle.dumps([x, x[1:]]))):
        assert [t.is_meta for t in made] == [True, True] and made[1].storage_offset() == 2
        assert made[0].untyped_storage().data_ptr() == made[1].untyped_storage().data_ptr()


def test_modules_are_made_without_numbers_and_filled_later() -> None:
    with torch.device("meta"):
        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.ReLU())
    assert all(p.is_meta for p in net.parameters()) and all(b.is_meta for b in net.buffers())
    with pytest.raises(NotImplementedError, match="no data"):
        net.to("cpu")
    filled = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.ReLU())
    net = net.to_empty(device="cpu")
    net.load_state_dict(filled.state_dict())
    assert torch.equal(net.eval()(torch.ones(1, 2)), filled.eval()(torch.ones(1, 2)))


@pytest.mark.parametrize("mode", ["off", "eager", "background"])
def test_programs_run_on_forms(mode: Any) -> None:
    before = engine.compile_mode()
    engine.set_compile_mode(mode)
    try:
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16, 2))
        scripted, image = torch.jit.script(net), torch.ones(1, 3, 4, 4)
        on_meta = torch.jit.script(copy.deepcopy(net).to("meta"))
        for _ in range(3):
            scripted(image)
            found = on_meta(image.to("meta"))
            assert found.is_meta and found.shape == (1, 2)
        found.sum().backward()
        assert all(p.grad.is_meta and p.grad.shape == p.shape for p in on_meta.parameters())
        traced = torch.jit.trace(net.to("meta"), image.to("meta"))
        assert "device=meta" in str(traced.graph) and traced(torch.ones(5, 3, 4, 4, device="meta")).shape == (5, 2)
    finally:
        engine.set_compile_mode(before)
