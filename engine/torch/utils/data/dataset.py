"""`torch.utils.data.dataset`, by the names that scripts import from it."""

from engine.torch.utils.data.datasets import *  # noqa: F403
from engine.torch.utils.data.datasets import random_split as random_split
