"""Observation changes nothing: the same stored states, the same streams, the same order, with and
without it. Only the guard changes something, and only for what it refuses.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any

import httpx
import pytest
from a2a.server.tasks import BasePushNotificationSender, InMemoryPushNotificationConfigStore
from a2a.types.a2a_pb2 import (
    Message,
    SendMessageConfiguration,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import TaskNotCancelableError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict

import a2a_fencing
from a2a_fencing.testing import capture
from support.agents import CALL
from support.cluster import artifact, cluster, collect, idle, message, status, submitted, until
from support.databases import Database, database

Seen = list[Any]
Play = Callable[[str], Awaitable[Seen]]


class Names:
    """Numbers instead of ids and times, in the order in which they come up."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._named(key, inner) for key, inner in value.items()}
        return [self.plain(item) for item in value] if isinstance(value, list | tuple) else value

    def _named(self, key: str, value: Any) -> Any:
        if key == "timestamp":
            return "at some time"
        if key in ("id", "taskId", "contextId", "messageId"):
            return self._known.setdefault(value, f"id {len(self._known)}")
        return self.plain(value)


def events(found: list[Any]) -> Seen:
    return [(type(event).__name__, MessageToDict(event)) for event in found]


async def rows(dsn_database: Database) -> Seen:
    """Everything the SDK has stored."""
    tasks = await dsn_database.run(
        "SELECT v.version, t.status, t.artifacts, t.history FROM tasks t"
        " JOIN task_versions v ON v.task_id = t.id ORDER BY v.version, t.id"
    )
    log = await dsn_database.run("SELECT task_version, event_data FROM task_events ORDER BY seq")
    stored = [MessageToDict(StreamResponse.FromString(bytes(data))) for _, data in log]
    contents = [[version, *map(json.loads, columns)] for version, *columns in tasks]
    return [contents, [version for version, _ in log], stored]


async def released(node: Any, task_id: str) -> None:
    async def gone() -> bool:
        return await node.handler._active_task_registry.get(task_id) is None

    await until(gone)


# --- what is played ---


async def local_cancel(dsn: str) -> Seen:
    started = asyncio.Event()
    ids: list[str] = []

    async def work(context, queue):
        ids.append(context.task_id)
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "WORKING"))
        started.set()
        await asyncio.Event().wait()

    async with cluster(dsn, work) as (node,):
        stream = asyncio.create_task(collect(node.handler.on_message_send_stream(message(), CALL)))
        await started.wait()
        await stored_as(node, ids[0], 2)
        cancelled = await node.cancel(ids[0])
        again: Any = None
        try:
            await node.cancel(ids[0])
        except TaskNotCancelableError as error:
            again = type(error).__name__
        return [events(await stream), events([cancelled]), again]


async def remote_cancel_and_subscriber(dsn: str) -> Seen:
    started, go_on = asyncio.Event(), asyncio.Event()
    ids: list[str] = []

    async def work(context, queue):
        ids.append(context.task_id)
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "WORKING"))
        started.set()
        await go_on.wait()
        await queue.enqueue_event(artifact(context))
        await queue.enqueue_event(status(context, "COMPLETED"))

    async with cluster(dsn, work, idle) as (a, b):
        stream = asyncio.create_task(collect(a.handler.on_message_send_stream(message(), CALL)))
        await started.wait()
        await stored_as(b, ids[0], 2)
        request = SubscribeToTaskRequest(id=ids[0])
        local = asyncio.create_task(collect(a.handler.on_subscribe_to_task(request, CALL)))
        seen: list[Any] = []

        async def follow() -> None:
            async for event in b.handler.on_subscribe_to_task(request, CALL):
                seen.append(event)

        async def following() -> bool:
            return bool(seen)

        remote = asyncio.create_task(follow())
        await until(following)
        cancelled = await b.cancel(ids[0])
        go_on.set()
        await asyncio.gather(stream, local, remote)
        await released(a, ids[0])
        stored = await b.stored(ids[0])
        return [
            events(stream.result()),
            events(local.result()),
            events(seen),
            events([cancelled, stored.task]),
            stored.version._value,
        ]


async def several_turns(dsn: str) -> Seen:
    async def work(context, queue):
        if context.current_task is None:
            await queue.enqueue_event(submitted(context))
        text = context.get_user_input()
        await queue.enqueue_event(status(context, "WORKING"))
        await queue.enqueue_event(status(context, "COMPLETED" if text == "end" else "INPUT_REQUIRED"))

    async with cluster(dsn, work, work) as (a, b):
        first = await a.handler.on_message_send(message("hello"), CALL)
        about = {"task_id": first.id, "context_id": first.context_id}
        second = await collect(b.handler.on_message_send_stream(message("more", **about), CALL))
        third = await a.handler.on_message_send(message("end", **about), CALL)
        refused: Any = None
        try:
            await a.handler.on_message_send(message("again", **about), CALL)
        except UnsupportedOperationError as error:
            refused = type(error).__name__
        stored = await b.stored(first.id)
        return [
            events([first, *second, third, stored.task]),
            stored.version._value,
            refused,
        ]


async def pushes(dsn: str) -> Seen:
    heard: list[Any] = []

    def webhook(request: httpx.Request) -> httpx.Response:
        heard.append(request.read())
        return httpx.Response(200 if len(heard) != 2 else 500)

    async def work(context, queue):
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "WORKING"))
        await queue.enqueue_event(artifact(context))
        await queue.enqueue_event(status(context, "COMPLETED"))

    configs = InMemoryPushNotificationConfigStore()
    async with (
        httpx.AsyncClient(transport=httpx.MockTransport(webhook)) as client,
        cluster(dsn, work) as (node,),
    ):
        node.handler._push_config_store = configs
        sender = BasePushNotificationSender(client, configs)
        node.handler._push_sender = node.handler._active_task_registry._push_sender = sender
        request = message()
        request.configuration.CopyFrom(
            SendMessageConfiguration(
                task_push_notification_config=TaskPushNotificationConfig(url="http://hook.test/a")
            )
        )
        done = await node.handler.on_message_send(request, CALL)
        await released(node, done.id)
        return [events([done]), [httpx.Response(200, content=body).json() for body in heard]]


async def raising_and_replying(dsn: str) -> Seen:
    async def raises(context, queue):
        await queue.enqueue_event(submitted(context))
        raise LookupError("not found")

    async def replies(context, queue):
        await queue.enqueue_event(Message(message_id="m", role="ROLE_AGENT"))

    seen: Seen = []
    async with cluster(dsn, raises, replies) as (a, b):
        for node in (a, b):
            try:
                seen.append(events(await collect(node.handler.on_message_send_stream(message(), CALL))))
            except LookupError as error:
                seen.append(repr(error))
    return seen


async def stored_as(node: Any, task_id: str, version: int) -> None:
    async def there() -> bool:
        found = await node.stored(task_id)
        return found is not None and found.version._value == version

    await until(there)


PLAYS = [local_cancel, remote_cancel_and_subscriber, several_turns, pushes, raising_and_replying]


# --- with and without ---


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__)
async def test_the_sdk_does_the_same_observed_or_not(
    tmp_path, monkeypatch: pytest.MonkeyPatch, play: Play
) -> None:
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    outcomes = []
    for way in ("bare", "captured", "instrumented", "audited"):
        folder = tmp_path / way
        folder.mkdir()
        watching = {"captured": capture(), "audited": capture(audit=True)}.get(way, nullcontext())
        if way == "instrumented":
            a2a_fencing.instrument()
        try:
            with database("sqlite", folder) as db, watching:
                seen = await play(db.dsn)
                outcomes.append(Names().plain([seen, await rows(db)]))
        finally:
            a2a_fencing.uninstrument()
    assert outcomes[1:] == outcomes[:1] * 3


@pytest.mark.parametrize(
    "play", [local_cancel, several_turns, pushes, raising_and_replying], ids=lambda play: play.__name__
)
async def test_the_guard_leaves_alone_what_it_has_no_reason_to_refuse(tmp_path, play: Play) -> None:
    outcomes = []
    for way in (nullcontext(), capture(guard=True)):
        folder = tmp_path / str(len(outcomes))
        folder.mkdir()
        with database("sqlite", folder) as db, way:
            seen = await play(db.dsn)
            outcomes.append(Names().plain([seen, await rows(db)]))
    assert outcomes[0] == outcomes[1]
