"""A replica that fell silent lost what it did last; which tasks that can concern, though it told nothing
of them."""

from __future__ import annotations

from a2a_fencing import conventions as c
from a2a_fencing.facts import TaskKey
from support.tale import STORE, Tale

BEAT_S = 5.0
LONG_MS = 60_000


def finish(tale: Tale, a) -> None:
    a.start()
    a.write(c.SUBMITTED, to=1)
    a.write(c.WORKING, on=1, to=2)
    a.write(c.COMPLETED, on=2, to=3)
    a.end()


def elsewhere(b, store: str = STORE) -> None:
    """The other replica works on a task of its own, interrupted so that nothing is left to do."""
    b.key = TaskKey(store, "bob", "task-2")
    b.start("other")
    b.write(c.SUBMITTED, to=1)
    b.write(c.INPUT_REQUIRED, on=1, to=2)
    b.end("other")


def later(tale: Tale, a) -> None:
    """So much later that whoever still lives has told so."""
    tale.wait(LONG_MS)
    a.heartbeat()


def test_a_task_at_work_when_a_replica_falls_silent_is_unknown() -> None:
    tale = Tale()
    a, b = tale.replica("a", heartbeats=True), tale.replica("b", heartbeats=True)
    elsewhere(b)
    finish(tale, a)
    later(tale, a)
    report = tale.check()
    assert report.verdicts[tale.key] == c.UNKNOWN
    assert report.doubts[tale.key] == ("b fell silent at that time; what it did last was lost with it",)
    assert report.findings == ()


def test_a_task_finished_before_that_is_fine() -> None:
    tale = Tale()
    a, b = tale.replica("a", heartbeats=True), tale.replica("b", heartbeats=True)
    finish(tale, a)
    tale.wait(4_000)
    elsewhere(b)
    later(tale, a)
    assert tale.check().verdicts[tale.key] == c.FINE


def test_a_task_that_went_on_long_after_is_fine() -> None:
    tale = Tale()
    a, b = tale.replica("a", heartbeats=True), tale.replica("b", heartbeats=True)
    elsewhere(b)
    a.start()
    a.write(c.SUBMITTED, to=1)
    tale.wait(LONG_MS)
    a.write(c.COMPLETED, on=1, to=2)
    a.end()
    later(tale, a)
    assert tale.check().verdicts[tale.key] == c.FINE


def test_a_replica_of_another_store_concerns_nobody() -> None:
    tale = Tale()
    a, b = tale.replica("a", heartbeats=True), tale.replica("b", heartbeats=True)
    elsewhere(b, store="tasks @ another")
    finish(tale, a)
    later(tale, a)
    assert tale.check().verdicts[tale.key] == c.FINE


def test_a_replica_that_said_that_it_stops_lost_nothing() -> None:
    tale = Tale()
    a, b = tale.replica("a", heartbeats=True), tale.replica("b", heartbeats=True)
    elsewhere(b)
    finish(tale, a)
    b.heartbeat(interval_s=0)
    later(tale, a)
    assert tale.check().verdicts[tale.key] == c.FINE
