"""Collects `.case` files (see `case_runner`) as tests, one for each case; `--update-cases` rewrites them."""

from __future__ import annotations

import gc
import getpass
import os
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from engine.aten.values import quantizer
from engine.aten.values.hooks import HOOKS
from engine.executor.plans import first_call, tiers
from engine.fuser.backend import tiering
from engine.fuser.library import building, image_files, parts, serving, store
from tests.case_runner import Case, parse_cases, written

os.environ.setdefault("TSREPL_KERNEL_CACHE", str(Path(tempfile.gettempdir()) / f"tsrepl-tests-{getpass.getuser()}"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in the background so; programs that tests start would ignore interrupts, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run: what fails here fails for everybody.
hypothesis.settings.register_profile(
    "same",
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],  # machines are busy at times
)
hypothesis.settings.load_profile("same")


# Tests call a program a few times, of which some are to be its plan's, however fast the machine is.
pytest.MonkeyPatch().setattr(tiers, "making_takes", lambda nodes: 0)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-cases", action="store_true", help="let .case files expect what is found now")


def pytest_collection_finish() -> None:
    """The tests themselves are a million objects, which stay: the collector has no more to do with them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Once a test is over that had quantized tensors, operators need not look for such any more."""
    if HOOKS.quantized:
        quantizer.absent()
    mistakes = tiering.failures()
    tiering.forget_failures()
    assert not mistakes, "compiling failed, in this test or shortly before:\n" + "\n".join(mistakes)


@pytest.fixture(params=["off", "eager", "background"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each compile mode, for the time of a test."""
    before = tiering.mode()
    tiering.set_mode(request.param)
    yield request.param
    tiering.set_mode(before)


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    """The library of operators is on disk before the first test, so that no test sees it come: one process builds it,
    once for all runs, and the others wait."""
    room = image_files.folder()
    assert room is not None
    building.build(room, waits=True)


@pytest.fixture(scope="session")
def _library(_built: None) -> None:
    """All of the library is taken."""
    while store.parts_found() < len(parts.PARTS):
        time.sleep(store.INTERVAL / 10)
    serving.take_parts()
    serving.begin_anew()


@pytest.fixture
def library(_library: None) -> Iterator[None]:
    """The library serves operators for the time of a test."""
    before = tiering.mode()
    tiering.set_mode("background")
    yield
    tiering.set_mode(before)


@pytest.fixture
def without_machine_code() -> Iterator[None]:
    """The compile mode in which results have the bits of numpy's functions, at any time."""
    before = tiering.mode()
    tiering.set_mode("off")
    yield
    tiering.set_mode(before)


@pytest.fixture
def plans_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """First calls have plans, as where loops may take long; elsewhere they are the interpreter's."""
    monkeypatch.setattr(first_call, "MOST", -1)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CaseFile | None:
    return CaseFile.from_parent(parent, path=file_path) if file_path.suffix == ".case" else None


class CaseFile(pytest.File):
    """One `.case` file."""

    def collect(self) -> Iterable[pytest.Item]:
        self.head, self.cases = parse_cases(self.path.read_text(encoding="utf-8"))
        names = [case.name for case in self.cases]
        assert len(set(names)) == len(names), f"{self.path} has two cases of one name"
        return [CaseItem.from_parent(self, name=case.name, case=case) for case in self.cases]

    def save(self) -> None:
        self.path.write_text(written(self.head, self.cases), encoding="utf-8")


class CaseItem(pytest.Item):
    """One case."""

    def __init__(self, *, case: Case, **rest: Any) -> None:
        super().__init__(**rest)
        self.case = case

    def runtest(self) -> None:
        assert self.case.sections, "a case needs a [source] or a [graph]"
        if self.config.getoption("--update-cases"):
            self.case.update()
            assert isinstance(self.parent, CaseFile)
            self.parent.save()
        problems = self.case.check()
        if problems:
            pytest.fail("\n\n".join(problems), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line - 1, self.case.name
