"""What clients were told about one task."""

from __future__ import annotations

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact


class Answers:
    """Answers and stream ends of one incarnation.

    Attributes:
        told: The first answer by terminal state; notifications are not among them.
        cut: Streams that ended or fell silent without an end that a client understands.
        pushes: The latest delivered notification by replica and state.
        cancels: The first successful answer to a cancel by replica.
    """

    __slots__ = ("cancels", "cut", "pushes", "told")

    def __init__(self) -> None:
        self.told: dict[str, Fact] = {}
        self.cut: list[Fact] = []
        self.pushes: dict[tuple[str, str], Fact] = {}
        self.cancels: dict[str, Fact] = {}

    def add(self, answer: Fact, n: int) -> None:
        """Files an answer fact."""
        state = answer.state
        if answer.method == c.PUSH:
            if state is not None and answer.outcome in (None, c.ACCEPTED):
                known = self.pushes.get((answer.replica, state))
                if known is None or known.n < n:
                    self.pushes[answer.replica, state] = answer
        elif state in c.TERMINAL_STATES:
            self._tell(answer, state, n)
        elif answer.ending in (c.END_CUT, c.END_EVICTED):
            self.cut.append(answer)

    def _tell(self, answer: Fact, state: str, n: int) -> None:
        known = self.told.get(state)
        if known is None or _when(answer) < _when(known):
            self.told[state] = answer
        if answer.method == c.CANCEL_TASK and state == c.CANCELED:
            cancel = self.cancels.get(answer.replica)
            if cancel is None or n < cancel.n:
                self.cancels[answer.replica] = answer


def _when(answer: Fact) -> tuple[int, str]:
    return answer.time_unix_nano, answer.id
