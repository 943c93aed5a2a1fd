"""`torch.utils`: data for training, memory saved by computing again, arrays of other libraries."""

from engine.torch.namespace.missing_names import refuse_unknown_names
from engine.torch.utils import checkpoint as checkpoint
from engine.torch.utils import data as data
from engine.torch.utils import dlpack as dlpack

refuse_unknown_names(__name__)
