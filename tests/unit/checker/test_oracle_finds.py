"""Sequences in which the oracle, by triggers in the database, once proved the checker wrong."""

from __future__ import annotations

from a2a_fencing import conventions as c
from a2a_fencing.checker import Report
from support.tale import Narrator, Tale


def rules(report: Report) -> list[str]:
    return [finding.rule for finding in report.findings]


def works_up_to(replica: Narrator, version: int) -> None:
    """Creates the task and works on it until it has this version."""
    replica.write(c.SUBMITTED, to=1)
    for base in range(1, version):
        replica.write(c.WORKING, base, base + 1)


def test_a_cancel_belongs_to_the_life_in_which_its_version_was_read() -> None:
    """The canceller knew only v4, which both lives had; v7 was read in the first one alone."""
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    works_up_to(a, 6)
    b.answer(c.WORKING)
    b.read(4, c.WORKING, c.AUDIT)
    b.cancel(4, 7)
    a.refused(c.COMPLETED, 6)
    a.read(7, c.CANCELED)
    b.delete()
    works_up_to(a, 5)
    a.write(c.FAILED, 5, 6)
    assert rules(tale.check()) == []


def test_what_was_deleted_is_not_abandoned() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.start()
    works_up_to(a, 3)
    a.end()
    a.delete()
    assert rules(tale.check()) == []


def test_what_another_replica_deleted_is_not_abandoned() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.start()
    works_up_to(a, 3)
    a.end()
    b.delete()
    works_up_to(a, 3)
    a.write(c.COMPLETED, 3, 4)
    assert rules(tale.check()) == []


def test_a_task_that_begins_again_after_a_deletion_nobody_told_of_is_no_fork() -> None:
    """Who deleted was killed before it told, or did so by SQL: a second first write shows it."""
    tale = Tale()
    a = tale.replica("A")
    works_up_to(a, 4)
    works_up_to(a, 3)
    assert c.VERSION_FORK not in {f.rule for f in tale.check().findings if f.certainty == c.PROVEN}


def test_what_a_replica_did_before_it_was_killed_may_have_gone_on() -> None:
    """A reads CANCELED, overwrites it, and is killed before it has told."""
    tale = Tale()
    a, b = (tale.replica(name, heartbeats=True) for name in "AB")
    a.start()
    works_up_to(a, 3)
    a.end()
    b.cancel(3, 4)
    a.refused(c.WORKING, 3)
    a.read(4, c.CANCELED)
    for _ in range(5):
        tale.wait(5000)
        b.heartbeat()
    assert tale.check().verdict == c.UNKNOWN
