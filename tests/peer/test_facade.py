"""Scripts get from the façade what PyTorch gives them: layers, gradients, optimizers, schedules, batches, files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import engine.torch
from tests.peer.layer_samples import LAYERS

torch = pytest.importorskip("torch", reason="compares with a real PyTorch, which is not installed here")
pytestmark = pytest.mark.peer


def lists(value: Any) -> Any:
    """Tensors as nested lists, wherever they are."""
    if hasattr(value, "detach"):
        return value.detach().tolist()
    return [lists(each) for each in value] if isinstance(value, (tuple, list)) else value


def close(mine: Any, theirs: Any) -> bool:
    if isinstance(theirs, list):
        return isinstance(mine, list) and len(mine) == len(theirs) and all(map(close, mine, theirs))
    if isinstance(theirs, float):
        return mine == pytest.approx(theirs, rel=2e-4, abs=2e-5, nan_ok=True)
    return bool(mine == theirs)


def first_tensor(value: Any) -> Any:
    return value if hasattr(value, "detach") else first_tensor(value[0])


def layer_facts(t: Any, maker: str, inputs: str) -> dict[str, Any]:
    """What the layer is, gives, and passes back."""
    t.manual_seed(0)
    names = {
        "torch": t, "nn": t.nn, "r": lambda *size: t.randn(*size), "i": lambda *size: t.randint(0, 4, size),
    }  # fmt: skip
    layer = eval(f"nn.{maker}", names)
    args = eval(f"({inputs},)", names)
    given = [a.requires_grad_() if hasattr(a, "detach") and a.is_floating_point() and a.is_leaf else a for a in args]
    result = layer(*given)
    facts = {"text": repr(layer), "state": list(layer.state_dict()), "result": lists(result)}
    t.manual_seed(1)
    output = first_tensor(result)
    if output.is_floating_point() and output.requires_grad:
        (output * t.randn(output.shape)).sum().backward()
        facts["gradients"] = [lists(p.grad) for p in layer.parameters()]
        facts["of inputs"] = [lists(a.grad) for a in given if hasattr(a, "detach") and a.is_leaf and a.requires_grad]
    layer.eval()
    facts["evaluated"] = lists(layer(*args))
    return facts


@pytest.mark.parametrize("maker", LAYERS)
def test_layers(maker: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, theirs = (layer_facts(t, maker, LAYERS[maker]) for t in (engine.torch, torch))
    assert list(mine) == list(theirs)
    for name, fact in theirs.items():
        assert close(mine[name], fact), f"{name}: {mine[name]} is not {fact}"


OPTIMIZERS = [
    "SGD(p, lr=0.1)", "SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01)", "SGD(p, lr=0.1, momentum=0.9, nesterov=True)",
    "SGD(p, lr=0.1, momentum=0.9, dampening=0.3, maximize=True)", "Adam(p, lr=0.05)",
    "Adam(p, lr=0.05, amsgrad=True, weight_decay=0.1)", "AdamW(p, lr=0.05)", "AdamW(p, lr=0.05, amsgrad=True)",
    "RMSprop(p, lr=0.01)", "RMSprop(p, lr=0.01, centered=True, momentum=0.5, weight_decay=0.1)",
    "Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.2)",
    "Adadelta(p, weight_decay=0.1)",
    "Adamax(p, lr=0.1, weight_decay=0.1)", "NAdam(p, lr=0.1, weight_decay=0.1)", "RAdam(p, lr=0.1, weight_decay=0.1)",
    "NAdam(p, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True)", "RAdam(p, lr=0.1, betas=(0.8, 0.7))",
    "ASGD(p, lr=0.1, t0=3)", "Rprop(p, lr=0.1)", "Adam(p, foreach=False, maximize=True)", "SGD(p, lr=0.1, fused=None)",
    "Adafactor(p, lr=0.1)", "Adafactor(p, lr=0.05, weight_decay=0.01, d=2.0, beta2_decay=-0.5)",
]  # fmt: skip


def trained(t: Any, optimizer: str) -> Any:
    """Parameters, and what the optimizer remembers, after some steps."""
    x, y = t.tensor([[0.5, -1.0], [2.0, 0.1], [0.3, 0.7]]), t.tensor([1.0, -2.0, 0.5])
    weight, bias = t.tensor([0.1, 0.2], requires_grad=True), t.zeros(1, requires_grad=True)
    chosen = eval(f"optim.{optimizer}", {"optim": t.optim, "p": [weight, bias]})
    for _ in range(7):
        chosen.zero_grad()
        ((x @ weight + bias - y) ** 2).mean().backward()
        chosen.step()
    state = chosen.state_dict()
    remembered = [[name, lists(state["state"][n][name])] for n in state["state"] for name in sorted(state["state"][n])]
    return [lists(weight), lists(bias), remembered, sorted(state["param_groups"][0])]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer: str) -> None:
    assert close(trained(engine.torch, optimizer), trained(torch, optimizer))


@pytest.mark.parametrize("options", ["", "line_search_fn='strong_wolfe'", "history_size=2, max_iter=7, lr=0.5"])
def test_lbfgs(options: str) -> None:
    def found(t: Any) -> list[Any]:
        x = t.tensor([-1.5, 2.0], requires_grad=True, dtype=t.float64)
        optimizer = eval(f"optim.LBFGS([x], {options})", {"optim": t.optim, "x": x})

        def closure() -> Any:
            optimizer.zero_grad()
            loss = (1 - x[0]) ** 2 + 5 * (x[1] - x[0] ** 2) ** 2
            loss.backward()
            return loss

        return [[lists(optimizer.step(closure)), lists(x), optimizer.state[x]["func_evals"]] for _ in range(4)]

    assert close(found(engine.torch), found(torch))


SCHEDULES = [
    "StepLR(o, 3, 0.5)", "MultiStepLR(o, [2, 5, 5], 0.5)", "ExponentialLR(o, 0.9)", "CosineAnnealingLR(o, 5, 0.01)",
    "LambdaLR(o, lambda epoch: 0.95**epoch)", "OneCycleLR(o, 1.0, 12)", "LinearLR(o, 0.25, 1.0, 6)",
    "OneCycleLR(o, 1.0, 12, anneal_strategy='linear', three_phase=True)", "ConstantLR(o, 0.5, 4)",
    "MultiplicativeLR(o, lambda epoch: 0.9)",
    "SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], [4])", "PolynomialLR(o, 6, 2.0)",
    "CosineAnnealingWarmRestarts(o, 3, 2, 0.01)", "CosineAnnealingWarmRestarts(o, 4)", "CyclicLR(o, 0.01, 0.1, 3)",
    "CyclicLR(o, 0.01, [0.1, 0.2], 2, 3, mode='triangular2')", "CyclicLR(o, 0.01, 0.1, 2, mode='exp_range', gamma=0.9)",
    "ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)])",
]  # fmt: skip


def rates(t: Any, schedule: str, optimizer: str) -> list[Any]:
    params = [{"params": [t.zeros(1, requires_grad=True)]}, {"params": [t.zeros(1, requires_grad=True)], "lr": 0.3}]
    o = eval(f"optim.{optimizer}", {"optim": t.optim, "p": params})
    scheduler = eval(f"s.{schedule}", {"s": t.optim.lr_scheduler, "o": o})
    found = []
    for _ in range(11):
        o.step()
        scheduler.step()
        found.append([scheduler.get_last_lr(), o.param_groups[0].get("momentum"), o.param_groups[0].get("betas")])
    return found


@pytest.mark.parametrize("optimizer", ["SGD(p, lr=0.1, momentum=0.9)", "Adam(p, lr=0.1)"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules(schedule: str, optimizer: str) -> None:
    mine, theirs = (rates(t, schedule, optimizer) for t in (engine.torch, torch))
    assert close(lists(mine), lists(theirs))


def batches(t: Any) -> list[Any]:
    t.manual_seed(3)
    data = t.utils.data.TensorDataset(t.arange(10).float(), t.arange(10) * 2)
    found: list[Any] = []
    for options in ({"batch_size": 3}, {"batch_size": 4, "shuffle": True, "drop_last": True}, {"batch_size": None}):
        loader = t.utils.data.DataLoader(data, **options)
        found += [[lists(batch) for batch in loader], [lists(batch) for batch in loader], len(loader)]
    found.append([part.indices for part in t.utils.data.random_split(data, [0.55, 0.45])])
    return [*found, t.rand(3).tolist()]


def test_batches_come_in_the_same_order() -> None:
    assert batches(engine.torch) == batches(torch)


def test_files_are_read_by_both(tmp_path: Path) -> None:
    layer = torch.nn.Linear(2, 3)
    torch.save(
        {"model": layer.state_dict(), "epoch": 3, "half": torch.ones(2, dtype=torch.bfloat16)}, tmp_path / "a.pt"
    )
    read = engine.torch.load(tmp_path / "a.pt")
    assert read["model"]["weight"].tolist() == layer.weight.tolist()
    assert (read["epoch"], read["half"].dtype) == (3, engine.bfloat16)
    mine = engine.torch.nn.Linear(2, 3)
    mine.load_state_dict(read["model"])
    optimizer = engine.torch.optim.Adam(mine.parameters())
    mine(engine.torch.ones(1, 2)).sum().backward()
    optimizer.step()
    engine.torch.save([mine.state_dict(), optimizer.state_dict()], tmp_path / "b.pt")
    model, state = torch.load(tmp_path / "b.pt")
    layer.load_state_dict(model)
    theirs = torch.optim.Adam(layer.parameters())
    theirs.load_state_dict(state)
    assert theirs.state[layer.weight]["exp_avg"].tolist() == optimizer.state[mine.weight]["exp_avg"].tolist()
