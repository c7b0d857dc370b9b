"""Capturing a history in the process that makes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.trace import Span, Tracer

from a2a_fencing import internal_errors, recorder
from a2a_fencing.checker import Report, check
from a2a_fencing.facts import Fact
from a2a_fencing.guard import enforce, wanted
from a2a_fencing.hooks import Hooks
from a2a_fencing.recorder import Recorder
from a2a_fencing.replica import Replica


class History:
    """What was observed while `capture` was open.

    Attributes:
        facts: In the order in which they were recorded.
        replica: Id of the replica that recorded them.
    """

    def __init__(self, replica: str) -> None:
        self.facts: list[Fact] = []
        self.replica = replica

    def check(self) -> Report:
        """Judges what was recorded so far."""
        return check(self.facts)

    def of(self, kind: str) -> list[Fact]:
        """The facts of one kind."""
        return [fact for fact in self.facts if fact.kind == kind]

    def _take(self, fact: Fact, span: Span | None) -> None:
        self.facts.append(fact)


@contextmanager
def capture(
    *, audit: bool = False, guard: bool | str = False, tracer: Tracer | None = None
) -> Iterator[History]:
    """Observes every A2A server in this process while the block runs.

    Facts get a replica identity of their own, numbered from 1, also where `instrument()` is on
    already; what it had set up goes on afterwards. A fault in the instrumentation is raised here.

    Args:
        audit: Re-read the stored state before each write.
        guard: Enforce: True, or one rule alone, ``"store"`` or ``"consumer"``.
        tracer: Where our spans go; by default there are none.
    """
    replica = Replica()
    history = History(replica.id)
    hooks = Hooks(replica.id, audit=audit)
    hooks.install()
    unguarded = enforce(wanted(guard))
    previous = recorder.activate(Recorder(replica, [history._take], tracer=tracer))
    try:
        with internal_errors.raising():
            yield history
    finally:
        recorder.activate(previous)
        enforce(unguarded)
        hooks.remove()
