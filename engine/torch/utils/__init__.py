"""`torch.utils`: data for training."""

from engine.torch.utils import data as data
