"""`torch.nn`: modules, parameters, and the functions behind them.

In: sizes.  Out: layers with parameters of their own, to be called, combined, saved and compiled.
"""

from engine.torch.lacking import refuse_unknown_names
from engine.torch.nn import functional as functional
from engine.torch.nn import init as init
from engine.torch.nn import modules as modules
from engine.torch.nn import utils as utils
from engine.torch.nn.modules import *  # noqa: F403
from engine.torch.nn.modules.parallel import DataParallel as DataParallel
from engine.torch.nn.parameter import Buffer as Buffer
from engine.torch.nn.parameter import Parameter as Parameter
from engine.torch.nn.parameter import UninitializedBuffer as UninitializedBuffer
from engine.torch.nn.parameter import UninitializedParameter as UninitializedParameter

refuse_unknown_names(__name__)
