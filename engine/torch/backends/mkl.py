"""`torch.backends.mkl`: never available; matrix products use numpy's BLAS."""


def is_available() -> bool:
    return False
