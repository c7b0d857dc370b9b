"""What is written comes back, once, whoever asks."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding, Gap
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.store import StoreError, open_store
from a2a_fencing_dashboard.store.protocol import (
    Batch,
    FindingChange,
    Span,
    Store,
    TaskFilter,
    Window,
)
from support.tale import Tale

NOW = 1_760_000_000_000_000_000
ALWAYS = Window()


def commit(store: Store, facts: Sequence[Fact], *changes: FindingChange, now: int = NOW) -> None:
    verdicts = {fact.task: c.FINE for fact in facts if fact.task is not None}
    store.commit(Batch(facts, (), changes, verdicts), now_unix_nano=now)


def overwritten(task: TaskKey, *witness: Fact, key: str = "v3") -> Finding:
    ids = tuple(fact.id for fact in witness)
    return Finding(c.TERMINAL_OVERWRITTEN, c.CRITICAL, c.PROVEN, task, ids, "<img src=x> overwrote", key)


@pytest.fixture
def tale() -> Tale:
    """A cancelled task that is completed after all."""
    tale = Tale()
    a, b = tale.replica("A", heartbeats=True), tale.replica("B", heartbeats=True)
    a.write(c.WORKING, None, 1, context_id="ctx-91ab", trace_id="0" * 31 + "1", span_id="f" * 16)
    b.cancel(1, 2)
    a.refused(c.WORKING, 1)
    a.read(2, c.CANCELED)
    a.drop(c.STALE_EXECUTOR)
    a.write(c.COMPLETED, 2, 3)
    a.dispatch()
    a.dispatched(c.ACCEPTED)
    return tale


def test_facts_come_back_exactly(store: Store, tale: Tale) -> None:
    commit(store, tale.facts)

    expected = [fact for fact in tale.facts if fact.task == tale.key]
    assert store.facts_of(tale.key) == sorted(expected, key=lambda fact: (fact.replica, fact.n))
    assert sorted(store.facts(), key=lambda fact: fact.id) == sorted(tale.facts, key=lambda f: f.id)


def test_a_task_has_its_row(store: Store, tale: Tale) -> None:
    commit(store, tale.facts)

    row = store.task(tale.key)

    assert row is not None
    assert (row.state, row.version, row.verdict) == (c.COMPLETED, 3, c.FINE)
    assert (row.context_id, row.replicas) == ("ctx-91ab", ("A", "B"))
    assert (row.facts, row.writes, row.conflicts, row.drops, row.dispatches) == (8, 4, 1, 1, 1)
    times = [fact.time_unix_nano for fact in tale.facts if fact.task]
    assert (row.first_unix_nano, row.last_unix_nano) == (min(times), max(times))


def test_what_is_not_stored_is_not_there(store: Store, tale: Tale) -> None:
    commit(store, tale.facts)
    other = replace(tale.key, owner="bob")

    assert store.task(other) is None
    assert store.facts_of(other) == []
    assert store.findings_of(other) == []
    assert store.spans_of(["0" * 32]) == []
    assert store.spans_of([]) == []


def test_known_ids_are_those_that_are_stored(reopen: Callable[[], Store], tale: Tale) -> None:
    store = reopen()
    commit(store, tale.facts[1:])
    ids = [fact.id for fact in tale.facts]
    odd = ["A", "", ":", "A:", "A:x", "A:-1", "A:1.0", "C:1", "A:²", f"A:{'9' * 5000}"]

    for asked in (store, reopen()):
        assert asked.known([*ids, *odd]) == set(ids[1:])


def test_the_overview_counts(store: Store, tale: Tale) -> None:
    finding = overwritten(tale.key, tale.facts[3], tale.facts[7])
    commit(store, tale.facts, FindingChange(finding))

    view = store.overview(ALWAYS)

    assert view.verdict == c.VIOLATED
    assert (view.facts, view.missing, view.tasks, view.terminal_tasks) == (10, 0, 1, 1)
    assert (view.writes, view.conflicts, view.drops) == (4, {c.STALE_BASE: 1}, {c.STALE_EXECUTOR: 1})
    assert (view.terminal_rejections, view.dispatches) == (0, 1)
    assert (view.violations, view.infos, view.violated_tasks) == ({c.TERMINAL_OVERWRITTEN: 1}, {}, 1)
    assert view.newest is not None
    assert view.newest.finding == finding
    assert view.newest.seen_unix_nano == NOW


def test_a_retracted_finding_leaves_no_trace(store: Store, tale: Tale) -> None:
    commit(store, tale.facts)
    before = store.overview(ALWAYS)
    finding = overwritten(tale.key, tale.facts[3], tale.facts[7])
    reworded = replace(finding, explanation="told otherwise", witness=(tale.facts[7].id,))
    commit(store, (), FindingChange(finding))
    commit(store, (), FindingChange(finding, retracted=True), FindingChange(reworded))
    assert [row.finding for row in store.findings_of(tale.key)] == [reworded]

    commit(store, (), FindingChange(reworded, retracted=True))

    assert store.overview(ALWAYS) == before
    assert store.findings(ALWAYS) == ([], 0)
    assert store.series(ALWAYS, 3600) == [
        point for point in store.series(ALWAYS, 3600) if point.measure != "violations"
    ]


def test_findings_are_newest_first_and_can_be_chosen(store: Store, tale: Tale) -> None:
    worst = overwritten(tale.key, tale.facts[7])
    info = replace(worst, rule=c.TERMINAL_MUTATED, severity=c.INFO)
    commit(store, tale.facts, FindingChange(worst))
    commit(store, (), FindingChange(info))

    rows, total = store.findings(ALWAYS)
    assert ([row.finding for row in rows], total) == ([info, worst], 2)
    assert [row.finding for row in store.findings_of(tale.key)] == [worst, info]
    assert store.findings(ALWAYS, rules=[c.TERMINAL_MUTATED])[1] == 1
    assert [r.finding for r in store.findings(ALWAYS, severities=[c.CRITICAL])[0]] == [worst]
    assert store.findings(ALWAYS, offset=1, limit=1)[0] == rows[1:]
    assert store.overview(ALWAYS).newest == rows[1]


def test_a_finding_on_a_split_incarnation_belongs_to_the_one_that_was_reported(
    store: Store, tale: Tale
) -> None:
    split = overwritten(replace(tale.key, incarnation=1), tale.facts[7])
    commit(store, tale.facts, FindingChange(split))

    assert [row.finding for row in store.findings_of(tale.key)] == [split]
    assert store.task(tale.key).verdict == c.VIOLATED

    commit(store, (), FindingChange(split, retracted=True))
    assert store.task(tale.key).verdict == c.FINE


def test_a_finding_can_be_retracted_when_its_incarnation_has_been_reported(store: Store) -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(c.WORKING, None, 1)
    a.delete()
    a.write(c.WORKING, None, 1)
    first, second = tale.key, a.key
    split = FindingChange(overwritten(second, tale.facts[0]))
    commit(store, tale.facts[:2], split)
    assert store.task(first).verdict == c.VIOLATED
    commit(store, tale.facts[2:])

    commit(store, (), replace(split, retracted=True))

    assert store.findings(ALWAYS) == ([], 0)
    assert [store.task(key).verdict for key in (first, second)] == [c.FINE, c.FINE]


def test_a_finding_on_nothing_stored_is_refused(store: Store, tale: Tale) -> None:
    with pytest.raises(StoreError, match="not stored"):
        commit(store, (), FindingChange(overwritten(tale.key)))


def test_gaps_are_what_was_numbered_and_did_not_arrive(store: Store) -> None:
    tale = Tale()
    a = tale.replica("A")
    for version in range(1, 7):
        a.write(c.WORKING, version - 1 or None, version)
    a.heartbeat(last=9)
    arrived = [fact for fact in tale.facts if fact.n not in (2, 3, 5)]
    commit(store, arrived)

    assert store.gaps() == [Gap("A", 2, 3), Gap("A", 5, 5), Gap("A", 8, 9)]
    assert store.replicas(ALWAYS)[0].missing == store.overview(ALWAYS).missing == 5
    assert store.overview(ALWAYS).verdict == c.UNKNOWN

    commit(store, [fact for fact in tale.facts if fact not in arrived])
    assert store.gaps() == [Gap("A", 8, 9)]


def test_a_replica_is_what_its_last_heartbeat_says(store: Store) -> None:
    tale = Tale()
    a = tale.replica("A")
    a.heartbeat(executing=2, run="load-1", replica_name="api-0", sdk_version="1.3.0", lost=0)
    a.heartbeat(executing=1, run="load-1", replica_name="api-0", sdk_version="1.3.0", guard=True, lost=4)
    late, last = tale.facts
    commit(store, [last], now=last.time_unix_nano + 50)
    commit(store, [late], now=late.time_unix_nano + 9000)

    (row,) = store.replicas(ALWAYS)

    assert (row.replica, row.name, row.run, row.sdk_version) == ("A", "api-0", "load-1", "1.3.0")
    assert (row.executing, row.guard, row.lost, row.interval_s) == (1, True, 4, 5.0)
    assert (row.facts, row.skew_ns) == (2, -50)
    assert row.last_seen_unix_nano == late.time_unix_nano + 9000


def test_facts_that_come_before_the_first_heartbeat_are_in_its_run(store: Store, tale: Tale) -> None:
    beats = [replace(f, run="load-1") for f in tale.facts if f.kind == c.HEARTBEAT]
    others = [fact for fact in tale.facts if fact.kind != c.HEARTBEAT]
    finding = FindingChange(overwritten(tale.key, others[-1]))
    commit(store, others, finding)
    assert store.task(tale.key).run is None
    assert store.runs() == []

    commit(store, beats)

    run, other = Window(run="load-1"), Window(run="load-2")
    assert store.runs() == ["load-1"]
    assert store.task(tale.key).run == "load-1"
    assert store.tasks(run, TaskFilter())[1] == store.findings(run)[1] == 1
    assert store.findings(run)[0][0].run == "load-1"
    assert store.overview(run) == store.overview(ALWAYS)
    assert store.series(run, 60) == store.series(ALWAYS, 60)
    assert store.tasks(other, TaskFilter())[1] == store.findings(other)[1] == 0
    assert store.overview(other).facts == 0


def test_runs_are_newest_first(store: Store) -> None:
    for run in ("load-1", "load-2"):
        tale = Tale()
        tale.replica(run).heartbeat(run=run)
        commit(store, tale.facts)

    assert store.runs() == ["load-2", "load-1"]


def test_spans_come_back_once(store: Store) -> None:
    early = Span("a" * 32, "1" * 16, None, "save", 1, 5, "agent", True, '{"x":1}')
    late = Span("a" * 32, "2" * 16, "1" * 16, "SELECT", 2, 3, "agent", False, "{}")
    for _ in range(2):
        store.commit(Batch(spans=[late, early]), now_unix_nano=NOW)

    assert store.spans_of(["a" * 32, "b" * 32]) == [early, late]


def test_the_data_version_grows_with_each_commit(store: Store, tale: Tale) -> None:
    before = store.data_version()
    commit(store, tale.facts)
    after = store.data_version()

    assert before < after == store.data_version()


def test_a_commit_that_fails_leaves_nothing_and_does_no_harm(store: Store, tale: Tale) -> None:
    commit(store, tale.facts[:3])
    before = store.overview(ALWAYS)
    unstorable = replace(tale.facts[3], time_unix_nano=1 << 70)

    with pytest.raises(OverflowError):
        commit(store, [*tale.facts[4:], unstorable])

    assert store.overview(ALWAYS) == before
    assert store.known([fact.id for fact in tale.facts]) == {f.id for f in tale.facts[:3]}
    commit(store, tale.facts[3:])
    assert store.overview(ALWAYS).facts == len(tale.facts)


def test_a_full_disk_is_one_line_and_no_harm(store: Store, tale: Tale, tmp_path: Path) -> None:
    commit(store, tale.facts[:3])
    with sqlite3.connect(tmp_path / "facts.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TRIGGER full BEFORE INSERT ON fact BEGIN SELECT RAISE(ABORT, 'full'); END")
        other.execute("COMMIT")

        with pytest.raises(StoreError, match=r"^cannot write to the store: full$"):
            commit(store, tale.facts[3:])
        other.execute("DROP TRIGGER full")
    other.close()

    commit(store, tale.facts[3:])
    assert store.overview(ALWAYS).facts == len(tale.facts)


def test_a_second_writer_is_refused_once_and_stores_nothing_twice(
    reopen: Callable[[], Store], tale: Tale
) -> None:
    one, other = reopen(), reopen()
    commit(one, tale.facts[:1])
    assert other.known([tale.facts[1].id]) == set()
    commit(one, tale.facts[1:2])

    # It does not know yet that this fact is stored.
    with pytest.raises(StoreError, match="another process"):
        commit(other, tale.facts[1:2])

    assert other.known([tale.facts[1].id]) == {tale.facts[1].id}
    commit(other, tale.facts[2:])
    ids = [fact.id for fact in one.facts()]
    assert sorted(ids) == sorted(fact.id for fact in tale.facts)


def test_what_was_stored_goes_on_in_the_next_process(
    reopen: Callable[[], Store], store: Store, tale: Tale
) -> None:
    whole = reopen()
    for fact in tale.facts:
        commit(reopen(), [fact])

    row = whole.task(tale.key)
    assert row is not None
    assert (row.facts, row.writes, row.conflicts, row.state) == (8, 4, 1, c.COMPLETED)
    assert row.replicas == ("A", "B")
    assert whole.overview(ALWAYS).tasks == 1


def test_the_past_of_a_task_is_all_its_incarnations(store: Store) -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(c.COMPLETED, None, 1)
    a.delete()
    a.write(c.WORKING, None, 1)
    finding = overwritten(a.key, tale.facts[0])
    commit(store, tale.facts, FindingChange(finding))

    past = store.past([tale.key])

    assert sorted(past.facts, key=lambda fact: fact.n) == tale.facts
    assert list(past.findings) == [finding]
    assert store.past([replace(tale.key, owner="bob")]).facts == []


def test_reports_tell_what_arrived_and_the_heartbeats_that_matter(store: Store) -> None:
    tale = Tale()
    a = tale.replica("A")
    for executing in (1, 0, 2, 3):
        a.heartbeat(executing=executing)
    first, idle, missing, last = tale.facts
    commit(store, [first, idle, last])

    (report,) = store.reports()

    assert (report.replica, list(report.received)) == ("A", [(1, 2), (4, 4)])
    assert sorted(report.heartbeats, key=lambda fact: fact.n) == [first, idle, last]
    assert missing not in report.heartbeats


def _read_elsewhere(url: str, key: TaskKey) -> tuple[int, int]:
    store = open_store(url)
    found = store.overview(ALWAYS).facts, len(store.facts_of(key))
    store.close()
    return found


def test_another_process_reads_while_this_one_writes(tmp_path: Path, tale: Tale) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    store = open_store(url)
    commit(store, tale.facts)

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_read_elsewhere, (url, tale.key)) == (10, 8)
        commit(store, [replace(tale.facts[0], id="A:99")])
        assert pool.apply(_read_elsewhere, (url, tale.key)) == (11, 8)
        pool.close()
        pool.join()
    store.close()
