"""`torch.backends.cuda`: there is none; the switches may be set and change nothing."""

from types import SimpleNamespace

matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=False)


def is_built() -> bool:
    return False
