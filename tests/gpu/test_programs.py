"""Programs whose tensors are on the device: compiled, traced, saved, trained."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine.torch as torch
from engine.executor.plans.executor import RECENT

CUDA = torch.device("cuda", 0)
pytestmark = pytest.mark.usefixtures("cuda")


def close(one: Any, other: Any) -> None:
    np.testing.assert_allclose(one.detach().cpu().numpy(), other.detach().cpu().numpy(), rtol=1e-4, atol=1e-5)


# -- compiled programs


@torch.jit.script
def steps(x: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.device]:
    y = torch.zeros_like(x)
    for i in range(n):
        if i % 2 == 0:
            y = y + x.relu() * i
        else:
            y = y.sigmoid()
    return y, x.device


def test_plans_run_where_the_tensors_are() -> None:
    x = torch.randn(3, 4)
    for given in (x, x.cuda(), x, x.cuda()):
        y, place = steps(given, 5)
        assert y.device == place == given.device
        close(y, steps(x, 5)[0])
    assert "for " in RECENT.ran().source


def test_a_plan_may_be_the_first_to_name_the_device() -> None:
    @torch.jit.script
    def away(x: torch.Tensor, back: bool) -> torch.Tensor:
        y = x.to("cuda") * 2
        if back:
            y = y.cpu()
        return y + 1

    for back in (False, True, False):
        y = away(torch.ones(2), back)
        assert y.is_cuda != back
        assert y.tolist() == [3.0, 3.0]


def test_a_program_makes_tensors_on_the_device_that_it_names() -> None:
    @torch.jit.script
    def made(x: torch.Tensor, place: torch.device) -> list[torch.Tensor]:
        return [torch.zeros(2, device=place), torch.arange(3, device=x.device), torch.ones(1), torch.full_like(x, 2.0)]

    assert [t.is_cuda for t in made(torch.ones(2, device="cuda"), CUDA)] == [True, True, False, True]
    assert [t.is_cuda for t in made(torch.ones(2), CUDA)] == [True, False, False, False]


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 3, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(3)
        self.lstm = torch.nn.LSTM(3, 4, batch_first=True)
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm(self.conv(x))).mean(-1).permute(0, 2, 1)
        out, _ = self.lstm(y)
        return self.head(out[:, -1])


class Plain(torch.nn.Module):
    """A trace has the device of its example in the states that an LSTM begins with; there are none here."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(1, 3, 3), torch.nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(self.norm(self.conv(x))).flatten(1).softmax(-1)


@pytest.mark.parametrize("is_traced", [False, True], ids=["scripted", "traced"])
def test_compiled_modules_move(is_traced: bool, tmp_path: Path) -> None:
    net, x = (Plain() if is_traced else Net()).eval(), torch.randn(2, 1, 5, 4)
    compiled, expected = torch.jit.trace(net, x) if is_traced else torch.jit.script(net), net(x)
    there = compiled.to("cuda")
    for _ in range(3):
        y = there(x.cuda())
        assert y.device == CUDA
        close(y, expected)
    there.save(tmp_path / "net.pt")
    for place in (None, "cpu", "cuda", "cuda:0"):
        loaded = torch.jit.load(tmp_path / "net.pt", map_location=place)
        device = torch.device("cpu") if place == "cpu" else CUDA
        assert {p.device for p in loaded.parameters()} == {device}
        assert {b.device for b in loaded.buffers()} == {device}
        close(loaded(x.to(device)), expected)


def test_traces_are_recorded_on_the_device() -> None:
    net, x = Net().cuda().eval(), torch.randn(2, 1, 5, 4, device="cuda")
    traced = torch.jit.trace(net, x)
    close(traced(x * 2), net(x * 2))
    assert traced(x).device == CUDA


def test_a_saved_module_of_the_device_is_read_without_one(tmp_path: Path) -> None:
    module = torch.jit.script(torch.nn.Linear(2, 3).cuda())
    file = io.BytesIO()
    torch.jit.save(module, file)
    file.seek(0)
    loaded = torch.jit.load(file, map_location=torch.device("cpu"))
    close(loaded(torch.ones(1, 2)), module(torch.ones(1, 2, device="cuda")))


@pytest.mark.parametrize("lengths", [[3, 2], [2, 3]])
def test_packed_sequences_are_where_their_data_is(lengths: list[int]) -> None:
    torch.manual_seed(0)
    lstm, x, results = torch.nn.LSTM(4, 5, batch_first=True), torch.randn(2, 3, 4), []
    for place in ("cpu", "cuda"):
        there = lstm.to(place)
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            x.to(place), torch.tensor(lengths), batch_first=True, enforce_sorted=False
        )
        assert packed.data.device.type == place
        assert not packed.batch_sizes.is_cuda
        y, found = torch.nn.utils.rnn.pad_packed_sequence(there(packed)[0], batch_first=True)
        assert found.tolist() == lengths
        assert y.device.type == place
        results.append(y)
    close(*results)
    with pytest.raises(RuntimeError, match="'lengths' argument should be a 1D CPU int64 tensor"):
        torch._pack_padded_sequence(x.cuda(), torch.tensor([3, 2]).cuda(), True)


# -- gradients


def test_gradients_go_back_through_moves_twice() -> None:
    def second(x: torch.Tensor) -> torch.Tensor:
        (first,) = torch.autograd.grad((x.to("cuda") ** 3).cpu().sum(), x, create_graph=True)
        (again,) = torch.autograd.grad(first.cuda().sum(), x)
        assert again.device == x.device
        return again

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert second(x).tolist() == [6.0, 12.0]
    assert second(x.detach().cuda().requires_grad_()).tolist() == [6.0, 12.0]


def test_gradients_of_compiled_programs() -> None:
    found = []
    for place in ("cpu", "cuda"):
        x = torch.linspace(-1, 1, 6).reshape(2, 3).to(place).requires_grad_()
        steps(x, 5)[0].sum().backward()
        assert x.grad.device == x.device
        found.append(x.grad)
    close(*found)


def test_gradients_of_numbers_of_the_cpu_come_home() -> None:
    x = torch.ones(3, device="cuda", requires_grad=True)
    leaf, raw, weight = torch.tensor(2.0, requires_grad=True), torch.ones(4, requires_grad=True), torch.arange(4.0)
    y = x * leaf + x * (leaf * 3).exp() + x * (raw * weight).sum() + (x * x).sum().cpu().cuda()
    y.sum().backward()
    assert leaf.grad.device == raw.grad.device == torch.device("cpu")
    assert x.grad.device == CUDA
    assert raw.grad.tolist() == [0.0, 3.0, 6.0, 9.0]
    np.testing.assert_allclose(leaf.grad.item(), 3 + 9 * np.exp(6.0), rtol=1e-5)
    (again,) = torch.autograd.grad((x * leaf).sum(), leaf)
    assert not again.is_cuda


def test_hooks_see_tensors_of_the_device() -> None:
    seen = []
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()).cuda()
    net[0].register_forward_hook(lambda module, args, output: seen.append(output.device))
    net[0].register_full_backward_hook(lambda module, before, after: seen.append(after[0].device))
    x = torch.ones(1, 2, device="cuda", requires_grad=True)
    x.register_hook(lambda gradient: seen.append(gradient.device))
    net(x).sum().backward()
    assert seen == [CUDA] * 3


def test_functions_of_programs_and_checkpoints() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            assert ctx.saved_tensors[0].is_cuda
            return gradient * 2

    x = torch.ones(2, device="cuda", requires_grad=True)
    torch.utils.checkpoint.checkpoint(Double.apply, x, use_reentrant=False).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert x.grad.device == CUDA


# -- training


def losses(place: str, make: Callable[..., Any]) -> list[float]:
    torch.manual_seed(0)
    net = Net().to(place)
    x, target = torch.randn(4, 1, 5, 4).to(place), torch.tensor([0, 1, 1, 0]).to(place)
    optimizer = make(net.parameters())
    found = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    parts = optimizer.state_dict()["state"].values()
    state = [value for part in parts for value in part.values() if isinstance(value, torch.Tensor) and value.ndim]
    assert all(value.device.type == place for value in state)
    return found


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.Adam(p, lr=0.05),
        lambda p: torch.optim.AdamW(p, lr=0.05, amsgrad=True), lambda p: torch.optim.RMSprop(p, lr=0.01),
        lambda p: torch.optim.Adagrad(p, lr=0.05), lambda p: torch.optim.NAdam(p), lambda p: torch.optim.Rprop(p),
    ],
    ids=["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "Rprop"],
)  # fmt: skip
def test_optimizers_learn_the_same(make: Callable[..., Any]) -> None:
    np.testing.assert_allclose(losses("cuda", make), losses("cpu", make), rtol=2e-3)


def test_states_move_with_their_optimizer() -> None:
    net = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    there = torch.nn.Linear(2, 2).cuda()
    again = torch.optim.Adam(there.parameters())
    again.load_state_dict(optimizer.state_dict())
    there(torch.ones(1, 2, device="cuda")).sum().backward()
    again.step()
    assert all(part["exp_avg"].device == CUDA for part in again.state.values())


def test_modules_move_and_keep_what_they_share() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    net.add_module("again", net[0])
    weight = net[0].weight
    assert net.cuda() is net
    assert net[0].weight is weight is net.again.weight
    assert {p.device for p in net.parameters()} == {b.device for b in net.buffers()} == {CUDA}
    assert {v.device for v in net.cpu().state_dict().values()} == {torch.device("cpu")}
    assert net.to(CUDA, torch.float64)[1].running_mean.dtype is torch.float64
    assert net[1].num_batches_tracked.dtype is torch.int64


def test_state_dicts_are_saved_and_mapped(tmp_path: Path) -> None:
    net = Net().cuda()
    torch.save({"net": net.state_dict(), "epoch": 3}, tmp_path / "c.pt")
    for place in ("cpu", "cuda", CUDA, lambda storage, where: storage, {"cuda:0": "cpu"}):
        found = torch.load(tmp_path / "c.pt", map_location=place)
        other = Net()
        other.load_state_dict(found["net"])
        close(other.head.weight, net.head.weight)
        on_cpu = place == "cpu" or not isinstance(place, (str, torch.device))
        assert found["net"]["head.weight"].is_cuda != on_cpu
    back = Net().cuda()
    back.load_state_dict(torch.load(tmp_path / "c.pt", map_location="cpu")["net"])
    assert back.head.weight.device == CUDA


def test_loaders_pin_what_is_to_be_copied() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(6.0).reshape(3, 2), torch.arange(3))
    for x, y in torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True):
        assert x.is_pinned()
        assert y.is_pinned()
        there = x.to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        close(there, x)
    assert not torch.ones(2).is_pinned()
    assert not torch.ones(2, device="cuda").is_pinned()


def test_mixed_precision_and_scaled_losses() -> None:
    net = torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0, growth_interval=1)
    before = net.weight.detach().clone()
    with torch.autocast("cuda"):
        y = net(torch.ones(3, 4, device="cuda"))
        assert y.dtype is torch.float16
        assert torch.nn.functional.linear(torch.ones(1, 4), torch.ones(2, 4)).dtype is torch.float32
    scaler.scale(y.float().sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2048.0
    np.testing.assert_allclose((before - net.weight.detach()).cpu().numpy(), np.full((2, 4), 0.3), rtol=1e-2)
    net.weight.grad.fill_(float("inf"))
    kept = net.weight.detach().clone()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 1024.0
    close(net.weight, kept)


# -- views and writes


def test_views_share_memory_and_count_writes() -> None:
    x = torch.zeros(3, 4, device="cuda")
    views = x[1], x.t(), x.view(2, 6), x.as_strided((2, 2), (4, 1), 1), x.unfold(0, 2, 1), x.diagonal(), x.detach()
    assert {v.untyped_storage().data_ptr() for v in views} == {x.untyped_storage().data_ptr()}
    assert [v.storage_offset() for v in views] == [4, 0, 0, 1, 0, 0, 0]
    x[1, 1] = 5
    views[1].add_(1)
    assert {v._version for v in views} == {2}
    assert x.sum().item() == 17.0
    assert views[0].tolist() == [1, 6, 1, 1]
    assert x.as_strided((2, 2), (4, 1), 5).as_strided((1,), (1,), 5).item() == 6.0


def test_writes_through_every_kind_of_index() -> None:
    results = []
    for place in ("cpu", "cuda"):
        x = torch.arange(24.0).reshape(2, 3, 4).to(place)
        x[0, 1:, ::2] = -1
        x[..., torch.tensor([0, 2])] *= 2
        x[x > 20] = 0
        x[torch.tensor([1]), torch.tensor([True, False, True])] = torch.tensor(7.0)
        x[:, None, 0, 0] = 3
        places = torch.tensor([0, 0], device=place), torch.tensor([1, 1], device=place)
        x.index_put_(places, x[0, 0].clone(), accumulate=True)
        x.scatter_add_(0, torch.zeros(1, 3, 4, dtype=torch.int64, device=place), torch.ones(1, 3, 4, device=place))
        x.masked_fill_(x == 3, -5).index_fill_(1, torch.tensor([2], device=place), 1)
        results.append(x)
    close(*results)
