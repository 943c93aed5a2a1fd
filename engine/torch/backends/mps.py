"""`torch.backends.mps`: never available."""


def is_available() -> bool:
    return False


def is_built() -> bool:
    return False
