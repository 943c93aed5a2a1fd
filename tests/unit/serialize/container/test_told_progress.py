"""Events of long saves and loads."""

import numpy as np

import engine
from engine.lang.progress import Progress, listening
from engine.serialize.container import file_bytes, write
from engine.serialize.container.write import told
from engine.serialize.inspect.weights import load_weights
from tests.unit.serialize.model_files import ARCHIVES, FILES


def test_saving_tells_how_much_is_written(tmp_path):
    events: list[Progress] = []
    module = engine.jit.load(FILES / "dev.pt", map_location="cpu")
    with listening(events.append):
        module.save(str(tmp_path / "m.pt"))
    assert {(event.action, event.of) for event in events} == {("writing", str(tmp_path / "m.pt"))}
    assert [event.done for event in events] == sorted(event.done for event in events)
    assert events[-1].done == events[-1].total > 0


def test_loading_tells_how_much_is_compiled():
    events: list[Progress] = []
    with listening(events.append):
        engine.jit.load(ARCHIVES / "everything.pt", lazy=False)
    assert {event.action for event in events} == {"compiling"}
    assert events[-1].done == events[-1].total


def test_large_pieces_are_written_in_parts(monkeypatch):
    monkeypatch.setattr(write, "CHUNK", 4)
    events: list[Progress] = []
    with listening(events.append):
        parts = [bytes(part) for part in told([b"abcdef", np.arange(3, dtype=np.uint8).data, b""], "p", 9)]
    assert parts == [b"abcd", b"ef", b"\0\1\2"]
    assert [event.done for event in events] == [4, 6, 9]


def test_without_a_listener_the_pieces_stay_as_they_are():
    pieces = [b"abc"]
    assert told(pieces, "p", 3) is pieces


def test_comparing_a_mapped_file_with_its_checksums_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(file_bytes, "MAP_FROM", 1)
    events: list[Progress] = []
    with listening(events.append):
        module = engine.jit.load(ARCHIVES / "constants.pt")
        assert not events
        module(engine.ones(3))
    assert {(event.action, event.of) for event in events} == {("checking", str(ARCHIVES / "constants.pt"))}
    assert events[-1].done == events[-1].total > 0


def test_reading_weights_is_told():
    events: list[Progress] = []
    with listening(events.append):
        load_weights(FILES / "sd_zip.pt")
    assert {event.action for event in events} == {"reading"}
    assert events[-1].done == events[-1].total > 0
