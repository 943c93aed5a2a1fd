"""`torch.utils.data.dataset`, re-exports under the module path that scripts import."""

from engine.torch.utils.data.datasets import *  # noqa: F403
from engine.torch.utils.data.datasets import random_split as random_split
