"""Mixed precision: operators that run in another dtype than that of their arguments, while a thread asks for it.

In: the dtype that is fast.  Out: inside of `casting(dtype)`, operators get their tensors in the dtype that their
rows ask for; results have it.  Outside nothing is asked: it steps in where traces do.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from engine.aten.dispatch.compose import run
from engine.aten.dispatch.op import Op
from engine.aten.values.hooks import HOOKS
from engine.aten.values.tensor import Tensor
from engine.lang import scalars
from engine.lang.errors import OperatorError
from engine.lang.locks import lock

Policy = Callable[[Sequence[Any], scalars.dtype], scalars.dtype | None]
"""From an operator's arguments and the fast dtype: the dtype that its tensors get; None: they stay as they are."""


def _fast(_: Sequence[Any], fast: scalars.dtype) -> scalars.dtype:
    return fast


def _exact(_: Sequence[Any], __: scalars.dtype) -> scalars.dtype:
    return scalars.float32


def _widest(args: Sequence[Any], fast: scalars.dtype) -> scalars.dtype:
    """Raises OperatorError for a dtype that is neither the fast one nor float32."""
    dtypes = {each.dtype for arg in args for each in _tensors_in(arg) if is_cast(each)}
    if strange := dtypes - {fast, scalars.float32}:
        raise OperatorError(
            f"Unexpected floating ScalarType in autocast: {strange.pop()} cannot be joined with {fast}",
            hints=(f"inside of autocast these tensors should be {fast} or torch.float32",),
        )
    return scalars.float32 if scalars.float32 in dtypes else fast


def _contracting(args: Sequence[Any], fast: scalars.dtype) -> scalars.dtype | None:
    """An einsum is made of products of matrices where operands share letters that the result has not."""
    subscripts, _, result = args[0].replace(" ", "").partition("->")
    shared = Counter(letter for operand in subscripts.split(",") for letter in {*operand} - {"."})
    return fast if any(count > 1 and letter not in result for letter, count in shared.items()) else None


POLICIES: Final[dict[str, Policy]] = {"fast": _fast, "full": _exact, "widest": _widest, "contracting": _contracting}
"""By what rows say as `autocast`; operators that say nothing take what they are given."""


class _State(threading.local):
    fast: scalars.dtype | None = None
    """The dtype that matrix products run in; None if nothing is cast in this thread."""
    place: str = "cpu"
    """The type of the device whose tensors are cast."""
    keeps: bool = False
    paused: tuple[scalars.dtype | None, ...] = ()
    """The casts that blocks of programs which cast nothing have switched off, the innermost last."""
    kept: dict[int, tuple[Tensor, Tensor]] | None = None
    """The weights that were cast, each with what came out: one cast serves until the outermost block ends."""


STATE: Final = _State()


def small_dtype(device_type: str) -> scalars.dtype:
    """The dtype that products on that device are, or would be, cast to."""
    usual = scalars.bfloat16 if device_type == "cpu" else scalars.float16
    return (STATE.fast or usual) if device_type == STATE.place else usual


def is_cast(tensor: Tensor) -> bool:
    """Is it one whose dtype matters here?  Numbers of double precision are left alone, and so is what is not real."""
    return tensor.dtype.category == "float" and tensor.dtype is not scalars.float64


def _step(op: Op, args: tuple[Any, ...], run: Callable[..., Any]) -> Any:
    """The hook around all operators: casts their tensors, in threads that ask for it."""
    policy, fast = POLICIES.get(op.autocast), STATE.fast
    if policy is None or fast is None or not _is_meant(args):
        return run(*args)
    STATE.fast = None  # operators that this one is made of are not asked again
    try:
        wanted = policy(args, fast)
        if wanted is not None:  # from the last to the first: so traces have them
            args = tuple(reversed([_cast_in(arg, wanted, fast) for arg in reversed(args)]))
        return run(*args)
    finally:
        STATE.fast = fast


def _is_meant(args: Sequence[Any]) -> bool:
    """True if tensors of that device are among the arguments."""
    if not HOOKS.devices:
        return STATE.place == "cpu"
    return any(each.device.type == STATE.place for arg in args for each in _tensors_in(arg))


def _tensors_in(arg: Any) -> Sequence[Tensor]:
    if isinstance(arg, Tensor):
        return (arg,)
    return [each for each in arg if isinstance(each, Tensor)] if isinstance(arg, list) else ()


def _cast_in(arg: Any, wanted: scalars.dtype, fast: scalars.dtype) -> Any:
    if isinstance(arg, Tensor):
        return _cast(arg, wanted, fast)
    return [_cast_in(each, wanted, fast) for each in arg] if isinstance(arg, list) else arg


def _cast(tensor: Tensor, wanted: scalars.dtype, fast: scalars.dtype) -> Tensor:
    if not is_cast(tensor) or tensor.dtype is wanted:
        return tensor
    is_weight = tensor.requires_grad and tensor.is_leaf and tensor.dtype is scalars.float32
    if not (is_weight and wanted is fast and STATE.keeps and STATE.kept is not None):
        return _to(tensor, wanted)
    _, cast = STATE.kept.get(id(tensor)) or (None, None)
    if cast is None:
        cast = _to(tensor, wanted)
        STATE.kept[id(tensor)] = tensor, cast
    return cast


def _to(tensor: Tensor, wanted: scalars.dtype) -> Tensor:
    cast: Tensor = run("to.dtype", tensor, wanted.number, False, False, None)
    return cast


@contextmanager
def casting(fast: scalars.dtype | None, keep: bool = True, place: str = "cpu") -> Iterator[None]:
    """Inside, this thread's matrix products on such devices run in that dtype; None: in that of their arguments."""
    before = STATE.fast, STATE.keeps, STATE.kept, STATE.place, STATE.paused
    STATE.fast, STATE.keeps, STATE.place = fast, keep, place
    if STATE.kept is None:
        STATE.kept = {}
    _count(1)
    try:
        yield
    finally:
        _count(-1)
        STATE.fast, STATE.keeps, STATE.kept, STATE.place, STATE.paused = before


def pause() -> None:
    """Cast nothing in this thread until `resume`, for a block of a program."""
    STATE.paused, STATE.fast = (*STATE.paused, STATE.fast), None


def resume() -> None:
    """Cast again as before the last `pause`."""
    *rest, STATE.fast = STATE.paused
    STATE.paused = tuple(rest)


_lock: Final = lock()
_entered = 0


def _count(step: int) -> None:
    """Step in with the first block, get out with the last: other threads may cast, too."""
    global _entered
    with _lock:
        before, _entered = _entered, _entered + step
        if before == 0:
            HOOKS.step_in(_step)
        elif _entered == 0:
            HOOKS.step_out(_step)
