"""`torch.backends.mps`: there is none."""


def is_available() -> bool:
    return False


def is_built() -> bool:
    return False
