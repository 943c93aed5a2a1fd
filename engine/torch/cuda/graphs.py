"""`torch.cuda`: graphs of launches, which the driver begins all at once.

In: work for a GPU, in a block.  Out: a `CUDAGraph`, whose `replay` does the same work again, in the same memory.

    static = torch.zeros(64, device="cuda")
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = f(static)               # captured, not run
    static.copy_(x)
    g.replay()                      # y holds f(x)

What a graph allocates is its own, from a pool that lives as long as the graph.  A captured program may not ask for
values on the CPU, nor draw random numbers; its plans should have run before, since kernels are loaded at a first call.
`make_graphed_callables` does all of this for a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import wraps
from types import TracebackType
from typing import Any, Final

from engine.aten.devices.philox import CAPTURING
from engine.aten.dispatch.grad_mode import no_grad
from engine.aten.values.tensor import Tensor
from engine.lang.errors import OperatorError
from engine.torch.cuda.machine import machine
from engine.torch.cuda.streams import Stream

WARM_UP: Final = 3
"""Calls before a capture, in which plans and kernels are made."""


class CUDAGraph:
    """Captured launches; `replay` begins them on the current stream.

    Raises OperatorError for a replay of what was not captured, and for a capture inside another.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        machine()
        self._pool: Any = None
        self._captured: Any = None
        self._stream: Any = None
        self._allocating: ExitStack | None = None

    def pool(self) -> Any:
        """The pool that the graph allocates from; graphs that are never replayed at the same time may share one."""
        if self._pool is None:
            self._pool = machine().cuda.MemoryPool()
        return self._pool

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Let the current stream capture; it may not be the default one."""
        if CAPTURING:
            raise OperatorError("a CUDA graph is being captured already")
        self._pool = self._pool if pool is None else pool
        cuda = machine().cuda
        self._allocating = ExitStack()
        self._allocating.enter_context(cuda.using_allocator(self.pool().malloc))
        self._stream = cuda.get_current_stream()
        self._stream.begin_capture()
        CAPTURING.append(self)

    def capture_end(self) -> None:
        """End the capture."""
        if not CAPTURING or CAPTURING[-1] is not self:
            raise OperatorError("this CUDA graph is not being captured", hints=("capture_begin comes before",))
        CAPTURING.pop()
        assert self._allocating is not None
        with self._allocating:
            self._captured = self._stream.end_capture()

    def replay(self) -> None:
        """Begin the captured work."""
        if self._captured is None:
            raise OperatorError("nothing was captured that could be replayed", hints=("with torch.cuda.graph(g): …",))
        self._captured.launch()

    def reset(self) -> None:
        """Forget what was captured, and give its memory back."""
        self._captured = self._pool = None


class graph(AbstractContextManager[None]):
    """A block whose work is captured by the graph, on a stream of its own unless one is given."""

    def __init__(
        self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None, capture_error_mode: str = "global"
    ) -> None:
        self._graph, self._pool, self._stream = cuda_graph, pool, stream
        self._entered = ExitStack()

    def __enter__(self) -> None:
        machine().synchronize()
        self._entered.enter_context(Stream() if self._stream is None else self._stream)
        self._graph.capture_begin(self._pool)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._entered:
            self._graph.capture_end()


def is_current_stream_capturing() -> bool:
    """True inside a block that is captured."""
    return bool(CAPTURING)


def graph_pool_handle() -> Any:
    """A pool for several graphs."""
    return machine().cuda.MemoryPool()


def make_graphed_callables(
    callables: Callable[..., Any], sample_args: Sequence[Tensor], num_warmup_iters: int = WARM_UP
) -> Callable[..., Any]:
    """A function that does the same for tensors of the samples' sizes, by replaying a graph.

    Its results lie in the graph's memory: the next call writes there.  Raises OperatorError for samples that require
    grad, as graphs of backward passes are not captured, and for arguments of other sizes.
    """
    if any(each.requires_grad for each in sample_args):
        raise OperatorError("calls that record gradients cannot be captured", hints=("detach the samples",))
    static = [each.clone() for each in sample_args]
    captured, side = CUDAGraph(), Stream()
    with no_grad():
        with side, machine().cuda.using_allocator(captured.pool().malloc):
            for _ in range(num_warmup_iters):
                callables(*static)
        with graph(captured, stream=side):
            results = callables(*static)

    @wraps(callables, assigned=("__name__", "__doc__"), updated=())
    def replayed(*args: Tensor) -> Any:
        for mine, given in zip(static, args, strict=True):
            if mine.shape != given.shape or mine.dtype is not given.dtype:
                raise OperatorError(
                    f"the graph was captured for {mine.dtype}{list(mine.shape)}, not {given.dtype}{list(given.shape)}"
                )
            mine.copy_(given)
        captured.replay()
        return results

    return replayed
