"""`torch.distributed` where there is one process: what programs ask before they use it.

In: nothing.  Out: that several processes are not available, and that this one is the first of one.
"""

from __future__ import annotations

from typing import Any


def _no() -> bool:
    """False: there is one process."""
    return False


is_available = is_initialized = is_mpi_available = is_nccl_available = is_gloo_available = _no
is_torchelastic_launched = _no


def get_rank(group: Any = None) -> int:
    """0: this process is the only one."""
    return 0


def get_world_size(group: Any = None) -> int:
    """1: this process is the only one."""
    return 1
