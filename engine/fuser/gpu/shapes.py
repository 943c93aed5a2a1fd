"""Shapes of launches: how many threads there are, and how many share a row.

In: a `Launch`, and its number of rows and elements in each.  Out: a `Shape`, which is compiled into the code.
"""

from __future__ import annotations

from typing import Final

from engine.lang.records import dataclass

WARP: Final = 32
THREADS: Final = 256
"""Threads in most blocks."""
MOST: Final = 1024
_SHORT: Final = 8
"""Elements that one thread adds up as fast as several."""
_BUSY: Final = 1 << 17
"""Threads that keep all of a machine at work."""


@dataclass(frozen=True, slots=True)
class Shape:
    """`threads` of a block, in teams of `team`, a power of two, one for each row.

    `is_across`: neighbouring threads belong to neighbouring teams.  `in_shared`: the rooms of rows are in shared
    memory.  `is_narrow`: indices are computed in 32 bits.  `is_tiled`: loops over elements go in tiles.
    """

    threads: int = THREADS
    team: int = 1
    is_across: bool = False
    in_shared: bool = True
    is_narrow: bool = True
    is_tiled: bool = False

    @property
    def are_rows_beside(self) -> bool:
        """True if neighbouring threads have neighbouring rows."""
        return self.is_across or self.team == 1

    @property
    def teams(self) -> int:
        """Those of a block."""
        return self.threads // self.team


def shape_of_rows(rows: int, length: int, *, is_across: bool) -> Shape:
    """For rows that threads can share, of so many elements."""
    if length <= _SHORT and rows >= WARP:
        return Shape()
    if is_across:
        team = 1
        while team < WARP and team * rows < _BUSY and 4 * team < length:
            team *= 2
        return Shape(max(THREADS, WARP * team), team, is_across=True)
    team = 1
    while team < WARP and 2 * team < length:
        team *= 2
    while team < MOST and 8 * team < length and (team * rows < _BUSY or 64 * team < length):
        team *= 2
    return Shape(max(team, THREADS) if team <= WARP else team, team)
