"""Groups to try kernels with: `parameters: expression`, by the arguments that they are for."""

from __future__ import annotations

from typing import Final

POINTWISE: Final = [
    "x: torch.tanh(x) * torch.sigmoid(x) + x",
    "x: torch.relu(x) - torch.exp(-x * x)",
    "x: torch.nn.functional.gelu(x) + torch.nn.functional.silu(x)",
    "x: x.clamp(-1.0, 1.0) + x.clamp(min=0.5)",
    "x: torch.where(x > 0, x, x * 0.1)",
    "x: x.masked_fill(x < 0, 2.0)",
    "x: torch.abs(x) ** 2 + torch.sqrt(torch.abs(x))",
    "x: (x > 0.5) & (x < 2.0)",
    "x: torch.floor(x) + torch.round(x) % 2",
    "x: (x / 0.0) + torch.log(x)",
    "x: torch.isnan(x) | torch.isinf(x)",
]

CHOOSING: Final = [
    "x: (x.transpose(0, 1) * 2).contiguous()", "x: (x.t() + 1).contiguous()", "x: x.permute(1, 0).exp().contiguous()",
    "x: x.unsqueeze(1) + x.unsqueeze(0)",
    "x: x[1] * 2 + x[-1]", "x: torch.cat([x, x * 2, x], 1) + 1", "x: torch.cat([x, x + 1]).relu()",
    "x: torch.cat([x, x * 2, x.sum(1, True)], 1)", "x: (torch.cat([x.exp(), x]), x + 1)",
    "x: torch.stack([x, x + 1], 1)",
    "x: torch.cat([x.t() * 2, x.t()])", "x: torch.cat([x > 0, x])", "x: torch.stack([x[0] + 1, x[1]])",
    "x: x.contiguous().to(torch.float64) * 3",
]  # fmt: skip

MOVED: Final = [
    "x: x.permute(0, 2, 1) * 2", "x: x.permute(2, 0, 1) + 1", "x: torch.softmax(x.transpose(1, 2), 1).transpose(0, 1)",
    "x: (x.transpose(0, 2).exp(), x.transpose(0, 2).sum(0), x * 2)",
    "x: (x.transpose(1, 2) + 1) @ x", "x: torch.layer_norm(x.transpose(1, 2), [3]).transpose(1, 2).relu()",
]  # fmt: skip

REDUCING: Final = [
    "x: x.sum()", "x: x.sum(0) * 2", "x: (x * x).sum(-1, True) + x", "x: x.mean(1) + x.sum(1)", "x: x.amax(1)",
    "x: x - x.amin(0)", "x: x.argmax(1)", "x: x.argmin()", "x: (x > 0).any(1)", "x: (x > 9).all()",
    "x: torch.softmax(x, -1) * 2", "x: torch.softmax(x, 0)", "x: torch.log_softmax(x * 3, 1)",
    "x: x.var(1) + x.std(1, False)", "x: (x - x.mean(1, True)) / (x.std(1, keepdim=True) + 0.1)",
    "x: x.prod(1)", "x: (x * x).mean()", "x: torch.softmax(x, 1).sum(0)",
]  # fmt: skip

COLUMNS: Final = [
    "x: x.sum(0)", "x: ((x * 2).sum(0), x.amax(0) + 1)", "x: torch.softmax(x, 0)", "x: x.var(0)", "x: x.argmax(0)",
    "x: x.t().sum(1)", "x: (x - x.mean(0)) / (x.std(0) + 1)", "x: (x > 0).any(0)", "x: x.sum(0, True) * x",
]  # fmt: skip

SCANS: Final = [
    "x: x.cumsum(1)", "x: (x * 2).cumsum(0) + 1", "x: x.cumsum(-2).relu()", "x: torch.cumprod(x, 2) * x",
    "x: torch.cumprod(x.transpose(0, 2), 1)", "x: (x > 0).cumsum(-1)", "x: x.cumsum(1, dtype=torch.float64)",
    "x: torch.softmax(x, 1).cumsum(1)", "x: x.cumsum(0).sum(0)",
]  # fmt: skip

NORMS: Final = [
    "x: torch.logsumexp(x, 1) + 1", "x: torch.logsumexp(x * 2, [0, 1], True)", "x: torch.norm(x * 2)",
    "x: x / x.norm(2, 1, True)", "x: torch.norm(x, 1, [0])", "x: torch.linalg.vector_norm(x, 2, 1)",
    "x: torch.linalg.vector_norm(x, float('inf'), 1)",
]  # fmt: skip

REARRANGING: Final = [
    "torch.flip(x * 2, [1])", "torch.flip(x, [0, -1]) + 1", "torch.roll(x * 2, 2, 1)", "torch.roll(x * 2, -1, 0)",
    "torch.roll(x * 2, [1, -2], [0, 2])", "torch.roll(x * 2, 3)", "torch.diagonal(x * 2) + 1",
    "torch.diagonal(x * 2, 1, 1, 2).exp()", "torch.diagonal(x * 2, -1, 2, 0).exp()", "(x * 2).repeat(1, 3, 1)",
    "(x * 2).repeat(2, 1, 1, 2)", "torch.tril(x * 2)", "torch.tril(x * 2, -1)", "torch.triu(x * 2, 1)",
    "torch.nn.functional.pad(x * 2, [1, 2])", "torch.nn.functional.pad(x * 2, [1, 0, 0, 3], value=1.5)",
    "torch.nn.functional.pad(x * 2, [-1, 2, 1, -1])", "torch.nn.functional.pad(x * 2, [2, 1], 'reflect')",
    "torch.nn.functional.pad(x * 2, [4, 1], 'replicate')", "torch.nn.functional.dropout(x * 2, 0.5, False)",
    "torch.nn.functional.pixel_unshuffle(x * 2, 2)",
]  # fmt: skip

RESHAPING: Final = [
    "x: x.view(-1) * 2", "x: x.view(x.size(0), 2, 3) + 1", "x: x.reshape(3, -1) + 1", "x: x.view(-1, 3).sum(1)",
    "x: x.flatten() - 1",
    "x: (x.view(x.size(0), -1, 2).transpose(1, 2) * 3).contiguous()",
    "x: x.unflatten(1, [2, 3]).amax(2)",
    "x: x.t().reshape(-1) + 1", "x: (x + 1).view(2, -1, 3).mean(0)", "x: x.view(-1, 1, 6).expand(-1, 2, -1) + 1",
    "x: x.unsqueeze(1).squeeze(1) * 2", "x: x.sum(1, keepdim=True).squeeze() + 1", "x: x.view_as(x) + 1",
    "x: x[0].expand_as(x) + x", "x: torch.stack([x, x + 1], 1) * 2", "x: torch.stack([x, x]).view(-1, 6) + 1",
]  # fmt: skip

PARTS: Final = [
    "x: x[1:] + 1", "x: x[:-1] * x[1:]", "x: x[:, 1:4] + 1", "x: x[:, ::2] + 1", "x: x[1:, -2:] * 2",
    "x: x[:, 1:-1:2].sum(1)", "x: x[:100] + 1", "x: torch.cat([x[:, 3:], x[:, :3]], 1) * 2",
]  # fmt: skip
