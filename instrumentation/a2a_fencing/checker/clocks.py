"""How far the wall clocks of two replicas can be apart, measured from what one saw of the other.

A replica that read version 5 did so after the replica that wrote version 5 had begun to write it. With
the two wall-clock times this bounds how far one clock can be ahead of the other. The bounds are as good
as the traffic between the replicas is fast; where there is none, nothing is said about their order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from a2a_fencing.facts import Fact

Pair = tuple[str, str]
"""Two replicas: how far the second one's clock is ahead of the first one's."""

_STEPS_NS = tuple(step * 10**power for power in range(6, 13) for step in (1, 2, 5))


class Clocks:
    """Upper bounds on clock differences, and the order of events that they settle.

    Each bound is claimed by the task in which something was seen, so that the claims of a task can be
    withdrawn when a late fact shows that it had been misread.
    """

    def __init__(self) -> None:
        self._ahead: dict[Pair, int] = {}
        self._claims: dict[Pair, dict[Hashable, int]] = {}
        self._kept: dict[Pair, int] = {}

    def saw(self, source: Hashable, cause: Fact, effect: Fact) -> Iterable[Pair]:
        """Notes that `effect` was recorded after `cause` began, on another replica.

        Args:
            source: The task that shows it.
            cause: What was seen.
            effect: The fact of having seen it.

        Returns:
            The pair of replicas whose bound got tighter, if it did.
        """
        pair = (cause.replica, effect.replica)
        bound = effect.time_unix_nano - begin(cause)
        claims = self._claims.setdefault(pair, {})
        known = claims.get(source)
        if known is not None and known <= bound:
            return ()
        claims[source] = bound
        ahead = self._ahead.get(pair)
        if ahead is not None and ahead <= bound:
            return ()
        self._ahead[pair] = bound
        return (pair,)

    def withdraw(self, source: Hashable) -> Iterable[Pair]:
        """Takes back what a task had shown; gives the pairs whose bound changed."""
        claimed = [pair for pair, claims in self._claims.items() if claims.pop(source, None) is not None]
        return [changed for pair in claimed for changed in self._update(pair)]

    def keep(self, source: Hashable) -> None:
        """Lets a task go whose bounds stay."""
        for pair, claims in self._claims.items():
            bound = claims.pop(source, None)
            if bound is not None:
                self._kept[pair] = min(bound, self._kept.get(pair, bound))

    @property
    def bounds(self) -> Mapping[Pair, int]:
        """How far the second clock of a pair can be ahead of the first, ns."""
        return self._ahead

    def assume(self, bounds: Mapping[Pair, int]) -> Iterable[Pair]:
        """Takes bounds that tasks of an earlier life had shown; gives the pairs whose bound changed."""
        for pair, bound in bounds.items():
            self._kept[pair] = min(bound, self._kept.get(pair, bound))
        return [changed for pair in bounds for changed in self._update(pair)]

    def _update(self, pair: Pair) -> Iterable[Pair]:
        claims = self._claims.get(pair, {})
        bounds = [*claims.values(), *((self._kept[pair],) if pair in self._kept else ())]
        before = self._ahead.pop(pair, None)
        if bounds:
            self._ahead[pair] = min(bounds)
        return (pair,) if self._ahead.get(pair) != before else ()

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
