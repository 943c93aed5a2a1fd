"""`torch.utils.dlpack`, re-exports under the module path that scripts import."""

from engine.aten.values.interchange import from_dlpack as from_dlpack
from engine.aten.values.interchange import to_dlpack as to_dlpack
