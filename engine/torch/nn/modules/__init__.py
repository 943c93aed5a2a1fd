"""The modules of `torch.nn`, one file for each family.

In: a name.  Out: the class; its file is imported at the first use of the name, since loading an archive needs none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.torch.namespace.missing_names import refuse_unknown_names

if TYPE_CHECKING:
    from engine.torch.nn.modules.activation import *  # noqa: F403
    from engine.torch.nn.modules.adaptive import *  # noqa: F403
    from engine.torch.nn.modules.attention import *  # noqa: F403
    from engine.torch.nn.modules.batchnorm import *  # noqa: F403
    from engine.torch.nn.modules.container import *  # noqa: F403
    from engine.torch.nn.modules.conv import *  # noqa: F403
    from engine.torch.nn.modules.distance import *  # noqa: F403
    from engine.torch.nn.modules.dropout import *  # noqa: F403
    from engine.torch.nn.modules.flatten import *  # noqa: F403
    from engine.torch.nn.modules.instancenorm import *  # noqa: F403
    from engine.torch.nn.modules.lazy import *  # noqa: F403
    from engine.torch.nn.modules.linear import *  # noqa: F403
    from engine.torch.nn.modules.loss import *  # noqa: F403
    from engine.torch.nn.modules.module import *  # noqa: F403
    from engine.torch.nn.modules.normalization import *  # noqa: F403
    from engine.torch.nn.modules.padding import *  # noqa: F403
    from engine.torch.nn.modules.pooling import *  # noqa: F403
    from engine.torch.nn.modules.rnn import *  # noqa: F403
    from engine.torch.nn.modules.sparse import *  # noqa: F403
    from engine.torch.nn.modules.transformer import *  # noqa: F403
    from engine.torch.nn.modules.upsampling import *  # noqa: F403

FILES: Final = {
    "activation":
        "CELU ELU GELU GLU SELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish PReLU "
        "ReLU ReLU6 RReLU Sigmoid SiLU Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink "
        "Threshold",
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "attention": "MultiheadAttention NonDynamicallyQuantizableLinear",
    "batchnorm": "BatchNorm1d BatchNorm2d BatchNorm3d",
    "container": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "distance": "CosineSimilarity PairwiseDistance",
    "dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "flatten": "Flatten Fold Unflatten Unfold",
    "instancenorm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d",
    "lazy":
        "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d "
        "LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d "
        "LazyLinear",
    "linear": "Bilinear Identity Linear",
    "loss":
        "BCELoss BCEWithLogitsLoss CosineEmbeddingLoss CrossEntropyLoss CTCLoss GaussianNLLLoss HingeEmbeddingLoss "
        "HuberLoss KLDivLoss L1Loss MarginRankingLoss MSELoss MultiLabelMarginLoss MultiLabelSoftMarginLoss "
        "MultiMarginLoss NLLLoss PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss "
        "TripletMarginWithDistanceLoss",
    "module": "Module",
    "normalization": "GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "padding":
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d "
        "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d "
        "ZeroPad3d",
    "pooling":
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
        "AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d "
        "LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d",
    "rnn": "GRU LSTM RNN GRUCell LSTMCell RNNBase RNNCell RNNCellBase",
    "sparse": "Embedding EmbeddingBag",
    "transformer":
        "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
    "upsampling": "ChannelShuffle PixelShuffle PixelUnshuffle Upsample UpsamplingBilinear2d UpsamplingNearest2d",
}  # fmt: skip
"""File -> the classes that it defines."""
HOMES: Final = {name: f"{__name__}.{file}" for file, names in FILES.items() for name in (file, *names.split())}
__all__ = [name for names in FILES.values() for name in names.split()]

refuse_unknown_names(__name__, HOMES)
