"""Hooks and checker together against the log: what was missed, and what was claimed falsely."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding, Report
from a2a_fencing.facts import Fact
from support.oracle.record import Record, TaskId, Write
from support.oracle.writes import Labels, Reported, compare_writes, task_of


@dataclass(slots=True)
class Score:
    """One rule against the log.

    Attributes:
        logged: How often it was violated.
        missed: Violations that were not found.
        claimed: How many findings there are.
        false: Findings of what did not happen.
        proven: How many of these were called proven.
    """

    logged: int = 0
    missed: list[str] = field(default_factory=list)
    claimed: int = 0
    false: list[str] = field(default_factory=list)
    proven: int = 0

    @property
    def found(self) -> int:
        """How many violations were found."""
        return self.logged - len(self.missed)

    @property
    def true(self) -> int:
        """How many findings are true."""
        return self.claimed - len(self.false)

    def refute(self, finding: Finding) -> None:
        """Counts a finding of what did not happen."""
        self.false.append(f"{finding.task.task_id} ({finding.certainty}): {finding.explanation}")
        self.proven += finding.certainty == c.PROVEN


@dataclass(slots=True)
class Comparison:
    """What was found against what happened; what has to do with raw SQL is counted apart.

    Attributes:
        tasks, writes: How many the log has.
        reported: What became of the replicas' writes.
        overwritten: Terminal states that a replica wrote over a replica's.
        as_fork: Those of them that were missed, but told as a version given twice.
        forked: Versions that replicas gave twice; without the tasks of raw SQL.
        mutated: Tasks in which a replica saved a terminal state again; without the tasks of raw SQL.
        over_raw: Terminal states of raw SQL that a replica wrote over: only a read could tell.
        by_raw: Terminal states that raw SQL wrote over.
        unseen: Tasks that raw SQL changed, so far as a replica wrote next and might have told.
        leftover: Overwrites of what a deletion had left over, which is another life's: only who had read
            it can tell.
        lost: Overwrites whose writer was killed before it told, by the verdict of the task.
        open: Overwrites whose writer does not know that they were stored, and which nobody has seen
            since, by the verdict of the task.
        misled: Findings about tasks whose deletion was not told, because the deleter was killed, or lost
            the answer and found the task's row there as before.
        fine: Tasks that replicas overwrote and that pass for fine.
    """

    tasks: int
    writes: int
    reported: Reported
    overwritten: Score = field(default_factory=Score)
    as_fork: int = 0
    forked: Score = field(default_factory=Score)
    mutated: Score = field(default_factory=Score)
    over_raw: Score = field(default_factory=Score)
    by_raw: int = 0
    unseen: Score = field(default_factory=Score)
    leftover: Score = field(default_factory=Score)
    lost: Counter[str] = field(default_factory=Counter)
    open: Counter[str] = field(default_factory=Counter)
    misled: Score = field(default_factory=Score)
    fine: list[str] = field(default_factory=list)

    @property
    def overwritten_by_replicas(self) -> int:
        """Every terminal state that a replica wrote over a replica's, also those that were lost."""
        return self.overwritten.logged + self.lost.total() + self.open.total()

    @property
    def proven_falsely(self) -> int:
        """False claims that were called proven, also about tasks of raw SQL."""
        scores = (
            self.overwritten,
            self.forked,
            self.mutated,
            self.over_raw,
            self.unseen,
            self.leftover,
            self.misled,
        )
        return sum(score.proven for score in scores)


def compare(
    record: Record,
    facts: Sequence[Fact],
    findings: Collection[Finding],
    report: Report,
    killed: set[str],
) -> Comparison:
    """Compares.

    Args:
        record: What the log says.
        facts: All facts that were received.
        findings: What was concluded from them.
        report: The verdicts.
        killed: Labels of the processes that were killed.
    """
    labels = Labels(facts)
    reported = compare_writes(record, facts, labels, killed)
    comparing = _Comparing(
        record, {fact.id: fact for fact in facts}, labels, reported, findings, _verdicts(report), killed
    )
    comparing.overwritten()
    comparing.forked()
    comparing.mutated()
    comparing.unseen()
    return comparing.result


class _Comparing:
    def __init__(
        self,
        record: Record,
        facts: dict[str, Fact],
        labels: Labels,
        reported: Reported,
        findings: Collection[Finding],
        verdicts: dict[TaskId, str],
        killed: set[str],
    ) -> None:
        self._record = record
        self._facts = facts
        self._labels = labels
        self._findings = findings
        self._verdicts = verdicts
        self._lost = {(write.task, write.version, write.who) for write in reported.lost}
        self._unsure = set(reported.unsure)
        self._secretly_deleted = _untold_deletions(record, facts.values(), labels, killed)
        self.result = Comparison(len(record.tasks), len(record.writes), reported)

    def overwritten(self) -> None:
        """Each overwrite in the log takes a finding that says just this."""
        result = self.result
        claims: dict[tuple[TaskId, str], list[Finding]] = defaultdict(list)
        for finding in self._of(c.TERMINAL_OVERWRITTEN):
            claims[_place(finding)].append(finding)
        forked = {_place(finding) for finding in self._of(c.VERSION_FORK)}
        for write in self._record.writes:
            if not write.overwrites:
                continue
            if write.raw:
                result.by_raw += 1
                continue
            here = claims[write.task, f"v{write.version}"]
            claim = next((claim for claim in here if self._says(claim, write)), None)
            if claim is not None:
                here.remove(claim)
            verdict = self._verdicts.get(write.task, c.UNKNOWN)
            if self._is_lost(write):
                result.lost[verdict] += 1
            elif claim is None and write in self._unsure:
                result.open[verdict] += 1
            else:
                score = self._score_of(write)
                score.logged += 1
                score.claimed += claim is not None
                if claim is None:
                    score.missed.append(str(write))
                    result.as_fork += score is result.overwritten and not forked.isdisjoint(
                        (write.task, f"v{version}") for version in _neighbours(write)
                    )
            if write.victim_is_replica and not write.leftover and verdict == c.FINE:
                result.fine.append(str(write))
        for claim in chain.from_iterable(claims.values()):
            score = result.over_raw if _task(claim) in self._record.raw else result.overwritten
            self._refute(score, claim)

    def _score_of(self, write: Write) -> Score:
        if not write.victim_is_replica:
            return self.result.over_raw
        return self.result.leftover if write.leftover else self.result.overwritten

    def forked(self) -> None:
        """Versions given twice, where no raw SQL moved versions."""
        score, raw = self.result.forked, self._record.raw
        logged = {
            (write.task, f"v{write.version}"): write
            for write in self._record.writes
            if write.forks and write.task not in raw and not self._is_lost(write)
        }
        claims = {_place(claim): claim for claim in self._of(c.VERSION_FORK) if _task(claim) not in raw}
        score.logged, score.claimed = len(logged), len(claims.keys() & logged.keys())
        score.missed = [str(logged[place]) for place in logged.keys() - claims.keys()]
        for place in claims.keys() - logged.keys():
            self._refute(score, claims[place])

    def mutated(self) -> None:
        """Tasks in which a terminal state was saved again; of several times in a row one is told."""
        score, raw = self.result.mutated, self._record.raw
        logged = {
            write.task: write
            for write in self._record.writes
            if write.repeats and write.task not in raw and not self._is_lost(write)
        }
        claims = {
            _task(claim): claim for claim in self._of(c.TERMINAL_MUTATED) if _task(claim) not in raw
        }
        score.logged, score.claimed = len(logged), len(claims.keys() & logged.keys())
        score.missed = [str(logged[task]) for task in logged.keys() - claims.keys()]
        for task in claims.keys() - logged.keys():
            self._refute(score, claims[task])

    def unseen(self) -> None:
        """Tasks that were changed past the SDK; what a killed replica did not tell is unseen, too."""
        score, record = self.result.unseen, self._record
        lost = {task for task, _, _ in self._lost} - record.raw
        claims = {_task(claim): claim for claim in self._of(c.UNSEEN_WRITER) if _task(claim) not in lost}
        score.logged = len(record.written_after_raw)
        score.missed = [task[1] for task in record.written_after_raw - claims.keys()]
        score.claimed = len(claims.keys() & record.raw)
        for task in claims.keys() - record.raw:
            self._refute(score, claims[task])

    # --- within ---

    def _refute(self, score: Score, claim: Finding) -> None:
        """Counts a claim that nothing in the log answers to."""
        if _task(claim) in self._secretly_deleted:
            score = self.result.misled
        score.claimed += 1
        score.refute(claim)

    def _of(self, rule: str) -> list[Finding]:
        return [finding for finding in self._findings if finding.rule == rule]

    def _is_lost(self, write: Write) -> bool:
        return (write.task, write.version, write.who) in self._lost

    def _says(self, claim: Finding, write: Write) -> bool:
        """Whether a finding of this task and version is about this write: by state and writer."""
        witness = (self._facts[identity] for identity in claim.witness if identity in self._facts)
        return any(
            fact.kind == c.WRITE
            and fact.state == write.state
            and fact.version in (None, write.version)
            and self._labels.of(fact) == write.who
            for fact in witness
        )


def _untold_deletions(
    record: Record, facts: Iterable[Fact], labels: Labels, killed: set[str]
) -> set[TaskId]:
    """Tasks that a replica deleted, which was killed before it told or could not know."""
    told = Counter(
        (task_of(fact), labels.of(fact)) for fact in facts if fact.kind == c.DELETED and fact.task
    )
    untold = Counter(record.deletions) - told
    return {task for task, who in untold if who in killed or (task, who) in record.halved}


def _neighbours(write: Write) -> Iterable[int]:
    """The write's version and the one before: where a fork shows that the order is not certain."""
    return (write.version, write.version - 1) if write.version is not None else ()


def _verdicts(report: Report) -> dict[TaskId, str]:
    """The worst verdict over the incarnations of each task id."""
    order = (c.VIOLATED, c.UNKNOWN, c.FINE)
    worst: dict[TaskId, str] = {}
    for key, verdict in report.verdicts.items():
        task = (key.owner, key.task_id)
        worst[task] = min(worst.get(task, c.FINE), verdict, key=order.index)
    return worst


def _task(finding: Finding) -> TaskId:
    return finding.task.owner, finding.task.task_id


def _place(finding: Finding) -> tuple[TaskId, str]:
    """Task and version of a finding about a version."""
    return _task(finding), finding.key.partition(" ")[0]
