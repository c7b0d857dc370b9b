"""Which tasks a missing fact may be about: all but those that were certainly created after it."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_fencing.checker.cluster import Cluster
from a2a_fencing.checker.incarnation import Incarnation
from a2a_fencing.checker.report import Gap


class Exposure:
    """The gaps of a history, as one asks whether they can concern a task."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        # A replica's last gap tells: a task created after it was created after the others too.
        self._last = {gap.replica: gap for gap in cluster.gaps()}

    def doubts(self, life: Incarnation) -> Iterator[str]:
        """What may be missing of an incarnation, one sentence a replica."""
        for replica, gap in self._last.items():
            if not self._created_after(life, gap):
                yield f"facts of {self._cluster.name(replica)} are missing and may concern this task"

    def _created_after(self, life: Incarnation, gap: Gap) -> bool:
        born = life.born
        if born is None:
            return False
        if born.replica == gap.replica:
            return born.n > gap.last
        return gap.before_unix_nano is not None and self._cluster.clocks.time_before(
            gap.replica, gap.before_unix_nano, born
        )
