"""What clients were told holds: answer-contradicted, stream-cut, push-contradicted."""

from __future__ import annotations

from collections.abc import Iterable

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
from a2a_fencing.checker.incarnation import ANSWERS, Incarnation, Stored
from a2a_fencing.facts import Fact

CONTRADICTED = Rule(
    c.ANSWER_CONTRADICTED,
    c.CRITICAL,
    "a client was told a terminal state (answer, stream end) and the task ended in another",
    "what a client was told to be final stays true",
)
CUT = Rule(
    c.STREAM_CUT,
    c.WARNING,
    "a stream ended or stayed silent without terminal, interrupted or message,"
    " while the store is terminal",
    "a stream tells its client how the task ended",
)
PUSH = Rule(
    c.PUSH_CONTRADICTED,
    c.WARNING,
    "the last delivered push disagrees with the final stored state, or none was sent for it",
    "the last notification tells how the task ended",
)


def judge_answers(life: Incarnation, _: str, cluster: Cluster) -> Iterable[Conclusion]:
    """Compares each terminal state that clients were told with the one the task has now."""
    told = life.answers.told
    if not told:
        return ()
    final = life.final()
    if final is None:
        return ()
    return [
        found
        for state in sorted(told)
        if state != final.state
        for found in _contradiction(life, told[state], final, cluster)
    ]


def _contradiction(
    life: Incarnation, answer: Fact, final: Stored, cluster: Cluster
) -> Iterable[Conclusion]:
    """The task has another state than was told.

    Proven when the state told was stored at a version before the present one. When nobody is known to
    have stored it, it may yet turn out to be the latest; the task having another *terminal* state is
    then enough to suspect.
    """
    if final.version is None:
        if answer.replica != final.fact.replica or final.fact.n < answer.n:
            return
        stored = True
    else:
        stored = answer.state in life.endings.versions
    if not (stored or final.terminal):
        return
    verb = "ended" if final.terminal else "is"
    yield Conclusion(
        CONTRADICTED,
        f"{answer.state}",
        (answer, final.fact),
        f"{cluster.name(answer.replica)} told a client {answer.state} ({answer.method or 'answer'}),"
        f" but the task {verb} {_told(cluster, final)}",
        suspected=not stored,
        if_complete=True,
        not_before=None if stored else answer.time_unix_nano + SETTLE_NS,
    )


def _told(cluster: Cluster, final: Stored) -> str:
    if final.fact.kind == c.WRITE and final.fact.version is None and final.version is not None:
        return f"{final.state} (v{final.version})"
    return state_at(cluster, final.state, final.fact)


def judge_streams(life: Incarnation, _: str, cluster: Cluster) -> Iterable[Conclusion]:
    """Looks for streams that ended without a word after the task had."""
    cut = life.answers.cut
    if not cut:
        return ()
    final = life.final()
    if final is None or not final.terminal:
        return ()
    return [found for stream in cut for found in _cut(life, stream, final, cluster)]


def _cut(life: Incarnation, stream: Fact, final: Stored, cluster: Cluster) -> Iterable[Conclusion]:
    seen = life.endings.seen.get(stream.replica)
    by_order = seen is not None and seen.n < stream.n
    ended = seen if seen is not None and by_order else final.fact
    if not by_order and not (ended.replica != stream.replica and cluster.before(ended, stream)):
        return
    why = "evicted as too slow" if stream.ending == c.END_EVICTED else "cut"
    clocks = "" if by_order else f", {by_the_clocks(cluster, ended, stream)}"
    yield Conclusion(
        CUT,
        stream.id,
        (ended, stream),
        f"a stream of {cluster.name(stream.replica)} ended ({why}) without telling that the task was"
        f" {_told(cluster, final)}{clocks}",
        suspected=not by_order,
        if_complete=True,
    )


def judge_pushes(life: Incarnation, _: str, cluster: Cluster) -> Iterable[Conclusion]:
    """Compares the last notification with the state the task ended in."""
    pushes = life.answers.pushes
    if not pushes:
        return ()
    final = life.final()
    if final is None or not final.terminal:
        return ()
    right = [push for (_, state), push in pushes.items() if state == final.state]
    wrong = sorted(
        (push for (_, state), push in pushes.items() if state != final.state),
        key=lambda push: (push.time_unix_nano, push.id),
    )
    if not wrong:
        return ()
    if not right:
        return (_never_pushed(wrong[-1], final, cluster),)
    late = [push for push in wrong if _after_all(push, right, cluster)]
    if not late:
        return ()
    by_order = all(other.replica == late[-1].replica for other in right)
    return (_pushed_last(late[-1], final, cluster, by_order=by_order),)


def _never_pushed(last: Fact, final: Stored, cluster: Cluster) -> Conclusion:
    return Conclusion(
        PUSH,
        f"{final.state}",
        (last, final.fact),
        f"the last notification said {last.state} ({cluster.name(last.replica)});"
        f" nobody was notified of {_told(cluster, final)}",
        if_complete=True,
        not_before=max(final.fact.time_unix_nano, last.time_unix_nano) + SETTLE_NS,
    )


def _pushed_last(push: Fact, final: Stored, cluster: Cluster, *, by_order: bool) -> Conclusion:
    return Conclusion(
        PUSH,
        f"{final.state}",
        (final.fact, push),
        f"the last notification said {push.state} ({cluster.name(push.replica)}),"
        f" after that of {_told(cluster, final)}",
        suspected=not by_order,
        if_complete=True,
    )


def _after_all(push: Fact, right: list[Fact], cluster: Cluster) -> bool:
    return all(
        other.n < push.n if other.replica == push.replica else cluster.before(other, push)
        for other in right
    )


CHECKS = (
    Check(CONTRADICTED, ANSWERS, judge_answers),
    Check(CUT, ANSWERS, judge_streams),
    Check(PUSH, ANSWERS, judge_pushes),
)
