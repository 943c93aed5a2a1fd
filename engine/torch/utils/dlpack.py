"""`torch.utils.dlpack`, by the names that scripts import from it."""

from engine.aten.interchange import from_dlpack as from_dlpack
from engine.aten.interchange import to_dlpack as to_dlpack
