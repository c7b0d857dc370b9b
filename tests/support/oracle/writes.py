"""The hooks alone against the log: is every write reported, and none that did not happen?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact
from support.oracle.labels import replica_label
from support.oracle.record import Record, TaskId, Write


@dataclass(slots=True)
class Reported:
    """Writes that replicas committed, by what they told of them.

    Attributes:
        accepted: Told as accepted.
        unsure: Told as of unknown outcome, or as refused because of the writer's own commit.
        lost: Not told, because the writer was killed.
        untold: Not told for no such reason.
        phantom: Told as accepted, and not in the log.
    """

    accepted: int = 0
    unsure: list[Write] = field(default_factory=list)
    lost: list[Write] = field(default_factory=list)
    untold: list[Write] = field(default_factory=list)
    phantom: list[str] = field(default_factory=list)


class Labels:
    """Which process a fact came from, by the labels that the triggers know."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._labels = {
            fact.replica: replica_label(fact.replica_name or "", fact.pid or 0)
            for fact in facts
            if fact.kind == c.HEARTBEAT
        }

    def of(self, fact: Fact) -> str:
        """The label; of a replica that no heartbeat introduced, its id."""
        return self._labels.get(fact.replica, fact.replica)


_Place = tuple[TaskId, "int | None", "str | None", str]
"""Task, version, state and writer. The state is left out where raw SQL may have changed it since."""


def compare_writes(record: Record, facts: Iterable[Fact], labels: Labels, killed: set[str]) -> Reported:
    """Sorts the committed writes of replicas by what was told of them."""
    told = [fact for fact in facts if fact.kind == c.WRITE and fact.task is not None]
    accepted: Counter[_Place] = Counter()
    unsure: Counter[_Place] = Counter()
    for fact in told:
        if fact.outcome == c.ACCEPTED:
            version = fact.version if isinstance(fact.version, int) else None
            accepted[_place(record, task_of(fact), version, fact.state, labels.of(fact))] += 1
        elif fact.outcome == c.UNKNOWN or fact.reason == c.OWN_COMMIT:
            unsure[_place(record, task_of(fact), None, fact.state, labels.of(fact))] += 1
    result = Reported()
    for write in sorted(record.writes, key=lambda write: write.version is None):
        if write.raw:
            continue
        place = _place(record, write.task, write.version, write.state, write.who)
        if write.version is None:
            place = _with_its_supposed_version(place, accepted)
        if accepted[place]:
            accepted[place] -= 1
            result.accepted += 1
        elif unsure[_place(record, write.task, None, write.state, write.who)]:
            result.unsure.append(write)
        elif write.who in killed:
            result.lost.append(write)
        else:
            result.untold.append(write)
    result.phantom = [f"{task[1]} v{v}: {state} of {who}" for task, v, state, who in accepted.elements()]
    return result


def task_of(fact: Fact) -> TaskId:
    """Owner and id of a fact's task."""
    return (fact.task.owner, fact.task.task_id) if fact.task is not None else ("", "")


def _place(record: Record, task: TaskId, version: int | None, state: str | None, who: str) -> _Place:
    return task, version, None if task in record.raw else state, who


def _with_its_supposed_version(place: _Place, accepted: Counter[_Place]) -> _Place:
    """A cancel on SQLite with its driver's defaults: its row of versions was deleted meanwhile."""
    task, _, state, who = place
    same = (
        known
        for known in accepted
        if (known[0], known[2], known[3]) == (task, state, who) and accepted[known]
    )
    return next(same, place)
