"""`torch.utils.data.dataloader`, by the names that scripts import from it."""

from engine.torch.utils.data.loader import DataLoader as DataLoader
from engine.torch.utils.data.loader import default_collate as default_collate
