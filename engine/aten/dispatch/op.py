"""An operator: one overload, with its facts and the functions that run it.

In: the facts of a row of the operator table (`table`), and the compiler of its functions (`compile`).  Out: `Op`, whose
slots `impl`, `body` and `recorded` callers read at every call; they are filled when first needed, and an optimised
implementation takes them and gives them back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Final, NamedTuple

from engine.aten.kernels.refusals import Refusal
from engine.aten.kernels.shapes import Rule
from engine.aten.values.hooks import HOOKS
from engine.lang.records import dataclass
from engine.lang.schema import FunctionSchema
from engine.lang.schema_parser import parse_schema


class Written(NamedTuple):
    """The work of an operator that is not traced: lines over the schema's arguments, and the objects they name."""

    lines: Sequence[str]
    environment: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Body:
    """Lines of a function, the expression of their result, and the objects that the names in them stand for."""

    lines: Sequence[str]
    result: str
    environment: dict[str, Any]


class Compiled(NamedTuple):
    """The functions of an operator in Python.

    `run` looks at the hooks, `body` does not; without `written` both are one function that is not about tensors.
    `text` is the body as text, where it runs on arrays.
    """

    run: Callable[..., Any]
    body: Callable[..., Any]
    written: Written | None = None
    text: Body | None = None


@dataclass(eq=False, slots=True)
class Op:
    """One overload of one operator: its schema text, one body (`scalar`, `kernel`, `python` or `composite`), and facts.

    `composite` is TorchScript: an expression of the arguments, or statements that end with `return`.  Calls in Python,
    kernels, shapes and gradients come from it, as far as the row has no formulas and no rules.  Beside another body,
    which then is one that takes less time, it tells the rest what the operator is made of.  See Note [Composites] in
    `fuser/groups/composites.py`, and `frontend/compilation/composites.py` for the functions that texts share.

    Ways to call it:
    - `variants`: "method" (on its first argument), "function" (as `torch.name`; default), "inplace" and "out" (further
      entries made from this one; "out:NAME" names the overload of that entry, otherwise the same or `NAME_out`).
    - `gradient_in_place`: the formulas of the in-place entry, of a row whose own results have no gradient, as they are
      truth values: written to floats they are numbers.
    - `alias_of`: the name of the operator of which this is another name; programs are compiled to that one.

    Its results:
    - `dtype`: the rule for their dtype.  For a `scalar` see `dispatch.scalar`; for other bodies, as far as no run is
      needed: "same" (that of `self`, `input` or a list of tensors; "same NAME": of that argument), "floats" (the same
      if that is floating-point), "agreed" (that of any tensor, as all have to have one), "sum" (the same, int64 for
      whole numbers), "truth" (bool, or uint8 of uint8), "int64", "default" (float32).  An argument `dtype` that is
      given comes first.
    - `keeps`: the operand that is computed with as it is where it is one number beside a half type; other operands are
      rounded to the half type first (`promotion.operand`).
    - `shape`: the rule for their sizes, a function of `kernels.shapes`, or the argument whose sizes they have;
      pointwise rows need none.
    - `data_dependent`: elements decide the shape, or the number that is the result; or nothing decides elements.
    - `layout`: "contiguous" if the results are that for operands of any layout; "channels last" if the channels of
      images lie innermost in the result where they do in the argument, and all else is contiguous; "operands" if they
      lie as those of pointwise operators do, by the operands that tell dimensions apart, as rows with `scalar` always
      do.  "operands: other, self" names those that are asked, in their order, where that is not the schema's.
    - `also_writes`: arguments that it writes to, though the schema does not say so, as PyTorch's does not; `writes_if`:
      the flag without which it does not.
    - `hands_on`: one may be an argument itself, or show the memory of one, though the schema does not say so.
    - `inplace_view`: the first argument shows other memory afterwards, or the same in another shape.

    Passes and dispatch:
    - `side_effects` keeps passes from removing or duplicating it, `nondeterministic` from merging two.
    - `activation`: passes may exchange its functional and its in-place form.
    - `autocast`: how its tensors are cast within `with torch.autocast` (see `dispatch.autocast`): "fast" (to the dtype
      of the block), "full" (to float32), "widest" (to float32 if one of them is that), "contracting" (as einsum).
    - `jit_autocast`: the same for programs, where the choice is another; "widest" if one may be float32, "unsafe" if
      it is refused.
    - `expression`: of a row with a kernel, what it computes for one element, as far as kernels are compiled from it.
      It may choose by arguments that are constants (`a if approximate == 'none' else b`, `x if min is None else y`).
    - `exact`: the kernel only moves or compares numbers, so that numpy has no overflow and the like to warn of.

    Refusals:
    - `refuses`: dtypes that it has no code for (`kernels.refusals`); `check`: a check of arguments (`kernels.checks`).
      `checks_numbers`: the check looks at the values of numbers, so that kernels are made for these values alone.
      `in_range`: operands that are refused where the dtype of the result has no place for them, as numbers that are no
      operands always are.
    - `out_check`: the check of the dtype of `out` (`dispatch.out_checks`); without one it may be any that loses no kind
      of number.  `in_dtype_of_out`: asked for no dtype, the out form computes in that of the tensor it writes.
    - `writes_again`: the in-place form writes elements that share memory.  `writes_apart`: the out form may not write
      into memory that it reads.

    Generated code on bare arrays:
    - `unboxed` makes the body, for rows without kernel (see `dispatch.unboxed`).
    - `recorded_as`: the operator (without `aten::`) whose history stands for its own in differentiable graphs, and
      whose first result is its own where it begins with the same arguments.
    """

    text: str
    family: int = 0
    """The place of its family; overloads are tried in this order."""
    scalar: str | None = None
    kernel: Callable[..., Any] | None = None
    python: Callable[..., Any] | None = None
    composite: str | None = None
    dtype: str | None = None
    keeps: str = ""
    shape: str | Rule | None = None
    gradient: Mapping[str, str] = field(default_factory=dict)
    gradient_in_place: Mapping[str, str] = field(default_factory=dict)
    variants: frozenset[str] = frozenset()
    side_effects: bool = False
    also_writes: tuple[str, ...] = ()
    writes_if: str = ""
    nondeterministic: bool = False
    layout: str = ""
    data_dependent: bool = False
    hands_on: bool = False
    inplace_view: bool = False
    activation: bool = False
    alias_of: str = ""
    autocast: str = ""
    jit_autocast: str = ""
    exact: bool = False
    expression: str | None = None
    refuses: tuple[Refusal, ...] = ()
    check: Callable[..., None] | None = None
    checks_numbers: bool = False
    in_range: tuple[str, ...] = ()
    out_check: Callable[..., None] | None = None
    in_dtype_of_out: bool = False
    writes_again: bool = False
    writes_apart: bool = False
    unboxed: Callable[[Op], Callable[..., Any]] | None = None
    recorded_as: str = ""
    functional: Op | None = None
    """For an in-place or out entry: the one that computes its results."""
    impl: Callable[..., Any] = field(init=False)
    """A call of the operator: a function of all its arguments in schema order.  Who calls reads this slot each time."""
    body: Callable[..., Any] = field(init=False)
    """The same without a look at the hooks."""
    recorded: Callable[..., Any] = field(init=False)
    """The same where an argument requires grad."""
    inline: Written | None = None
    """The text of `impl` for functions that do the same in place of a call; None if an implementation may take it."""
    compiler: Callable[[Op], Compiled] | None = None
    """Makes the functions of the operator; the table gives it."""
    _first: Callable[..., Any] = field(init=False)
    """The function in `impl` until calls begin."""
    _schema: FunctionSchema | None = None
    _compiled: Compiled | None = None
    qualified_name: str = field(init=False)
    """`aten::add.Tensor`, read off the text without parsing it."""
    name: str = field(init=False)
    """`aten::add`."""

    def __post_init__(self) -> None:
        self.qualified_name = self.text[: self.text.index("(")]
        self.name = self.qualified_name.partition(".")[0]
        self._first = partial(_first_call, self)
        self._begin_anew()

    @property
    def overload(self) -> str:
        return self.qualified_name.partition(".")[2]

    @property
    def schema(self) -> FunctionSchema:
        if self._schema is None:
            self._schema = parse_schema(self.text)
        return self._schema

    @property
    def is_mutable(self) -> bool:
        """True if the schema says that an argument is written to; one without such a mark is not parsed for that."""
        return "!" in self.text and self.schema.is_mutable

    @property
    def is_composed(self) -> bool:
        """True if calls run its `composite` text, for want of a body that takes less time."""
        return self.composite is not None and (self.scalar, self.kernel, self.python) == (None, None, None)

    @property
    def gives_new(self) -> bool:
        """True if no result is an argument or shows the memory of one."""
        return not self.hands_on and all(each.alias is None for each in self.schema.returns)

    @property
    def run(self) -> Callable[..., Any]:
        """The current implementation, `impl`, made if it was not yet."""
        impl = self.impl
        return self.begin() if impl is self._first else impl

    @property
    def compiled(self) -> Compiled:
        """The operator's functions in Python, whatever implementation has taken `impl`.

        They are the definition, which machine code that is made goes by.
        """
        if self._compiled is None:
            assert self.compiler is not None, f"{self.qualified_name} is not in the table"
            self._compiled = self.compiler(self)
        return self._compiled

    def begin(self) -> Callable[..., Any]:
        """Let machine code serve calls where there is some, else the functions in Python, which only then are made."""
        if HOOKS.native is None or not HOOKS.native(self):
            made = self.compiled
            self.impl, self.body, self.inline = made.run, made.body, made.written
        return self.impl

    def take(self, impl: Callable[..., Any], body: Callable[..., Any] | None = None) -> None:
        """Let an implementation that does the same serve calls, and `body` those below hooks."""
        recorded = partial(_first_recorded, self)  # made before the slots change, which no interrupt comes between then
        self.inline, self.impl = None, impl
        if body is not None:
            self.body, self.recorded = body, recorded

    def give_back(self) -> None:
        """Let calls begin anew, with what serves them then."""
        BEGINNINGS.count += 1
        self._begin_anew()

    def _begin_anew(self) -> None:
        body, recorded = partial(_first_body, self), partial(_first_recorded, self)
        self.inline, self.impl, self.body, self.recorded = None, self._first, body, recorded

    def __repr__(self) -> str:
        return f"<op {self.text}>"


class _Beginnings:
    """`count`: how often operators began anew, so that who keeps their functions knows that these are out of date."""

    count: int = 0


BEGINNINGS: Final = _Beginnings()


def _first_call(op: Op, *args: Any) -> Any:
    return op.begin()(*args)


def _first_body(op: Op, *args: Any) -> Any:
    op.begin()
    return op.body(*args)


def _first_recorded(op: Op, *args: Any) -> Any:
    """Work out how the operator is recorded when it first is."""
    assert HOOKS.recorder is not None
    if op.impl is op._first:
        op.begin()
    if HOOKS.native_recorder is not None:
        HOOKS.native_recorder(op)
    made = op._compiled
    op.recorded = HOOKS.recorder(op, op.body, made.text if made is not None and op.body is made.body else None)
    return op.recorded(*args)
