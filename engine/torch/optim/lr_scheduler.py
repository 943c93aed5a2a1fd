"""`torch.optim.lr_scheduler`: learning rate schedules, re-exported under the module path that scripts import."""

from engine.torch.namespace.missing_names import refuse_unknown_names
from engine.torch.optim.cycles import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from engine.torch.optim.cycles import CyclicLR as CyclicLR
from engine.torch.optim.cycles import OneCycleLR as OneCycleLR
from engine.torch.optim.schedules import ChainedScheduler as ChainedScheduler
from engine.torch.optim.schedules import ConstantLR as ConstantLR
from engine.torch.optim.schedules import CosineAnnealingLR as CosineAnnealingLR
from engine.torch.optim.schedules import ExponentialLR as ExponentialLR
from engine.torch.optim.schedules import LambdaLR as LambdaLR
from engine.torch.optim.schedules import LinearLR as LinearLR
from engine.torch.optim.schedules import LRScheduler as LRScheduler
from engine.torch.optim.schedules import MultiplicativeLR as MultiplicativeLR
from engine.torch.optim.schedules import MultiStepLR as MultiStepLR
from engine.torch.optim.schedules import PolynomialLR as PolynomialLR
from engine.torch.optim.schedules import ReduceLROnPlateau as ReduceLROnPlateau
from engine.torch.optim.schedules import SequentialLR as SequentialLR
from engine.torch.optim.schedules import StepLR as StepLR

_LRScheduler = LRScheduler

refuse_unknown_names(__name__)
