"""`torch.testing`: comparison and creation of tensors, and checks of printed graphs."""

from engine.torch.namespace.missing_names import refuse_unknown_names
from engine.torch.testing.comparison import assert_close as assert_close
from engine.torch.testing.creation import make_tensor as make_tensor
from engine.torch.testing.file_check import FileCheck as FileCheck

refuse_unknown_names(__name__)
