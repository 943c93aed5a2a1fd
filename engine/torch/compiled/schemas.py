"""`torch.FunctionSchema` and `torch.Argument`: signatures under the names that scripts for PyTorch use.

In: schemas of the engine.  Out: thin objects over them, see `engine.torch.compiled.facade`, which compare as the
schemas do.
"""

from __future__ import annotations

from typing import Any

from engine.lang import schema
from engine.torch.compiled.facade import FACADES, Facade, unwrap, wrap


class Argument(Facade):
    """An argument or a result of a function."""

    __slots__ = ()
    _ir: schema.Argument

    @property
    def name(self) -> str:
        return self._ir.name

    @property
    def type(self) -> Any:
        return wrap(self._ir.type)

    @property
    def default_value(self) -> Any:
        """The default; None where there is none."""
        return self._ir.default if self._ir.has_default else None

    def has_default_value(self) -> bool:
        return self._ir.has_default

    @property
    def N(self) -> int | None:
        """The length of a list for which one number may stand."""
        return self._ir.broadcast

    @property
    def is_out(self) -> bool:
        return self._ir.kwarg_only and self._ir.is_write

    @property
    def alias_info(self) -> schema.AliasInfo | None:
        return self._ir.alias

    def __eq__(self, other: object) -> bool:
        return bool(self._ir == unwrap(other))

    def __hash__(self) -> int:
        return hash(self._ir)


class FunctionSchema(Facade):
    """The arguments and results of a function."""

    __slots__ = ()
    _ir: schema.FunctionSchema

    @property
    def name(self) -> str:
        return self._ir.name

    @property
    def overload_name(self) -> str:
        return self._ir.overload

    @property
    def arguments(self) -> list[Argument]:
        return [Argument(each) for each in self._ir.arguments]

    @property
    def returns(self) -> list[Argument]:
        return [Argument(each) for each in self._ir.returns]

    @property
    def is_mutable(self) -> bool:
        return self._ir.is_mutable

    @property
    def is_vararg(self) -> bool:
        return self._ir.is_vararg

    def __eq__(self, other: object) -> bool:
        return bool(self._ir == unwrap(other))

    def __hash__(self) -> int:
        return hash(str(self._ir))


FACADES.update({schema.FunctionSchema: FunctionSchema, schema.Argument: Argument})
