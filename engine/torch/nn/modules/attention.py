"""Attention.  In: queries `(L, N, E)`, keys and values `(S, N, E)`, or N first, or without N.  Out: `(L, N, E)`."""

from __future__ import annotations

import math
from typing import Any

import engine as torch
from engine.aten.values.tensor import Tensor
from engine.torch.nn import functional as F
from engine.torch.nn import init
from engine.torch.nn.modules.linear import Linear
from engine.torch.nn.modules.module import Module
from engine.torch.nn.parameter import Parameter


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear under the name that printed modules show in PyTorch."""


class MultiheadAttention(Module):
    """Several heads attend to parts of the vectors; each output is a mean of values, weighted by the similarity of
    queries and keys.

    Masks are True, or minus infinity, where attention is not allowed.
    """

    __constants__ = ("embed_dim", "num_heads", "batch_first", "head_dim", "dropout", "add_zero_attn")
    embed_dim: int
    num_heads: int
    head_dim: int
    dropout: float
    batch_first: bool
    add_zero_attn: bool
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            kind = ValueError if embed_dim <= 0 or num_heads <= 0 else AssertionError
            raise kind(f"embed_dim ({embed_dim}) must be greater than 0 and divisible by num_heads ({num_heads})")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.batch_first, self.add_zero_attn = float(dropout), batch_first, add_zero_attn
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        joint = Parameter(init.empty([3 * embed_dim, embed_dim], dtype, device)) if self._qkv_same_embed_dim else None
        self.register_parameter("in_proj_weight", joint)
        for name, width in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            own = None if self._qkv_same_embed_dim else Parameter(init.empty([embed_dim, width], dtype, device))
            self.register_parameter(f"{name}_proj_weight", own)
        self.register_parameter("in_proj_bias", Parameter(init.empty([3 * embed_dim], dtype, device)) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            made = Parameter(init.empty([1, 1, embed_dim], dtype, device)) if add_bias_kv else None
            self.register_parameter(name, made)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        batched = query.dim() == 3
        if not batched:
            query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        elif self.batch_first:
            query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
        q, k, v = self._projected(query, key, value)
        mask = self._mask(query, key, attn_mask, key_padding_mask)
        k, v, mask = self._extended(k, v, mask)
        output, weights = self._attend(self._heads(q), self._heads(k), self._heads(v), mask, need_weights)
        output = self.out_proj(output.transpose(1, 2).reshape(query.size(1), query.size(0), self.embed_dim))
        if weights is not None and average_attn_weights:
            weights = weights.mean(dim=1)
        if not batched:
            return output.squeeze(0), weights.squeeze(0) if weights is not None else None
        return output if self.batch_first else output.transpose(0, 1), weights

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        bias = self.in_proj_bias
        size = self.embed_dim
        q_bias = bias[:size] if bias is not None else None
        k_bias = bias[size : 2 * size] if bias is not None else None
        v_bias = bias[2 * size :] if bias is not None else None
        if self.in_proj_weight is not None:
            weight = self.in_proj_weight
            q = F.linear(query, weight[:size], q_bias)
            k = F.linear(key, weight[size : 2 * size], k_bias)
            v = F.linear(value, weight[2 * size :], v_bias)
        else:
            q = F.linear(query, self.q_proj_weight, q_bias)
            k = F.linear(key, self.k_proj_weight, k_bias)
            v = F.linear(value, self.v_proj_weight, v_bias)
        return q, k, v

    def _mask(
        self, query: Tensor, key: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None
    ) -> Tensor | None:
        """The combined masks as a tensor to add to the scores `(N, heads, L, S)`."""
        mask = self._additive(attn_mask, query)
        if mask is not None and mask.dim() == 3:
            mask = mask.view(query.size(1), self.num_heads, query.size(0), key.size(0))
        padding = self._additive(key_padding_mask, query)
        if padding is not None:
            wide = padding.view(query.size(1), 1, 1, key.size(0))
            mask = wide if mask is None else mask + wide
        return mask

    def _additive(self, mask: Tensor | None, like: Tensor) -> Tensor | None:
        if mask is not None and mask.dtype == torch.bool:
            return torch.zeros_like(mask, dtype=like.dtype).masked_fill_(mask, float("-inf"))
        return mask

    def _extended(self, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Keys and values, extended by learned ones and by zeros according to the layer's settings."""
        before = k.size(0)
        bias_k, bias_v = self.bias_k, self.bias_v
        if bias_k is not None and bias_v is not None:
            k = torch.cat([k, bias_k.repeat(1, k.size(1), 1)])
            v = torch.cat([v, bias_v.repeat(1, v.size(1), 1)])
        if self.add_zero_attn:
            k = torch.cat([k, torch.zeros_like(k[:1])])
            v = torch.cat([v, torch.zeros_like(v[:1])])
        if mask is not None:
            mask = F.pad(mask, [0, k.size(0) - before])
        return k, v, mask

    def _heads(self, x: Tensor) -> Tensor:
        """`(L, N, E)` as `(N, heads, L, head_dim)`."""
        return x.reshape(x.size(0), x.size(1) * self.num_heads, self.head_dim).transpose(0, 1).reshape(
            x.size(1), self.num_heads, x.size(0), self.head_dim
        )  # fmt: skip

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        rate = self.dropout if self.training else 0.0
        if not need_weights:
            return F.scaled_dot_product_attention(q, k, v, mask, rate), None
        scores = torch.matmul(q * math.sqrt(1.0 / float(self.head_dim)), k.transpose(-2, -1))
        if mask is not None:
            scores = scores + mask
        weights = F.softmax(scores, dim=-1)
        if rate > 0.0:
            weights = F.dropout(weights, p=rate)
        return torch.matmul(weights, v), weights
