"""The checker against a model of the store that it cannot influence."""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_fencing import conventions as c
from a2a_fencing.checker import Changes, Checker, Finding, Report, check
from a2a_fencing.facts import Fact
from support.store_model import OPERATIONS, Cluster, Step

steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(OPERATIONS),
        st.integers(0, 2),
        st.integers(0, 1),
        st.integers(0, 5),
        st.booleans(),
    ),
    max_size=40,
)
skews = st.tuples(*(st.sampled_from((0, -90_000, 30, 180_000)) for _ in range(3)))


@st.composite
def histories(draw: Callable, operations: tuple[str, ...] = OPERATIONS) -> Cluster:
    cluster = Cluster(terminal_rule=draw(st.booleans()), skews_ms=draw(skews))
    return cluster.play(step for step in draw(steps) if step.operation in operations)


WITHOUT_DELETES = tuple(operation for operation in OPERATIONS if operation != "delete")


def writes(report: Report, rule: str, certainty: str | None = None) -> set[str]:
    """Ids of the writes that findings of a rule end with."""
    return {
        finding.witness[-1]
        for finding in report.findings
        if finding.rule == rule and certainty in (None, finding.certainty)
    }


@given(histories(WITHOUT_DELETES))
@settings(max_examples=300, deadline=None)
def test_a_complete_history_gives_exactly_what_happened(cluster: Cluster) -> None:
    report = check(cluster.facts)

    assert report.complete
    assert writes(report, c.TERMINAL_OVERWRITTEN, c.PROVEN) == cluster.overwritten()
    assert writes(report, c.TERMINAL_OVERWRITTEN, c.SUSPECTED) == set()
    assert writes(report, c.TERMINAL_MUTATED) == cluster.mutated()
    told = {(f.task, f.key) for f in report.findings if f.rule == c.ANSWER_CONTRADICTED}
    assert told == cluster.contradicted()
    assert {f.rule for f in report.findings}.isdisjoint({c.VERSION_FORK, c.UNSEEN_WRITER})


@given(histories())
@settings(max_examples=300, deadline=None)
def test_incarnations_are_told_apart(cluster: Cluster) -> None:
    report = check(cluster.facts)

    assert writes(report, c.TERMINAL_OVERWRITTEN) <= cluster.overwritten()
    assert {f.rule for f in report.findings}.isdisjoint({c.VERSION_FORK, c.UNSEEN_WRITER})
    doubted = {key.task_id for key, verdict in report.verdicts.items() if verdict == c.UNKNOWN}
    missed = cluster.overwritten() - writes(report, c.TERMINAL_OVERWRITTEN)
    by_id = {fact.id: fact for fact in cluster.facts}
    assert {by_id[write].task.task_id for write in missed} <= doubted


@given(histories())
@settings(max_examples=200, deadline=None)
def test_executions_and_dispatches_are_never_accused_falsely(cluster: Cluster) -> None:
    report = check(cluster.facts)

    by_id = {fact.id: fact for fact in cluster.facts}
    late = {effect.start.id for effect in cluster.effects if effect.finished_by_other}
    for finding in report.findings:
        if finding.rule == c.CONCURRENT_EXECUTION:
            replicas = frozenset(by_id[fact].replica for fact in finding.witness[:2])
            assert replicas in cluster.overlapping()
        if finding.rule == c.DISPATCH_AFTER_TERMINAL:
            assert finding.witness[1] in late


# --- any delivery equals the whole


def deliver(facts: list[Fact], rng: random.Random) -> tuple[Checker, dict[tuple, Finding]]:
    """Delivers facts permuted, repeated and in batches; keeps account of the changes."""
    parcels = facts + rng.sample(facts, len(facts) // 3)
    if rng.random() < 0.8:
        rng.shuffle(parcels)
    checker, standing = Checker(), {}
    while parcels:
        size = rng.choice((1, 1, 2, 5, 20))
        account(checker.add(parcels[:size]), standing)
        del parcels[:size]
    return checker, standing


def account(changes: Changes, standing: dict[tuple, Finding]) -> None:
    for finding in changes.retracted:
        assert standing.pop(finding.identity) == finding
    for finding in changes.appeared:
        assert finding.identity not in standing
        standing[finding.identity] = finding


@given(histories(), st.randoms(use_true_random=False))
@settings(max_examples=400, deadline=None)
def test_any_delivery_equals_the_whole(cluster: Cluster, rng: random.Random) -> None:
    whole = check(cluster.facts)

    checker, standing = deliver(cluster.facts, rng)

    assert checker.report() == whole
    assert set(standing.values()) == set(whole.findings)


@given(histories(), st.randoms(use_true_random=False))
@settings(max_examples=400, deadline=None)
def test_any_delivery_with_loss_equals_the_whole_of_what_arrived(
    cluster: Cluster, rng: random.Random
) -> None:
    arrived = [fact for fact in cluster.facts if rng.random() < 0.8]
    whole = check(arrived)

    checker, standing = deliver(arrived, rng)

    assert checker.report() == whole
    assert set(standing.values()) == set(whole.findings)
