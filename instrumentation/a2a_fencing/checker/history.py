"""The facts of one task, put in order."""

from __future__ import annotations

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, TaskKey


class History:
    """The facts of one task."""

    def __init__(self, key: TaskKey) -> None:
        self.key = key
        self._facts: dict[str, Fact] = {}

    def add(self, fact: Fact) -> None:
        """Takes a fact; twice is once."""
        self._facts[fact.id] = fact

    @property
    def facts(self) -> list[Fact]:
        """All facts by replica and number."""
        return sorted(self._facts.values(), key=lambda fact: (fact.replica, fact.n))

    @property
    def chain(self) -> list[Fact]:
        """Accepted writes of a store that versions, by version."""
        writes = [f for f in self.facts if f.kind == c.WRITE and f.outcome == c.ACCEPTED]
        return sorted(
            (f for f in writes if f.version is not None),
            key=lambda f: (isinstance(f.version, str), f.version),
        )

    @property
    def unversioned(self) -> list[Fact]:
        """Accepted writes without a version, by replica and number."""
        return [
            f for f in self.facts if f.kind == c.WRITE and f.outcome == c.ACCEPTED and f.version is None
        ]

    @property
    def answers(self) -> list[Fact]:
        """What clients were told."""
        return [f for f in self.facts if f.kind == c.ANSWER]

    @property
    def verdict(self) -> str:
        """*fine*, or *unknown* when a predecessor is."""
        chain = self.chain
        versions = {f.version for f in chain}
        known = all(
            f.base_version is None or f.base_state is not None or f.base_version in versions
            for f in chain
        )
        return c.FINE if known else c.UNKNOWN
