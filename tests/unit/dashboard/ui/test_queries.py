"""Reading the real store, each question once for each version of its data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.store.protocol import FindingFilter, TaskFilter, Window
from a2a_fencing_dashboard.ui.queries import Queries, TaskQuery, is_silent
from support.reports import replica_row

ALL = Window()


class Counting:
    """Counts what reaches the store."""

    def __init__(self, store):
        self._store = store
        self.asked = []

    def __getattr__(self, name):
        def ask(*args, **kwargs):
            self.asked.append(name)
            return getattr(self._store, name)(*args, **kwargs)

        return ask


@pytest.fixture
def counting(store):
    return Counting(store)


@pytest.fixture
def queries(counting):
    return Queries(counting)


def test_the_same_question_at_the_same_version_reaches_the_store_once(cluster, store, queries, counting):
    cluster.overwritten()
    cluster.commit(store)
    at = queries.version()
    counting.asked.clear()
    for _ in range(5):
        queries.overview(at, ALL)
        queries.replicas(at, ALL)
        queries.series(at, ALL, 10)
        queries.tasks(at, TaskQuery(ALL, TaskFilter()))
        queries.alerts(at, ALL, FindingFilter(), 0, 20)
    assert sorted(counting.asked) == ["alerts", "overview", "replicas", "series", "tasks"]


def test_new_data_is_a_new_version_and_is_asked_for(cluster, store, queries):
    cluster.completed()
    cluster.commit(store)
    before = queries.version()
    assert queries.overview(before, ALL).violated_tasks == 0
    cluster.overwritten()
    cluster.commit(store)
    after = queries.version()
    assert after > before
    assert queries.overview(after, ALL).violated_tasks == 1


def test_a_task_comes_with_its_facts_and_its_gravest_finding_first(cluster, store, queries):
    task = cluster.overwritten()
    cluster.commit(store)
    view = queries.task(queries.version(), task.key)
    assert {fact.id for fact in view.ordered.facts} == {fact.id for fact in cluster.facts}
    rules = [row.finding.rule for row in view.violations]
    assert rules[:2] == [c.TERMINAL_OVERWRITTEN, c.ANSWER_CONTRADICTED]
    assert view.row.verdict == c.VIOLATED


def test_the_facts_of_a_task_are_read_again_only_when_there_are_more(cluster, store, queries, counting):
    task = cluster.overwritten()
    cluster.commit(store)
    before = queries.task(queries.version(), task.key)
    cluster.completed("another")
    cluster.commit(store)
    counting.asked.clear()
    assert queries.task(queries.version(), task.key).ordered is before.ordered
    assert "facts_of" not in counting.asked
    task.answer(cluster.a, c.CANCELED)
    cluster.commit(store)
    after = queries.task(queries.version(), task.key).ordered
    assert len(after.facts) == len(before.ordered.facts) + 1


def test_a_task_that_is_not_stored_is_none(store, queries):
    assert queries.task(queries.version(), TaskKey("s", "o", "t")) is None


def test_an_incarnation_that_only_the_checker_tells_apart_leads_to_the_reported_task(
    cluster, store, queries
):
    task = cluster.overwritten()
    cluster.commit(store)
    split = replace(task.key, incarnation=2)
    assert queries.task(queries.version(), split).row.key == task.key
    assert queries.task(queries.version(), replace(split, owner="mallory")) is None


def test_tasks_with_one_id_are_all_found(cluster, store, queries):
    for owner in ("alice", "bob"):
        cluster.completed("same-id", owner=owner)
    cluster.completed("same-id-but-longer")
    cluster.commit(store)
    found = queries.matching(queries.version(), "same-id")
    assert sorted(row.key.owner for row in found) == ["alice", "bob"]


def test_violated_tasks_know_their_neighbours(cluster, store, queries):
    keys = [cluster.overwritten(f"t{n}").key for n in range(3)]
    fine = cluster.completed("fine").key
    cluster.commit(store)
    at = queries.version()
    newest, middle, oldest = (queries.neighbours(at, key, ALL) for key in reversed(keys))
    assert (newest.previous, newest.next, newest.place, newest.total) == (None, keys[1], 1, 3)
    assert (middle.previous, middle.next, middle.place) == (keys[2], keys[0], 2)
    assert (oldest.previous, oldest.next, oldest.place) == (keys[1], None, 3)
    outside = queries.neighbours(at, fine, ALL)
    assert (outside.next, outside.place, outside.total) == (keys[2], 0, 3)


def test_replicas_come_in_the_order_in_which_they_started(cluster, store, queries):
    late = cluster.replica("api-9", "0000aaaa-0000-4000-8000-000000000009")
    cluster.heartbeats()
    late.heartbeat(started_unix_nano=cluster.now + 1)
    cluster.commit(store)
    names = [row.name for row in queries.replicas(queries.version(), ALL)]
    assert names[-1] == "api-9"


def test_a_replica_is_silent_after_three_heartbeats_have_been_missed():
    row = replica_row(last_seen=0)
    assert not is_silent(row, 15_000_000_000)
    assert is_silent(row, 15_000_000_001)
    assert not is_silent(replace(row, interval_s=60.0), 100_000_000_000)
    assert is_silent(replace(row, interval_s=None), 31_000_000_000)
