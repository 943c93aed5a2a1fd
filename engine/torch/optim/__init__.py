"""`torch.optim`: optimizers, which update parameters by their gradients, and learning rate schedules.

In: the parameters of a module, with gradients.  Out: the same parameters with new values.
"""

from engine.torch.namespace.missing_names import refuse_unknown_names
from engine.torch.optim import lr_scheduler as lr_scheduler
from engine.torch.optim import swa_utils as swa_utils
from engine.torch.optim.adafactor import Adafactor as Adafactor
from engine.torch.optim.adam import Adam as Adam
from engine.torch.optim.adam import AdamW as AdamW
from engine.torch.optim.adaptive import Adadelta as Adadelta
from engine.torch.optim.adaptive import Adagrad as Adagrad
from engine.torch.optim.adaptive import Adamax as Adamax
from engine.torch.optim.adaptive import NAdam as NAdam
from engine.torch.optim.adaptive import RAdam as RAdam
from engine.torch.optim.lbfgs import LBFGS as LBFGS
from engine.torch.optim.optimizer import Optimizer as Optimizer
from engine.torch.optim.rmsprop import RMSprop as RMSprop
from engine.torch.optim.rprop import ASGD as ASGD
from engine.torch.optim.rprop import Rprop as Rprop
from engine.torch.optim.sgd import SGD as SGD

refuse_unknown_names(__name__)
