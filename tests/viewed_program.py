"""A program of two functions, a loop with branches and a chain of operators, whose views tests look at."""

from typing import Final

VIEWED: Final = """def f(x, n: int):
    h = torch.tanh(x)
    for i in range(n):
        if i > 1:
            h = h + x
        else:
            h = h * 2.
    return h.sum()

def g(x, y):
    h = torch.tanh(x)
    z = h * y + x
    return torch.relu(z).sum(1)
"""
