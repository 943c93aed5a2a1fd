def scale(x: Tensor, k: float):
    return x * k


def forward(x: Tensor, n: int):
    h = x
    for i in range(n):
        h = scale(h, 1.5)
        h.add_(1.0)
        h = torch.sqrt(h - 4.0)
    return h.sum()


def mixed(x: Tensor, n: int):
    h = x
    for i in range(n):
        h = h @ torch.ones(i + 2, 3)
    return h
