"""`torch.backends`: PyTorch's math libraries as scripts ask for them; the engine uses none of them."""

from engine.torch.backends import cuda as cuda
from engine.torch.backends import cudnn as cudnn
from engine.torch.backends import mkl as mkl
from engine.torch.backends import mkldnn as mkldnn
from engine.torch.backends import mps as mps
from engine.torch.backends import openmp as openmp
