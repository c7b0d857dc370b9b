"""What people say of findings, kept beside the facts."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.store import StoreError, open_store
from a2a_fencing_dashboard.store.notes import ACKNOWLEDGED, MUTED, Note
from a2a_fencing_dashboard.store.protocol import FindingFilter, Store, Window
from support.reports import Cluster, Task

NOW = 1_800_000_000_000_000_000
ALWAYS = Window()
EVERYTHING = FindingFilter(with_muted=True)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def bad(cluster: Cluster, store: Store) -> Task:
    task = cluster.overwritten("bad")
    cluster.heartbeats()
    cluster.commit(store)
    return task


def violations(store: Store) -> int:
    return sum(store.overview(ALWAYS).violations.values())


def newest_id(store: Store) -> int:
    return max(row.id for row in store.findings(ALWAYS)[0])


def test_a_note_says_who_when_and_why(store: Store, bad: Task) -> None:
    note = Note(MUTED, "Ada", "known since Monday", bad.key, c.TERMINAL_OVERWRITTEN)
    store.add_note(note, now_unix_nano=NOW)

    (kept,) = store.notes()
    assert (kept.kind, kept.by, kept.because) == (MUTED, "Ada", "known since Monday")
    assert (kept.task, kept.rule, kept.run) == (bad.key, c.TERMINAL_OVERWRITTEN, None)
    assert (kept.upto, kept.at_unix_nano) == (None, NOW)
    rows = {row.finding.rule: row for row in store.findings_of(bad.key)}
    assert rows[c.TERMINAL_OVERWRITTEN].muted == kept
    assert rows[c.ANSWER_CONTRADICTED].muted is None


def test_what_is_acknowledged_is_listed_and_not_new(store: Store, bad: Task) -> None:
    before = store.new_violations(ALWAYS)
    assert before == violations(store)
    store.add_note(Note(ACKNOWLEDGED, "Ada", "seen", bad.key, upto=newest_id(store)), now_unix_nano=NOW)

    assert store.new_violations(ALWAYS) == 0
    page = store.alerts(ALWAYS, FindingFilter())
    assert (page.tasks, page.muted) == (1, 0)
    assert all(row.acknowledged for row in page.groups[0].findings)


def test_what_follows_an_acknowledgement_is_new_again(store: Store, bad: Task, cluster: Cluster) -> None:
    store.add_note(Note(ACKNOWLEDGED, "Ada", "seen", bad.key, upto=newest_id(store)), now_unix_nano=NOW)
    bad.write(cluster.b, c.FAILED, 4, 5)
    cluster.commit(store)

    assert store.new_violations(ALWAYS) > 0


def test_a_mute_covers_what_follows_and_takes_nothing_from_the_verdict(
    store: Store, bad: Task, cluster: Cluster
) -> None:
    for rule in c.RULES:
        store.add_note(Note(MUTED, "Ada", "noise", bad.key, rule), now_unix_nano=NOW)
    bad.write(cluster.b, c.FAILED, 4, 5)
    cluster.commit(store)

    overview = store.overview(ALWAYS)
    assert store.new_violations(ALWAYS) == 0
    assert overview.verdict == c.VIOLATED
    assert (overview.violated_tasks, overview.muted_tasks) == (1, 1)
    assert overview.newest is not None
    assert overview.newest.muted
    page = store.alerts(ALWAYS, FindingFilter())
    assert (page.groups, page.tasks) == ((), 0)
    assert page.muted == violations(store)
    shown = store.alerts(ALWAYS, EVERYTHING)
    assert shown.tasks == 1
    assert len(shown.groups[0].findings) >= page.muted


def test_a_task_with_one_rule_muted_still_counts(store: Store, bad: Task) -> None:
    store.add_note(Note(MUTED, "Ada", "noise", bad.key, c.ANSWER_CONTRADICTED), now_unix_nano=NOW)

    overview = store.overview(ALWAYS)
    assert overview.muted_tasks == 0
    assert overview.newest is not None
    assert overview.newest.muted is None


def test_a_rule_is_muted_in_one_run_only(store: Store, bad: Task) -> None:
    other = Cluster(run="load-43")
    other.a = other.replica("api-0", "77777777-0000-4000-8000-000000000001")
    other.b = other.replica("api-1", "77777777-0000-4000-8000-000000000002")
    other.overwritten("other")
    other.heartbeats()
    other.commit(store)
    store.add_note(
        Note(MUTED, "Ada", "noise", rule=c.TERMINAL_OVERWRITTEN, run="load-42"), now_unix_nano=NOW
    )

    listed = store.alerts(ALWAYS, FindingFilter(rules=(c.TERMINAL_OVERWRITTEN,)))
    assert [group.task.task_id for group in listed.groups] == ["other"]
    assert listed.muted == 1


@pytest.mark.parametrize("note", [Note(MUTED, "Ada", "noise", run="no such run")])
def test_a_note_about_what_is_not_stored_is_about_nothing(store: Store, bad: Task, note: Note) -> None:
    store.add_note(note, now_unix_nano=NOW)
    store.add_note(Note(MUTED, "Ada", "noise", Cluster().task("nope").key), now_unix_nano=NOW)

    assert store.notes() == []
    assert store.new_violations(ALWAYS) > 0


def test_a_note_can_be_taken_back(store: Store, bad: Task) -> None:
    store.add_note(Note(MUTED, "Ada", "noise", bad.key), now_unix_nano=NOW)
    (note,) = store.notes()
    store.remove_note(note.id)
    store.remove_note(note.id)

    assert store.notes() == []
    assert store.new_violations(ALWAYS) == violations(store)


def test_the_data_has_another_version_after_each_note(store: Store, bad: Task) -> None:
    versions = [store.data_version()]
    store.add_note(Note(MUTED, "Ada", "noise", bad.key), now_unix_nano=NOW)
    versions.append(store.data_version())
    store.remove_note(store.notes()[0].id)
    versions.append(store.data_version())

    assert versions == sorted(set(versions))


def test_notes_from_another_process_do_not_disturb_the_writer(
    cluster: Cluster, reopen: Callable[[], Store]
) -> None:
    writing, beside = reopen(), reopen()
    ingest = Ingest(writing)
    task = cluster.overwritten()
    ingest.add(cluster.facts)
    beside.add_note(Note(MUTED, "Ada", "noise", task.key), now_unix_nano=NOW)
    cluster.completed()

    assert ingest.add(cluster.facts)
    assert writing.notes() == beside.notes() != []


def test_whoever_sends_findings_out_learns_which_are_muted(store: Store, bad: Task) -> None:
    store.add_note(Note(MUTED, "Ada", "noise", bad.key, c.TERMINAL_OVERWRITTEN), now_unix_nano=NOW)
    findings = [row.finding for row in store.findings_of(bad.key)]

    muted = dict(zip((f.rule for f in findings), store.mutes_of(findings), strict=True))
    assert muted.pop(c.TERMINAL_OVERWRITTEN) == store.notes()[0]
    assert set(muted.values()) == {None}


def test_no_task_is_on_two_pages(store: Store, cluster: Cluster) -> None:
    for n in range(5):
        cluster.overwritten(f"task-{n}")
    cluster.heartbeats()
    cluster.commit(store)

    pages = [store.alerts(ALWAYS, FindingFilter(), offset=n, limit=2) for n in (0, 2, 4)]
    listed = [group.task.task_id for page in pages for group in page.groups]
    assert sorted(listed) == [f"task-{n}" for n in range(5)]
    assert {page.tasks for page in pages} == {5}
    assert sum(len(group.findings) for page in pages for group in page.groups) == pages[0].findings


def test_a_file_without_notes_is_given_room_for_them(tmp_path: Path, cluster: Cluster) -> None:
    url = f"sqlite:///{tmp_path / 'old.db'}"
    store = open_store(url)
    task = cluster.overwritten()
    cluster.commit(store)
    store.close()
    with sqlite3.connect(tmp_path / "old.db") as db:
        db.executescript("DROP VIEW noted; DROP TABLE note; DROP TABLE note_changes;")
    db.close()

    store = open_store(url)
    assert store.new_violations(ALWAYS) == violations(store) > 0
    store.add_note(Note(MUTED, "Ada", "noise", task.key), now_unix_nano=NOW)
    assert store.new_violations(ALWAYS) == 0
    store.close()


def test_a_note_that_cannot_be_kept_is_told(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'facts.db'}")
    with sqlite3.connect(tmp_path / "facts.db") as db:
        db.execute("DROP TABLE note_changes")
    db.close()

    with pytest.raises(StoreError, match="cannot write to the store"):
        store.add_note(Note(MUTED, "Ada", "noise"), now_unix_nano=NOW)
    store.close()
