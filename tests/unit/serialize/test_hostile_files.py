"""Every command and every way to load, on files that mean harm: none hangs, crashes, steers the terminal, or writes
where it should not.  They run in a process of their own with little memory, and little time."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.serialize.hostile_files import FILES

ROOT = Path(__file__).parents[3]
SOON = 5.0
"""Seconds of the processor for one look."""
MEMORY = 4 << 30
"""Bytes of address space, of which the libraries take most."""
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def _limited():
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


@pytest.fixture(scope="module")
def looks(tmp_path_factory):
    """What was said of each file."""
    pytest.importorskip("resource")
    folder = tmp_path_factory.mktemp("hostile")
    for number, data in enumerate(FILES.values()):
        (folder / str(number)).mkdir()
        (folder / str(number) / "m.pt").write_bytes(data)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-m", "tests.unit.serialize.hostile_files", str(folder)]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=500, preexec_fn=_limited
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(FILES), done.stderr[-2000:]
    strangers = {each.name for each in folder.iterdir()} - {str(number) for number in range(len(FILES))}
    assert not strangers, "something was written outside"
    return dict(zip(FILES, map(json.loads, lines), strict=True))


@pytest.mark.parametrize("name", FILES)
def test_looking_at_it_does_no_harm(looks, name):
    for way, (said, seconds) in looks[name].items():
        assert "Internal error" not in said, (way, said)
        assert "Traceback" not in said, (way, said)
        assert not STEERING.search(said), (way, said)
        assert said.strip(), way
        assert seconds < SOON, way
