"""What resources tell of tasks, as it is stored: whenever it comes, whatever is lost or restarted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.facts import TaskKey
from a2a_fencing.scoped import is_scoped, scoped_from
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Store, TaskFilter, Window
from support.tale import Tale

ALWAYS = Window()
LATER = 1 << 62


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path}/facts.db")
    yield store
    store.close()


def ingest_into(store: Store, **settings: int) -> Ingest:
    return Ingest(store, clock=lambda: LATER, **settings)


def story(task: str = "task-1") -> Tale:
    """A cancelled task whose executor charges a card all the same, as the payment service tells."""
    tale = Tale(task=task)
    a, b, payments = (tale.replica(f"{name}-{task}") for name in "ABP")
    a.write(c.WORKING, to=1)
    b.cancel(1, 2)
    a.read(2, c.CANCELED)
    dispatch = a.dispatch(f"A-{task}:3", key="order-17")
    a.dispatched(c.UNKNOWN, dispatch.id, key="order-17")
    payments.tell(
        c.DISPATCH,
        task=scoped_from(tale.key),
        origin=c.FROM_RESOURCE,
        phase=c.ENDED,
        name="payments",
        dispatch_id=dispatch.id,
        attempt=1,
        outcome=c.ACCEPTED,
    )
    return tale


def found(store: Store) -> list[tuple[str, str]]:
    return [(row.finding.rule, row.finding.severity) for row in store.findings(ALWAYS, limit=1000)[0]]


def keys(store: Store) -> set[TaskKey]:
    return {row.key for row in store.tasks(ALWAYS, TaskFilter(), limit=1000)[0]}


def assert_joined(store: Store, tale: Tale) -> None:
    assert found(store) == [(c.DISPATCH_AFTER_TERMINAL, c.CRITICAL)]
    assert {fact.id for fact in store.facts_of(tale.key)} == {fact.id for fact in tale.facts}
    assert keys(store) == {tale.key}
    row = store.task(tale.key)
    assert row is not None
    assert (row.facts, len(row.replicas), row.verdict) == (len(tale.facts), 3, c.VIOLATED)
    overview = store.overview(ALWAYS)
    assert (overview.tasks, overview.facts) == (1, len(tale.facts))


@pytest.mark.parametrize("order", list(permutations(range(6)))[::7], ids=lambda o: "".join(map(str, o)))
def test_one_history_in_any_order_of_arrival(store: Store, order: tuple[int, ...]) -> None:
    tale = story()
    ingest = ingest_into(store)
    for index in order:
        ingest.add([tale.facts[index]])
    assert_joined(store, tale)


@pytest.mark.parametrize("at", range(7))
def test_one_history_over_a_restart_at_any_moment(store: Store, at: int) -> None:
    tale = story()
    facts = [tale.facts[-1], *tale.facts[:-1]]  # the resource's first
    ingest_into(store).add(facts[:at])
    ingest_into(store).add(facts[at:])
    assert_joined(store, tale)


def test_one_history_whatever_is_in_memory(store: Store) -> None:
    """Of many tasks next to nothing is held at a time."""
    tales = [story(f"task-{n}") for n in range(40)]
    facts = [fact for tale in tales for fact in tale.facts]
    random.Random(5).shuffle(facts)
    ingest = ingest_into(store, held_facts=10)
    for start in range(0, len(facts), 7):
        ingest.add(facts[start : start + 7])
    assert keys(store) == {tale.key for tale in tales}
    assert found(store) == [(c.DISPATCH_AFTER_TERMINAL, c.CRITICAL)] * 40
    assert store.overview(ALWAYS).tasks == 40
    assert len(ingest._judge._names) < 40


def test_what_comes_twice_counts_once(store: Store) -> None:
    tale = story()
    ingest = ingest_into(store)
    for facts in (tale.facts[-1:], tale.facts, tale.facts[-1:]):
        ingest.add(facts)
    assert_joined(store, tale)


def test_whose_executor_is_never_heard_of_is_listed_and_unknown(store: Store) -> None:
    tale = story()
    ingest_into(store).add(tale.facts[-1:])
    (key,) = keys(store)
    assert is_scoped(key)
    assert key.task_id == "task-1"
    row = store.task(key)
    assert row is not None
    assert (row.verdict, row.facts) == (c.UNKNOWN, 1)


def test_without_the_start_of_the_dispatch_it_still_is_the_tasks(store: Store) -> None:
    """What the killed replica could not send any more is lost; the resource's word is not."""
    tale = story()
    kept = [fact for fact in tale.facts if fact.kind != c.DISPATCH or fact.origin is not None]
    ingest = ingest_into(store)
    ingest.add(kept[-1:])
    ingest.add(kept[:-1])
    assert keys(store) == {tale.key}
    assert any(fact.origin == c.FROM_RESOURCE for fact in store.facts_of(tale.key))


def test_a_name_is_found_by_its_text_until_the_task_is_known(store: Store) -> None:
    tale = story()
    ingest = ingest_into(store)
    ingest.add(tale.facts[-1:])

    def by_text(text: str) -> set[TaskKey]:
        return {row.key for row in store.tasks(ALWAYS, TaskFilter(text=text), limit=10)[0]}

    assert len(by_text("task-1")) == 1
    ingest.add(tale.facts[:-1])
    assert by_text("task-1") == {tale.key}
    assert by_text("ali") == {tale.key}


def test_tasks_of_two_owners_under_one_id_stay_apart(store: Store) -> None:
    ours, theirs = Tale(owner="alice"), Tale(owner="bob")
    ours.replica("A").write(c.WORKING, to=1)
    theirs.replica("B").write(c.WORKING, to=1)
    told = ours.replica("P").tell(
        c.DISPATCH, task=scoped_from(theirs.key), origin=c.FROM_RESOURCE, outcome=c.ACCEPTED
    )
    ingest = ingest_into(store)
    ingest.add([told, *ours.facts[:1]])
    ingest.add(theirs.facts)
    assert keys(store) == {ours.key, theirs.key}
    assert told.id in {fact.id for fact in store.facts_of(theirs.key)}
