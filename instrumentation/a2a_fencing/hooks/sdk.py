"""The SDK's classes that hooks attach to, by version: what a version lacks is None and is reported."""

from __future__ import annotations

import importlib
from typing import Any

from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks.task_store import TaskStore


def find(path: str) -> Any:
    """The object that ``package.module:Name`` names, or None in an SDK that has no such thing."""
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


class _NeverRaised(Exception):
    """Stands in for an exception that this SDK does not have, so that ``except`` clauses stay valid."""


VersionedTaskStore = find("a2a.server.cluster.task_store:VersionedTaskStore")
TaskVersion = find("a2a.server.cluster.version:TaskVersion")
LegacyTaskStoreAdapter = find("a2a.server.cluster.task_store:LegacyTaskStoreAdapter")
VersionedDatabaseTaskStore = find("a2a.server.cluster.database_task_store:VersionedDatabaseTaskStore")
database_store = find("a2a.server.cluster:database_task_store")
ConcurrentTaskModificationError: type[Exception] = (
    find("a2a.server.cluster.task_store:ConcurrentTaskModificationError") or _NeverRaised
)
ActiveTask = find("a2a.server.agent_execution.active_task:ActiveTask")
CasEventConsumer = find("a2a.server.agent_execution.active_task:EventConsumer")
EventQueueSink = find("a2a.server.events.event_queue_v2:EventQueueSink")
EventQueueSource = find("a2a.server.events.event_queue_v2:EventQueueSource")
EventQueueLegacy = find("a2a.server.events.event_queue:EventQueueLegacy")
DefaultRequestHandlerV2 = find(
    "a2a.server.request_handlers.default_request_handler_v2:DefaultRequestHandlerV2"
)
LegacyRequestHandler = find("a2a.server.request_handlers.default_request_handler:LegacyRequestHandler")
TaskManager = find("a2a.server.tasks.task_manager:TaskManager")
PushNotificationSender = find("a2a.server.tasks.push_notification_sender:PushNotificationSender")

__all__ = [
    "ActiveTask",
    "AgentExecutor",
    "CasEventConsumer",
    "ConcurrentTaskModificationError",
    "DefaultRequestHandlerV2",
    "EventQueueLegacy",
    "EventQueueSink",
    "EventQueueSource",
    "LegacyRequestHandler",
    "LegacyTaskStoreAdapter",
    "PushNotificationSender",
    "TaskManager",
    "TaskStore",
    "TaskVersion",
    "VersionedDatabaseTaskStore",
    "VersionedTaskStore",
    "database_store",
    "find",
]
