"""`torch.optim`: optimizers, which change parameters by their gradients, and schedules of learning rates.

In: the parameters of a module, with gradients.  Out: the same parameters with new values.
"""

from engine.torch.optim import lr_scheduler as lr_scheduler
from engine.torch.optim.adam import Adam as Adam
from engine.torch.optim.adam import AdamW as AdamW
from engine.torch.optim.optimizer import Optimizer as Optimizer
from engine.torch.optim.rmsprop import RMSprop as RMSprop
from engine.torch.optim.sgd import SGD as SGD
