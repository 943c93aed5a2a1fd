"""The words of 64 bits that call stubs read, and the names that stand for their places in the text of stubs.

In: nothing.  Out: tables of places, which `descriptors` and `histories` fill, and `NAMES`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from engine.fuser.backend import cpython_abi as abi
from engine.fuser.ir.kernel import BOOL, FLOATS, HALVES
from engine.fuser.ir.kernel import SIZES as REAL_SIZES
from engine.fuser.library.processor import system
from engine.fuser.stubs.binding import RELEASE_AFTER

OPERANDS: Final = 7
"""Operands that a row function has at most, besides its result."""
MOST_RESULTS: Final = 3
"""Results that a function along a dimension has at most."""
DIMENSIONS: Final = 8
"""Dimensions that a stub spreads operands to at most."""
ARGUMENTS: Final = 16
"""Arguments that an operator has at most."""
RECORDING_TENSORS: Final = 3
"""Arguments through which gradients flow, of calls that stubs record."""
KEPT: Final = 12
"""Things that a node keeps at most."""
EMPTY: Final = ("_edges", "tensor_hooks", "retained", "hooks", "prehooks")
"""Slots of a new node that hold None."""
COMPLEX: Final = {"c64": "f32", "c128": "f64"}
"""Types of complex elements -> the type of their two parts, which follow one another.  Kernels know the parts alone."""
TYPES: Final = ("f32", "f64", "i64", "bool", "i32", "u8", "f16", "bf16", "i16", "i8", *COMPLEX)
"""Types of elements in the order in which descriptors have their row functions."""
SIZES: Final = {**REAL_SIZES, **{type: 2 * REAL_SIZES[part] for type, part in COMPLEX.items()}}
"""The size of an element, in bytes."""


def _places(*names: str | tuple[str, int]) -> dict[str, int]:
    """The place of each name in a row of words; some take several."""
    found, place = {}, 0
    for each in names:
        name, count = each if isinstance(each, tuple) else (each, 1)
        found[name], place = place, place + count
    return found | {"ALL": place}


PROCESS: Final = _places(
    "NDARRAY", "TENSOR", "PARAMETER", "HOOKS", "MODE", "ENABLED", "NONE", "FALSE", "TRUE", "ZERO", "FLOAT", "INT",
    "COMPLEX", "LIST", "TUPLE", "SIZE", "STORAGE",
    "MEMORY", "SHAPENAME", "VIEWKIND", "MANYVIEWS", "MINUSONE", "NODE", "SAVED", "SEQUENCES", "DEFAULTS",
    # offsets of slots, in words
    "ARRAY", "GRAD", "OWNSTORAGE", "BASE", "VERSION", "OWNER", "TRACE", "PYTHONONLY", "REBASED", "PAUSED",
    "GRADFN", "OUTPUTNR", "SEEN", "GRADHOOK", "RECORDEDHOOK", "FLOATING",
    "NODEPLAN", "NODEKEPT", "NODESOURCES", "NODEOUTPUTS", "NODESEQUENCE", ("EMPTY", len(EMPTY)),
    "SAVEDHELD", "SAVEDSTORAGE", "SAVEDVERSION", "SAVEDOUTPUT",
    # functions
    "NEWARRAY", "SETBASE", "FREEING", "PARALLEL", "PIECE", "JOINPIECE", "LOOKPIECE", "GATHERPIECE",
    ("CONVERSIONS", len(TYPES) ** 2),
    "FRESH", ("FRESHPLACES", 12), ("FRESHVALUES", 12),
    ("DTYPES", len(TYPES)), ("DTYPEOBJECTS", len(TYPES)), ("DTYPECODES", len(TYPES)),
    ("SIZES", len(TYPES)), ("ISFLOAT", len(TYPES)),
    ("PROMOTED", len(TYPES) ** 2), ("RAISED", len(TYPES) ** 2),
)  # fmt: skip
"""Words of this process.  FREEING: the capsule by which arrays free memory that stubs gave them; 0 where numpy gives it
all.  FRESH: how many slots of a new tensor hold constants.  PROMOTED: the common type of each two; RAISED: the one of
tensors with dimensions and those without, -1 where stubs have none such.  CONVERSIONS: row functions that convert, by
the types of what is read and written; zero where there is none.  DTYPEOBJECTS, DTYPECODES: dtypes as programs in Python
name them, and as operators do, by a number."""
PIECES: Final = {"PIECE": "piece", "JOINPIECE": "join_piece", "LOOKPIECE": "look_piece", "GATHERPIECE": "gather_piece"}
"""Functions of the library that do a part of the work of a call, each in the word of its name."""


def _conversions() -> Iterator[tuple[tuple[str, str], str]]:
    """Each pair of types, and the function that converts them: bools are read as bytes, and whole numbers lose their
    first bits whatever their sign."""
    is_x86, inexact = system().endswith("x86_64"), (*FLOATS, *HALVES, *COMPLEX)
    for source, target in itertools.permutations(TYPES, 2):
        is_cut = source in inexact and target not in (*inexact, BOOL)
        if is_cut and not is_x86:
            continue  # Note [Numbers without a place] in `converting_calls`
        written = "u8" if target == "i8" else target
        read = "u8" if source == BOOL or (source, written) == ("i8", "u8") else source
        yield (source, target), f"convert_{read}_{written}"


CONVERSIONS: Final[Mapping[tuple[str, str], str]] = dict(_conversions())
"""The row functions that convert, by the types of what is read and written, for CONVERSIONS."""
DESCRIPTOR: Final = _places(
    "PROCESS", "FEWEST", "MOST", "GIVENCOUNT", "ISSPREAD", "COUNT", "ISHOOKED", "ISBARE", "TARGET", "WORK", "ASKS",
    ("ASKED", OPERANDS),
    ("KINDS", ARGUMENTS), ("GIVEN", ARGUMENTS), ("ROWS", len(TYPES)), ("RESULTS", len(TYPES)),
    "FIXEDAXIS", "RESULTCOUNT", "ISREDUCED", "ISSTACKED", ("PLANES", len(TYPES)), ("SOLIDS", len(TYPES)),
    "MAYCOPY", "ISMIXING", "FUNCTION", "FIXEDRANK", "FIRST", "SECOND", ("RESULTTYPES", MOST_RESULTS), "GIVESFIRST",
    "HISTORIES", "FLOWCOUNT", ("FLOWS", RECORDING_TENSORS),
)  # fmt: skip
"""Words of an operator.

GIVENCOUNT: how many KINDS there are.  ISSPREAD: whether calls may give the ints of a list one by one, last.
COUNT: of its operands.  ISHOOKED: whether it is left to Python while hooks are set or it would be recorded.  ISBARE:
whether operands are arrays, which nothing records; they are left to Python in mode "off".  TARGET: the argument that is
written; -1 for none.  WORK: nanoseconds for 1024 elements.  ASKED: the operands that decide how the result lies.
KINDS: what each argument is (`KIND`); GIVEN: the object, or the bits of the float, that it has to be.  ROWS, RESULTS:
row functions, and dtypes of their results, by the dtype.  FIXEDAXIS: the dimension that the operator goes along; -1
where arguments say so, or it goes along all.  RESULTCOUNT: how many results
there are; ISREDUCED: which of them are without it, a bit for each.  ISSTACKED: whether tensors
are joined along a new dimension.  PLANES, SOLIDS: functions for two and three dimensions, of which the second is it.
MAYCOPY: whether tensors that have gaps or are turned are copied first.  ISMIXING: whether tensors of several dtypes are
brought to their common one.  FUNCTION: of a view (`viewing_calls`).
FIXEDRANK: the dimensions that a table has; 0 for any.  FIRST, SECOND: descriptors of operators whose results are both.
RESULTTYPES: the type of each result of a loop; -1 for that of the operands.  GIVESFIRST: whether the first result is
all that callers get.  HISTORIES: a row of the addresses of `HISTORY` words, by which of FLOWS require grad (a bit for
each); zeros for calls that are left to Python.  FLOWS: the arguments through which gradients flow.
"""
HISTORY: Final = _places(
    "PLAN", "THROUGH", "EDGES", ("EDGE", RECORDING_TENSORS), "KEPTS",
    ("KEPTKIND", KEPT), ("KEPTPLACE", KEPT), ("KEPTOBJECT", KEPT),
)  # fmt: skip
"""Words of how a call is recorded.  THROUGH: the results through which gradients flow, a bit for each.  EDGE: the
arguments that edges lead to.  KEPTPLACE: the argument that is kept, or of results, from the first one on, -1, -2 and so
on; KEPTOBJECT: what is kept where the call leaves it out."""
KEPT_KIND: Final = {
    "KEPTGIVEN": 0, "KEPTLIST": 1, "KEPTTENSOR": 2, "KEPTFORM": 3, "KEPTRESULT": 4, "KEPTRESULTFORM": 5,
    "KEPTTENSORS": 6, "KEPTFORMS": 7,
}  # fmt: skip
"""An argument itself, or as a list; of a tensor, of a result, and of each tensor of a list all, or its form."""
KIND: Final = {
    "TENSORS": 0, "POINTS": 1, "TRUTHS": 2, "NUMBERS": 3, "SETTINGS": 4, "SAME": 5, "EQUAL": 6, "UNREAD": 7, "REALS": 8,
    "AXIS": 9, "AXES": 10, "LASTSIZES": 11, "KEEPS": 12, "LISTS": 13, "WORDS": 14, "INDEX": 15, "BOUND": 16,
    "MANYINTS": 17, "NUMBERED": 18, "NAMED": 19, "TARGETS": 20, "WHOLES": 21, "VECTORS": 22, "TABLES": 23,
    "INDICES": 24, "RANKED": 25, "STEPPED": 26, "TURNED": 27, "ROWED": 28, "SHOWN": 29, "LIKE": 30,
    "BLOCKS": 31, "MAYBES": 32, "STATES": 33, "CHANGED": 34,
    "OPTIONS": 35,
}  # fmt: skip
"""POINTS: a tensor without dimensions.  TRUTHS: a tensor of bools.  NUMBERS: an int or float that is an operand;
SETTINGS: that the dtype has to hold.  SAME: the object of GIVEN; EQUAL: a number that is equal to it.  UNREAD: what the
result does not depend on.  REALS: a float.  AXIS: the dimension; AXES: that, or some that follow one another.
LASTSIZES: the sizes of the last ones, which are gone along.  KEEPS: whether the result has it, with a size of 1.
LISTS: of tensors.  WORDS: the ints of GIVEN, as a list.  INDEX: an int, of views; BOUND: that, or None, which stands
for GIVEN; MANYINTS: a list of ints.  NUMBERED: the number of a dtype; NAMED: its object.  Tensors again: TARGETS: one
that is written.  WHOLES: one that is gone through along a dimension; VECTORS: one of that dimension's size.  TABLES:
one whose rows INDICES name.  RANKED: one of so many dimensions; STEPPED: that, with any strides but for the last, which
is an element; TURNED: the same of the last but one;
ROWED: one taken for its last dimension's rows.  SHOWN: one whose memory the result may show; LIKE: one whose sizes or
dtype are read.  BLOCKS: one of any sizes, of a loop; MAYBES: that or None; STATES: the same, which is written;
CHANGED: one of which the result is a copy that the loop changes, or that is the result of an operator in place.
OPTIONS: one of the strings of GIVEN, by its place there."""
VIEW: Final = _places(
    "OLDRANK", ("OLDSIZES", DIMENSIONS), ("OLDSTEPS", DIMENSIONS), "ITEMSIZE", "ELEMENTCOUNT", "ISDENSE", "ISREAL",
    ("NUMBERSOF", 4), "MANYCOUNT", ("MANY", DIMENSIONS),
    "NEWRANK", ("NEWSIZES", DIMENSIONS), ("NEWSTEPS", DIMENSIONS), "OFFSET",
    "PARTCOUNT", "PARTSTEP", "PARTAXIS", "PARTSIZE", "ISLISTED",
)  # fmt: skip
"""The words of functions of views: of the tensor, of numbers and of a list of them, and what the function says of the
result.  Steps and OFFSET are in bytes.  Of several results PARTCOUNT is their number, PARTSTEP how far they are apart,
PARTAXIS the dimension that they are parts of, -1 where they are without it, PARTSIZE their size there, but for the
last; ISLISTED: whether the list has their sizes."""
_GATHER: Final = _places(
    "GATHERSOURCE", "GATHERTARGET", "GATHERINDEX", "GATHERITEM", "GATHERLENGTH", "GATHEROUTER", "GATHERSTEP",
    "GATHERPITCH", ("GATHERSIZES", DIMENSIONS), ("GATHERSTEPS", DIMENSIONS),
)  # fmt: skip
"""Words of a part of the work of a call that gathers: addresses, the size of elements, how many there are in a row of
the result, and how many dimensions before; how far elements lie apart in a row, and along the index's dimension; of
each dimension its size in the result and how many bytes on it leads."""
_FRAME: Final = _places(
    ("ARRAYS", OPERANDS + 1), ("PLACES", OPERANDS + 1), ("VALUES", 2 * (OPERANDS + 1)), ("ITEMS", OPERANDS + 1),
    ("ELEMENTS", OPERANDS + 1), ("SHAPE", DIMENSIONS), ("ORDER", DIMENSIONS), ("OUTSTRIDES", DIMENSIONS),
    ("EXTENTS", DIMENSIONS), ("STRIDES", DIMENSIONS * (OPERANDS + 1)), ("STEPS", DIMENSIONS * (OPERANDS + 1)),
    "ROW", "WIDTH", "DEPTH", "RANK", "TYPE", "TOTAL", "ISPLAIN", "LONGEST", "BLOCK", "ISTILED", "HISTORYOF",
)  # fmt: skip
"""Words that a call keeps: of each operand, and last of the result, its array, address of elements, number, size of
elements and distance of elements in a row; of each dimension its size, place in memory, stride; of dimensions that were
merged the size, and of each operand the step in bytes.  LONGEST: the dimension that threads share; BLOCK: the elements
of a row that are done before the next row; ISTILED: whether the row function leaves it to tiles."""

# ------------------------------------------------------------------ text
SHAPED_WORDS: Final = _places(
    ("EXTENTS", 5 * OPERANDS), ("STRIDES", 5 * OPERANDS), ("PLACES", OPERANDS + 1), "RANK", ("SIZES", DIMENSIONS),
    "WORK",
)  # fmt: skip
"""The words of functions of whole operators: five sizes and strides, in elements, for each tensor, addresses, last that
of the result, and what the function says of the result: its dimensions, their sizes, and the nanoseconds that it takes,
roughly."""
LOOPED: Final = _places(
    ("LOOPRANKS", OPERANDS), ("LOOPSIZES", OPERANDS * DIMENSIONS), ("LOOPNUMBERS", 8),
    ("LOOPLISTS", 4 * (1 + DIMENSIONS)), ("LOOPPLACES", OPERANDS + MOST_RESULTS),
    ("NEWRANKSAT", MOST_RESULTS), ("NEWSIZESAT", MOST_RESULTS * DIMENSIONS), ("LOOPINTS", 20), "LOOPWORK", "LOOPALONE",
    ("LOOPROOMS", 3), ("LOOPVALUES", OPERANDS),
)  # fmt: skip
"""The words of loops: of each tensor its dimensions (-1 for None) and their sizes, then numbers and lists of ints,
these after their lengths, in the order in which arguments have them; addresses, last those of results; and what is said
of the results' sizes, of the ints that the loop is given, and of the nanoseconds that it takes, roughly.  LOOPALONE:
whether callers and nodes get no more than the first result.  LOOPROOMS: how many elements there is to be room for, in
arrays that the loop works in; LOOPVALUES: numbers that stand for tensors."""
NUMBERS_AT: Final = 3
PLACES_AT: Final = 12
"""Where functions along a dimension find numbers and addresses, after the three sizes."""
NAMES: Final[Mapping[str, int]] = {
    **PROCESS, **DESCRIPTOR, **HISTORY, **KIND, **KEPT_KIND, **_FRAME, **_GATHER, **VIEW,
    **LOOPED, "LOOPEDWORDS": LOOPED["ALL"], "LISTEACH": 1 + DIMENSIONS,
    "VIEWWORDS": VIEW["ALL"], "GATHERWORDS": _GATHER["ALL"],
    "FRAME": _FRAME["ALL"], "EACH": OPERANDS + 1, "DIMENSIONS": DIMENSIONS,
    "TYPECOUNT": len(TYPES), "EMPTIES": len(EMPTY),
    "IMMORTAL": int(sys.version_info >= (3, 12)),
    "FLOATS": 0, "DOUBLES": 1, "LONGS": 2, "BOOLS": 3, "INTS": 4, "BYTES": 5, "HALVES": 6, "BRAINS": 7, "SHORTS": 8,
    "CHARS": 9, "SINGLEPAIRS": 10, "DOUBLEPAIRS": 11,
    # the fields of objects, in words of 64 and of 32 bits
    "ITEM": 3, "FLOATVALUE": 2, "DATA": abi.DATA // 8, "DIMS": abi.DIMENSIONS // 8, "STRIDESOF": abi.STRIDES // 8,
    "BASEOF": abi.BASE // 8, "DTYPE": abi.DTYPE // 8, "NDIM": abi.NDIM // 4, "FLAGS": abi.ARRAY_FLAGS // 4,
    "PLAIN": abi.PLAIN, "FORTRAN": abi.FORTRAN, "ALIGNED": abi.ALIGNED, "WRITEABLE": abi.WRITEABLE, "OWNED": abi.OWNED,
    "OWNABLE": abi.PLAIN | abi.WRITEABLE, "HANDLEROF": abi.HANDLER // 8, "NUMPYSDOMAIN": abi.DOMAIN,
    "LINE": 64, "ALIGNEDFROM": 2**15, "ALIGNEDTO": 2**22,
    "ALONGWORDS": PLACES_AT + OPERANDS + MOST_RESULTS, "MOSTRESULTS": MOST_RESULTS,
    "NUMBERSAT": NUMBERS_AT, "PLACESAT": PLACES_AT, "OPERANDS": OPERANDS,
    "SHAPEDWORDS": SHAPED_WORDS["ALL"], "EXTENTSEACH": 5, "STRIDESIN": SHAPED_WORDS["STRIDES"],
    "PLACESIN": SHAPED_WORDS["PLACES"],
    "RANKIN": SHAPED_WORDS["RANK"], "SIZESIN": SHAPED_WORDS["SIZES"], "WORKIN": SHAPED_WORDS["WORK"],
    "TOGETHER": 64, "LONGESTSTEP": 2**31, "MOSTCOPIED": 2**18, "LONGBYTES": 10 * RELEASE_AFTER,
    "PARTBYTES": 10 * RELEASE_AFTER // 8, "COPIED": 2**18,
    "LONG": RELEASE_AFTER, "PART": RELEASE_AFTER // 8, "SHORTROW": 16,
    "TILED": 1024, "TILEWIDTH": 64,
}  # fmt: skip
