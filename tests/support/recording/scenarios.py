"""What goes wrong on the released SDK, as it is recorded; and each time the same without the fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from a2a_fencing import conventions as c
from support.recording.cluster import Process, Recording

Play = Callable[[Recording, bool], None]


@dataclass(frozen=True)
class Scenario:
    """A sequence of CASES.md.

    Attributes:
        play: Plays it, with the fault or without.
        rules: Every rule that is violated with the fault.
    """

    play: Play
    rules: frozenset[str]

    @property
    def name(self) -> str:
        """Name of its files."""
        return self.play.__name__


def remote_cancel(cluster: Recording, fault: bool) -> None:
    """B cancels while A has an artifact and COMPLETED to say. Without the fault: nobody cancels."""
    a, b = cluster.replica("api-0"), cluster.replica("api-1")
    task_id = _working(a)
    if fault:
        assert b.cancel(task_id) == c.CANCELED
    a.emit("artifact", c.COMPLETED)
    a.end()
    a.released(task_id)


def late_working(cluster: Recording, fault: bool) -> None:
    """The agent says WORKING after COMPLETED, in one go. Without the fault: before it."""
    a = cluster.replica("api-0")
    task_id = _working(a)
    a.emit(*((c.COMPLETED, c.WORKING) if fault else (c.WORKING, c.COMPLETED)))
    a.end()
    a.released(task_id)


def double_conflict(cluster: Recording, fault: bool) -> None:
    """Whatever A saves, B is first: its second try and its failure too. Without the fault: once only."""
    a, b = cluster.replica("api-0"), cluster.replica("api-1")
    task_id = _working(a)
    a.hold()
    a.emit("artifact", c.COMPLETED)
    rounds = 3 if fault else 1
    for n in range(rounds):
        a.held()
        b.touch(task_id)
        a.let_pass(last=n == rounds - 1)
    a.end()
    a.released(task_id)


def own_commit(cluster: Recording, fault: bool) -> None:
    """A commit succeeds and its answer is lost; the SDK tries again. Without the fault: it arrives."""
    a = cluster.replica("api-0")
    task_id = _working(a)
    if fault:
        a.lose_answer()
    a.emit("artifact")
    a.wait_for(task_id, 4 if fault else 3)
    a.emit(c.COMPLETED)
    a.end()
    a.released(task_id)


def wrong_replica(cluster: Recording, fault: bool) -> None:
    """A follow-up reaches B while A still executes the task. Without the fault: it reaches A."""
    a = cluster.replica("api-0")
    about = a.send()
    task_id = about["task_id"]
    a.emit(c.WORKING)
    a.wait_for(task_id, 2)
    if fault:
        b = cluster.replica("api-1")
        b.send(**about)
        b.emit(c.WORKING)
        # The message of the follow-up is a write too.
        b.wait_for(task_id, 4)
        a.emit(c.WORKING)
        a.wait_for(task_id, 5)
        b.emit(c.COMPLETED)
        b.end()
        b.released(task_id)
        a.emit("artifact")
    else:
        a.send(**about)
        a.end()
        a.emit(c.COMPLETED)
    a.end()
    a.released(task_id)


def raw_sql(cluster: Recording, fault: bool) -> None:
    """SQL past the SDK sets CANCELED and leaves the version; A completes. Without the fault: no SQL."""
    a = cluster.replica("api-0", "--audit")
    task_id = _working(a)
    if fault:
        cluster.run_sql("""UPDATE tasks SET status = '{"state": "TASK_STATE_CANCELED"}'""")
    a.emit(c.COMPLETED)
    a.end()
    a.released(task_id)


def _working(replica: Process) -> str:
    """A task that is stored as WORKING at v2, and executes there."""
    task_id = str(replica.send()["task_id"])
    replica.emit(c.WORKING)
    assert replica.wait_for(task_id, 2) == c.WORKING
    return task_id


_OVERWRITTEN = frozenset({c.TERMINAL_OVERWRITTEN, c.ANSWER_CONTRADICTED, c.CANCEL_INEFFECTIVE})

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(remote_cancel, _OVERWRITTEN),
        Scenario(late_working, frozenset({c.TERMINAL_OVERWRITTEN, c.ABANDONED})),
        Scenario(double_conflict, frozenset({c.ABANDONED})),
        Scenario(own_commit, frozenset({c.DOUBLE_APPLY})),
        Scenario(wrong_replica, frozenset({c.CONCURRENT_EXECUTION})),
        Scenario(raw_sql, frozenset({c.UNSEEN_WRITER, c.TERMINAL_OVERWRITTEN})),
    )
}
