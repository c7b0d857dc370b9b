"""The interfaces that hooks attach to, as they are known: a change is looked at before it is trusted."""

from __future__ import annotations

import inspect

import pytest

from a2a_fencing.hooks.sdk import find

SERVER = "a2a.server."
KNOWN = {
    "cluster.task_store:VersionedTaskStore": {
        "save": ["task", "event", "prev", "prev_version", "context"],
        "get": ["task_id", "context"],
        "list": ["params", "context"],
        "delete": ["task_id", "context"],
    },
    "tasks.task_store:TaskStore": {
        "save": ["task", "context"],
        "get": ["task_id", "context"],
        "list": ["params", "context"],
        "delete": ["task_id", "context"],
    },
    "cluster.event_stream:TaskEventStream": {
        "publish": ["task_id", "event"],
        "subscribe": ["task_id", "after"],
        "destroy": ["task_id"],
    },
    "agent_execution:AgentExecutor": {
        "execute": ["context", "event_queue"],
        "cancel": ["context", "event_queue"],
    },
    "tasks.push_notification_sender:PushNotificationSender": {
        "send_notification": ["task_id", "event"],
    },
    "events.event_queue:EventQueue": {"enqueue_event": ["event"]},
}


@pytest.mark.parametrize("path", KNOWN)
def test_the_interface_is_the_one_the_hooks_know(path: str) -> None:
    interface = find(SERVER + path)
    if interface is None:
        pytest.skip("this a2a-sdk has no cluster mode")
    methods = {
        name: [p for p in inspect.signature(getattr(interface, name)).parameters if p != "self"]
        for name in interface.__abstractmethods__
    }
    assert methods == KNOWN[path]
