from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.store import summary
from a2a_fencing_dashboard.store.durations import bucket
from a2a_fencing_dashboard.store.summary import TaskSummary
from support.tale import MS, Tale

facts = st.lists(
    st.builds(
        Fact,
        id=st.just("api:1"),
        replica=st.just("api"),
        kind=st.sampled_from(c.KINDS),
        time_unix_nano=st.integers(1, 5) | st.integers(1, 5).map(lambda s: s * 1_000_000_000),
        state=st.none() | st.sampled_from((c.WORKING, c.CANCELED, c.COMPLETED)),
        version=st.none() | st.integers(1, 4) | st.sampled_from(("x", "y")),
        outcome=st.none() | st.sampled_from((*c.WRITE_OUTCOMES, *c.DISPATCH_OUTCOMES)),
        reason=st.none() | st.sampled_from((c.STALE_BASE, c.QUEUE_CLOSED)),
        phase=st.none() | st.sampled_from((c.STARTED, c.ENDED)),
    ),
    min_size=1,
    max_size=12,
)


def summarised(of: list[Fact]) -> dict:
    task = TaskSummary(1, 1, None)
    for fact in of:
        task.absorb(fact)
    return {name: getattr(task, name) for name in TaskSummary.__slots__}


@given(facts, st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(of: list[Fact], rng) -> None:
    shuffled = rng.sample(of, len(of))

    assert summarised(shuffled) == summarised(of)


@given(facts)
def test_counts_add_up_to_the_facts(of: list[Fact]) -> None:
    counted: Counter[tuple[str, str]] = Counter()
    for second, measure, detail, count in summary.counts(of):
        assert any(fact.time_unix_nano // 1_000_000_000 == second for fact in of)
        counted[measure, detail] += count

    task = summarised(of)
    assert counted[summary.FACTS, ""] == len(of)
    assert counted[summary.WRITES, ""] == task["writes"]
    assert counted[summary.REJECTIONS, ""] == task["rejections"]
    assert counted[summary.DISPATCHES, ""] == task["dispatches"]
    conflicts = [count for (measure, _), count in counted.items() if measure == summary.CONFLICTS]
    assert sum(conflicts) == task["conflicts"]


def test_the_highest_version_tells_the_state_whatever_the_clocks_say() -> None:
    first = Fact(
        id="a:1",
        kind=c.WRITE,
        time_unix_nano=900,
        replica="a",
        state=c.CANCELED,
        version=3,
        outcome=c.ACCEPTED,
    )
    task = TaskSummary(1, 1, None)
    for fact in (
        replace(first, state=c.COMPLETED, version=4, time_unix_nano=100),
        first,
        replace(first, state=c.FAILED, version=5, outcome=c.CONFLICT),
    ):
        task.absorb(fact)

    assert (task.state, task.version) == (c.COMPLETED, 4)


def test_without_versions_the_clock_tells_the_state() -> None:
    first = Fact(
        id="a:1", kind=c.WRITE, time_unix_nano=2, replica="a", state=c.FAILED, outcome=c.ACCEPTED
    )
    task = TaskSummary(1, 1, None)
    for fact in (first, replace(first, state=c.WORKING, time_unix_nano=1)):
        task.absorb(fact)

    assert task.state == c.FAILED


def test_a_task_took_until_it_was_first_finished() -> None:
    tale = Tale()
    a, b = tale.replica("A"), tale.replica("B")
    a.write(c.WORKING, None, 1)
    b.cancel(1, 2)
    a.write(c.COMPLETED, 2, 3)
    task = TaskSummary(1, 1, None)
    for fact in reversed(tale.facts):
        task.absorb(fact)
    assert task.finished == tale.facts[1].time_unix_nano
    assert (summary.TASK_TIMES, str(bucket(MS))) in task.standing


def test_only_accepted_writes_tell_how_long_saving_takes() -> None:
    tale = Tale()
    a = tale.replica("A")
    a.write(c.WORKING, None, 1, duration_ns=1_000)
    a.write(c.WORKING, 1, 2, duration_ns=1_000)
    a.refused(c.WORKING, 1, duration_ns=5)
    a.write(c.WORKING, 2, 3)
    assert summary.save_times(tale.facts) == {bucket(1_000): 2}
