"""Reading the SDK's own objects: states, versions, kinds of events, without their content."""

from __future__ import annotations

from typing import Any

from a2a.types.a2a_pb2 import (
    Message,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
)

from a2a_fencing import conventions as c
from a2a_fencing.facts import Version
from a2a_fencing.hooks.sdk import TaskVersion

_STATES = {number: name.removeprefix("TASK_STATE_") for name, number in TaskState.items()}
_EVENT_KINDS: dict[type, str] = {
    Task: c.TASK_EVENT,
    TaskStatusUpdateEvent: c.STATUS_EVENT,
    TaskArtifactUpdateEvent: c.ARTIFACT_EVENT,
    Message: c.MESSAGE_EVENT,
}


_MISSING = TaskVersion.MISSING._value if TaskVersion is not None else None


def state_of(task: Any) -> str:
    """State of a Task or TaskStatusUpdateEvent, without prefix; one this SDK does not name: a number."""
    number = task.status.state
    return _STATES.get(number) or str(number)


def version_of(version: Any) -> Version:
    """The value inside a TaskVersion; None for MISSING and for what is no version at all."""
    if type(version) is TaskVersion:  # past its property, as this is asked twice a write
        value = version._value
        return None if value == _MISSING else value if isinstance(value, (int, str)) else str(value)
    if version is None or getattr(type(version), "is_missing", None) is None or version.is_missing:
        return None
    value = version._value
    return value if isinstance(value, (int, str)) else str(value)


def event_kind(event: Any) -> str | None:
    """Kind of an executor's event; None for what is no event (SDK markers, exceptions, tuples)."""
    return _EVENT_KINDS.get(type(event))


def event_state(event: Any) -> str | None:
    """State that an event carries, or None for artifacts and messages."""
    return state_of(event) if type(event) in (Task, TaskStatusUpdateEvent) else None


def same_content(stored: Any, wanted: Any) -> bool:
    """Whether the store holds just what was to be stored."""
    return bool(stored == wanted)
