"""`torch.utils`: datasets and loaders, activation checkpointing, exchange of arrays by DLPack."""

from engine.torch.namespace.missing_names import refuse_unknown_names
from engine.torch.utils import checkpoint as checkpoint
from engine.torch.utils import data as data
from engine.torch.utils import dlpack as dlpack

refuse_unknown_names(__name__)
