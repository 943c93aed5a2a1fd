"""`torch.nn.parallel`, by the names that scripts import from it."""

from engine.torch.nn.modules.parallel import DataParallel as DataParallel
