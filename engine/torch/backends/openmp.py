"""`torch.backends.openmp`: there is none; matrices are multiplied by the BLAS that numpy brings."""


def is_available() -> bool:
    return False
