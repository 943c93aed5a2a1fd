"""Names that are there and refuse to be used, in words.

In: a name as programs write it, and why it does not work here.  Out: a class that can be imported, named in annotations
and asked for in `isinstance`; calling it, deriving an instance from it and looking inside raise NotSupportedError.
"""

from __future__ import annotations

from typing import Any, NoReturn

from engine.lang.errors import NotSupportedError

WHERE = "docs/compatibility.md lists what works"


class _Refused(type):
    """The class of refused names, which are classes themselves so that `isinstance(x, name)` is False."""

    words: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotSupportedError(f"{cls.__name__}: {cls.words}", hints=(WHERE,))

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("_"):  # a mark that classes may have
            raise AttributeError(name)
        raise NotSupportedError(f"{cls.__name__}.{name}: {cls.words}", hints=(WHERE,))

    def __repr__(cls) -> str:
        return f"<{cls.__name__}, refused: {cls.words}>"


def refused(name: str, words: str) -> Any:
    """The name that refuses with these words."""
    return _Refused(name, (), {"words": words})


def refusal_of(value: Any) -> str | None:
    """The words of a refused name; None for anything else."""
    return value.words if isinstance(value, _Refused) else None
