"""What executors of one task sent to the outside world, as they and the resources tell it."""

from __future__ import annotations

from a2a_fencing import conventions as c
from a2a_fencing.checker.versions import by_number
from a2a_fencing.facts import Fact


class Attempt:
    """One attempt of a dispatch.

    Attributes:
        id: Names the attempt among those of its task.
        dispatch: The dispatch it belongs to.
        start: The fact that it began; None when not here.
        ends: Facts that say how it ended: the executor's, and those of resources.
    """

    __slots__ = ("dispatch", "ends", "id", "start")

    def __init__(self, identity: str, dispatch: str) -> None:
        self.id = identity
        self.dispatch = dispatch
        self.start: Fact | None = None
        self.ends: list[Fact] = []

    @property
    def replica(self) -> str:
        """The replica that dispatched."""
        return self.start.replica if self.start is not None else self.dispatch.rpartition(":")[0]

    def told(self) -> tuple[Fact, ...]:
        """The fact that says best how it ended, if there is one."""
        end = self.accepted or min(self.ends, key=self._by_teller, default=None)
        return () if end is None else (end,)

    @property
    def accepted(self) -> Fact | None:
        """The fact that says that it was accepted, and not as a repetition; the executor's before a
        resource's.
        """
        if any(end.reason == c.REPLAYED for end in self.ends):
            return None
        return min((e for e in self.ends if e.outcome == c.ACCEPTED), key=self._by_teller, default=None)

    @property
    def effect(self) -> Fact | None:
        """The same where something was done for certain, not only let through."""
        if self.accepted is None:
            return None
        done = (e for e in self.ends if e.outcome == c.ACCEPTED and e.reason != c.ADMITTED)
        return min(done, key=self._by_teller, default=None)

    def _by_teller(self, fact: Fact) -> tuple[bool, str, int]:
        return is_told_by_resource(fact), *by_number(fact)


class Dispatches:
    """All dispatch attempts of one incarnation."""

    __slots__ = ("_logical", "_of", "attempts", "effects", "repeated")

    def __init__(self) -> None:
        self.attempts: dict[str, Attempt] = {}
        self.effects: dict[tuple[str, str], dict[str, Attempt]] = {}
        """Attempts that took effect, by name and logical key."""
        self.repeated: set[tuple[str, str]] = set()
        """Names and keys with more than one effect."""
        self._logical: dict[str, tuple[str, str]] = {}
        """Name and key of each dispatch that has a key; what resources tell has none."""
        self._of: dict[str, list[Attempt]] = {}

    def add(self, fact: Fact) -> Attempt:
        """Files a dispatch fact."""
        dispatch = fact.dispatch_id or fact.id
        identity = f"{dispatch}#{fact.attempt or 1}"
        attempt = self.attempts.get(identity)
        if attempt is None:
            attempt = self.attempts[identity] = Attempt(identity, dispatch)
            self._of.setdefault(dispatch, []).append(attempt)
        if fact.phase == c.STARTED:
            attempt.start = fact if attempt.start is None else min(attempt.start, fact, key=by_number)
        else:
            attempt.ends.append(fact)
        if fact.key is not None and dispatch not in self._logical:
            self._logical[dispatch] = fact.name or "", fact.key
            for other in self._of[dispatch]:
                self._count(other)
        elif fact.phase != c.STARTED:
            self._count(attempt)
        return attempt

    def _count(self, attempt: Attempt) -> None:
        logical = self._logical.get(attempt.dispatch)
        if logical is None:
            return
        effects = self.effects.setdefault(logical, {})
        if attempt.effect is not None:
            effects[attempt.id] = attempt
        else:
            effects.pop(attempt.id, None)
        if len(effects) > 1:
            self.repeated.add(logical)
        else:
            self.repeated.discard(logical)


def is_told_by_resource(fact: Fact) -> bool:
    """Whether a resource tells of a replica's dispatch."""
    return fact.kind == c.DISPATCH and fact.origin == c.FROM_RESOURCE
