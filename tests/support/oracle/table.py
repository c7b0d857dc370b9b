"""The outcome of a run as a table, and as the list of what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from a2a_fencing import conventions as c
from support.oracle.comparison import Comparison, Score
from support.oracle.run import OracleSettings, Outcome


def lines(outcome: Outcome) -> Iterator[str]:
    """The table."""
    comparison = outcome.comparison
    reported = comparison.reported
    yield f"logged     {comparison.tasks:,} tasks, {comparison.writes:,} writes"
    yield (
        f"reported   {outcome.facts:,} facts; of the replicas' writes {reported.accepted:,} as accepted,"
        f" {len(reported.unsure):,} as unknown, {len(reported.lost):,} lost with a killed replica"
    )
    yield (
        f"differ     reported, not logged: {len(reported.phantom):,};"
        f" logged, not reported: {len(reported.untold):,}"
    )
    yield ""
    yield f"{'':46}{'logged':>8}{'found':>8}{'recall':>9}{'claimed':>9}{'true':>8}{'precision':>11}"
    yield _row("terminal-overwritten", comparison.overwritten)
    yield _row("terminal-mutated (tasks)", comparison.mutated)
    yield _row("version-fork", comparison.forked)
    yield _row("terminal-overwritten over raw SQL's state", comparison.over_raw)
    yield _row("unseen-writer (tasks written after raw SQL)", comparison.unseen)
    yield _row("terminal-overwritten, left over by a deletion", comparison.leftover)
    yield ""
    yield from _apart(comparison)


def _apart(comparison: Comparison) -> Iterator[str]:
    yield f"false claims called proven: {comparison.proven_falsely:,}"
    yield f"terminal states that raw SQL wrote over: {comparison.by_raw:,}"
    yield f"findings on a task whose deleter was killed or did not know: {comparison.misled.claimed:,}"
    yield f"overwrites lost with a killed replica, by the task's verdict: {_counts(comparison.lost)}"
    yield (
        "overwrites whose writer does not know of them, and nobody since, by the task's verdict:"
        f" {_counts(comparison.open)}"
    )
    if comparison.as_fork:
        yield f"overwrites missed, but told as a version given twice: {comparison.as_fork:,}"


def problems(settings: OracleSettings, outcome: Outcome) -> Iterator[str]:
    """What must not be, a line each."""
    comparison = outcome.comparison
    reported = comparison.reported
    yield from (f"reported, but not logged: {write}" for write in reported.phantom)
    yield from (f"logged, but not reported: {write}" for write in reported.untold)
    for rule, score in (
        (c.TERMINAL_OVERWRITTEN, comparison.overwritten),
        (c.TERMINAL_MUTATED, comparison.mutated),
        (c.VERSION_FORK, comparison.forked),
    ):
        yield from (f"{rule} claimed falsely: {what}" for what in score.false)
        # Where a store's own versions go back, no order of writes can be told from them.
        if not settings.driver_defaults:
            yield from (f"{rule} missed: {what}" for what in score.missed)
    yield from (f"{c.UNSEEN_WRITER} claimed falsely: {what}" for what in comparison.unseen.false)
    if comparison.misled.proven:
        yield f"called proven, though a deletion was not told: {comparison.misled.proven:,}"
    yield from (f"overwritten, and passes for fine: {what}" for what in comparison.fine)
    if not outcome.same:
        yield "what was concluded while the facts came is not what all of them show"
    if settings.guard and comparison.overwritten_by_replicas:
        yield f"overwritten in spite of the guard: {comparison.overwritten_by_replicas:,}"


def _row(name: str, score: Score) -> str:
    return (
        f"{name:46}{score.logged:>8,}{score.found:>8,}{_percent(score.found, score.logged):>9}"
        f"{score.claimed:>9,}{score.true:>8,}{_percent(score.true, score.claimed):>11}"
    )


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{what} {number:,}" for what, number in sorted(counter.items())) or "none"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.4g} %" if whole else "-"
