"""`torch.backends.cudnn`: there is none; the switches may be set and change nothing."""

enabled = False
benchmark = False
deterministic = True
allow_tf32 = False


def is_available() -> bool:
    return False


def version() -> None:
    return None
