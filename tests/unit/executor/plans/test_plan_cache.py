"""The cache of plans: bounded, each made once."""

import threading

import pytest

from engine.executor.plans.plan_cache import CacheStatistics, PlanCache


def test_the_plan_used_longest_ago_goes_first() -> None:
    cache: PlanCache[str] = PlanCache(2)
    for key in "abaca":
        assert cache.get(key, key.upper)[0] == key.upper()
    assert cache.plans() == ["C", "A"]
    assert cache.statistics == CacheStatistics(hits=2, misses=3, evictions=1)
    assert cache.get("b", lambda: "again") == ("again", False)


def test_one_thread_makes_a_plan_and_others_wait() -> None:
    cache: PlanCache[int] = PlanCache(5)
    going_on, made, found = threading.Event(), [], []

    def make() -> int:
        made.append(threading.get_ident())
        going_on.wait(5)
        return 7

    threads = [threading.Thread(target=lambda: found.append(cache.get("k", make)[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert cache.get("other", lambda: 1) == (1, False), "another key does not wait"
    going_on.set()
    for thread in threads:
        thread.join(5)
    assert (len(made), found) == (1, [7] * 8)


def test_a_failure_reaches_those_who_wait_and_is_not_kept() -> None:
    cache: PlanCache[int] = PlanCache(5)

    def fail() -> int:
        raise ValueError("no plan")

    for _ in range(2):
        with pytest.raises(ValueError, match="no plan"):
            cache.get("k", fail)
    assert cache.get("k", lambda: 3) == (3, False)
