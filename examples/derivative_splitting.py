"""Derivative splitting, as PyTorch's overview of its JIT shows it: an LSTM cell becomes one differentiable graph.

Prints the graph as compiled, the plan with its `prim::DifferentiableGraph`, and what that is split into: a forward
graph f and a backward graph df.  Then the gradients that df gives are compared with those of operators that are
recorded one by one.
"""

from __future__ import annotations

import engine.torch as torch
from engine import explain, set_compile_mode

SIZES = {"x": (3, 10), "hx": (3, 20), "cx": (3, 20), "w_ih": (80, 10), "w_hh": (80, 20), "b_ih": (80,), "b_hh": (80,)}
TOLERANCE = 1e-5


@torch.jit.script
def cell(x, hx, cx, w_ih, w_hh, b_ih, b_hh):  # type: ignore[no-untyped-def]
    gates = x.mm(w_ih.t()) + hx.mm(w_hh.t()) + b_ih + b_hh
    ingate, forgetgate, cellgate, outgate = gates.chunk(4, 1)
    cy = torch.sigmoid(forgetgate) * cx + torch.sigmoid(ingate) * torch.tanh(cellgate)
    hy = torch.sigmoid(outgate) * torch.tanh(cy)
    return hy, cy


def gradients(arguments: list[torch.Tensor]) -> list[torch.Tensor]:
    """The gradients of all arguments, of a sum in which each element counts for itself."""
    hy, cy = cell(*arguments)
    return list(torch.autograd.grad((hy * hy).sum() + (cy * 2).sum(), arguments))


def split() -> dict[str, str]:
    """The graphs on the way, by what they are; the cell has run for arguments that require grad."""
    (plan,) = explain(cell).plans
    (group,) = plan.differentiable
    (found,) = group.splits
    return {
        "the graph as compiled": str(cell.graph),
        "the plan, with its differentiable graph": str(plan.graph),
        "f, the forward graph": str(found.forward),
        "df, the backward graph": str(found.backwards[-1]),
    }


def compare() -> float:
    """The greatest difference between a gradient by df and the same by operators that are recorded one by one."""
    torch.manual_seed(0)
    arguments = [(torch.randn(*sizes) / 4).requires_grad_() for sizes in SIZES.values()]
    by_graph = gradients(arguments)
    with torch.jit.optimized_execution(False):
        by_operators = gradients(arguments)
    pairs = zip(by_graph, by_operators, strict=True)
    return max(float((one - other).abs().max()) for one, other in pairs)


def main() -> None:
    set_compile_mode("eager")  # graphs are split before the first call, rather than once that pays
    difference = compare()
    for title, graph in split().items():
        print(f"# {title}\n\n{graph}")
    print(f"gradients of {', '.join(SIZES)} differ by {difference:.1e} at most")
    assert difference < TOLERANCE


if __name__ == "__main__":
    main()
