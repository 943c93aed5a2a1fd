"""Gradients by hand and of gradients: own functions, hooks, parametrizations, Jacobians, averaged models."""

from __future__ import annotations

from typing import Any

import engine.torch as torch

nn = torch.nn
parametrize, swa = torch.nn.utils.parametrize, torch.optim.swa_utils


class Cubic(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * 3 * x**2


class Symmetric(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.triu() + x.triu(1).mT


def fitted() -> list[float]:
    """A cubic whose weights are moved by hand."""
    x = torch.linspace(-1, 1, 50)
    y, losses = torch.sin(2 * x), []
    a, b = torch.full((), 0.1, requires_grad=True), torch.zeros((), requires_grad=True)
    for _ in range(20):
        loss = (Cubic.apply(b * x) + a * x - y).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            for weight in (a, b):
                weight -= 0.3 * weight.grad
                weight.grad = None
        losses.append(loss.item())
    return losses


def main() -> dict[str, Any]:
    torch.manual_seed(19)
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (slope,) = torch.autograd.grad(Cubic.apply(x).sum(), x, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), x)
    layer, shapes = nn.Linear(3, 3), {}
    parametrize.register_parametrization(layer, "weight", Symmetric())
    handle = layer.register_forward_hook(lambda module, inputs, output: shapes.update(out=list(output.shape)))
    doubled = x.register_hook(lambda gradient: gradient * 2)
    layer(x.unsqueeze(0)).tanh().sum().backward()
    handle.remove()
    doubled.remove()
    average = swa.AveragedModel(layer)
    average.update_parameters(layer)
    double = torch.randn(4, dtype=torch.float64, requires_grad=True)
    return {
        "losses": fitted(), "slope": slope.tolist(), "bend": bend.tolist(), "shapes": shapes, "grad": x.grad.tolist(),
        "symmetric": torch.equal(layer.weight, layer.weight.mT), "names": sorted(dict(layer.named_parameters())),
        "checked": torch.autograd.gradcheck(Cubic.apply, (double,)), "average": average(x.detach()).tolist(),
        "jacobian": torch.autograd.functional.jacobian(lambda v: v**2, torch.tensor([1.0, 2.0])).tolist(),
        "hessian": torch.autograd.functional.hessian(lambda v: (v**3).sum(), torch.tensor([1.0, 2.0])).tolist(),
        "again": torch.utils.checkpoint.checkpoint(lambda v: layer(v).sum(), x, use_reentrant=False).item(),
    }  # fmt: skip
