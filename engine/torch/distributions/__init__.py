"""`torch.distributions`: the common probability distributions."""

from engine.torch.distributions.continuous import Cauchy as Cauchy
from engine.torch.distributions.continuous import Exponential as Exponential
from engine.torch.distributions.continuous import Gumbel as Gumbel
from engine.torch.distributions.continuous import HalfNormal as HalfNormal
from engine.torch.distributions.continuous import Laplace as Laplace
from engine.torch.distributions.continuous import LogNormal as LogNormal
from engine.torch.distributions.continuous import Normal as Normal
from engine.torch.distributions.continuous import Uniform as Uniform
from engine.torch.distributions.discrete import Bernoulli as Bernoulli
from engine.torch.distributions.discrete import Binomial as Binomial
from engine.torch.distributions.discrete import Categorical as Categorical
from engine.torch.distributions.discrete import Geometric as Geometric
from engine.torch.distributions.discrete import OneHotCategorical as OneHotCategorical
from engine.torch.distributions.discrete import Poisson as Poisson
from engine.torch.distributions.distribution import Distribution as Distribution
from engine.torch.distributions.distribution import Independent as Independent
from engine.torch.distributions.divergence import kl_divergence as kl_divergence
from engine.torch.distributions.divergence import register_kl as register_kl
from engine.torch.distributions.gamma import Beta as Beta
from engine.torch.distributions.gamma import Chi2 as Chi2
from engine.torch.distributions.gamma import Dirichlet as Dirichlet
from engine.torch.distributions.gamma import Gamma as Gamma
from engine.torch.distributions.gamma import StudentT as StudentT
from engine.torch.distributions.multivariate import MultivariateNormal as MultivariateNormal
from engine.torch.namespace.missing_names import refuse_unknown_names

refuse_unknown_names(__name__)
