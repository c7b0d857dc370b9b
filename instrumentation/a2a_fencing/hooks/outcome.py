"""What a logical write came to, as facts: accepted, refused and why, or unknown."""

from __future__ import annotations

import time
from typing import Any

from opentelemetry.trace import Span, Status, StatusCode

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors
from a2a_fencing.facts import TaskKey, Version
from a2a_fencing.hooks.memory import Held, TaskMemory
from a2a_fencing.hooks.refusal import Attempt, Refusal, explain
from a2a_fencing.hooks.sdk import ConcurrentTaskModificationError
from a2a_fencing.hooks.tasks import version_of
from a2a_fencing.hooks.write import Write, inside_store
from a2a_fencing.recorder import Recorder, Stamp


class WriteOutcomes:
    """Records how writes ended and remembers what they left in the store.

    Args:
        memory: What this process knows of stored tasks.
    """

    def __init__(self, memory: TaskMemory) -> None:
        self._memory = memory

    def held_back(self, rec: Recorder, write: Write) -> None:
        """The guard refused it before the store was asked."""
        try:
            self._record(rec, write, c.TERMINAL_REJECTED, {"reason": c.TERMINAL})
        except Exception as failure:
            internal_errors.report("after a save held back", failure)

    def returned(self, rec: Recorder, write: Write, result: Any) -> None:
        """The caller was told that the write succeeded."""
        try:
            if write.inner_error is not None:
                # An outer layer swallowed what the innermost one refused or failed at.
                refused = isinstance(write.inner_error, ConcurrentTaskModificationError)
                outcome = c.CONFLICT if refused else c.UNKNOWN
                self._record(rec, write, outcome, {"reason": c.UNEXPLAINED if refused else None})
                return
            self._accepted(rec, write, version_of(result))
        except Exception as error:
            internal_errors.report("after a save", error)

    def _accepted(
        self, rec: Recorder, write: Write, version: Version, error_type: str | None = None
    ) -> None:
        values: dict[str, Any] = {"version": version}
        if version is None:
            values["versioned"] = False
        if error_type is not None:
            values["error_type"] = error_type
        known = write.base_known
        violates = (
            known is not None and known[0] in c.TERMINAL_STATES and _replaced(write, known[0], version)
        )
        if violates:
            write.begin_span()
        else:
            write.told = True
        fact_id = self._record(rec, write, c.ACCEPTED, values)
        self._memory.wrote(write.key, version, write.state, fact_id)
        turn, key = write.turn, write.key
        if turn is not None and (turn.key is key or turn.key == key):
            turn.version, turn.state = version, write.state
        if violates:
            assert known is not None
            self._violated(rec, write, known, version, fact_id)

    def _violated(
        self, rec: Recorder, write: Write, known: Held, version: Version, fact_id: str
    ) -> None:
        base_state, base_fact = known
        rec.violation(
            write.span,
            task=write.key,
            rule=c.TERMINAL_OVERWRITTEN,
            witness=(fact_id,) if base_fact is None else (base_fact, fact_id),
            writer=write.writer,
            state=write.state,
            base_state=base_state,
            version=version,
            base_version=write.base,
        )

    async def refused(self, rec: Recorder, write: Write, error: BaseException) -> None:
        """The caller was told that somebody else wrote; find out what really was the matter."""
        if write.was_stored:
            self.failed(rec, write, error)  # an inner layer had stored it before an outer one refused
            return
        retried = write.open_try > 0 or self._left_open(write)
        attempt = Attempt(write.store, write.context, write.task, write.base, retried)
        try:
            with inside_store():
                refusal = await explain(attempt)
        except BaseException:
            self._record_refusal(rec, write, Refusal(c.CONFLICT, c.UNEXPLAINED))
            raise
        try:
            self._record_refusal(rec, write, refusal)
        except Exception as failure:
            internal_errors.report("after a refused save", failure)

    def _record_refusal(self, rec: Recorder, write: Write, refusal: Refusal) -> None:
        write.begin_span()
        outcome, reason = refusal.outcome, refusal.reason
        own = reason == c.OWN_COMMIT
        if write.open_try:
            # An error, after which the store tried again, may have hidden that this try was committed.
            self._record(rec, write, c.UNKNOWN, {"attempt": write.open_try})
            if reason == c.UNEXPLAINED:
                self._memory.leave_open(write.key, write.base)
                return
        version = refusal.stored_version if own else None
        fact_id = self._record(rec, write, outcome, {"reason": reason, "version": version})
        if refusal.stored_state is None:
            return
        self._memory.saw(
            write.key, refusal.stored_version, refusal.stored_state, fact_id if own else None
        )
        self._memory.resolve(write.key)
        record_read(
            rec, write.key, write.writer, c.REFUSAL_PROBE,
            refusal.stored_version, refusal.stored_state, write.span,
        )  # fmt: skip

    def failed(self, rec: Recorder, write: Write, error: BaseException) -> None:
        """The caller got an error that says nothing of what is stored, or its own cancellation."""
        try:
            error_type = type(error).__qualname__
            if write.was_stored:
                self._accepted(rec, write, version_of(write.stored), error_type=error_type)
                return
            write.failed(error)
            if isinstance(write.inner_error, ConcurrentTaskModificationError):
                self._record(rec, write, c.CONFLICT, {"reason": c.UNEXPLAINED, "error_type": error_type})
                return
            write.begin_span()
            write.span.set_status(Status(StatusCode.ERROR, error_type))
            self._record(rec, write, c.UNKNOWN, {"error_type": error_type})
            self._memory.leave_open(write.key, write.base)
        except Exception as failure:
            internal_errors.report("after a failed save", failure)

    def _record(self, rec: Recorder, write: Write, outcome: str, values: dict[str, Any]) -> str:
        """Numbers and times the fact, owning `values`; the rest can wait. Returns its id."""
        values["outcome"] = outcome
        values.setdefault("attempt", write.attempt)
        values["duration_ns"] = time.perf_counter_ns() - write.started_ns
        stamp = rec.stamp()
        rec.later(_tell, rec, stamp, write, values)
        return stamp[0]

    def _left_open(self, write: Write) -> bool:
        open_base = self._memory.open_base(write.key)
        if open_base is False:
            return False
        return write.base is None if open_base is True else write.base == open_base


def _tell(rec: Recorder, stamp: Stamp, write: Write, values: dict[str, Any]) -> None:
    known = write.base_known
    values["task"] = write.key
    values["writer"] = write.writer
    values["context_id"] = write.context_id
    values["state"] = write.state
    values["base_version"] = write.base
    values["base_state"] = known[0] if known is not None else None
    values["origin"] = write.origin
    values["event_kind"] = write.event_kind
    try:
        span = write.span
    except Exception as error:  # an application's sampler or span processor
        internal_errors.report("span of a save", error)
        span = None
    rec.tell(c.WRITE, stamp, span, values)
    if write.told and span is not None:
        span.end(stamp[1])


def record_read(
    rec: Recorder,
    key: TaskKey,
    writer: str | None,
    origin: str,
    version: Version,
    state: str,
    span: Span | None,
) -> None:
    """Records a read that decides something."""
    rec.record(c.READ, span, task=key, writer=writer, origin=origin, version=version, state=state)


def _replaced(write: Write, base_state: str, version: Version) -> bool:
    """Whether this accepted write alone shows that the state of its base was replaced by another.

    A cancel ignores the base version by contract, so its base says nothing of what it replaced.
    """
    return base_state != write.state and (write.state != c.CANCELED or version is None)
