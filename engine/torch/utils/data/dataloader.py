"""`torch.utils.data.dataloader`, re-exports under the module path that scripts import."""

from engine.torch.utils.data.loader import DataLoader as DataLoader
from engine.torch.utils.data.loader import default_collate as default_collate
