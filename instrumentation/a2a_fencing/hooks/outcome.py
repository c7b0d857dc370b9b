"""What a logical write came to, as facts: accepted, refused and why, or unknown."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from opentelemetry.trace import Span, Status, StatusCode

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors
from a2a_fencing.facts import TaskKey, Version
from a2a_fencing.hooks.memory import TaskMemory
from a2a_fencing.hooks.refusal import Attempt, Refusal, explain
from a2a_fencing.hooks.sdk import ConcurrentTaskModificationError
from a2a_fencing.hooks.tasks import version_of
from a2a_fencing.hooks.write import Write, inside_store
from a2a_fencing.recorder import Recorder


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
            self._record(rec, write, c.TERMINAL_REJECTED, reason=c.TERMINAL)
        except Exception as failure:
            internal_errors.report("after a save held back", failure)

    def returned(self, rec: Recorder, write: Write, result: Any) -> None:
        """The caller was told that the write succeeded."""
        try:
            if write.inner_error is not None:
                # An outer layer swallowed what the innermost one refused or failed at.
                refused = isinstance(write.inner_error, ConcurrentTaskModificationError)
                outcome = c.CONFLICT if refused else c.UNKNOWN
                self._record(rec, write, outcome, reason=c.UNEXPLAINED if refused else None)
                return
            self._accepted(rec, write, version_of(result))
        except Exception as error:
            internal_errors.report("after a save", error)

    def _accepted(
        self, rec: Recorder, write: Write, version: Version, error_type: str | None = None
    ) -> None:
        before = write.base_state
        if before in c.TERMINAL_STATES and _replaced(write, before, version):
            self._overwrote(rec, write, before, version, error_type)
            return
        write.told = True
        self._stored(rec, write, version, error_type)

    def _stored(self, rec: Recorder, write: Write, version: Version, error_type: str | None) -> str:
        fact_id = self._record(rec, write, c.ACCEPTED, version, error_type=error_type)
        record = write.record
        if record.forgotten:  # by as many other tasks as there is room for, while it was under way
            record = self._memory.record(write.key)
        record.wrote(version, write.state, fact_id)
        turn, key = write.turn, write.key
        if turn is not None and (turn.key is key or turn.key == key):
            turn.version, turn.state = version, write.state
        return fact_id

    def _overwrote(
        self, rec: Recorder, write: Write, before: str, version: Version, error_type: str | None
    ) -> None:
        """The write alone shows that a finished task was finished otherwise, or is not any more."""
        write.begin_span()
        fact_id = self._stored(rec, write, version, error_type)
        rec.violation(
            write.span,
            task=write.key,
            rule=c.TERMINAL_OVERWRITTEN,
            witness=(fact_id,) if write.base_fact is None else (write.base_fact, fact_id),
            writer=write.writer,
            state=write.state,
            base_state=before,
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
            self._record(rec, write, c.UNKNOWN, attempt=write.open_try)
            if reason == c.UNEXPLAINED:
                self._memory.record(write.key).leave_open(write.base)
                return
        version = refusal.stored_version if own else None
        fact_id = self._record(rec, write, outcome, version, reason)
        if refusal.stored_state is None:
            return
        record = self._memory.record(write.key)
        if own:
            record.wrote(refusal.stored_version, refusal.stored_state, fact_id)
        else:
            record.saw(refusal.stored_version, refusal.stored_state)
            record.unresolved = False
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
                self._record(rec, write, c.CONFLICT, reason=c.UNEXPLAINED, error_type=error_type)
                return
            write.begin_span()
            write.span.set_status(Status(StatusCode.ERROR, error_type))
            self._record(rec, write, c.UNKNOWN, error_type=error_type)
            self._memory.record(write.key).leave_open(write.base)
        except Exception as failure:
            internal_errors.report("after a failed save", failure)

    def _record(
        self,
        rec: Recorder,
        write: Write,
        outcome: str,
        version: Version = None,
        reason: str | None = None,
        error_type: str | None = None,
        attempt: int | None = None,
    ) -> str:
        """Numbers and times the fact; the rest can wait. Returns its id."""
        took = perf_counter_ns() - write.started_ns
        fact_id, time = rec.stamp()
        tried = attempt or write.attempt
        rec.later(_tell, rec, fact_id, time, write, tried, took, outcome, version, reason, error_type)
        return fact_id

    def _left_open(self, write: Write) -> bool:
        open_base = self._memory.record(write.key).unresolved
        if open_base is False:
            return False
        return write.base is None if open_base is True else write.base == open_base


def _tell(
    rec: Recorder,
    fact_id: str,
    time_unix_nano: int,
    write: Write,
    attempt: int,
    took_ns: int,
    outcome: str,
    version: Version,
    reason: str | None,
    error_type: str | None,
) -> None:
    values: dict[str, Any] = {
        "task": write.key,
        "writer": write.writer,
        "context_id": write.context_id,
        "state": write.state,
        "base_version": write.base,
        "base_state": write.base_state,
        "version": version,
        "outcome": outcome,
        "reason": reason,
        "origin": write.origin,
        "event_kind": write.event_kind,
        "attempt": attempt,
        "duration_ns": took_ns,
        "error_type": error_type,
    }
    if version is None and outcome == c.ACCEPTED:
        values["versioned"] = False
    try:
        span = write.span
    except Exception as error:  # an application's sampler or span processor
        internal_errors.report("span of a save", error)
        span = None
    rec.tell(c.WRITE, fact_id, time_unix_nano, span, values)
    if write.told and span is not None:
        span.end(time_unix_nano)


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
