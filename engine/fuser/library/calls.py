"""Call stubs: builtin functions of Python that run row functions, as kernel IR.

In: nothing.  Out: `stubs`, the kernels, each a function `PyObject *(PyObject *held, PyObject **args, Py_ssize_t n,
PyObject *names)` for one form of call, and the words of what they read, which `descriptors` writes.

Note [How a stub calls]
A stub is shared by all operators of its form: what is an operator's own stands in its descriptor, words of 64 bits that
`held` leads to, and what is this process's own (addresses of objects and functions, offsets of slots) in a row of words
that each descriptor leads to.  So there is no address in a stub, and one more operator is one more descriptor.

It looks at the arguments, chooses the row function by the dtype, spreads the operands to one shape, makes the result,
orders and merges dimensions, and walks over all but the innermost, which is the row function's.  Where something is not
as it has to be nothing has happened yet, and the function that `held` has first is called: another stub, or Python's.

Work that may be long gives up the interpreter lock and is watched (`hold`, `let_go`), so that interrupts stop it
(`backend/threads.py`): the error is set then, and is the call's, as are errors of what a stub asks Python for.  What
was being written in place is written in part.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from engine.fuser.ir.kernel import Kernel
from engine.fuser.ir.kernel_text import parse
from engine.fuser.library.along_calls import ALONG
from engine.fuser.library.converting_calls import CONVERSIONS_OF, CONVERTING
from engine.fuser.library.copying_calls import ROWS, copying
from engine.fuser.library.gathering_calls import GATHERING
from engine.fuser.library.looped_calls import LOOPED
from engine.fuser.library.mixing_calls import MIXING
from engine.fuser.library.moving_calls import MOVING
from engine.fuser.library.object_calls import LOOKING, NUMBERS, OBJECTS, READING
from engine.fuser.library.pointwise_calls import POINTWISE, SPREADING, WALKING, WRITING
from engine.fuser.library.recording_calls import RECORDING
from engine.fuser.library.shaped_calls import SHAPED
from engine.fuser.library.viewing_calls import VIEWING, VIEWS
from engine.fuser.library.words import CONVERSIONS, NAMES, PIECES

_SERVED: Final = {
    "serve_pointwise": "computed", "serve_along": "gone_along", "serve_joined": "joined",
    "serve_looked_up": "looked_up", "serve_shaped": "shaped", "serve_shown": "shown", "serve_parted": "parted",
    "serve_paired": "paired", "serve_placed": "placed", "serve_converted": "converted_to", "serve_gathered": "gathered",
    "serve_looped": "looped",
}  # fmt: skip
"""The stubs, and the helpers that find what they return, or 0."""
_STUB: Final = """

def {stub}(held: i64, args: i64, count: i64, names: i64):
    holds = view(i64[...], held)
    if names == 0:
        holder = view(i64[...], holds[ITEM + 1])
        found: i64 = {helper}(holder[DATA], args, count)
        if found != 0:
            return found
        stopped: i64 = PyErr_Occurred()
        if stopped != 0:
            return 0
    following: i64 = PyObject_Vectorcall(holds[ITEM], args, count, names)
    return following
"""


@cache
def stubs() -> Kernel:
    """All stubs, as a kernel that has the others for helpers."""
    texts = (
        OBJECTS, NUMBERS, RECORDING, LOOKING, CONVERSIONS_OF, MIXING, READING, copying(), SPREADING, WRITING, WALKING,
        POINTWISE, CONVERTING, ALONG, MOVING, GATHERING, SHAPED, LOOPED, VIEWING,
        *(_STUB.format(stub=stub, helper=helper) for stub, helper in _SERVED.items()),
    )  # fmt: skip
    return parse(re.sub("[A-Z]+", lambda found: str(NAMES.get(found[0], found[0])), "".join(texts)))


EXPORTED: Final = (*PIECES.values(), *_SERVED, *ROWS, *VIEWS, *dict.fromkeys(CONVERSIONS.values()))
"""The stubs, and helpers whose addresses words have."""
