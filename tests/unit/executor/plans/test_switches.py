"""Switches: of a thread, and put back."""

import threading

import pytest

from engine.executor.plans.switches import SWITCHES, is_optimizing, listening, optimized_execution, tell


def test_a_wish_is_of_its_thread_and_ends_with_its_block() -> None:
    before, others = SWITCHES.special, list[bool]()
    with optimized_execution(False):
        thread = threading.Thread(target=lambda: others.append(is_optimizing()))
        thread.start()
        thread.join()
        assert not is_optimizing()
        assert SWITCHES.special == before + 1
        with optimized_execution(True):
            assert is_optimizing()
        assert not is_optimizing()
    assert others == [True]
    assert (is_optimizing(), SWITCHES.special) == (True, before)


def test_listeners_hear_while_they_listen() -> None:
    heard: list[int] = []
    with listening(heard.append), listening(heard.append):
        tell(1)
    tell(2)
    assert heard == [1, 1]


def test_an_error_puts_everything_back() -> None:
    with pytest.raises(ValueError, match="no"), listening(print), optimized_execution(False):
        raise ValueError("no")
    assert (SWITCHES.special, SWITCHES.listeners, is_optimizing()) == (0, (), True)
