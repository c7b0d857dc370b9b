"""What executors of one task sent to the outside world."""

from __future__ import annotations

from a2a_fencing import conventions as c
from a2a_fencing.checker.versions import by_number
from a2a_fencing.facts import Fact


class Attempt:
    """One attempt of a dispatch.

    Attributes:
        id: Names the attempt among those of its task.
        start: The fact that it began; None when not here.
        ends: Facts that say how it ended.
    """

    __slots__ = ("ends", "id", "start")

    def __init__(self, identity: str) -> None:
        self.id = identity
        self.start: Fact | None = None
        self.ends: list[Fact] = []

    def told(self) -> tuple[Fact, ...]:
        """The fact that says best how it ended, if there is one."""
        end = self.accepted or min(self.ends, key=by_number, default=None)
        return () if end is None else (end,)

    @property
    def accepted(self) -> Fact | None:
        """The fact that says that it was accepted: an effect."""
        return min((e for e in self.ends if e.outcome == c.ACCEPTED), key=by_number, default=None)


class Dispatches:
    """All dispatch attempts of one incarnation."""

    __slots__ = ("attempts", "effects", "repeated")

    def __init__(self) -> None:
        self.attempts: dict[str, Attempt] = {}
        self.effects: dict[tuple[str, str], list[Fact]] = {}
        """Accepted attempts by name and logical key, earliest first."""
        self.repeated: set[tuple[str, str]] = set()
        """Names and keys with more than one effect."""

    def add(self, fact: Fact) -> Attempt:
        """Files a dispatch fact."""
        identity = f"{fact.dispatch_id or fact.id}#{fact.attempt or 1}"
        attempt = self.attempts.get(identity)
        if attempt is None:
            attempt = self.attempts[identity] = Attempt(identity)
        if fact.phase == c.STARTED:
            attempt.start = fact if attempt.start is None else min(attempt.start, fact, key=by_number)
        else:
            attempt.ends.append(fact)
            if fact.outcome == c.ACCEPTED and fact.key is not None:
                self._effect((fact.name or "", fact.key), fact)
        return attempt

    def _effect(self, logical: tuple[str, str], fact: Fact) -> None:
        effects = self.effects.setdefault(logical, [])
        effects.append(fact)
        if len(effects) > 1:
            effects.sort(key=lambda effect: (effect.time_unix_nano, effect.id))
            self.repeated.add(logical)
