"""The checker against a model of the store that it cannot influence."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from a2a_fencing import conventions as c
from a2a_fencing.checker import Changes, Checker, Finding, Report, check
from a2a_fencing.facts import Fact
from support.store_model import (
    BYPASSES,
    CLIENTS,
    MS,
    OPERATIONS,
    SCHEMES,
    UNVERSIONED,
    Cluster,
    Step,
)

settings.register_profile(
    "checker", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
thorough = settings.get_profile("checker")

DELETES = ("delete",)
LOSSES = ("lost-commit", "lost-rollback")


def without(*operations: str) -> tuple[str, ...]:
    return tuple(operation for operation in OPERATIONS if operation not in operations)


@st.composite
def histories(
    draw: Callable[..., Any],
    operations: tuple[str, ...] = OPERATIONS,
    schemes: tuple[str, ...] = ("counter",),
    **options: st.SearchStrategy[bool],
) -> Cluster:
    skews = st.sampled_from((0, -90_000, 30, 180_000))
    steps = st.builds(
        Step,
        st.sampled_from(operations),
        st.integers(0, 2),
        st.integers(0, 1),
        st.integers(0, 5),
        st.booleans(),
    )
    cluster = Cluster(
        terminal_rule=draw(st.booleans()),
        skews_ms=draw(st.tuples(skews, skews, skews)),
        scheme=draw(st.sampled_from(schemes)),
        **{name: draw(option) for name, option in options.items()},
    )
    return cluster.play(draw(st.lists(steps, min_size=4, max_size=40)))


def of(report: Report, rule: str, certainty: str | None = None) -> list[Finding]:
    return [f for f in report.findings if f.rule == rule and certainty in (None, f.certainty)]


def accused(report: Report, rule: str, certainty: str | None = None) -> set[str]:
    """Ids of the writes that findings of a rule end with."""
    return {finding.witness[-1] for finding in of(report, rule, certainty)}


def assert_exact(report: Report, rule: str, truth: set[str], cluster: Cluster) -> None:
    """Each finding names a true write, and each true write whose writer knew of it is named.

    A suspected finding may name several writes of unknown outcome of which one was stored. One whose
    version nobody saw before the next write replaced it is found or leaves its task in doubt.
    """
    found = of(report, rule)
    named = [truth.intersection(finding.witness) for finding in found]
    assert all(named)
    assert all(f.witness[-1] in truth for f in found if f.certainty == c.PROVEN)
    unnamed = truth - set().union(*named)
    missed = [commit for commit in cluster.commits if commit.write.id in unnamed]
    assert not any(commit.known for commit in missed)
    assert {commit.task for commit in missed} <= report.doubts.keys()


# --- a complete history


@given(histories(without(*DELETES)))
@thorough
def test_a_complete_history_gives_exactly_what_happened(cluster: Cluster) -> None:
    report = check(cluster.facts)

    assert report.complete
    assert_exact(report, c.TERMINAL_OVERWRITTEN, cluster.overwritten(), cluster)
    assert_exact(report, c.TERMINAL_MUTATED, cluster.mutated(), cluster)
    assert {(f.task, f.key) for f in of(report, c.ANSWER_CONTRADICTED)} == cluster.contradicted()
    assert not of(report, c.VERSION_FORK) + of(report, c.UNSEEN_WRITER)


@given(histories(without(*DELETES, *LOSSES)))
@thorough
def test_without_lost_answers_everything_is_proven(cluster: Cluster) -> None:
    report = check(cluster.facts)

    rules = (c.TERMINAL_OVERWRITTEN, c.TERMINAL_MUTATED, c.ANSWER_CONTRADICTED)
    assert all(f.certainty == c.PROVEN for rule in rules for f in of(report, rule))
    assert accused(report, c.TERMINAL_OVERWRITTEN) == cluster.overwritten()


@given(histories(without(*DELETES), schemes=SCHEMES))
@thorough
def test_versions_are_opaque(cluster: Cluster) -> None:
    """Where a store does not count, a write of unknown outcome may hide: then the task is in doubt."""
    report = check(cluster.facts)

    by_id = {fact.id: fact for fact in cluster.facts}
    for rule, truth in (
        (c.TERMINAL_OVERWRITTEN, cluster.overwritten()),
        (c.TERMINAL_MUTATED, cluster.mutated()),
    ):
        assert accused(report, rule, c.PROVEN) <= truth
        missed = truth - {write for f in of(report, rule) for write in f.witness}
        assert {by_id[write].task for write in missed} <= report.doubts.keys()
    assert not of(report, c.VERSION_FORK) + of(report, c.UNSEEN_WRITER)


@given(histories(without(*DELETES, *LOSSES), schemes=SCHEMES, faulty=st.just(True)))
@thorough
def test_a_store_that_does_not_compare_is_convicted(cluster: Cluster) -> None:
    report = check(cluster.facts)

    assert accused(report, c.VERSION_FORK, c.PROVEN) == cluster.forks
    assert accused(report, c.TERMINAL_OVERWRITTEN, c.PROVEN) == cluster.overwritten()


@given(histories((*without(*DELETES, *LOSSES), *BYPASSES), schemes=SCHEMES, audit=st.just(True)))
@thorough
def test_an_audit_sees_what_was_written_past_the_sdk(cluster: Cluster) -> None:
    report = check(cluster.facts)

    assert accused(report, c.TERMINAL_OVERWRITTEN) == cluster.overwritten()
    assert {f.task for f in of(report, c.UNSEEN_WRITER)} <= cluster.bypassed
    assert not of(report, c.VERSION_FORK)


@given(histories(without("delete", "restart"), schemes=(UNVERSIONED,)))
@thorough
def test_without_versions_nothing_is_proven_of_several_replicas(cluster: Cluster) -> None:
    report = check(cluster.facts)

    writers: dict[object, set[str]] = {}
    for commit in cluster.commits:
        if commit.known:
            writers.setdefault(commit.task, set()).add(commit.write.replica)
    for finding in of(report, c.TERMINAL_OVERWRITTEN):
        assert (finding.certainty == c.SUSPECTED) is (len(writers[finding.task]) > 1)
    several = {task for task, replicas in writers.items() if len(replicas) > 1}
    assert all(report.verdicts[task] != c.FINE for task in several)


# --- executions, dispatches, clients


@given(histories((*without(*DELETES), *CLIENTS, "execute"), schemes=SCHEMES))
@thorough
def test_nobody_is_accused_falsely(cluster: Cluster) -> None:
    report = check(cluster.facts)

    by_id = {fact.id: fact for fact in cluster.facts}
    late = {effect.start.id for effect in cluster.effects if effect.finished_by_other}
    live = {cluster.keys[task] for process in cluster.processes for task in process.runs}
    for finding in of(report, c.CONCURRENT_EXECUTION):
        assert frozenset(by_id[fact].replica for fact in finding.witness[:2]) in cluster.overlapping()
    assert all(late.intersection(f.witness) for f in of(report, c.DISPATCH_AFTER_TERMINAL))
    assert live.isdisjoint(finding.task for finding in of(report, c.ABANDONED))
    assert {f.task for f in of(report, c.PUSH_CONTRADICTED)} <= cluster.misinformed()


# --- incarnations


@given(histories())
@thorough
def test_incarnations_are_told_apart(cluster: Cluster) -> None:
    report = check(cluster.facts)

    overwritten = cluster.overwritten()
    assert all(overwritten.intersection(f.witness) for f in of(report, c.TERMINAL_OVERWRITTEN))
    assert not of(report, c.VERSION_FORK) + of(report, c.UNSEEN_WRITER)
    told = {(f.task.task_id, f.key) for f in of(report, c.ANSWER_CONTRADICTED, c.PROVEN)}
    assert told <= {(task.task_id, state) for task, state in cluster.contradicted()}
    by_id = {fact.id: fact for fact in cluster.facts}
    missed = overwritten - {write for f in of(report, c.TERMINAL_OVERWRITTEN) for write in f.witness}
    assert {by_id[write].task.task_id for write in missed} <= {key.task_id for key in report.doubts}


# --- loss


@given(histories(), st.randoms(use_true_random=False))
@thorough
def test_loss_proves_nothing_false_and_makes_nothing_fine(cluster: Cluster, rng: random.Random) -> None:
    """Heartbeats arrive, so that a lost tail shows too."""
    rate = rng.choice((0.02, 0.3))
    arrived = [f for f in cluster.facts if f.kind == c.HEARTBEAT or rng.random() >= rate]

    report = check(arrived)

    assert accused(report, c.TERMINAL_OVERWRITTEN, c.PROVEN) <= cluster.overwritten()
    told = {(f.task.task_id, f.key) for f in of(report, c.ANSWER_CONTRADICTED, c.PROVEN)}
    assert told <= {(task.task_id, state) for task, state in cluster.contradicted()}
    by_id = {fact.id: fact for fact in cluster.facts}
    for finding in of(report, c.CONCURRENT_EXECUTION, c.PROVEN):
        assert frozenset(by_id[fact].replica for fact in finding.witness[:2]) in cluster.overlapping()
    late = {effect.start.id for effect in cluster.effects if effect.finished_by_other}
    assert all(late.intersection(f.witness) for f in of(report, c.DISPATCH_AFTER_TERMINAL, c.PROVEN))
    assert not of(report, c.VERSION_FORK, c.PROVEN) + of(report, c.UNSEEN_WRITER, c.PROVEN)

    violated = {f.task.task_id for f in check(cluster.facts).findings if f.violates}
    still = {f.task.task_id for f in report.findings if f.violates}
    for task in violated - still:
        verdicts = {verdict for key, verdict in report.verdicts.items() if key.task_id == task}
        assert verdicts != {c.FINE}


# --- any delivery equals the whole


def deliver(
    facts: list[Fact], rng: random.Random, now: int | None
) -> tuple[Checker, dict[tuple[str, object, str], Finding]]:
    """Delivers facts permuted, repeated and in batches while time passes; accounts for the changes."""
    parcels = facts + rng.sample(facts, len(facts) // 3)
    if rng.random() < 0.8:
        rng.shuffle(parcels)
    checker = Checker()
    standing: dict[tuple[str, object, str], Finding] = {}
    passing = None if now is None else now - 20_000 * MS
    while parcels:
        size = rng.choice((1, 1, 2, 5, 20))
        account(checker.add(parcels[:size], passing), standing)
        del parcels[:size]
        if passing is not None and now is not None:
            passing = min(passing + rng.randrange(2000) * MS, now)
    account(checker.add((), now), standing)
    return checker, standing


def account(changes: Changes, standing: dict[tuple[str, object, str], Finding]) -> None:
    for finding in changes.retracted:
        assert standing.pop(finding.identity) == finding
    for finding in changes.appeared:
        assert finding.identity not in standing
        standing[finding.identity] = finding


@given(
    histories(
        (*OPERATIONS, *CLIENTS, *BYPASSES, "plain", "execute"),
        schemes=(*SCHEMES, "counter", UNVERSIONED),
        audit=st.booleans(),
        faulty=st.booleans(),
    ),
    st.randoms(use_true_random=False),
)
@settings(thorough, max_examples=250)
def test_any_delivery_equals_the_whole(cluster: Cluster, rng: random.Random) -> None:
    rate = rng.choice((0.0, 0.05, 0.3))
    arrived = [fact for fact in cluster.facts if rng.random() >= rate]
    now = rng.choice((None, cluster.now - 3_000 * MS, cluster.now + 6_000 * MS))
    whole = check(arrived, now)

    checker, standing = deliver(arrived, rng, now)

    assert checker.report() == whole
    assert set(standing.values()) == set(whole.findings)
