"""In place of `torch.testing._internal.common_quantization`: the engines are there."""

from torch.testing._internal.common_utils import as_it_is

skipIfNoFBGEMM = skipIfNoXNNPACK = skipIfNoQNNPACK = as_it_is
