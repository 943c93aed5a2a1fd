"""Philox against the vectors that its authors publish, and the stream that is made of it."""

from __future__ import annotations

from engine.aten.devices.philox import Philox, philox


def test_the_first_block_of_key_zero_is_the_published_one() -> None:
    words = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox(0, 0, 1).tolist() == [words]


def test_a_stream_can_be_taken_up_again() -> None:
    source = Philox("cpu")
    source.manual_seed(1)
    source.words32(3)
    state = source.state_bytes()
    expected = source.words32(5).tolist()
    source.restore(state)
    assert source.words32(5).tolist() == expected
