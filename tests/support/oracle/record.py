"""What the log says happened to each task: who wrote which state at which version, over what.

A life of a task ends when its row of versions is deleted. The SDK deletes the task's row before, in a
transaction of its own, and takes writes for the old life in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from a2a_fencing import conventions as c
from support.oracle.labels import RAW_SQL
from support.oracle.triggers import DELETE, VERSIONS, Change

TaskId = tuple[str, str]
"""Owner and id."""


@dataclass(frozen=True, slots=True)
class Write:
    """A committed write.

    Attributes:
        task: Which task.
        who: Label of the writer.
        version: The version made; None when the writer did not care for versions.
        state: The state stored.
        before: The state it replaced, None at the beginning.
        victim: Label of who had changed it to that.
        forks: Whether this life of the task had this version, or a later one, before.
        leftover: Whether the state it replaced was left over from a life that had ended.
    """

    task: TaskId
    who: str
    version: int | None
    state: str
    before: str | None
    victim: str
    forks: bool
    leftover: bool

    @property
    def raw(self) -> bool:
        """Whether it went past the SDK."""
        return self.who == RAW_SQL

    @property
    def victim_is_replica(self) -> bool:
        """Whether what it replaced was written through the SDK."""
        return self.victim != RAW_SQL

    @property
    def overwrites(self) -> bool:
        """Whether it replaced a terminal state by another one."""
        return self.before in c.TERMINAL_STATES and self.before != self.state

    @property
    def repeats(self) -> bool:
        """Whether it saved a terminal state again."""
        return self.before in c.TERMINAL_STATES and self.before == self.state

    def __str__(self) -> str:
        what = f"{self.task[1]} v{self.version}: {self.state} of {self.who}"
        return f"{what} replaced {self.before} of {self.victim}" if self.victim else what


class Record:
    """The log as writes, in the order of each task.

    Attributes:
        writes: Every write.
        tasks: Every task.
        raw: Tasks that were changed past the SDK.
        written_after_raw: Tasks that raw SQL changed and a replica wrote next, so that it might tell.
        deletions: Task and deleter of each life that ended.
        halved: Those of them that left the task's row behind, as it was saved between their two steps.
    """

    def __init__(self, changes: Iterable[Change]) -> None:
        logs: defaultdict[TaskId, list[Change]] = defaultdict(list)
        for change in changes:
            logs[change.owner, change.task_id].append(change)
        self.tasks = set(logs)
        self.writes = [write for task, log in logs.items() for write in _writes(task, log)]
        self.raw = {write.task for write in self.writes if write.raw}
        self.written_after_raw = {
            first.task
            for first, then in pairwise(self.writes)
            if first.task == then.task
            and first.raw
            and (first.version is not None or first.state != first.before)
            and not then.raw
        }
        self.deletions = [
            (task, change.who)
            for task, log in logs.items()
            for change in log
            if change.source == VERSIONS and change.op == DELETE
        ]
        self.halved = {(task, who) for task, log in logs.items() for who in _halved(log)}


def _halved(log: Iterable[Change]) -> Iterator[str]:
    """Who deleted the versions of a task whose row was stored at that moment."""
    is_stored = False
    for change in log:
        if change.source != VERSIONS:
            is_stored = change.op != DELETE
        elif change.op == DELETE and is_stored:
            yield change.who


def _writes(task: TaskId, log: Sequence[Change]) -> Iterator[Write]:
    row: str | None = None
    """What the task's row holds, in whichever life it was stored."""
    before, victim, highest, leftover = None, "", 0, False
    versioned: dict[int, Change] = {}
    """By the sequence number of a row's change, the change of the version in the same transaction."""
    for index, change in enumerate(log):
        made = versioned.get(change.seq)
        if change.source == VERSIONS:
            if change.op == DELETE:
                # What was stored between the two transactions of the deletion survives it.
                before, highest, leftover = row, 0, row is not None
                continue
            change_of_row = _row_change_of(change, log[index + 1 :])
            if change_of_row is not None:
                versioned[change_of_row.seq] = change
                continue
            made = change  # which left the row as it was
        elif change.op == DELETE:
            row = None
            continue
        else:
            row = change.state
        version = made.version if made is not None else None
        state = row or before
        if state is not None:
            forks = version is not None and version <= highest
            yield Write(task, change.who, version, state, before, victim, forks, leftover)
        leftover = False
        if state != before:
            # Who saves a state again leaves its column alone: it stays the one's who changed it.
            victim = change.who
        before, highest = state, max(highest, version or 0)


def _row_change_of(version: Change, later: Iterable[Change]) -> Change | None:
    """The change of the task's row in the transaction that made the version, if it made one."""
    for change in later:
        if change.source == VERSIONS:
            return None
        if change.op != DELETE and (change.who, change.version) == (version.who, version.version):
            return change
    return None
