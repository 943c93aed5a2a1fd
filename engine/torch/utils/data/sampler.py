"""`torch.utils.data.sampler`, re-exports under the module path that scripts import."""

from engine.torch.utils.data.samplers import BatchSampler as BatchSampler
from engine.torch.utils.data.samplers import RandomSampler as RandomSampler
from engine.torch.utils.data.samplers import Sampler as Sampler
from engine.torch.utils.data.samplers import SequentialSampler as SequentialSampler
from engine.torch.utils.data.samplers import SubsetRandomSampler as SubsetRandomSampler
from engine.torch.utils.data.samplers import WeightedRandomSampler as WeightedRandomSampler
