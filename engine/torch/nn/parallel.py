"""`torch.nn.parallel`, re-exports under the module path that scripts import."""

from engine.torch.nn.modules.parallel import DataParallel as DataParallel
