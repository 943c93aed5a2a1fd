"""Two model files compared, for people, for programs and for git.

In: two paths.  Out: replies.  The status is that of `diff`: 0 when they are the same, 1 when they differ.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

from engine.lang.counts import counted, some_of
from engine.serialize.inspect.compare import CodeChange, Comparison, ValueChange, WeightChange, compare
from tsrepl.session.failures import CommandLineError
from tsrepl.session.replies import DataReply, Reply, ReportReply, Section

DIFFERENT: Final = 1
MOST_PATHS: Final = 4
MOST_ROWS: Final = 200
LONGEST_VALUE: Final = 60
_FROM_GIT: Final = (7, 9)
"""Number of words git gives a driver: path, old file, hash, mode, new file, hash, mode; two more if renamed."""


def diff(paths: Sequence[str], *, git: bool = False, as_data: bool = False) -> Iterator[Reply]:
    """`tsrepl diff A B`; with `git`, the words are those that git gives a diff driver."""
    if git:
        yield from _git_diff(paths)
        return
    if len(paths) != 2:
        raise CommandLineError("tsrepl diff wants two files", hints=("write tsrepl diff old.pt new.pt",))
    comparison = compare(*paths)
    status = 0 if comparison.is_same else DIFFERENT
    if as_data:
        yield DataReply(_data(comparison), status)
        return
    yield ReportReply("", tuple(_sections(comparison)), status)


def _git_diff(words: Sequence[str]) -> Iterator[Reply]:
    """git takes any status but 0 for a failure of its driver."""
    if len(words) not in _FROM_GIT:
        raise CommandLineError("tsrepl diff --git is called by git", hints=("README.md tells how to set it up",))
    name, old, new = words[0], words[1], words[4]
    title = f"{name} → {words[7]}" if len(words) == 9 else name
    absent = [path for path in (old, new) if path == os.devnull]
    if absent:
        yield ReportReply(title, (Section("added" if absent == [old] else "deleted", level="warning"),))
        return
    yield ReportReply(title, tuple(_sections(compare(old, new))))


def _sections(found: Comparison) -> Iterator[Section]:
    if found.is_same:
        equal = f"; {counted(found.compared, 'tensor')} {_are(found.compared)} equal" if found.compared else ""
        yield Section(f"no differences{equal}", level="good")
        return
    if found.facts:
        yield _values("files", found.facts)
    yield from map(_code, found.code)
    if found.values:
        yield _values("attributes and constants", found.values)
    if found.weights:
        yield _weights(found)


def _values(heading: str, changes: Sequence[ValueChange]) -> Section:
    rows = tuple((each.path, _short(each.before), _short(each.after)) for each in changes[:MOST_ROWS])
    return Section(heading, ("", "before", "after"), rows, "warning", _rest(len(changes)))


def _short(text: str | None) -> str:
    if text is None:
        return "–"
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _code(change: CodeChange) -> Section:
    heading = some_of(change.paths, MOST_PATHS)
    if change.before is None:
        return Section(f"{heading}: new", level="warning", change=("", change.after or ""))
    if change.after is None:
        return Section(f"{heading}: gone", level="warning", change=(change.before, ""))
    note = "the graphs are the same but for names" if change.same_graph else ""
    return Section(heading, level="warning", note=note, change=(change.before, change.after))


def _weights(found: Comparison) -> Section:
    rows = tuple(_weight_row(each) for each in found.weights[:MOST_ROWS])
    differ, gone = _changed(found), sum(each.after is None for each in found.weights)
    equal, new = found.compared - differ, len(found.weights) - differ - gone
    told = [f"{differ:,} {'differs' if differ == 1 else 'differ'}"] if differ else []
    told += [f"{gone:,} {_are(gone)} gone"] if gone else []
    told += [f"{new:,} {_are(new)} new"] if new else []
    heading = f"weights: {', '.join(told)}, {equal:,} {_are(equal)} equal"
    return Section(
        heading, ("", "before", "after", ">max |a − b|", ">numbers"), rows, "warning", _rest(len(found.weights))
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _changed(found: Comparison) -> int:
    return sum(each.before is not None and each.after is not None for each in found.weights)


def _weight_row(each: WeightChange) -> tuple[str, ...]:
    before, after = each.before or "–", each.after or "–"
    if each.most is None:
        return each.path, before, after, "", ""
    return (
        each.path,
        before,
        "same" if before == after else after,
        f"{each.most:.4g}",
        f"{each.different:,}/{each.count:,}",
    )


def _rest(count: int) -> str:
    return f"and {count - MOST_ROWS:,} more" if count > MOST_ROWS else ""


def _data(found: Comparison) -> dict[str, Any]:
    return {
        "same": found.is_same,
        "before": {"file": found.before.path, "kind": found.before.kind},
        "after": {"file": found.after.path, "kind": found.after.kind},
        "facts": [[each.path, each.before, each.after] for each in found.facts],
        "code": [
            {"paths": list(each.paths), "before": each.before, "after": each.after, "same_graph": each.same_graph}
            for each in found.code
        ],
        "values": [{"path": each.path, "before": each.before, "after": each.after} for each in found.values],
        "weights": [
            {
                "path": each.path,
                "before": each.before,
                "after": each.after,
                "max_abs_diff": each.most if each.most is None or math.isfinite(each.most) else str(each.most),
                "different": each.different,
                "count": each.count,
            }
            for each in found.weights
        ],
        "tensors_in_both": found.compared,
    }
