"""One executor at a time, which ends when its task does: concurrent-execution, cancel-ineffective,
abandoned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.checker.cluster import Cluster
from a2a_fencing.checker.conclusion import (
    SETTLE_NS,
    Check,
    Conclusion,
    Rule,
    by_the_clocks,
    state_at,
)
from a2a_fencing.checker.executions import Execution
from a2a_fencing.checker.incarnation import ANSWERS, EXECUTION, LIVENESS, Incarnation, Stored
from a2a_fencing.checker.versions import after
from a2a_fencing.facts import Fact

CONCURRENT = Rule(
    c.CONCURRENT_EXECUTION,
    c.WARNING,
    "two executions of one task key overlap",
    "a task is executed once at a time",
)
INEFFECTIVE = Rule(
    c.CANCEL_INEFFECTIVE,
    c.WARNING,
    "cancel was answered with success and the executor ran on, or the task is not terminal",
    "a cancel that succeeded stops the work",
)
ABANDONED = Rule(
    c.ABANDONED,
    c.CRITICAL,
    "not terminal, not interrupted, no live executor on any reporting replica",
    "a task that is not finished is being worked on",
)

_HOW: Final = {c.FINISHED: "returned", c.CANCELLED: "was cancelled", c.RAISED: "raised"}


# --- concurrent-execution


def judge_execution(life: Incarnation, run: Execution, cluster: Cluster) -> Iterable[Conclusion]:
    """Compares an execution with those that may have run at the same time."""
    if run.start is None or len(life.executions) < 2:
        return ()
    found: list[Conclusion] = [
        _on_one_replica(*_in_start_order(run, other), cluster) for other in life.executions.beside(run)
    ]
    if life.executions.spread:
        for other in life.executions.elsewhere(run, cluster):
            found += _across(life, *_in_id_order(run, other), cluster)
    return found


def _on_one_replica(first: Execution, second: Execution, cluster: Cluster) -> Conclusion:
    facts = (first.start, second.start, first.end)
    return Conclusion(
        CONCURRENT,
        _pair(first, second),
        tuple(fact for fact in facts if fact is not None),
        f"{cluster.name(first.replica)} began a second execution while the first one was running",
        not_before=None if first.end is not None else 0,
    )


def _across(
    life: Incarnation, one: Execution, other: Execution, cluster: Cluster
) -> Iterator[Conclusion]:
    names = f"{cluster.name(one.replica)} and {cluster.name(other.replica)}"
    ends = [run.end for run in (one, other) if run.end is not None]
    witness = life.executions.interleaved(one, other)
    if witness is not None:
        versions = ", ".join(_sight(fact, cluster) for fact in witness)
        yield Conclusion(
            CONCURRENT,
            _pair(one, other),
            (*_starts(one, other), *witness),
            f"{names} executed the task at the same time: {versions}",
            if_complete=True,
            not_before=None if len(ends) == 2 else 0,
        )
    elif len(ends) == 2 and _overlap_by_clocks(one, other, cluster):
        yield Conclusion(
            CONCURRENT,
            _pair(one, other),
            (*_starts(one, other), *ends),
            f"{names} executed the task at the same time, {by_the_clocks(cluster, *ends)}",
            suspected=True,
        )


def _overlap_by_clocks(one: Execution, other: Execution, cluster: Cluster) -> bool:
    if one.start is None or other.start is None or one.end is None or other.end is None:
        return False
    return cluster.before(one.start, other.end) and cluster.before(other.start, one.end)


def _sight(fact: Fact, cluster: Cluster) -> str:
    verb = "by" if fact.kind == c.WRITE else "seen by"
    return f"v{fact.version} {verb} {cluster.name(fact.replica)}"


def _starts(one: Execution, other: Execution) -> Iterator[Fact]:
    return (run.start for run in (one, other) if run.start is not None)


def _pair(one: Execution, other: Execution) -> str:
    return " ".join(sorted((one.id, other.id)))


def _in_start_order(one: Execution, other: Execution) -> tuple[Execution, Execution]:
    return (one, other) if one.start_n < other.start_n else (other, one)


def _in_id_order(one: Execution, other: Execution) -> tuple[Execution, Execution]:
    return (one, other) if one.id < other.id else (other, one)


# --- cancel-ineffective


def judge_cancels(life: Incarnation, _: str, cluster: Cluster) -> Iterable[Conclusion]:
    """Looks for what happened after a cancel was answered with success."""
    cancels = life.answers.cancels
    if not cancels:
        return ()
    answers = sorted(cancels.values(), key=lambda fact: (fact.time_unix_nano, fact.id))
    return [*_still_running(answers[0], life, cluster), *_ran_on(answers, life, cluster)]


def _still_running(answer: Fact, life: Incarnation, cluster: Cluster) -> Iterator[Conclusion]:
    final = life.final()
    if final is None or final.terminal:
        return
    stored = final.version is None or c.CANCELED in life.endings.versions
    yield Conclusion(
        INEFFECTIVE,
        "not terminal",
        (answer, final.fact),
        f"{cluster.name(answer.replica)} answered a cancel with success, but the task is"
        f" {state_at(cluster, final.state, final.fact)}",
        suspected=not stored,
        if_complete=True,
        not_before=None if stored else answer.time_unix_nano + SETTLE_NS,
    )


def _ran_on(answers: list[Fact], life: Incarnation, cluster: Cluster) -> Iterator[Conclusion]:
    """The executor wrote after the cancel's version, or returned of itself after the answer."""
    canceled, last = life.endings.versions.get(c.CANCELED), life.last_by_executor
    if canceled is not None and last is not None and after(last.version, canceled):
        yield Conclusion(
            INEFFECTIVE,
            "ran on",
            (answers[0], last),
            f"{cluster.name(answers[0].replica)} answered a cancel with success (CANCELED at"
            f" v{canceled}), but the executor ran on and wrote {state_at(cluster, last.state, last)}",
            if_complete=True,
        )
        return
    for answer in answers:
        run = _finished_after(life, answer)
        if run is not None and run.end is not None:
            yield Conclusion(
                INEFFECTIVE,
                "ran on",
                (answer, run.end),
                f"{cluster.name(answer.replica)} answered a cancel with success, but the executor there"
                " ran on to its end",
            )
            return


def _finished_after(life: Incarnation, answer: Fact) -> Execution | None:
    number = answer.n
    executions = life.executions
    runs = (run for run in executions.on(answer.replica) if run.end is not None)
    ran_on = (
        run
        for run in runs
        if run.start_n < number < run.end_n and run.end is not None and run.end.phase == c.FINISHED
    )
    return next(ran_on, None)


# --- abandoned


def judge_abandoned(life: Incarnation, _: str, cluster: Cluster) -> Iterable[Conclusion]:
    """Looks for a task that is not finished and that nobody executes any more.

    It takes an execution that is known to have ended, on every replica that began one. A replica that is
    merely silent may still execute: that is a doubt, not a finding.
    """
    executions = life.executions
    if life.ended or not len(executions):
        return ()
    final = life.final()
    if final is None or final.terminal or final.state in c.INTERRUPTED_STATES:
        return ()
    replaced = False
    for identity in sorted(executions.running):
        run = executions.by_id[identity]
        if cluster.idle_since(run.replica, run.start_n):
            continue
        if cluster.successor(run.replica) is None:
            return ()
        replaced = True
    return _abandoned(life, final, cluster, replaced=replaced)


def _abandoned(
    life: Incarnation, final: Stored, cluster: Cluster, *, replaced: bool
) -> Iterable[Conclusion]:
    last = _latest(life)
    if last is None:
        return ()
    name = cluster.name(last.replica)
    how = (
        f"was on {name}, which was replaced"
        if replaced
        else f"{_HOW.get(last.phase or '', 'ended')} on {name}"
    )
    refused = life.gave_up
    due = 0 if refused else max(last.time_unix_nano, final.fact.time_unix_nano) + SETTLE_NS
    return (
        Conclusion(
            ABANDONED,
            "",
            (final.fact, last, *((refused,) if refused else ())),
            f"the task is {state_at(cluster, final.state, final.fact)} and nobody executes it:"
            f" the last execution {how}",
            suspected=replaced,
            if_complete=True,
            not_before=due,
        ),
    )


def _latest(life: Incarnation) -> Fact | None:
    executions = life.executions
    open_starts = (executions.by_id[identity].start for identity in executions.running)
    known = [fact for fact in (executions.latest, *open_starts) if fact is not None]
    return max(known, key=lambda fact: (fact.time_unix_nano, fact.id), default=None)


CHECKS = (
    Check(CONCURRENT, EXECUTION, judge_execution),
    Check(INEFFECTIVE, ANSWERS, judge_cancels),
    Check(ABANDONED, LIVENESS, judge_abandoned),
)
