"""Memory of devices that streams still work on when the last reference to it is gone.

In: a tensor, and a stream that uses it besides the one that it was made on.  Out: nothing; the library gets the memory
back for other arrays once the stream has done what it had to do then.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any, Final

from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError


def record_stream(self: Tensor, stream: Any) -> None:
    """Keep the memory of the tensor, once nothing refers to it, until the stream has done its work of then.

    Raises OperatorError for a tensor on the CPU.
    """
    if not self.is_cuda:
        raise OperatorError(
            "record_stream is for tensors of a GPU, and this one is on the CPU",
            hints=("pinned memory may be used again once the stream is synchronized",),
        )
    weakref.finalize(self.memory, _keep, self.array, stream).atexit = False


_KEPT: Final[deque[tuple[Any, Any]]] = deque()
"""Events, and the arrays that are kept until streams have come to them."""


def _keep(array: Any, stream: Any) -> None:
    while _KEPT and _KEPT[0][0].query():
        _KEPT.popleft()
    _KEPT.append((stream.record_event(), array))
