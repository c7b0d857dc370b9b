"""Lists and figures, for any window and filter, against a recount of the facts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import (
    Batch,
    FindingChange,
    Store,
    TaskFilter,
    TaskRow,
    Window,
)
from a2a_fencing_dashboard.store.sqlite import SqliteStore, task_pages

S = 1_000_000_000
START = 1_760_000_000 * S
RUNS = {"A": "load-1", "B": "load-1", "C": "load-2"}
ALWAYS = Window()
# Close together and far apart, so that windows begin and end inside every width of bucket.
times = st.builds(
    lambda hours, seconds, ns: START + hours * 3600 * S + seconds * S + ns,
    st.integers(0, 3),
    st.integers(0, 7200),
    st.integers(0, S - 1),
)


@st.composite
def histories(draw) -> list[Fact]:
    facts = []
    for index in range(draw(st.integers(1, 25))):
        replica = draw(st.sampled_from(sorted(RUNS)))
        task = draw(st.integers(0, 4))
        facts.append(
            Fact(
                id=f"{replica}:{index + 2}",
                kind=draw(st.sampled_from((c.WRITE, c.WRITE, c.READ, c.DROPPED, c.DISPATCH))),
                time_unix_nano=draw(times),
                replica=replica,
                task=TaskKey("tasks", f"owner-{task % 2}", f"{RUNS[replica]}-task-{task}"),
                context_id=f"context-{task}",
                state=draw(st.sampled_from((c.WORKING, c.CANCELED, c.INPUT_REQUIRED))),
                version=index,
                outcome=draw(st.sampled_from(c.WRITE_OUTCOMES)),
                reason=draw(st.sampled_from((c.STALE_BASE, c.ABSENT))),
            )
        )
    return facts


def heartbeats() -> list[Fact]:
    return [
        Fact(
            id=f"{name}:1",
            kind=c.HEARTBEAT,
            time_unix_nano=START,
            replica=name,
            run=run,
            replica_name=name,
        )
        for name, run in RUNS.items()
    ]


def stored(facts: list[Fact]) -> Iterator[Store]:
    with TemporaryDirectory() as directory:
        store = open_store(f"sqlite:///{directory}/facts.db")
        store.commit(Batch(heartbeats()), now_unix_nano=START)
        half = len(facts) // 2
        for part in (facts[:half], facts[half:]):
            verdicts = {fact.task: c.FINE for fact in part if fact.task}
            store.commit(Batch(part, verdicts=verdicts), now_unix_nano=START)
        yield store
        store.close()


windows = st.builds(
    lambda run, one, other: Window(run, *(sorted((one, other)) if one and other else (one, other))),
    st.none() | st.sampled_from(("load-1", "load-2", "load-3")),
    st.none() | times,
    st.none() | times,
)


def within(window: Window, fact: Fact) -> bool:
    """Whether a fact is counted: windows are exact to the second."""
    second = fact.time_unix_nano // S
    return (
        window.run in (None, RUNS[fact.replica])
        and (window.since is None or second >= window.since // S)
        and (window.until is None or second <= window.until // S)
    )


@given(histories(), st.lists(windows, min_size=1, max_size=8))
@settings(max_examples=25, deadline=None)
def test_the_overview_is_a_recount(facts: list[Fact], wanted: list[Window]) -> None:
    for store in stored(facts):
        for window in wanted:
            seen = [fact for fact in [*heartbeats(), *facts] if within(window, fact)]
            writes = [fact for fact in seen if fact.kind == c.WRITE]

            view = store.overview(window)

            assert view.facts == len(seen)
            assert view.writes == len(writes)
            assert view.conflicts == Counter(f.reason for f in writes if f.outcome == c.CONFLICT)
            assert view.terminal_rejections == len(
                [fact for fact in writes if fact.outcome == c.TERMINAL_REJECTED]
            )
            assert view.drops == Counter(fact.reason for fact in seen if fact.kind == c.DROPPED)
            assert view.dispatches == len([fact for fact in seen if fact.kind == c.DISPATCH])
            rows, total = store.tasks(window, TaskFilter(), limit=100)
            assert view.tasks == len(rows) == total
            assert view.terminal_tasks == len([r for r in rows if r.state in c.TERMINAL_STATES])
            assert view.violated_tasks == 0


@given(histories(), windows, st.sampled_from((1, 7, 60, 300, 3600, 7200)))
@settings(max_examples=25, deadline=None)
def test_a_series_is_a_recount(facts: list[Fact], window: Window, bucket_s: int) -> None:
    measures = {c.WRITE: "writes", c.DROPPED: "drops", c.DISPATCH: "dispatches"}
    expected: Counter[tuple[int, str, str]] = Counter()
    first, last = (None if end is None else end // S // bucket_s for end in (window.since, window.until))
    for fact in facts:
        number = fact.time_unix_nano // S // bucket_s
        inside = (first is None or number >= first) and (last is None or number <= last)
        if inside and within(Window(window.run), fact) and fact.kind in measures:
            bucket = number * bucket_s
            expected[bucket, fact.replica, measures[fact.kind]] += 1
            if fact.kind == c.WRITE and fact.outcome == c.CONFLICT:
                expected[bucket, fact.replica, "conflicts"] += 1
            if fact.kind == c.WRITE and fact.outcome == c.TERMINAL_REJECTED:
                expected[bucket, fact.replica, "rejections"] += 1

    for store in stored(facts):
        points = store.series(window, bucket_s)

        assert {(p.bucket_unix_s, p.replica, p.measure): p.count for p in points} == expected
        assert [p.bucket_unix_s for p in points] == sorted(p.bucket_unix_s for p in points)


@given(histories(), windows)
@settings(max_examples=25, deadline=None)
def test_tasks_of_a_window_had_facts_around_it(facts: list[Fact], window: Window) -> None:
    by_task: defaultdict[TaskKey, list[Fact]] = defaultdict(list)
    for fact in facts:
        assert fact.task is not None
        by_task[fact.task].append(fact)
    expected = {
        key
        for key, of in by_task.items()
        if window.run in (None, RUNS[of[0].replica])
        and (window.since is None or max(f.time_unix_nano for f in of) >= window.since)
        and (window.until is None or min(f.time_unix_nano for f in of) <= window.until)
    }

    for store in stored(facts):
        rows, total = store.tasks(window, TaskFilter(), limit=100)

        assert {row.key for row in rows} == expected
        assert total == len(expected)
        for row in rows:
            assert row == store.task(row.key)
            assert row.facts == len(by_task[row.key])
            assert set(row.replicas) == {fact.replica for fact in by_task[row.key]}


# --- filters, sorting, paging


@given(histories(), st.sampled_from(sorted(task_pages._BY_VALUE)), st.booleans())
@settings(max_examples=25, deadline=None)
def test_pages_far_down_go_on_where_those_before_ended(
    facts: list[Fact], sort: str, descending: bool
) -> None:
    for store in stored(facts):
        whole, total = store.tasks(ALWAYS, TaskFilter(), sort=sort, descending=descending, limit=100)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(task_pages, "DEEP", 0)
            for limit in (1, 2, 3):
                paged = []
                for offset in range(0, total + limit, limit):
                    paged += store.tasks(
                        ALWAYS,
                        TaskFilter(),
                        sort=sort,
                        descending=descending,
                        offset=offset,
                        limit=limit,
                    )[0]
                assert paged == whole


@given(histories(), st.sets(st.sampled_from(sorted(RUNS))))
@settings(max_examples=25, deadline=None)
def test_tasks_of_replicas_are_counted_as_they_are_listed(facts: list[Fact], replicas: set[str]) -> None:
    where = TaskFilter(replicas=sorted(replicas))
    for store in stored(facts):
        rows, total = store.tasks(ALWAYS, where, limit=100)
        assert store.tasks(ALWAYS, where, limit=0) == ([], total)
        assert total == len(rows)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Store]:
    """Six tasks that differ in everything that can be asked for."""
    store = open_store(f"sqlite:///{tmp_path}/facts.db")
    facts = []
    for index in range(6):
        replica = "AB"[index % 2]
        facts.append(
            Fact(
                id=f"{replica}:{index + 1}",
                kind=(c.WRITE, c.WRITE, c.WRITE, c.DROPPED, c.DISPATCH, c.READ)[index],
                time_unix_nano=START + index,
                replica=replica,
                task=TaskKey("tasks", ("alice", "bob")[index // 3], f'7F3c-{index}_%"x'),
                context_id=f"ctx-{index}" if index else None,
                state=(c.WORKING, c.COMPLETED)[index % 2],
                version=1,
                outcome=(c.ACCEPTED, c.CONFLICT, c.TERMINAL_REJECTED)[index % 3],
                reason=c.STALE_BASE,
            )
        )
    worst = facts[2]
    finding = Finding(c.TERMINAL_OVERWRITTEN, c.CRITICAL, c.PROVEN, worst.task, (worst.id,), "told")
    mild = replace(finding, task=facts[4].task, severity=c.INFO, rule=c.TERMINAL_MUTATED)
    verdicts = {fact.task: c.FINE for fact in facts[1:]}
    store.commit(
        Batch(facts, (), [FindingChange(finding), FindingChange(mild)], verdicts), now_unix_nano=START
    )
    yield store
    store.close()


def numbers(rows: list[TaskRow]) -> list[int]:
    return [int(row.key.task_id[5]) for row in rows]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (TaskFilter(), {0, 1, 2, 3, 4, 5}),
        (TaskFilter(text="7f3C-3"), {3}),
        (TaskFilter(text="f3c-"), {0, 1, 2, 3, 4, 5}),
        (TaskFilter(text="TX-4"), {4}),
        (TaskFilter(text="ali"), {0, 1, 2}),
        (TaskFilter(text="bob"), {3, 4, 5}),
        (TaskFilter(text="_%"), {0, 1, 2, 3, 4, 5}),
        (TaskFilter(text="%"), {0, 1, 2, 3, 4, 5}),
        (TaskFilter(text="_x"), set()),
        (TaskFilter(text='"'), {0, 1, 2, 3, 4, 5}),
        (TaskFilter(text='%"x'), {0, 1, 2, 3, 4, 5}),
        (TaskFilter(text="x OR y"), set()),
        (TaskFilter(text="nothing"), set()),
        (TaskFilter(states=[c.COMPLETED]), {5}),
        (TaskFilter(states=[c.COMPLETED, c.WORKING]), {0, 5}),
        (TaskFilter(rules=[c.TERMINAL_OVERWRITTEN]), {2}),
        (TaskFilter(rules=[c.TERMINAL_OVERWRITTEN, c.TERMINAL_MUTATED]), {2, 4}),
        (TaskFilter(replicas=["A"]), {0, 2, 4}),
        (TaskFilter(replicas=["A", "B"]), {0, 1, 2, 3, 4, 5}),
        (TaskFilter(replicas=["C"]), set()),
        (TaskFilter(verdicts=[c.VIOLATED]), {2}),
        (TaskFilter(verdicts=[c.UNKNOWN]), {0}),
        (TaskFilter(verdicts=[c.FINE, c.UNKNOWN]), {0, 1, 3, 4, 5}),
        (TaskFilter(only_conflicts=True), {1}),
        (TaskFilter(only_rejections=True), {2}),
        (TaskFilter(only_drops=True), {3}),
        (TaskFilter(only_dispatches=True), {4}),
        (TaskFilter(only_dispatches=True, replicas=["B"]), set()),
    ],
)
def test_tasks_can_be_filtered(shelf: Store, where: TaskFilter, expected: set[int]) -> None:
    rows, total = shelf.tasks(ALWAYS, where)

    assert set(numbers(rows)) == expected
    assert total == len(expected)


def test_info_findings_are_not_among_the_rules_of_a_task(shelf: Store) -> None:
    rows, _ = shelf.tasks(ALWAYS, TaskFilter(rules=[c.TERMINAL_OVERWRITTEN, c.TERMINAL_MUTATED]))

    assert [row.rules for row in rows] == [(), (c.TERMINAL_OVERWRITTEN,)]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("last", [5, 4, 3, 2, 1, 0]),
        ("task_id", [5, 4, 3, 2, 1, 0]),
        ("verdict", [2, 0, 5, 4, 3, 1]),
        ("conflicts", [1, 5, 4, 3, 2, 0]),
        ("drops", [3, 5, 4, 2, 1, 0]),
        ("dispatches", [4, 5, 3, 2, 1, 0]),
        ("facts", [5, 4, 3, 2, 1, 0]),
        ("state", [0, 5, 4, 3, 2, 1]),
        ("last; DROP TABLE task", [5, 4, 3, 2, 1, 0]),
    ],
)
def test_tasks_can_be_sorted(shelf: Store, sort: str, expected: list[int]) -> None:
    assert numbers(shelf.tasks(ALWAYS, TaskFilter(), sort=sort)[0]) == expected


def test_tasks_come_in_pages(shelf: Store) -> None:
    pages = [
        shelf.tasks(ALWAYS, TaskFilter(), descending=False, offset=offset, limit=4)
        for offset in (0, 4, 8)
    ]

    assert [numbers(rows) for rows, _ in pages] == [[0, 1, 2, 3], [4, 5], []]
    assert {total for _, total in pages} == {6}


def test_silent_replicas_execute_nothing(tmp_path: Path) -> None:
    beat = Fact(
        id="A:1",
        kind=c.HEARTBEAT,
        time_unix_nano=START,
        replica="A",
        executing=3,
        interval_s=5.0,
    )
    now = START
    store = SqliteStore(f"{tmp_path}/facts.db", clock=lambda: now)
    store.commit(Batch([beat]), now_unix_nano=START)

    assert store.overview(ALWAYS).executing == 3
    now = START + 14 * S
    assert store.overview(ALWAYS).executing == 3
    now = START + 16 * S
    assert store.overview(ALWAYS).executing == 0
    store.close()


def test_what_a_resource_told_before_its_task_was_known_is_not_counted_twice(store: Store) -> None:
    name, key = TaskKey("scoped", "", "task-1"), TaskKey("tasks", "owner", "task-1")
    told, known = (
        Fact(
            id=f"A:{n}",
            kind=c.DISPATCH,
            time_unix_nano=START + n * 300 * S,
            replica="A",
            task=task,
            name="x",
        )
        for n, task in ((2, name), (3, key))
    )
    store.commit(Batch(heartbeats()), now_unix_nano=START)
    store.commit(Batch([told], verdicts={name: c.UNKNOWN}), now_unix_nano=START)
    assert store.overview(Window(since=START)).tasks == 1
    store.commit(Batch([known], verdicts={key: c.FINE}, moved={name: key}), now_unix_nano=START)
    view = store.overview(Window(since=START))
    assert (view.tasks, view.by_verdict) == (1, {c.FINE: 1})
    assert store.tasks(Window(since=START), TaskFilter())[1] == 1
