"""Every name this project puts on the wire, once.

Attributes that OpenTelemetry or A2A already name are reused; what is ours lives under
``a2a.fencing.``. Values of closed sets (outcomes, reasons, origins ...) are spelled here too, because
receivers, checker and dashboard compare against them.
"""

from __future__ import annotations

from typing import Final

SCOPE: Final = "a2a_fencing"
"""Instrumentation scope of every log event, span and metric."""

NAMESPACE: Final = "a2a.fencing."

# --- Task states, without the protobuf prefix -------------------------------------------------------

SUBMITTED: Final = "SUBMITTED"
WORKING: Final = "WORKING"
COMPLETED: Final = "COMPLETED"
CANCELED: Final = "CANCELED"
FAILED: Final = "FAILED"
REJECTED: Final = "REJECTED"
INPUT_REQUIRED: Final = "INPUT_REQUIRED"
AUTH_REQUIRED: Final = "AUTH_REQUIRED"

TERMINAL_STATES: Final = frozenset({COMPLETED, CANCELED, FAILED, REJECTED})
INTERRUPTED_STATES: Final = frozenset({INPUT_REQUIRED, AUTH_REQUIRED})

# --- Kinds of facts: the last word of the event name ------------------------------------------------

WRITE: Final = "write"
READ: Final = "read"
DROPPED: Final = "dropped"
EXECUTION: Final = "execution"
DISPATCH: Final = "dispatch"
ANSWER: Final = "answer"
DELETED: Final = "deleted"
HEARTBEAT: Final = "heartbeat"
VIOLATION: Final = "violation"

OMITTED: Final = "omitted"
"""No observation: a part of a history says that its facts n to `last` arrived and are left out."""

KINDS: Final = (WRITE, READ, DROPPED, EXECUTION, DISPATCH, ANSWER, DELETED, HEARTBEAT, VIOLATION)


def event_name(kind: str) -> str:
    """Name of the log event and span event that carries a fact of this kind."""
    return NAMESPACE + kind


# --- Outcomes ---------------------------------------------------------------------------------------

ACCEPTED: Final = "accepted"
CONFLICT: Final = "conflict"
TERMINAL_REJECTED: Final = "terminal-rejected"
UNKNOWN: Final = "unknown"
WRITE_OUTCOMES: Final = (ACCEPTED, CONFLICT, TERMINAL_REJECTED, UNKNOWN)

DISPATCH_REJECTED: Final = "rejected"
DISPATCH_FAILED: Final = "failed"
DISPATCH_OUTCOMES: Final = (ACCEPTED, DISPATCH_REJECTED, DISPATCH_FAILED, UNKNOWN)

# --- Why what a resource accepted is no effect that is certain -------------------------------------

ADMITTED: Final = "admitted"
"""The fence let the request through; nobody says what came of it."""
REPLAYED: Final = "replayed"
"""The answer is that of an earlier request with the same idempotency key."""
DISPATCH_REASONS: Final = (ADMITTED, REPLAYED)

# --- Why a write was refused, in the order in which a hook tests them --------------------------------

ABSENT: Final = "absent"
FOREIGN_OWNER: Final = "foreign-owner"
ORPHAN_VERSION_ROW: Final = "orphan-version-row"
OWN_COMMIT: Final = "own-commit"
STALE_BASE: Final = "stale-base"
TERMINAL: Final = "terminal"
UNEXPLAINED: Final = "unexplained"
CONFLICT_REASONS: Final = (
    ABSENT,
    FOREIGN_OWNER,
    ORPHAN_VERSION_ROW,
    OWN_COMMIT,
    STALE_BASE,
    TERMINAL,
    UNEXPLAINED,
)

# --- Why an event was dropped -----------------------------------------------------------------------

STALE_EXECUTOR: Final = "stale-executor"
FENCED_BY_GUARD: Final = "fenced-by-guard"
QUEUE_CLOSED: Final = "queue-closed"
SUBSCRIBER_EVICTED: Final = "subscriber-evicted"
REPLACEMENT_IGNORED: Final = "replacement-ignored"
DISCARDED_AT_CLOSE: Final = "discarded-at-close"
DROP_REASONS: Final = (
    STALE_EXECUTOR,
    FENCED_BY_GUARD,
    QUEUE_CLOSED,
    SUBSCRIBER_EVICTED,
    REPLACEMENT_IGNORED,
    DISCARDED_AT_CLOSE,
)

AGENT_QUEUE: Final = "agent"
SUBSCRIBER_QUEUE: Final = "subscriber"

# --- Who caused a write (origin of a write fact) ----------------------------------------------------

FROM_EXECUTOR: Final = "executor"
FROM_CONSUMER_FAILURE: Final = "consumer-failure"
FROM_CANCEL_LOCAL: Final = "cancel-local"
FROM_CANCEL_REMOTE: Final = "cancel-remote"
DIRECT: Final = "direct"
WRITE_ORIGINS: Final = (
    FROM_EXECUTOR,
    FROM_CONSUMER_FAILURE,
    FROM_CANCEL_LOCAL,
    FROM_CANCEL_REMOTE,
    DIRECT,
)

# --- Who tells of a dispatch, when it is not the executor (origin of a dispatch fact) ---------------

FROM_RESOURCE: Final = "resource"

# --- Why a read was worth recording (origin of a read fact) -----------------------------------------

RELOAD: Final = "reload"
"""The consumer's read after a conflict."""
EXECUTION_START: Final = "execution-start"
SUBSCRIBER_SNAPSHOT: Final = "subscriber-snapshot"
REFUSAL_PROBE: Final = "refusal-probe"
"""Our own read that explains a refused or unknown write."""
RESOLUTION: Final = "resolution"
"""The read that decides a write whose outcome was unknown."""
AUDIT: Final = "audit"
"""Our own read before a write (``instrument(audit=True)``)."""
VERIFY: Final = "verify"
"""The read of ``dispatch(...).verify()``."""

# --- Kinds of events an executor emits --------------------------------------------------------------

TASK_EVENT: Final = "task"
STATUS_EVENT: Final = "status-update"
ARTIFACT_EVENT: Final = "artifact-update"
MESSAGE_EVENT: Final = "message"

# --- Phases -----------------------------------------------------------------------------------------

STARTED: Final = "started"
FINISHED: Final = "finished"
CANCELLED: Final = "cancelled"
RAISED: Final = "raised"
ENDED: Final = "ended"
"""Of a dispatch attempt; its outcome says how."""

# --- How a stream to a client ended -----------------------------------------------------------------

END_TERMINAL: Final = "terminal"
END_INTERRUPTED: Final = "interrupted"
END_MESSAGE: Final = "message"
END_EVICTED: Final = "evicted"
END_CUT: Final = "cut"
"""The server ended it, by an error or by falling silent."""
END_CLOSED: Final = "closed"
"""The client went away; says nothing about the task."""
STREAM_ENDS: Final = (END_TERMINAL, END_INTERRUPTED, END_MESSAGE, END_EVICTED, END_CUT, END_CLOSED)

# --- Methods of an answer fact: A2A's own names, and ours for notifications ---------------------------

SEND_MESSAGE: Final = "SendMessage"
SEND_STREAMING_MESSAGE: Final = "SendStreamingMessage"
GET_TASK: Final = "GetTask"
LIST_TASKS: Final = "ListTasks"
CANCEL_TASK: Final = "CancelTask"
SUBSCRIBE_TO_TASK: Final = "SubscribeToTask"
PUSH: Final = "push"
STREAM_METHODS: Final = frozenset({SEND_STREAMING_MESSAGE, SUBSCRIBE_TO_TASK})

# --- Rules ------------------------------------------------------------------------------------------

TERMINAL_OVERWRITTEN: Final = "terminal-overwritten"
TERMINAL_MUTATED: Final = "terminal-mutated"
ANSWER_CONTRADICTED: Final = "answer-contradicted"
STREAM_CUT: Final = "stream-cut"
PUSH_CONTRADICTED: Final = "push-contradicted"
DISPATCH_AFTER_TERMINAL: Final = "dispatch-after-terminal"
DOUBLE_EFFECT: Final = "double-effect"
CONCURRENT_EXECUTION: Final = "concurrent-execution"
CANCEL_INEFFECTIVE: Final = "cancel-ineffective"
ABANDONED: Final = "abandoned"
DOUBLE_APPLY: Final = "double-apply"
VERSION_FORK: Final = "version-fork"
UNSEEN_WRITER: Final = "unseen-writer"
UNFENCED_STORE: Final = "unfenced-store"
RULES: Final = (
    TERMINAL_OVERWRITTEN,
    TERMINAL_MUTATED,
    ANSWER_CONTRADICTED,
    STREAM_CUT,
    PUSH_CONTRADICTED,
    DISPATCH_AFTER_TERMINAL,
    DOUBLE_EFFECT,
    CONCURRENT_EXECUTION,
    CANCEL_INEFFECTIVE,
    ABANDONED,
    DOUBLE_APPLY,
    VERSION_FORK,
    UNSEEN_WRITER,
    UNFENCED_STORE,
)

CRITICAL: Final = "critical"
WARNING: Final = "warning"
INFO: Final = "info"
PROVEN: Final = "proven"
SUSPECTED: Final = "suspected"

VIOLATED: Final = "violated"
FINE: Final = "fine"
"""Verdicts are VIOLATED, UNKNOWN and FINE, in this order of precedence."""

# --- Attributes -------------------------------------------------------------------------------------

SERVICE_INSTANCE_ID: Final = "service.instance.id"
ERROR_TYPE: Final = "error.type"

# --- Spans, named by what they do -------------------------------------------------------------------

SPAN_EXECUTE: Final = "execute"
SPAN_SAVE: Final = "save"
SPAN_CANCEL: Final = "cancel"
SPAN_DISPATCH: Final = "dispatch"

# --- Metrics ----------------------------------------------------------------------------------------

METRIC_WRITES: Final = "a2a.fencing.writes"
METRIC_CONFLICTS: Final = "a2a.fencing.conflicts"
METRIC_DROPPED: Final = "a2a.fencing.dropped_events"
METRIC_DISPATCHES: Final = "a2a.fencing.dispatches"
METRIC_VIOLATIONS: Final = "a2a.fencing.violations"
METRIC_SAVE_DURATION: Final = "a2a.fencing.save.duration"
METRIC_EXECUTIONS: Final = "a2a.fencing.executions.running"
METRIC_FACTS_EMITTED: Final = "a2a.fencing.facts.emitted"
METRIC_FACTS_LOST: Final = "a2a.fencing.facts.lost"
METRIC_INTERNAL_ERRORS: Final = "a2a.fencing.internal_errors"
