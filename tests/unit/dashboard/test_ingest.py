from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding, check
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.store import StoreError, open_store
from a2a_fencing_dashboard.store.protocol import Batch, Span, Store, Window
from support.store_model import OPERATIONS, Cluster, Step
from support.tale import Tale

ALWAYS = Window()
LATER = 1 << 62
"""When every fact has had time to arrive."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path}/facts.db")
    yield store
    store.close()


def ingest_into(store: Store, **settings: int) -> Ingest:
    return Ingest(store, clock=lambda: LATER, **settings)


def findings(store: Store) -> list[Finding]:
    return [row.finding for row in store.findings(ALWAYS, limit=1000)[0]]


@pytest.fixture
def tale() -> Tale:
    """A cancelled task that is completed after all."""
    tale = Tale()
    a, b = tale.replica("A", heartbeats=True), tale.replica("B", heartbeats=True)
    a.write(c.WORKING, None, 1)
    b.cancel(1, 2)
    a.write(c.COMPLETED, 2, 3)
    return tale


def test_a_replica_that_falls_silent_casts_doubt_on_what_was_at_work_until_it_reports(
    store: Store,
) -> None:
    tale = Tale()
    a, b = tale.replica("A", heartbeats=True), tale.replica("B", heartbeats=True)
    b.start()
    b.write(c.SUBMITTED, to=1)
    b.write(c.COMPLETED, on=1, to=2)
    b.end()
    ingest = ingest_into(store)
    ingest.add(tale.facts)
    assert store.task(tale.key).verdict == c.FINE
    tale.wait(60_000)
    ingest.add([a.heartbeat()])
    assert store.task(tale.key).verdict == c.UNKNOWN
    ingest.add([b.heartbeat()])
    assert store.task(tale.key).verdict == c.FINE


def test_what_was_measured_of_the_clocks_outlives_the_receiver(store: Store) -> None:
    tale = Tale()
    a, b = tale.replica("A", heartbeats=True), tale.replica("B", ahead_ms=-40, heartbeats=True)
    a.write(c.WORKING, None, 1)
    b.read(1, c.WORKING)
    b.write(c.WORKING, 1, 2)
    a.read(2, c.WORKING)
    ingest_into(store).add(tale.facts)
    measured = store.clocks()
    assert set(measured) == {("A", "B"), ("B", "A")}
    later = Tale(task="task-2")
    other = later.replica("A", heartbeats=False)
    again = ingest_into(store)
    again.add([replace(other.write(c.WORKING, None, 1), id="A:900")])
    assert store.clocks() == measured


def test_what_is_concluded_is_counted_by_kind_and_once(store: Store) -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(c.SUBMITTED, to=1)
    b.read(1, c.SUBMITTED)
    a.write(c.WORKING, 1, 2)
    b.write(c.WORKING, 1, 2)
    lost = a.read(2, c.WORKING)
    a.heartbeat()
    ingest = ingest_into(store)

    ingest.add(fact for fact in tale.facts if fact is not lost)
    assert ingest.concluded == {(c.VERSION_FORK, c.CRITICAL, c.SUSPECTED): 1}

    ingest.add([lost])  # what could have refuted it does not
    ingest.add(tale.facts)
    counted = {(c.VERSION_FORK, c.CRITICAL, certainty): 1 for certainty in (c.SUSPECTED, c.PROVEN)}
    assert ingest.concluded == counted


def test_a_violation_is_found_and_stored_with_its_facts(store: Store, tale: Tale) -> None:
    assert ingest_into(store).add(tale.facts) == len(tale.facts)

    (finding,) = findings(store)
    assert (finding.rule, finding.certainty) == (c.TERMINAL_OVERWRITTEN, c.PROVEN)
    assert store.overview(ALWAYS).verdict == c.VIOLATED
    assert store.task(tale.key).verdict == c.VIOLATED


def test_a_fact_counts_once_however_often_it_comes(store: Store, tale: Tale) -> None:
    ingest = ingest_into(store)

    assert ingest.add([*tale.facts[:3], *tale.facts[:3]]) == 3
    assert ingest.add(tale.facts) == len(tale.facts) - 3
    assert ingest_into(store).add(tale.facts) == 0
    assert ingest.known([fact.id for fact in tale.facts]) == {fact.id for fact in tale.facts}
    assert store.overview(ALWAYS).facts == len(tale.facts)
    assert len(findings(store)) == 1


def test_nothing_new_is_no_commit(store: Store, tale: Tale) -> None:
    ingest = ingest_into(store)
    ingest.add(tale.facts)
    before = store.data_version()

    ingest.add(tale.facts)
    ingest.pass_time()

    assert store.data_version() == before


def test_spans_are_stored_with_and_without_facts(store: Store) -> None:
    span = Span("a" * 32, "1" * 16, None, "save", 1, 5, "agent", False, "{}")

    ingest_into(store).add((), [span])

    assert store.spans_of(["a" * 32]) == [span]


def test_a_late_fact_takes_a_finding_back(store: Store) -> None:
    tale = Tale()
    a, b = tale.replica("A", heartbeats=True), tale.replica("B", heartbeats=True)
    a.write(c.WORKING, None, 1)
    answer = b.answer(c.CANCELED, c.CANCEL_TASK)
    a.write(c.COMPLETED, 1, 2)
    cancelled = b.cancel(2, 3)
    late = [fact for fact in tale.facts if fact is not cancelled]
    ingest = ingest_into(store)
    ingest.add(late)
    early_verdict = {f.rule for f in findings(store)}

    ingest.add([cancelled])

    assert set(findings(store)) == set(check(tale.facts).findings)
    assert {f.rule for f in findings(store)} != early_verdict
    assert answer.task == tale.key


class _FailingStore:
    """A store whose next commit fails."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.fail = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def commit(self, batch: Batch, *, now_unix_nano: int) -> None:
        if self.fail:
            raise StoreError("the disk is full")
        self._store.commit(batch, now_unix_nano=now_unix_nano)


def test_what_could_not_be_stored_was_not_judged(store: Store, tale: Tale) -> None:
    failing = _FailingStore(store)
    ingest = ingest_into(failing)
    ingest.add(tale.facts[:4])
    failing.fail = True
    with pytest.raises(StoreError):
        ingest.add(tale.facts[4:])
    assert findings(store) == []
    failing.fail = False

    assert ingest.add(tale.facts[4:]) == len(tale.facts) - 4

    assert len(findings(store)) == 1


def test_memory_is_bounded_and_forgotten_tasks_are_judged_on(store: Store) -> None:
    tales = []
    for index in range(30):
        tale = Tale(task=f"task-{index}")
        a = tale.replica(f"A{index}")
        a.write(c.WORKING, None, 1)
        a.write(c.CANCELED, 1, 2)
        a.write(c.COMPLETED, 2, 3)
        tales.append(tale)
    ingest = ingest_into(store, held_facts=5)

    for tale in tales:
        ingest.add(tale.facts[:2])
    for tale in tales:
        ingest.add(tale.facts[2:])

    assert len(findings(store)) == 30
    held = [tale for tale in tales if ingest._judge._checker.knows(tale.key)]
    assert 1 <= len(held) <= 3


def test_what_becomes_due_is_told_though_nothing_arrives_and_the_process_was_replaced(
    store: Store,
) -> None:
    tale = Tale()
    a = tale.replica("A", heartbeats=True)
    a.start()
    a.write(c.WORKING, None, 1)
    a.end()
    a.heartbeat()
    now = tale.now
    Ingest(store, clock=lambda: now).add(tale.facts)
    assert findings(store) == []

    now = LATER
    Ingest(store, clock=lambda: now).pass_time()

    assert [finding.rule for finding in findings(store)] == [c.ABANDONED]


def test_an_unfenced_store_is_told_once_also_after_a_restart(store: Store) -> None:
    tale = Tale()
    a = tale.replica("A", heartbeats=True)
    a.unversioned(c.WORKING)
    ingest_into(store).add(tale.facts)
    other = Tale(task="task-2")
    other.replica("B", heartbeats=True).unversioned(c.WORKING)

    ingest_into(store).add(other.facts)

    told = [finding for finding in findings(store) if finding.rule == c.UNFENCED_STORE]
    assert [finding.task for finding in told] == [tale.key]


# --- any delivery equals the whole

steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(OPERATIONS),
        st.integers(0, 2),
        st.integers(0, 1),
        st.integers(0, 5),
        st.booleans(),
    ),
    max_size=30,
)
Ingests = Callable[[Store], Iterator[Ingest]]


def deliver(facts: list[Fact], rng: random.Random, ingests: Ingests) -> set[Finding]:
    """Delivers facts permuted, repeated and in batches; returns the findings that stand in the end."""
    parcels = facts + rng.sample(facts, len(facts) // 3)
    rng.shuffle(parcels)
    with TemporaryDirectory() as directory:
        store = open_store(f"sqlite:///{directory}/facts.db")
        for ingest in ingests(store):
            size = rng.choice((1, 2, 5, 20))
            ingest.add(parcels[:size])
            del parcels[:size]
            if not parcels:
                break
        assert store.gaps() == []
        assert store.overview(ALWAYS).facts == len(facts)
        standing = set(findings(store))
        store.close()
    return standing


@given(steps, st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_any_delivery_is_judged_as_the_whole(drawn: list[Step], rng: random.Random) -> None:
    facts = Cluster().play(drawn).facts

    standing = deliver(facts, rng, lambda store: itertools.repeat(ingest_into(store)))

    assert standing == set(check(facts).findings)


@given(steps, st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_restarts_neither_lose_nor_invent_a_finding(drawn: list[Step], rng: random.Random) -> None:
    facts = Cluster().play(drawn).facts

    def restarting(store: Store) -> Iterator[Ingest]:
        while True:
            ingest = ingest_into(store, held_facts=rng.choice((3, 1000)))
            yield from [ingest] * rng.randint(1, 6)

    standing = {finding.identity for finding in deliver(facts, rng, restarting)}

    # How far clocks are apart is not stored, so that what only clocks suggest may be missing.
    whole = check(facts).findings
    assert {f.identity for f in whole if f.certainty == c.PROVEN} <= standing
    assert standing <= {f.identity for f in whole}
