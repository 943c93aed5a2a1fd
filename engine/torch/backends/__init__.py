"""`torch.backends`: what PyTorch may compute with, and what there is of it here: none."""

from engine.torch.backends import cuda as cuda
from engine.torch.backends import cudnn as cudnn
from engine.torch.backends import mkl as mkl
from engine.torch.backends import mkldnn as mkldnn
from engine.torch.backends import mps as mps
from engine.torch.backends import openmp as openmp
