"""The terminal states of one incarnation: who wrote them, who has seen them, at which version."""

from __future__ import annotations

from a2a_fencing.checker.versions import Known, after, executes
from a2a_fencing.facts import Fact


class Endings:
    """What is known of the end of a task; a fault of the store may have ended it more than once.

    Attributes:
        written: The first terminal write of each replica, by its executor or not, versioned or not.
        seen: The first fact by which each replica can have known a terminal state.
        versions: The lowest version of each terminal state that was stored.
    """

    __slots__ = ("seen", "versions", "written")

    def __init__(self) -> None:
        self.written: dict[tuple[str, bool, bool], Fact] = {}
        self.seen: dict[str, Fact] = {}
        self.versions: dict[str, Known] = {}

    def write(self, write: Fact, n: int, version: Known | None) -> bool:
        """Files an accepted write of a terminal state; whether that can change what is known."""
        by = (write.replica, executes(write), version is not None)
        known = self.written.get(by)
        first = known is None or after(known.version, version)
        first = first or (known is not None and known.version == version and n < known.n)
        if first:
            self.written[by] = write
        news = first or any(fact.version == version for fact in self.seen.values())
        if version is not None and write.state is not None:
            self.store(write.state, version)
        return self.see(write, n) or news

    def store(self, state: str, version: Known) -> None:
        """Files that a terminal state was stored at a version."""
        known = self.versions.get(state)
        if known is None or after(known, version):
            self.versions[state] = version

    def see(self, fact: Fact, n: int) -> bool:
        """Files that a replica knew a terminal state; whether that was not known before."""
        known = self.seen.get(fact.replica)
        if known is not None and n >= known.n:
            return False
        self.seen[fact.replica] = fact
        return True
