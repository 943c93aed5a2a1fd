"""`torch.cuda` and its neighbours, with a device and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.aten.devices import kept_memory
from engine.lang.errors import OperatorAssertionError, OperatorError

CUDA = torch.device("cuda", 0)


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2), lambda: torch.tensor([1]), lambda: torch.as_tensor([1]), lambda: torch.randn(2),
        lambda: torch.randperm(3), lambda: torch.empty(2), lambda: torch.arange(3), lambda: torch.linspace(0, 1, 3),
        lambda: torch.eye(2), lambda: torch.full((2,), 1.0), lambda: torch.nn.Linear(2, 2).weight,
        lambda: torch.nn.LSTM(2, 2).weight_hh_l0, lambda: torch.nn.BatchNorm1d(2).running_mean,
    ],
)  # fmt: skip
def test_tensors_are_made_on_the_device_that_was_chosen(make: Callable[[], torch.Tensor]) -> None:
    with torch.device("cuda"):
        assert torch.get_default_device() == CUDA
        assert make().device == CUDA
        with torch.device("cpu"):
            assert make().device.type == "cpu"
    assert make().device.type == "cpu"
    torch.set_default_device("cuda:0")
    try:
        assert make().device == CUDA
    finally:
        torch.set_default_device(None)
    assert make().device.type == "cpu"


@pytest.mark.usefixtures("cuda")
def test_what_says_where_it_is_stays_there() -> None:
    @torch.jit.script
    def made() -> torch.Tensor:
        return torch.zeros(2)

    with torch.device("cuda"):
        assert not torch.ones(2, device="cpu").is_cuda
        assert not torch.zeros_like(torch.ones(2, device="cpu")).is_cuda
        assert not torch.from_numpy(np.ones(2)).is_cuda
        assert not made().is_cuda


@pytest.mark.usefixtures("cuda")
def test_random_numbers() -> None:
    source = torch.Generator(device="cuda").manual_seed(3)
    first = torch.randn(5, generator=source, device="cuda")
    assert source.device == CUDA
    assert source.initial_seed() == 3
    torch.cuda.manual_seed_all(3)
    assert torch.randn(5, device="cuda").tolist() == first.tolist()
    state = torch.cuda.get_rng_state_all()
    second = torch.rand(3, device="cuda").tolist()
    torch.cuda.set_rng_state_all(state)
    assert torch.rand(3, device="cuda").tolist() == second
    here = torch.manual_seed(0).get_state()
    torch.rand(100, device="cuda")
    assert torch.equal(torch.get_rng_state(), here)
    values = torch.randn(4000, device="cuda")
    assert abs(values.mean().item()) < 0.1
    assert abs(values.std().item() - 1) < 0.1
    for draw in (torch.bernoulli, torch.poisson, torch.normal):
        given = (torch.full((2000,), 0.25, device="cuda"),) + ((0.1,) if draw is torch.normal else ())
        assert abs(draw(*given).mean().item() - 0.25) < 0.06
    assert sorted(torch.randperm(5, device="cuda").tolist()) == [0, 1, 2, 3, 4]
    kept = torch.nn.functional.dropout(torch.ones(1000, device="cuda"), 0.5)
    assert set(kept.tolist()) == {0.0, 2.0}


@pytest.mark.usefixtures("cuda")
def test_generators_belong_to_a_device() -> None:
    with pytest.raises(OperatorError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        torch.randn(2, device="cuda", generator=torch.Generator())
    with pytest.raises(OperatorError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        torch.randn(2, generator=torch.Generator("cuda"))


@pytest.mark.usefixtures("cuda")
def test_streams_and_events() -> None:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side) as inner:
        assert inner == side == torch.cuda.current_stream()
        x = torch.ones(100, device="cuda") * 2
    torch.cuda.current_stream().wait_stream(side)
    end.record()
    torch.cuda.synchronize()
    assert x.sum().item() == 200
    assert start.elapsed_time(end) >= 0
    assert end.query()
    assert side.query()
    assert torch.cuda.current_stream() == torch.cuda.default_stream() != side
    with torch.cuda.stream(None):
        pass


@pytest.mark.usefixtures("cuda")
def test_events_that_cannot_tell_times_say_so() -> None:
    timed, plain = torch.cuda.Event(enable_timing=True), torch.cuda.Event()
    with pytest.raises(ValueError, match="must be created with argument 'enable_timing=True'"):
        timed.elapsed_time(plain)
    with pytest.raises(ValueError, match="must be recorded before"):
        timed.elapsed_time(torch.cuda.Event(enable_timing=True))
    assert timed.query()
    timed.synchronize()
    assert timed.device is None
    timed.record()
    assert timed.device == CUDA
    assert "cuda:0" in repr(timed)


@pytest.mark.usefixtures("cuda")
def test_memory_is_kept_for_the_streams_that_were_recorded() -> None:
    side = torch.cuda.Stream()
    x = torch.ones(10, device="cuda")
    x.record_stream(side)
    array = x.array
    del x
    assert kept_memory._KEPT[-1][1] is array
    assert kept_memory._KEPT[-1][0].device == CUDA
    torch.cuda.synchronize()
    y = torch.ones(2, device="cuda")
    y.record_stream(side)
    del y
    assert all(each is not array for _, each in kept_memory._KEPT)
    with pytest.raises(OperatorError, match="this one is on the CPU"):
        torch.ones(2).record_stream(side)


def test_streams_and_numbers_choose_among_devices(two: str) -> None:
    there = torch.device(two)
    assert torch.device(1) == there
    stream = torch.cuda.Stream(there)
    assert (stream.device, stream.device_index, stream.device_type) == (there, 1, "cuda")
    with torch.cuda.stream(stream):
        assert torch.cuda.current_device() == 1
        assert torch.cuda.current_stream() == stream
        assert torch.ones(2, device="cuda").device == there
    assert torch.cuda.current_device() == 0
    made = [
        torch.ones(2, device=1), torch.ones(2).to(1), torch.ones(2).to(1, torch.float64), torch.ones(2).cuda(1),
        torch.tensor([1.0], device=1), torch.nn.Linear(2, 2).to(1).weight, torch.zeros_like(torch.ones(1), device=1),
        torch.randn(2, device=1), torch.ones(2).to(device=1, non_blocking=True),
    ]  # fmt: skip
    assert {each.device for each in made} == {there}
    torch.cuda.set_device(1)
    try:
        here = torch.ones(3, device="cuda:0")
        assert (here * 2 + 1).relu().device == CUDA
        assert here.to("cuda").device == there
        with torch.cuda.device_of(here):
            assert torch.cuda.current_device() == 0
    finally:
        torch.cuda.set_device(0)
    torch.cuda.manual_seed_all(5)
    assert torch.rand(3, device=0).tolist() == torch.rand(3, device=1).tolist()
    x = torch.zeros(3, device=1)
    assert x.copy_(torch.ones(3, device=0)).tolist() == [1.0] * 3
    assert len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count()


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    "make",
    [
        lambda **at: torch.empty(3, **at), lambda **at: torch.zeros(3, **at), lambda **at: torch.tensor([1.0], **at),
        lambda **at: torch.randn(2, **at), lambda **at: torch.arange(3.0, **at),
    ],
)  # fmt: skip
def test_new_tensors_are_pinned_if_that_is_asked_for(make: Callable[..., torch.Tensor]) -> None:
    assert make(pin_memory=True).is_pinned()
    assert not make(pin_memory=False).is_pinned()
    both = make(pin_memory=True, requires_grad=True)
    assert both.is_pinned()
    assert both.requires_grad
    assert both.is_leaf


LAYERS: list[Callable[..., torch.nn.Module]] = [
    lambda **at: torch.nn.Linear(2, 2, **at), lambda **at: torch.nn.Bilinear(2, 2, 2, **at),
    lambda **at: torch.nn.PReLU(**at), lambda **at: torch.nn.AdaptiveLogSoftmaxWithLoss(4, 8, [2, 4], **at),
    lambda **at: torch.nn.MultiheadAttention(4, 2, kdim=3, add_bias_kv=True, **at),
    lambda **at: torch.nn.BatchNorm2d(2, **at),
    lambda **at: torch.nn.InstanceNorm1d(2, affine=True, track_running_stats=True, **at),
    lambda **at: torch.nn.Conv1d(2, 2, 1, **at), lambda **at: torch.nn.ConvTranspose2d(2, 2, 1, **at),
    lambda **at: torch.nn.LayerNorm(2, **at), lambda **at: torch.nn.RMSNorm(2, **at),
    lambda **at: torch.nn.GroupNorm(1, 2, **at), lambda **at: torch.nn.LSTM(2, 2, **at),
    lambda **at: torch.nn.GRUCell(2, 2, **at), lambda **at: torch.nn.Embedding(2, 2, padding_idx=0, **at),
    lambda **at: torch.nn.EmbeddingBag(2, 2, **at), lambda **at: torch.nn.TransformerEncoderLayer(4, 2, 8, **at),
    lambda **at: torch.nn.Transformer(4, 2, 1, 1, 8, **at), lambda **at: torch.nn.LazyLinear(3, **at),
]  # fmt: skip


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("make", LAYERS)
def test_layers_are_made_on_the_device_that_they_are_told(make: Callable[..., torch.nn.Module]) -> None:
    there, here = make(device="cuda"), make()
    assert {t.device for t in (*there.parameters(), *there.buffers())} == {CUDA}
    assert not any(t.is_cuda for t in (*here.parameters(), *here.buffers()))


@pytest.mark.usefixtures("cuda")
def test_what_is_known_of_the_device() -> None:
    assert torch.cuda.is_available()
    assert torch.cuda.is_initialized()
    assert torch.cuda.device_count() >= 1
    properties = torch.cuda.get_device_properties(0)
    assert properties.name == torch.cuda.get_device_name("cuda")
    assert torch.cuda.get_device_capability(CUDA) == (properties.major, properties.minor)
    assert torch.cuda.get_arch_list()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total
    with torch.cuda.device(0):
        assert torch.cuda.current_device() == 0
    torch.cuda.set_device("cuda:0")
    x = torch.ones(1000, device="cuda")
    assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated() >= 0
    assert torch.cuda.memory_summary()
    del x
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.accelerator.current_device_index() == 0
    torch.accelerator.synchronize()
    assert torch.cuda.FloatTensor([1, 2]).device == CUDA


def test_without_a_device_the_answers_are_true() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert torch.cuda.device_count() == torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated() == 0
    assert not torch.cuda.is_bf16_supported()
    assert torch.cuda.get_arch_list() == torch.cuda.get_rng_state_all() == []
    assert torch.accelerator.current_accelerator() is None
    torch.cuda.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    torch.cuda.empty_cache()
    assert not torch.ones(2).is_pinned()
    assert [x.tolist() for x in torch.utils.data.DataLoader([1, 2], pin_memory=True)] == [[1], [2]]
    with pytest.warns(UserWarning, match="no cuda device"):
        scaler = torch.amp.GradScaler("cuda")
    assert not scaler.is_enabled()
    assert torch.amp.GradScaler("cpu").scale(torch.ones(1)).item() == 65536.0


@pytest.mark.parametrize(
    "ask",
    [
        torch.cuda.current_device, torch.cuda.Stream, torch.cuda.Event, torch.cuda.synchronize,
        torch.cuda.get_device_name, torch.cuda.get_device_properties, torch.cuda.get_rng_state, torch.cuda.mem_get_info,
        torch.cuda.init, torch.accelerator.synchronize, torch.accelerator.current_stream,
        lambda: torch.ones(2).cuda(), lambda: torch.ones(2, device="cuda"), lambda: torch.Generator("cuda"),
        lambda: torch.set_default_device("cuda"), lambda: torch.device("cuda").__enter__(),
        lambda: torch.ones(2).pin_memory(), lambda: torch.nn.Linear(2, 2).cuda(),
        lambda: torch.nn.Linear(2, 2, device="cuda"), lambda: torch.empty(2, pin_memory=True),
        lambda: torch.cuda.set_device(0),
    ],
)  # fmt: skip
def test_without_a_device_what_needs_one_says_so(ask: Callable[[], Any]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises((OperatorError, OperatorAssertionError), match=r"cupy|NVIDIA GPU|none is available") as caught:
        ask()
    assert caught.value.hints


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    ("mix", "name"),
    [
        (lambda c, h: c + h, "aten::add.Tensor"), (lambda c, h: h @ c, "aten::matmul"),
        (lambda c, h: torch.cat([c, h]), "aten::cat"), (lambda c, h: c.add_(h), "aten::add_.Tensor"),
        (lambda c, h: torch.nn.functional.linear(c, h), "aten::linear"),
        (lambda c, h: torch.where(h > 0, c, h), "aten::where.self"),
        (lambda c, h: c.index_select(0, torch.tensor([0])), "aten::index_select"),
        (lambda c, h: torch.nn.functional.embedding(torch.tensor([0]), c), "aten::embedding"),
        (lambda c, h: torch.lerp(c, h, 0.5), "aten::lerp.Scalar"),
    ],
)  # fmt: skip
def test_operands_on_two_devices_are_refused_by_name(mix: Callable[..., Any], name: str) -> None:
    with pytest.raises(OperatorError, match="at least two devices, cuda:0 and cpu!") as caught:
        mix(torch.ones(2, 2, device="cuda"), torch.ones(2, 2))
    assert any(name in hint and "on cuda:0" in hint for hint in caught.value.hints)


@pytest.mark.usefixtures("cuda")
def test_the_line_of_the_program_is_told() -> None:
    @torch.jit.script
    def mixed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x.relu()
        return z + y

    for _ in range(2):
        with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cpu!") as caught:
            mixed(torch.ones(2, device="cuda"), torch.ones(2))
        assert "return z + y" in str(caught.value)


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x[torch.tensor([5], device="cuda")], lambda x: x[5],
        lambda x: x.index_select(0, torch.tensor([5]).cuda()),
        lambda x: x.gather(0, torch.full((1, 2), 5, device="cuda")), lambda x: torch.take(x, torch.tensor([9]).cuda()),
        lambda x: torch.nn.functional.embedding(torch.tensor([9]).cuda(), x),
        lambda x: torch.nn.functional.nll_loss(x, torch.tensor([0, 7]).cuda()),
        lambda x: x.scatter(0, torch.full((1, 2), 5, device="cuda"), 1.0),
        lambda x: x.index_put_((torch.tensor([5]).cuda(),), torch.ones(2).cuda()),
        lambda x: x.index_add(0, torch.tensor([5]).cuda(), torch.ones(1, 2).cuda()),
        lambda x: x.index_fill(0, torch.tensor([5]).cuda(), 1.0),
        lambda x: torch.take_along_dim(x, torch.tensor([[5]]).cuda(), 0),
        lambda x: x.index_copy(0, torch.tensor([5]).cuda(), torch.ones(1, 2).cuda()),
        lambda x: torch.nn.functional.one_hot(torch.tensor([5]).cuda(), 3), lambda x: x.cpu()[torch.tensor([0]).cuda()],
        lambda x: torch.linalg.inv(torch.zeros(2, 2).cuda()), lambda x: torch.linalg.cholesky(-torch.eye(2).cuda()),
        lambda x: x @ torch.ones(3, 3, device="cuda"), lambda x: x + torch.ones(3, device="cuda"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_not_wrapped_around(wrong: Callable[..., Any]) -> None:
    with pytest.raises((OperatorError, IndexError)):
        wrong(torch.ones(2, 2, device="cuda"))
