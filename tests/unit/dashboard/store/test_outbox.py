"""What is to be told to others: written with the finding, kept until it was told."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding
from a2a_fencing_dashboard.store import StoreError
from a2a_fencing_dashboard.store.notes import ACKNOWLEDGED, Note
from a2a_fencing_dashboard.store.notes import MUTED as MUTES
from a2a_fencing_dashboard.store.outbox import CHANGED, MUTED, NEW, RETRACTED, UNMUTED
from a2a_fencing_dashboard.store.protocol import Batch, FindingChange, Store, Window
from a2a_fencing_dashboard.store.sqlite import outbox_table as tables
from support.reports import Cluster, Task

NOW = 1_800_000_000_000_000_000
HOOK = "webhook-1"
OTHER = "webhook-2"


@pytest.fixture
def task(store: Store) -> Task:
    """A task without any fault."""
    cluster = Cluster()
    task = cluster.task("task-1")
    task.write(cluster.a, c.WORKING, None, 1)
    cluster.heartbeats()
    cluster.commit(store)
    return task


def finding(task: Task, rule: str = c.TERMINAL_OVERWRITTEN, key: str = "4") -> Finding:
    return Finding(rule, c.CRITICAL, c.PROVEN, task.key, ("a:1",), "It was overwritten.", key)


def commit(store: Store, *changes: FindingChange, at: int = NOW) -> None:
    store.commit(Batch(changes=changes), now_unix_nano=at)


def appear(store: Store, *findings: Finding, at: int = NOW) -> None:
    commit(store, *map(FindingChange, findings), at=at)


def retract(store: Store, one: Finding) -> None:
    commit(store, FindingChange(one, retracted=True))


def told(store: Store, destination: str = HOOK) -> list[tuple[str, str]]:
    """Takes everything out: (reason, rule)."""
    changes = []
    while parcel := store.outbox.parcel(destination, limit=10):
        changes += [(change.reason, change.finding.rule) for change in parcel.changes]
        store.outbox.delivered(destination, parcel)
    return changes


def test_what_happens_is_kept_for_who_listens(store: Store, task: Task) -> None:
    appear(store, finding(task, key="before"))
    store.outbox.listen([HOOK])
    new = finding(task)
    appear(store, new)

    parcel = store.outbox.parcel(HOOK, limit=10)

    assert parcel is not None
    (change,) = parcel.changes
    assert (change.reason, change.finding, change.run) == (NEW, new, "load-42")
    assert change.stands
    assert change.seen_unix_nano == NOW
    assert store.outbox.waiting(HOOK) == 1
    store.outbox.delivered(HOOK, parcel)
    assert store.outbox.parcel(HOOK, limit=10) is None
    assert store.outbox.waiting(HOOK) == 0


def test_nothing_is_kept_where_nobody_listens(store: Store, task: Task) -> None:
    appear(store, finding(task))
    store.outbox.listen([HOOK])
    store.outbox.listen([])
    appear(store, finding(task, key="5"))
    store.outbox.listen([HOOK])

    assert told(store) == []


def test_info_is_nobodys_alert(store: Store, task: Task) -> None:
    store.outbox.listen([HOOK])
    appear(store, replace(finding(task, c.TERMINAL_MUTATED), severity=c.INFO))

    assert told(store) == []


def test_a_finding_is_retracted_and_reworded(store: Store, task: Task) -> None:
    store.outbox.listen([HOOK])
    first = replace(finding(task), certainty=c.SUSPECTED)
    appear(store, first)
    commit(store, FindingChange(first, retracted=True), FindingChange(finding(task)))
    retract(store, finding(task))

    reasons = [reason for reason, _ in told(store)]

    assert reasons == [NEW, CHANGED, RETRACTED]


def test_other_words_are_not_told_again(store: Store, task: Task) -> None:
    store.outbox.listen([HOOK])
    appear(store, finding(task))
    reworded = replace(finding(task), explanation="api-0 overwrote it.", witness=("a:1", "a:2"))
    commit(store, FindingChange(finding(task), retracted=True), FindingChange(reworded))

    assert told(store) == [(NEW, c.TERMINAL_OVERWRITTEN)]


def test_the_pulse_beats_whenever_something_else_stands(store: Store, task: Task) -> None:
    pulses = [store.outbox.pulse()]

    def beat() -> bool:
        pulses.append(store.outbox.pulse())
        return pulses[-1] != pulses[-2]

    assert not beat()
    suspected = replace(finding(task, key="1"), certainty=c.SUSPECTED)
    appear(store, suspected)
    assert beat()
    proven = replace(suspected, certainty=c.PROVEN)
    changes = FindingChange(suspected, retracted=True), FindingChange(proven)
    commit(store, *changes, at=NOW + 1)
    assert beat()
    appear(store, finding(task, key="2"))
    assert beat()
    retract(store, proven)
    assert beat()
    store.add_note(Note(MUTES, "Ada", "known", task.key), now_unix_nano=NOW)
    assert beat()
    assert not beat()


def test_what_comes_and_goes_in_one_commit_was_never_there(store: Store, task: Task) -> None:
    store.outbox.listen([HOOK])
    commit(store, FindingChange(finding(task)), FindingChange(finding(task), retracted=True))

    assert told(store) == []


def test_a_failed_commit_tells_nothing(store: Store, task: Task) -> None:
    store.outbox.listen([HOOK])
    unknown = replace(finding(task), task=replace(task.key, task_id="nobody's"))
    with pytest.raises(StoreError):
        appear(store, finding(task), unknown)

    assert told(store) == []
    appear(store, finding(task))
    assert told(store) == [(NEW, c.TERMINAL_OVERWRITTEN)]


def test_each_destination_reads_on_from_where_it_was_left(
    store: Store, task: Task, reopen: Callable[[], Store]
) -> None:
    store.outbox.listen([HOOK, OTHER])
    appear(store, finding(task))
    assert told(store) == [(NEW, c.TERMINAL_OVERWRITTEN)]

    again = reopen()
    again.outbox.listen([HOOK, OTHER])

    assert told(again) == []
    assert told(again, OTHER) == [(NEW, c.TERMINAL_OVERWRITTEN)]


def test_a_parcel_stays_the_same_until_it_is_delivered(
    store: Store, task: Task, reopen: Callable[[], Store]
) -> None:
    store.outbox.listen([HOOK])
    appear(store, finding(task, key="1"), finding(task, key="2"))
    tried = store.outbox.parcel(HOOK, limit=10)
    appear(store, finding(task, key="3"))

    again = reopen().outbox.parcel(HOOK, limit=10)

    assert again == tried
    assert tried is not None
    store.outbox.delivered(HOOK, tried)
    following = store.outbox.parcel(HOOK, limit=10)
    assert following is not None
    assert [change.finding.key for change in following.changes] == ["3"]
    assert following.name != tried.name


def test_what_is_told_of_a_task_outlives_its_row(store: Store, task: Task) -> None:
    """A task that resources named turns out to be another one, and its row goes."""
    store.outbox.listen([HOOK])
    appear(store, finding(task))
    retract(store, finding(task))
    with sqlite3.connect(store._path) as db:
        db.execute("DELETE FROM task")
    db.close()

    parcel = store.outbox.parcel(HOOK, limit=10)

    assert parcel is not None
    assert [change.reason for change in parcel.changes] == [NEW, RETRACTED]
    assert {change.finding.task for change in parcel.changes} == {task.key}


def test_a_parcel_is_no_larger_than_asked_for(store: Store, task: Task) -> None:
    store.outbox.listen([HOOK])
    appear(store, *(finding(task, key=str(n)) for n in range(25)))

    sizes = []
    while parcel := store.outbox.parcel(HOOK, limit=10):
        sizes.append(len(parcel.changes))
        store.outbox.delivered(HOOK, parcel)

    assert sizes == [10, 10, 5]


def test_a_parcel_of_long_words_has_few_changes(store: Store, task: Task) -> None:
    store.outbox.listen([HOOK])
    long = [replace(finding(task, key=str(n)), explanation="x" * 400_000) for n in range(5)]
    appear(store, *long, replace(finding(task, key="longest"), explanation="x" * 2_000_000))

    sizes = []
    while parcel := store.outbox.parcel(HOOK, limit=10):
        assert parcel == store.outbox.parcel(HOOK, limit=10)
        sizes.append(len(parcel.changes))
        store.outbox.delivered(HOOK, parcel)

    assert sizes == [2, 2, 1, 1]


def test_the_oldest_give_way_and_are_counted(
    store: Store, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "LIMIT", 5)
    store.outbox.listen([HOOK])
    appear(store, *(finding(task, key=str(n)) for n in range(3)))
    assert store.outbox.parcel(HOOK, limit=10)  # tried, and given up
    appear(store, *(finding(task, key=str(n)) for n in range(3, 12)))

    assert store.outbox.parcel(HOOK, limit=10) is None  # it is gone
    parcel = store.outbox.parcel(HOOK, limit=10)

    assert parcel is not None
    assert [change.finding.key for change in parcel.changes] == ["7", "8", "9", "10", "11"]
    assert parcel.dropped == 7


def mute(store: Store, *, rule: str | None = None, task: Task | None = None) -> None:
    key = task.key if task else None
    store.add_note(Note(MUTES, "Ada", "known", key, rule), now_unix_nano=NOW)
    store.outbox.heed_notes()


def test_a_mute_ends_what_was_told_and_taking_it_back_begins_it_again(store: Store, task: Task) -> None:
    store.outbox.listen([HOOK])
    appear(store, finding(task), finding(task, c.ANSWER_CONTRADICTED))
    told(store)

    mute(store, rule=c.TERMINAL_OVERWRITTEN, task=task)
    assert told(store) == [(MUTED, c.TERMINAL_OVERWRITTEN)]
    store.outbox.heed_notes()
    mute(store, task=task)
    assert told(store) == [(MUTED, c.ANSWER_CONTRADICTED)]

    for note in store.notes():
        store.remove_note(note.id)
    store.outbox.heed_notes()
    assert sorted(told(store)) == [(UNMUTED, c.ANSWER_CONTRADICTED), (UNMUTED, c.TERMINAL_OVERWRITTEN)]


def test_nobody_hears_of_what_is_muted_already(store: Store, task: Task) -> None:
    store.outbox.listen([HOOK])
    mute(store, rule=c.TERMINAL_OVERWRITTEN)
    appear(store, finding(task))
    retract(store, finding(task))
    appear(store, finding(task))
    assert told(store) == []

    store.remove_note(store.notes()[0].id)
    store.outbox.heed_notes()
    assert told(store) == [(UNMUTED, c.TERMINAL_OVERWRITTEN)]
    retract(store, finding(task))
    assert told(store) == [(RETRACTED, c.TERMINAL_OVERWRITTEN)]


def test_who_begins_to_listen_does_not_hear_of_old_mutes(store: Store, task: Task) -> None:
    appear(store, finding(task))
    store.add_note(Note(MUTES, "Ada", "known", task.key), now_unix_nano=NOW)

    store.outbox.listen([HOOK])
    store.outbox.heed_notes()

    assert told(store) == []


def test_an_acknowledgement_mutes_nothing(store: Store, task: Task) -> None:
    store.outbox.listen([HOOK])
    store.add_note(Note(ACKNOWLEDGED, "Ada", "seen", task.key), now_unix_nano=NOW)
    store.outbox.heed_notes()
    appear(store, finding(task))

    assert told(store) == [(NEW, c.TERMINAL_OVERWRITTEN)]


def test_what_stands_is_told_by_kind_without_what_is_muted_or_old(store: Store, task: Task) -> None:
    appear(store, finding(task, key="1"), at=NOW - 10)
    appear(store, finding(task, key="2"))
    appear(store, replace(finding(task, c.STREAM_CUT), severity=c.WARNING), at=NOW - 5)
    appear(store, replace(finding(task, c.TERMINAL_MUTATED), severity=c.INFO))

    cut, overwritten = store.outbox.standing()
    assert (cut.rule, cut.severity, cut.certainty, cut.run) == (
        c.STREAM_CUT,
        c.WARNING,
        c.PROVEN,
        "load-42",
    )
    assert (overwritten.count, overwritten.since_unix_nano, overwritten.newest_unix_nano) == (
        *(2, NOW - 10),
        NOW,
    )
    assert overwritten.newest == finding(task, key="2")
    assert [s.count for s in store.outbox.standing(since_unix_nano=NOW)] == [1]
    store.add_note(Note(MUTES, "Ada", "known", rule=c.TERMINAL_OVERWRITTEN), now_unix_nano=NOW)
    assert [s.rule for s in store.outbox.standing()] == [c.STREAM_CUT]


def test_an_outbox_changes_nothing_that_pages_see(store: Store, task: Task) -> None:
    store.outbox.listen([HOOK])
    appear(store, finding(task))
    version = store.data_version()

    told(store)
    store.outbox.heed_notes()

    assert store.data_version() == version
    assert store.findings(Window())[1] == 1
    appear(store, finding(task, key="5"))  # the writer still knows that it is the only one
