"""How far the wall clocks of two replicas can be apart, measured from what one saw of the other.

A replica that read version 5 did so after the replica that wrote version 5 had begun to write it. With
the two wall-clock times this bounds how far one clock can be ahead of the other. The bounds are as good
as the traffic between the replicas is fast; where there is none, nothing is said about their order.
"""

from __future__ import annotations

from a2a_fencing.facts import Fact

_STEPS_NS = tuple(step * 10**power for power in range(6, 13) for step in (1, 2, 5))


class Clocks:
    """Upper bounds on clock differences, and the order of events that they settle."""

    def __init__(self) -> None:
        self._ahead: dict[tuple[str, str], int] = {}

    def saw(self, cause: Fact, effect: Fact) -> tuple[str, str] | None:
        """Notes that `effect` was recorded after `cause` began, on another replica.

        Returns:
            The pair of replicas whose bound got tighter, or None.
        """
        pair = (cause.replica, effect.replica)
        bound = effect.time_unix_nano - begin(cause)
        known = self._ahead.get(pair)
        if known is not None and known <= bound:
            return None
        self._ahead[pair] = bound
        return pair

    def before(self, earlier: Fact, later: Fact) -> bool:
        """Whether `earlier` had ended before `later` began, however the clocks stand in their bounds."""
        return self.time_before(earlier.replica, earlier.time_unix_nano, later)

    def time_before(self, replica: str, time_unix_nano: int, later: Fact) -> bool:
        """Whether a time on one replica's clock was certainly past before `later` began on another's."""
        ahead = self._ahead.get((replica, later.replica))
        return ahead is not None and time_unix_nano + ahead < begin(later)

    def latest_start(self, end: Fact, replica: str) -> int | None:
        """Before which time on the clock of `replica` something certainly began before `end`, ns."""
        ahead = self._ahead.get((replica, end.replica))
        return None if ahead is None else begin(end) - ahead

    def skew(self, one: str, other: str) -> int | None:
        """How far two clocks can be apart, ns, rounded up so that it changes seldom; None: unknown."""
        bounds = [self._ahead.get((one, other)), self._ahead.get((other, one))]
        known = [abs(bound) for bound in bounds if bound is not None]
        if not known:
            return None
        return next((step for step in _STEPS_NS if step >= max(known)), max(known))


def begin(fact: Fact) -> int:
    """When what a fact records began, on its replica's clock, ns: facts are recorded at the end."""
    return fact.time_unix_nano - (fact.duration_ns or 0)
