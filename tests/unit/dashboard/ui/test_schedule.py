"""The order of facts, whatever clocks and delivery do."""

from __future__ import annotations

import random

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.ui.charts.schedule import focus, part, schedule


def told(facts):
    return [(fact.replica[:4], fact.kind, fact.state, fact.version) for fact in facts]


@pytest.mark.parametrize("seed", range(20))
def test_the_order_does_not_depend_on_the_delivery(cluster, seed):
    cluster.overwritten()
    shuffled = cluster.facts[:]
    random.Random(seed).shuffle(shuffled)
    assert schedule(shuffled).facts == tuple(cluster.facts)


@pytest.mark.parametrize("skew_ms", [-180_000, -500, 500, 180_000])
def test_versions_order_what_clocks_contradict(new_cluster, skew_ms):
    straight, skewed = new_cluster(), new_cluster()
    skewed.b = skewed.replica("api-1", skewed.b.id, skew_ms=skew_ms)
    straight.overwritten()
    skewed.overwritten()
    writes = [f for f in schedule(skewed.facts).facts if f.kind == c.WRITE]
    assert told(writes) == told(f for f in straight.facts if f.kind == c.WRITE)


def test_a_clock_is_moved_only_as_far_as_causes_demand(new_cluster):
    cluster = new_cluster()
    cluster.b = cluster.replica("api-1", cluster.b.id, skew_ms=-200)
    cluster.overwritten()
    ordered = schedule(cluster.facts)
    # B wrote v3 130 ms after A wrote v2; its clock is 200 ms behind.
    assert ordered.corrections == {cluster.b.id: 70_000_000}
    assert list(ordered.times) == sorted(ordered.times)


def test_clocks_that_agree_are_left_alone(cluster):
    cluster.overwritten()
    assert schedule(cluster.facts).corrections == {}


def test_a_refused_write_points_at_the_write_it_lost_to(cluster):
    task = cluster.overwritten()
    rivals = schedule(cluster.facts).rivals
    (loser,) = [fact for fact in cluster.facts if fact.outcome == c.CONFLICT]
    assert rivals.keys() == {loser.id}
    assert (rivals[loser.id].state, rivals[loser.id].version) == (c.CANCELED, 3)
    assert rivals[loser.id].task == task.key


def test_a_terminal_rejection_points_at_the_write_that_finished_the_task(cluster):
    cluster.refusal()
    ordered = schedule(cluster.facts)
    (loser,) = [fact for fact in cluster.facts if fact.outcome == c.TERMINAL_REJECTED]
    assert ordered.rivals[loser.id].version == 3


def test_nobody_is_blamed_without_a_rival(cluster):
    task = cluster.task("t")
    task.write(cluster.a, c.WORKING, None, 1)
    task.refused(cluster.a, c.WORKING, 1, reason=c.OWN_COMMIT)
    task.refused(cluster.a, c.CANCELED, 7, reason=c.ABSENT)
    assert schedule(cluster.facts).rivals == {}


def test_opaque_versions_are_compared_for_equality_alone(new_cluster):
    cluster = new_cluster()
    cluster.b = cluster.replica("api-1", cluster.b.id, skew_ms=-60_000)
    task = cluster.task("t")
    task.write(cluster.a, c.WORKING, None, "etag-z")
    task.write(cluster.b, c.CANCELED, "etag-z", "etag-a")
    task.read(cluster.a, c.CANCELED, "etag-a")
    assert [fact.version for fact in schedule(cluster.facts).facts] == ["etag-z", "etag-a", "etag-a"]


def test_facts_that_contradict_each_other_are_all_kept(cluster):
    task = cluster.task("t")
    # Deleted and created again under one id: versions begin anew, and own order contradicts them.
    for version in (1, 2):
        task.write(cluster.a, c.WORKING, version - 1 or None, version)
    cluster.a.report(c.DELETED, task=task.key)
    for version in (1, 2):
        task.write(cluster.b, c.WORKING, version - 1 or None, version)
        task.write(cluster.a, c.WORKING, version + 7, version)
    ordered = schedule(cluster.facts)
    assert sorted(f.id for f in ordered.facts) == sorted(f.id for f in cluster.facts)
    assert list(ordered.times) == sorted(ordered.times)


def test_nothing_is_a_schedule_too():
    assert schedule([]).facts == ()


def test_focus_ends_a_little_after_what_matters(cluster):
    task = cluster.task("t")
    facts = [task.write(cluster.a, c.WORKING, n or None, n + 1) for n in range(1000)]
    whole = schedule(facts)
    start, end = focus(whole, {facts[500].id}, 100)
    assert (start, end) == (411, 511)
    assert focus(whole, set(), 100) == (900, 1000)
    assert focus(whole, {facts[3].id}, 100) == (0, 100)
    assert focus(whole, {facts[3].id}, 5000) == (0, 1000)


def test_a_part_knows_only_its_own_rivals(cluster):
    cluster.overwritten()
    whole = schedule(cluster.facts)
    assert part(whole, 0, len(whole.facts)) == whole
    assert part(whole, 5, 8).rivals == {}
    assert len(part(whole, 5, 8).facts) == 3
