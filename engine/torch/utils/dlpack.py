"""`torch.utils.dlpack`, by the names that scripts import from it."""

from engine.aten.values.interchange import from_dlpack as from_dlpack
from engine.aten.values.interchange import to_dlpack as to_dlpack
