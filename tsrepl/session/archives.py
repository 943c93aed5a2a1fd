"""Files looked at from outside: what one is, what a program in it can do, the tensors it holds.

In: paths.  Out: replies, or with `as_data` one reply with the same facts for programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.lang.counts import counted
from engine.lang.deferred import deferred
from engine.lang.errors import ArchiveError, did_you_mean
from engine.serialize.container.file_bytes import shell_word
from engine.serialize.identify.identify import Identity, explained, identify
from engine.serialize.inspect.card import card_of
from tsrepl.session.failures import error_reply
from tsrepl.session.replies import (
    CodeReply,
    DataReply,
    FileReply,
    InstructionsReply,
    Reply,
    ReportReply,
    Section,
    TextReply,
)

if TYPE_CHECKING:
    from engine.ir.unit import Function
    from engine.serialize.inspect import check as checks
    from engine.serialize.inspect import survey as surveys
    from engine.serialize.inspect import weights as tables
    from engine.serialize.mobile import file as mobile_file
    from engine.serialize.mobile import load as mobile_load
    from engine.serialize.upgrade.upgraders import UpgradedCall
else:
    checks, surveys = deferred("engine.serialize.inspect.check"), deferred("engine.serialize.inspect.survey")
    tables = deferred("engine.serialize.inspect.weights")
    mobile_file, mobile_load = deferred("engine.serialize.mobile.file"), deferred("engine.serialize.mobile.load")

FOUND: Final = 3
"""The exit status of a check that found something suspicious, and of `ops` when operators are missing."""
_WITHOUT_TENSORS: Final = "torch-value"


def identify_files(paths: Sequence[str], *, as_data: bool = False) -> Iterator[Reply]:
    """`tsrepl identify FILE ...`: what each file is, and what to do with it."""
    if as_data:
        yield DataReply([_identity_data(_with_card(identify(path))) for path in paths])
        return
    for path in paths:
        try:
            yield file_reply(_with_card(identify(path)))
        except ArchiveError as error:
            yield error_reply(error)


def _with_card(found: Identity) -> Identity:
    """The identity of a program, with what it takes, what made it, its devices and its mode."""
    if not found.is_program:
        return found
    card = card_of(found.path)
    if card.arguments is None:
        return replace(found, facts=(*found.facts, *card.facts))
    file = shell_word(found.path)
    needed = [each.partition(":")[0] for each in card.arguments if "=" not in each]
    how = f"run it: tsrepl run {file}"
    if needed:
        given = " ".join(f"{name}=…" for name in needed)
        how = f"run it, each … a file (x.npy) or an expression ('randn(2, 3)'): {how[8:]} --input {given}"
    return replace(found, facts=(*found.facts, *card.facts), advice=(*found.advice, how))


def file_reply(found: Identity, *, advice: bool = True) -> FileReply:
    size = ("size", counted(found.size, "byte"))
    return FileReply(found.path, found.title, (size, *found.facts), found.advice if advice else ())


def _identity_data(found: Identity) -> dict[str, Any]:
    return {
        "file": found.path,
        "kind": found.kind,
        "title": found.title,
        "size": found.size,
        "is_program": found.is_program,
        "has_weights": found.has_weights or "tensors" in dict(found.facts),
        "facts": dict(found.facts),
        "advice": list(found.advice),
    }


# -- operators


def operators(path: str, *, as_data: bool = False) -> Iterator[Reply]:
    """`tsrepl ops FILE`: operators with counts, those that are missing first."""
    seen = surveys.survey(path)
    missing = seen.missing()
    known = {name: count for name, count in seen.operators().items() if name not in missing}
    status = FOUND if missing else 0
    if as_data:
        yield DataReply({"file": path, "operators": known, "missing": dict(missing)}, status)
        return
    columns = (">calls", "operator")
    if missing:
        note = "the archive loads; calling one of these stops with its name"
        rows = _counted(dict(missing))
        yield ReportReply("", (Section("not known here", columns, rows, "error", note),))
    broken = [name for name, _ in seen.broken]
    if broken:
        heading = "what does not compile, whose calls are not counted"
        yield ReportReply("", (Section(heading, ("",), tuple((name,) for name in broken), "warning"),))
    total = sum(known.values())
    is_good = not missing and not broken
    heading = f"{counted(len(known), 'operator')} in {counted(total, 'call')}" + (", all known" if is_good else "")
    yield ReportReply("", (Section(heading, columns, _counted(known), "good" if is_good else ""),), status)


def _counted(counts: dict[str, int]) -> tuple[tuple[str, str], ...]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple((f"{count:,}", name) for name, count in ordered)


# -- what a program can do


def check(path: str, *, as_data: bool = False) -> Iterator[Reply]:
    """`tsrepl check FILE`: numbers, then what was found."""
    result = checks.check_archive(path)
    status = FOUND if result.is_suspicious else 0
    if as_data:
        yield DataReply(_check_data(result), status)
        return
    found = result.survey.identity
    version = dict(found.facts).get("version", "")
    mode = (("mode", result.mode),) if result.mode else ()
    yield FileReply(found.path, f"{found.title}, version {version}", (*mode, *result.numbers))
    yield ReportReply("", tuple(_findings(result)), status)


def _findings(result: checks.Check) -> Iterator[Section]:
    if not result.is_suspicious:
        yield Section("nothing suspicious", level="good")
    for finding in result.findings:
        level = "warning" if finding.level == checks.SUSPICIOUS else ""
        yield Section(finding.text, ("",), tuple((place,) for place in finding.where), level)


def _check_data(result: checks.Check) -> dict[str, Any]:
    seen = result.survey
    tensors = list(seen.tensors())
    return {
        **_identity_data(seen.identity),
        "mode": result.mode,
        "suspicious": result.is_suspicious,
        "findings": [{"level": f.level, "text": f.text, "where": list(f.where)} for f in result.findings],
        "classes": [each.qualname for each in seen.classes],
        "functions": [each.qualname for each in seen.functions],
        "parameters": sum(tensor.numel() for _, kind, tensor in tensors if kind == "parameter"),
        "weight_bytes": sum(tensor.numel() * tensor.dtype.itemsize for _, _, tensor in tensors),
        "records": seen.records,
        "operators": result.operators,
        "missing": dict(seen.missing()),
        "rewrites": [
            {"operator": each.operator, "upgrader": each.upgrader, "place": each.place} for each in seen.rewrites()
        ],
        "loops": [{"function": each.function, "kind": each.kind, "place": each.place} for each in result.loops],
    }


def filled_section(classes: Sequence[str]) -> Section:
    """Modules whose contents are not to be seen before they are loaded."""
    note = "what these modules hold is made by their __setstate__ when they are loaded; it did not run for this"
    return Section("filled while loading", rows=tuple((name,) for name in classes), note=note)


def rewrites_section(rewrites: Sequence[UpgradedCall]) -> Section:
    """Calls of old operators, with what does their work today."""
    rows = tuple((each.operator, each.upgrader, each.place) for each in rewrites)
    note = "what these operators meant then is spelled out with today's"
    return Section("rewritten calls of old operators", ("operator", "now done by", "line"), rows, note=note)


# -- tensors of files without programs


def show_weights(path: str) -> Iterator[Reply]:
    """The tensors of a file that holds no program.  Raises ArchiveError, which says what else the file is."""
    found = identify(path)
    if found.kind == _WITHOUT_TENSORS:
        with tables.open_tensors(path) as weights:
            yield file_reply(found, advice=False)
            yield ReportReply("", tuple(_others_of(weights)))
        return
    if not found.has_weights:
        raise explained(ArchiveError(f"'{path}' cannot be shown"), path, "cannot be shown: it is")
    with tables.open_weights(path) as weights:
        yield file_reply(weights.identity, advice=False)
        yield ReportReply("", (_table_of(weights), *_others_of(weights)))


def show_tensors(path: str, reason: ArchiveError) -> Iterator[Reply]:
    """The tensors of an archive that cannot be loaded for their sake.  Raises ArchiveError."""
    with tables.open_tensors(path) as weights:
        yield file_reply(weights.identity, advice=False)
        yield ReportReply("", (_table_of(weights),))
    yield TextReply(f"its programs cannot run here: {reason.message}", "warning")


def _table_of(weights: tables.Weights) -> Section:
    entries = weights.entries.values()
    noted = any(each.note for each in entries)
    rows = tuple(
        (each.name, each.dtype, " × ".join(map(str, each.shape)) or "scalar", f"{each.bytes:,}", *[each.note] * noted)
        for each in entries
    )
    total = (
        counted(len(rows), "tensor"),
        counted(sum(each.count for each in entries), "number"),
        counted(sum(each.bytes for each in entries), "byte"),
    )
    return Section("", ("name", "dtype", "shape", ">bytes", *[""] * noted), rows, note=", ".join(total))


def _others_of(weights: tables.Weights) -> Iterator[Section]:
    """Values other than tensors in a checkpoint."""
    if weights.others:
        note = f"only the first {tables.MOST_OTHERS} are shown" if len(weights.others) == tables.MOST_OTHERS else ""
        yield Section("", ("other values", ""), weights.others, note=note)


def show_bytecode(path: str, method: str | None = None) -> Iterator[Reply]:
    """The bytecode for mobile devices: instructions of every function, or of one.  Raises ArchiveError for none."""
    found = identify(path)
    container = mobile_file.open_program(path)
    try:
        program = mobile_load.mobile_program(container)
    finally:
        container.close()
    if program is None:
        raise ArchiveError(f"'{path}' holds no mobile bytecode", hints=("tsrepl show --graph shows what runs here",))
    chosen = [each for each in program.functions if method is None or f".{each.name}".endswith(f".{method}")]
    if not chosen:
        names = [each.name.rpartition(".")[2] for each in program.functions]
        hints = did_you_mean(str(method), names) or (f"there is {', '.join(names)}",)
        raise ArchiveError(f"'{path}' has no instructions of a method '{method}'", hints=hints)
    yield file_reply(found, advice=False)
    yield InstructionsReply(path, program._replace(functions=tuple(chosen)).listing())


# -- the author's own sources


def sources(path: str, functions: Sequence[Function]) -> Iterator[Reply]:
    """The texts that the functions were compiled from, as far as debug records keep them."""
    found: dict[tuple[str, int, str], None] = {}
    for function in functions:
        for node in function.graph.all_nodes():
            if node.range is not None and node.range.source.original is not None:
                original = node.range.source.original(node.range.start)
                if original is not None and original.source.text.strip():
                    found[original.source.filename, original.source.first_line, original.source.text] = None
    if not found:
        raise ArchiveError(
            f"'{path}' keeps no sources of its author",
            hints=("tsrepl show --code prints the code that it does keep",),
        )
    for filename, first_line, text in sorted(found):
        yield CodeReply(filename, f"# {filename}, line {first_line}\n{text}")
