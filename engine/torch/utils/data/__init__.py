"""`torch.utils.data`: datasets, samplers and loaders."""

from engine.torch.namespace.missing_names import refuse_unknown_names
from engine.torch.utils.data import dataloader as dataloader
from engine.torch.utils.data import dataset as dataset
from engine.torch.utils.data import sampler as sampler
from engine.torch.utils.data.datasets import ChainDataset as ChainDataset
from engine.torch.utils.data.datasets import ConcatDataset as ConcatDataset
from engine.torch.utils.data.datasets import Dataset as Dataset
from engine.torch.utils.data.datasets import IterableDataset as IterableDataset
from engine.torch.utils.data.datasets import StackDataset as StackDataset
from engine.torch.utils.data.datasets import Subset as Subset
from engine.torch.utils.data.datasets import TensorDataset as TensorDataset
from engine.torch.utils.data.datasets import random_split as random_split
from engine.torch.utils.data.loader import DataLoader as DataLoader
from engine.torch.utils.data.loader import default_collate as default_collate
from engine.torch.utils.data.loader import default_convert as default_convert
from engine.torch.utils.data.loader import get_worker_info as get_worker_info
from engine.torch.utils.data.samplers import BatchSampler as BatchSampler
from engine.torch.utils.data.samplers import RandomSampler as RandomSampler
from engine.torch.utils.data.samplers import Sampler as Sampler
from engine.torch.utils.data.samplers import SequentialSampler as SequentialSampler
from engine.torch.utils.data.samplers import SubsetRandomSampler as SubsetRandomSampler
from engine.torch.utils.data.samplers import WeightedRandomSampler as WeightedRandomSampler

refuse_unknown_names(__name__)
