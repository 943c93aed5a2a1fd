"""`torch.backends.openmp`: never available; operators use the threads of numpy's BLAS."""


def is_available() -> bool:
    return False
