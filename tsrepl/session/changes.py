"""New files from old ones: weights and records taken out, devices changed, archives written anew.

In: paths.  Out: files, and replies that tell what is in them now.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from engine.executor.interpreter.budget import BudgetedRunner
from engine.lang import scalars
from engine.lang.counts import counted
from engine.lang.errors import OperatorError
from engine.serialize.container.file_bytes import shell_word
from engine.serialize.inspect.extract import ENDINGS, extract_folder, extract_weights
from engine.serialize.inspect.fix import Change, fix_devices, repack
from tsrepl.session.archives import rewrites_section
from tsrepl.session.failures import CommandLineError
from tsrepl.session.replies import Reply, ReportReply, Section, TextReply


def extract(path: str, target: str, *, force: bool = False) -> Iterator[Reply]:
    """`tsrepl extract FILE OUT`: weights into a `.safetensors` or `.npz` file, or everything into a new folder."""
    if target.endswith(ENDINGS):
        _check_new(target, force)
        written = extract_weights(path, target)
        size = os.path.getsize(target)
        yield TextReply(f"wrote {target}: {counted(len(written), 'tensor')}, {counted(size, 'byte')}", "done")
        return
    if os.path.splitext(target)[1][1:].isalnum() and not target[-1].isdecimal():
        raise CommandLineError(
            f"'{target}' is no place to extract to",
            hints=(f"name a .safetensors or .npz file, or a new folder ('{target}/' if it is one)",),
        )
    files = extract_folder(path, target)
    rows = tuple((os.path.join(target, name), f"{size:,}") for name, size in files)
    yield ReportReply("", (Section(f"wrote {counted(len(files), 'file')}", ("file", ">bytes"), rows, "good"),))


def fix(path: str, device: str, target: str, *, force: bool = False) -> Iterator[Reply]:
    """`tsrepl fix --device cpu FILE -o OUT`: each change with its line."""
    _check_new(target, force)
    try:
        scalars.device(device)
    except OperatorError:
        raise CommandLineError(f"'{device}' is no device", hints=("write cpu, cuda or cuda:1",)) from None
    changes = fix_devices(path, device, target)
    if not changes:
        yield TextReply(f"nothing to change: everything is on {device}, so the new file is the same")
    else:
        yield ReportReply("", tuple(_change(each) for each in changes))
    yield TextReply(f"wrote {target} ({counted(os.path.getsize(target), 'byte')})", "done")


def _change(change: Change) -> Section:
    if change.line:
        return Section(f"{change.record}, line {change.line}", change=(change.before, change.after))
    return Section(
        f"{change.record}, {counted(change.count, 'place')}", change=(f'"{change.before}"', f'"{change.after}"')
    )


def repacked(path: str, target: str, *, force: bool = False) -> Iterator[Reply]:
    """`tsrepl repack FILE -o OUT`: the archive as archives are written today."""
    _check_new(target, force)
    done = repack(path, target, BudgetedRunner())
    yield TextReply(
        f"wrote {target}: version {done.before} → {done.after}, {done.size_before:,} → {done.size_after:,} bytes",
        "done",
    )
    if done.moved:
        yield TextReply(f"tensors lay on {done.moved}; in {target} they lie on the CPU", "warning")
    if done.named:
        fix = f"tsrepl fix --device cpu {shell_word(target)} -o cpu.pt"
        yield TextReply(f"the code still names {', '.join(done.named)}; without such a device: {fix}", "warning")
    if done.rewrites:
        yield ReportReply("", (rewrites_section(done.rewrites),))


def _check_new(target: str, force: bool) -> None:
    """Raises CommandLineError for a file that is there already; a pipe or `/dev/null` may be written to."""
    if os.path.isfile(target) and not force:
        raise CommandLineError(f"'{target}' exists already", hints=("--force overwrites it",))
