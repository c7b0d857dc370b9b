"""Work waits for a batch of it, in order, and never for another thread."""

from __future__ import annotations

import threading

import pytest

from a2a_fencing import internal_errors
from a2a_fencing.backlog import Backlog


def held_up(backlog: Backlog, done: list[int]) -> tuple[threading.Event, threading.Event]:
    """Puts off a call that notes 0; returns what tells that it has begun, and what lets it go on."""
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        assert go_on.wait(10)
        done.append(0)

    backlog.later(slow)
    return begun, go_on


def test_nothing_waits_until_somebody_comes_by_to_settle() -> None:
    done: list[int] = []
    backlog = Backlog(batch=10)
    backlog.later(done.append, 1)
    assert done == [1]


def test_a_batch_is_worked_off_in_its_order() -> None:
    done: list[int] = []
    backlog = Backlog(batch=3)
    backlog.watched = True
    for n in range(4):
        backlog.later(done.append, n)
        assert done == ([] if n < 2 else [0, 1, 2])
    backlog.settle()
    assert done == [0, 1, 2, 3]


def test_a_fault_is_accounted_for_and_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    monkeypatch.setattr(internal_errors, "report", lambda kind, error: told.append(kind))
    done: list[int] = []
    backlog = Backlog(batch=2)
    backlog.watched = True
    backlog.later(int, "no number")
    backlog.later(done.append, 1)
    assert (told, done) == (["backlog int"], [1])


def test_whoever_adds_does_not_wait_for_the_thread_that_settles() -> None:
    done: list[int] = []
    backlog = Backlog(batch=2)
    backlog.watched = True
    begun, go_on = held_up(backlog, done)
    other = threading.Thread(target=backlog.settle)
    other.start()
    assert begun.wait(10)
    for n in range(1, 5):
        backlog.later(done.append, n)  # would never return if it waited
    assert done == []
    go_on.set()
    other.join(10)
    assert done == [0, 1, 2, 3, 4]


def test_settled_means_that_what_another_thread_had_begun_is_done() -> None:
    done: list[int] = []
    backlog = Backlog(batch=9)
    backlog.watched = True
    begun, go_on = held_up(backlog, done)
    others = [threading.Thread(target=backlog.settle) for _ in range(2)]
    others[0].start()
    assert begun.wait(10)
    others[1].start()
    go_on.set()
    others[1].join(10)
    assert done == [0]
    others[0].join(10)


def test_a_signal_handler_that_settles_in_the_midst_of_a_call_gets_the_others_done() -> None:
    done: list[int] = []
    backlog = Backlog(batch=9)
    backlog.watched = True

    def interrupted() -> None:
        backlog.settle()
        done.append(0)

    backlog.later(interrupted)
    backlog.later(done.append, 1)
    backlog.settle()
    assert done == [1, 0]


def test_a_call_that_puts_off_another_does_not_begin_with_it() -> None:
    done: list[int] = []
    backlog = Backlog()

    def work() -> None:
        backlog.later(done.append, 1)
        done.append(0)

    backlog.later(work)
    assert done == [0, 1]


def test_a_forked_child_has_nothing_of_its_parents() -> None:
    done: list[int] = []
    backlog = Backlog(batch=9)
    backlog.watched = True
    backlog.later(done.append, 1)
    backlog.forget()
    backlog.settle()
    assert done == []
    backlog.later(done.append, 2)
    assert done == [2]
