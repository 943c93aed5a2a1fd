"""Distributions: densities and entropies are known numbers, samples have the means that the formulas give."""

from __future__ import annotations

import math
from typing import Any

import pytest

import engine.torch as torch

D, T = torch.distributions, torch.tensor

KNOWN: list[tuple[str, tuple[Any, ...], Any, float, float | None]] = [
    # the distribution, its parameters, a value, its log-probability, the entropy
    ("Normal", (0.5, 2.0), 1.0, -1.643336, 2.112086),
    ("LogNormal", (0.5, 2.0), 1.0, -1.643336, 2.612086),
    ("Laplace", (0.5, 2.0), 1.0, -1.636294, 2.386294),
    ("Cauchy", (0.5, 2.0), 1.0, -1.898502, 3.224171),
    ("Gumbel", (0.0, 2.0), 1.0, -1.799678, 2.270363),
    ("HalfNormal", (2.0,), 1.0, -1.043939, 1.418939),
    ("Uniform", (0.0, 4.0), 1.0, -1.386294, 1.386294),
    ("Exponential", (2.0,), 1.0, -1.306853, 0.306853),
    ("Gamma", (2.0, 3.0), 1.0, -0.802775, 0.478604),
    ("Chi2", (4.0,), 1.0, -1.886294, 2.270363),
    ("Beta", (2.0, 3.0), 0.5, 0.405465, -0.234907),
    ("StudentT", (3.0, 0.5, 2.0), 1.0, -1.735275, None),
    ("Bernoulli", (0.25,), 1.0, -1.386294, 0.562335),
    ("Poisson", (1.5,), 2.0, -1.382217, None),
    ("Geometric", (0.25,), 2.0, -1.961659, 2.249341),
    ("Binomial", (4.0, 0.25), 2.0, -1.556193, None),
]


@pytest.mark.parametrize(("name", "parameters", "value", "log_prob", "entropy"), KNOWN, ids=[row[0] for row in KNOWN])
def test_densities(name: str, parameters: Any, value: float, log_prob: float, entropy: float | None) -> None:
    torch.manual_seed(0)
    found = getattr(D, name)(*parameters)
    assert found.log_prob(T(value)).item() == pytest.approx(log_prob, abs=1e-4)
    if entropy is not None:
        assert found.entropy().item() == pytest.approx(entropy, abs=1e-4)
    samples = found.sample((4000,))
    assert samples.shape == (4000,)
    if name not in ("Cauchy", "LogNormal", "StudentT"):
        error = 5 * found.stddev.item() / math.sqrt(4000)
        assert samples.mean().item() == pytest.approx(found.mean.item(), abs=error)
        assert samples.var().item() == pytest.approx(found.variance.item(), rel=0.25)


def test_choices() -> None:
    probs = T([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    for found, value in ((D.Categorical(probs), T([1, 2])), (D.OneHotCategorical(probs), T([[0, 1, 0], [0, 0, 1.0]]))):
        assert found.log_prob(value).exp().tolist() == pytest.approx([0.5, 0.8])
        assert found.entropy().tolist() == pytest.approx([1.029653, 0.639032], abs=1e-5)
        assert found.sample((5,)).shape == (5, 2, *found.event_shape)
    assert D.Categorical(probs).enumerate_support().tolist() == [[0, 0], [1, 1], [2, 2]]


def test_vectors() -> None:
    torch.manual_seed(1)
    covariance = T([[2.0, 0.5], [0.5, 1.0]])
    given = D.MultivariateNormal(T([1.0, 2.0]), covariance)
    same = (
        D.MultivariateNormal(T([1.0, 2.0]), scale_tril=given.scale_tril),
        D.MultivariateNormal(T([1.0, 2.0]), precision_matrix=torch.linalg.inv(covariance)),
    )
    for each in (given, *same):
        assert each.log_prob(T([0.5, 0.2])).item() == pytest.approx(-3.783404, abs=1e-4)
        assert torch.allclose(each.covariance_matrix, covariance, atol=1e-5)
        assert D.kl_divergence(given, each).item() == pytest.approx(0, abs=1e-5)
    samples = given.sample((4000,))
    assert torch.allclose(torch.cov(samples.T), covariance, atol=0.15)
    parts = D.Dirichlet(T([2.0, 3.0, 5.0]))
    assert parts.log_prob(T([0.2, 0.3, 0.5])).item() == pytest.approx(2.140654, abs=1e-4)
    assert torch.allclose(parts.sample((10,)).sum(-1), torch.ones(10))


@pytest.mark.parametrize("name", ["Normal", "Laplace", "Gumbel", "LogNormal", "Cauchy"])
def test_gradients_flow_through_samples(name: str) -> None:
    loc, scale = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True)
    getattr(D, name)(loc, scale).rsample((2,)).sum().backward()
    assert bool((loc.grad != 0).all())
    assert bool((scale.grad != 0).any())


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Normal(0.0, 1.0), D.Normal(1.0, 2.0)),
        (D.Laplace(0.0, 1.0), D.Laplace(1.0, 2.0)),
        (D.Exponential(1.0), D.Exponential(2.0)),
        (D.Uniform(0.0, 1.0), D.Uniform(-1.0, 2.0)),
        (D.Gamma(2.0, 1.0), D.Gamma(3.0, 2.0)),
        (D.Beta(2.0, 2.0), D.Beta(3.0, 1.5)),
        (D.Poisson(2.0), D.Poisson(3.0)),
        (D.Bernoulli(0.3), D.Bernoulli(0.6)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_divergences_are_means_of_differences(p: Any, q: Any) -> None:
    torch.manual_seed(2)
    samples = p.sample((20000,))
    measured = (p.log_prob(samples) - q.log_prob(samples)).mean().item()
    assert D.kl_divergence(p, q).item() == pytest.approx(measured, abs=0.03)


@pytest.mark.parametrize(
    "make",
    [
        lambda: D.Normal(0, -1), lambda: D.Normal(0.0, 1.0).log_prob("a"), lambda: D.Beta(-1.0, 1.0),
        lambda: D.Categorical(T([-1.0, 2.0])), lambda: D.Bernoulli(2.0), lambda: D.Uniform(2.0, 1.0),
        lambda: D.Exponential(1.0).log_prob(T(-1.0)), lambda: D.Normal(T([1.0, 2.0]), 1.0).log_prob(torch.ones(3)),
        lambda: D.MultivariateNormal(T([1.0, 2.0]), -torch.eye(2)), lambda: D.Poisson(-1.0),
        lambda: D.Independent(D.Normal(0.0, 1.0), 1), lambda: D.Bernoulli(),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        make()


def test_nothing_is_looked_at_where_that_is_wished() -> None:
    assert D.Exponential(1.0, validate_args=False).log_prob(T(-1.0)).item() == 1.0
    with pytest.raises(NotImplementedError, match="no samples through which gradients flow"):
        D.Gamma(1.0, 1.0).rsample()
    with pytest.raises(NotImplementedError, match="no divergence of"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0))
