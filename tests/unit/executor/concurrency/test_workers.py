"""Workers: few threads, any number of tasks."""

import threading

from engine.executor.concurrency.workers import Workers


def test_tasks_run_on_a_bounded_number_of_threads() -> None:
    workers, done, seen = Workers(3), threading.Event(), list[int]()

    def task() -> None:
        seen.append(threading.get_ident())
        if len(seen) == 500:
            done.set()

    for _ in range(500):
        workers.submit(task)
    assert done.wait(10)
    assert (len(seen), len(set(seen)) <= 3, workers.threads <= 3) == (500, True, True)


def test_two_tasks_run_at_the_same_time() -> None:
    workers, meeting, met = Workers(2), threading.Barrier(2), threading.Semaphore(0)

    def task() -> None:
        meeting.wait(10)
        met.release()

    workers.submit(task)
    workers.submit(task)
    assert met.acquire(timeout=10)
    assert met.acquire(timeout=10)


def test_a_blocked_worker_is_replaced_meanwhile() -> None:
    workers, go_on, done = Workers(1), threading.Event(), threading.Event()

    def wait() -> None:
        assert workers.is_worker()
        with workers.blocking():
            go_on.wait(10)
        done.set()

    workers.submit(wait)
    workers.submit(go_on.set)
    assert done.wait(10), "the second task ran while the first one waited"


def test_other_threads_may_say_that_they_block() -> None:
    workers = Workers(1)
    with workers.blocking():
        assert not workers.is_worker()
        assert workers.threads == 0
