"""`torch.autograd.functional`: Jacobians, Hessians and products with them, re-exported from `engine.aten.autograd`."""

from engine.aten.autograd.functional import hessian as hessian
from engine.aten.autograd.functional import jacobian as jacobian
from engine.aten.autograd.functional import jvp as jvp
from engine.aten.autograd.functional import vhp as vhp
from engine.aten.autograd.functional import vjp as vjp
