"""Divergence of distributions.  In: two distributions of a family.  Out: their Kullback-Leibler divergence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import engine as torch
from engine.aten.values.tensor import Tensor
from engine.torch.distributions.continuous import Exponential, Laplace, Normal, Uniform
from engine.torch.distributions.discrete import Bernoulli, Categorical, OneHotCategorical, Poisson
from engine.torch.distributions.distribution import Distribution, Independent, summed
from engine.torch.distributions.gamma import Beta, Dirichlet, Gamma
from engine.torch.distributions.multivariate import MultivariateNormal

Formula = Callable[[Any, Any], Tensor]
_FORMULAS: Final[dict[tuple[type, type], Formula]] = {}


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence of `q` from `p`.  Raises NotImplementedError for classes without a registered formula."""
    for one in type(p).__mro__:
        for other in type(q).__mro__:
            if (one, other) in _FORMULAS:
                return _FORMULAS[one, other](p, q)
    raise NotImplementedError(f"there is no divergence of {type(q).__name__} from {type(p).__name__} here")


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Decorator that registers the formula for two classes of distributions."""

    def keep(formula: Formula) -> Formula:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return keep


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log()) * 0.5  # type: ignore[no-any-return]


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    return (p.probs * (p.logits - q.logits)).sum(-1)  # type: ignore[no-any-return]


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p, q)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    rest, other = -p.probs + 1, -q.probs + 1
    return torch.xlogy(p.probs, p.probs / q.probs) + torch.xlogy(rest, rest / other)  # type: ignore[no-any-return]


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()  # type: ignore[no-any-return]


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)  # type: ignore[no-any-return]


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1  # type: ignore[no-any-return]


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return torch.where((q.low > p.low) | (q.high < p.high), torch.full_like(found, torch.inf), found)  # type: ignore[no-any-return]


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    shapes = (a - b) * a.digamma() - a.lgamma() + b.lgamma()
    return shapes + b * (p.rate / q.rate).log() + a * (q.rate / p.rate - 1)  # type: ignore[no-any-return]


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    sizes = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return sizes + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)  # type: ignore[no-any-return]


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    return _dirichlet(p._pair, q._pair)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: Any, q: Any) -> Tensor:
    root = torch.linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    away = torch.linalg.solve_triangular(q.scale_tril, (q.loc - p.loc).unsqueeze(-1), upper=False)
    spread = (root**2).sum((-2, -1)) + (away**2).sum((-2, -1)) - p.loc.shape[-1]
    return q._log_volume() - p._log_volume() + spread * 0.5  # type: ignore[no-any-return]


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("the two distributions have events of different dimensions")
    return summed(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
