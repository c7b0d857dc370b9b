"""What servers and clients do together, each as what was seen and stored of it, to be compared."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
from a2a.server.tasks import BasePushNotificationSender, InMemoryPushNotificationConfigStore
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    SendMessageConfiguration,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import A2AError, TaskNotCancelableError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict

from support.agents import CALL
from support.cluster import artifact, cluster, collect, idle, message, status, submitted, until

Seen = list[Any]
Play = Callable[[str], Awaitable[Seen]]


def events(found: list[Any]) -> Seen:
    return [(type(event).__name__, MessageToDict(event)) for event in found]


async def released(node: Any, task_id: str) -> None:
    async def gone() -> bool:
        return await node.handler._active_task_registry.get(task_id) is None

    await until(gone)


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
        remote = Follower(b.handler.on_subscribe_to_task(request, CALL))
        await remote.following()
        cancelled = await b.cancel(ids[0])
        go_on.set()
        seen = await remote.all()
        await asyncio.gather(stream, local)
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
        pushing(node, configs, client)
        request = message()
        request.configuration.CopyFrom(
            SendMessageConfiguration(
                task_push_notification_config=TaskPushNotificationConfig(url="http://hook.test/a")
            )
        )
        done = await node.handler.on_message_send(request, CALL)
        await released(node, done.id)
        return [events([done]), [httpx.Response(200, content=body).json() for body in heard]]


async def resubscribing(dsn: str) -> Seen:
    """A client goes away and comes back, on either replica; and once more when all is over."""
    working, go_on = asyncio.Event(), asyncio.Event()
    ids: list[str] = []

    async def work(context, queue):
        ids.append(context.task_id)
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "WORKING"))
        working.set()
        await go_on.wait()
        await queue.enqueue_event(artifact(context))
        await queue.enqueue_event(status(context, "COMPLETED"))

    async with cluster(dsn, work, idle) as (a, b):
        left = []
        stream = a.handler.on_message_send_stream(message(), CALL)
        async for event in stream:
            left.append(event)
            if len(left) == 2:
                await stream.aclose()
        await working.wait()
        await stored_as(b, ids[0], 2)
        request = SubscribeToTaskRequest(id=ids[0])
        followers = [Follower(node.handler.on_subscribe_to_task(request, CALL)) for node in (a, b)]
        for follower in followers:
            await follower.following()
        go_on.set()
        seen = [await follower.all() for follower in followers]
        await released(a, ids[0])
        late = [await outcome(collect(n.handler.on_subscribe_to_task(request, CALL))) for n in (a, b)]
        return [events(left), *map(events, seen), late, events([(await b.stored(ids[0])).task])]


async def cancelled_between_turns(dsn: str) -> Seen:
    """Nobody executes when the cancel comes; and what may not be cancelled is not."""

    async def work(context, queue):
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "INPUT_REQUIRED"))

    async with cluster(dsn, work, work) as (a, b):
        first = await a.handler.on_message_send(message(), CALL)
        about = {"task_id": first.id, "context_id": first.context_id}
        cancelled = await outcome(b.handler.on_cancel_task(CancelTaskRequest(id=first.id), CALL))
        refused = [
            await outcome(call)
            for call in (
                a.handler.on_message_send(message("more", **about), CALL),
                a.handler.on_cancel_task(CancelTaskRequest(id=first.id), CALL),
                a.handler.on_cancel_task(CancelTaskRequest(id="nobody's"), CALL),
                a.handler.on_get_task(GetTaskRequest(id=first.id), CALL),
                a.handler.on_list_tasks(ListTasksRequest(), CALL),
            )
        ]
        return [events([first]), cancelled, refused, (await b.stored(first.id)).version._value]


async def pushes_of_a_remote_cancel(dsn: str) -> Seen:
    """A webhook is set up while the agent works, on one replica; the other one cancels."""
    working, go_on = asyncio.Event(), asyncio.Event()
    ids: list[str] = []
    heard: list[Any] = []

    def webhook(request: httpx.Request) -> httpx.Response:
        heard.append(json.loads(request.read()))
        return httpx.Response(200)

    async def work(context, queue):
        ids.append(context.task_id)
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "WORKING"))
        working.set()
        await go_on.wait()
        await queue.enqueue_event(artifact(context))
        await queue.enqueue_event(status(context, "COMPLETED"))

    configs = InMemoryPushNotificationConfigStore()
    async with (
        httpx.AsyncClient(transport=httpx.MockTransport(webhook)) as client,
        cluster(dsn, work, idle) as (a, b),
    ):
        for node in (a, b):
            pushing(node, configs, client)
        stream = asyncio.create_task(collect(a.handler.on_message_send_stream(message(), CALL)))
        await working.wait()
        await stored_as(b, ids[0], 2)
        config = TaskPushNotificationConfig(task_id=ids[0], id="hook", url="http://hook.test/a")
        made = await a.handler.on_create_task_push_notification_config(config, CALL)
        request = ListTaskPushNotificationConfigsRequest(task_id=ids[0])
        listed = await b.handler.on_list_task_push_notification_configs(request, CALL)
        cancelled = await b.cancel(ids[0])
        go_on.set()
        seen = await stream
        await released(a, ids[0])
        await released(b, ids[0])
        return [events(seen), events([made, listed, cancelled]), heard]


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


def pushing(node: Any, configs: Any, client: httpx.AsyncClient) -> None:
    node.handler._push_config_store = configs
    sender = BasePushNotificationSender(client, configs)
    node.handler._push_sender = node.handler._active_task_registry._push_sender = sender


async def outcome(call: Awaitable[Any]) -> Any:
    """What a call gives, or the name of the error it raises."""
    try:
        found = await call
    except A2AError as error:
        return type(error).__name__
    return events(found if isinstance(found, list) else [found])


class Follower:
    """Reads a stream to its end beside the test."""

    def __init__(self, stream: AsyncIterator[Any]) -> None:
        self.seen: list[Any] = []
        self._reading = asyncio.create_task(self._read(stream))

    async def following(self) -> None:
        async def began() -> bool:
            return bool(self.seen)

        await until(began)

    async def all(self) -> list[Any]:
        await self._reading
        return self.seen

    async def _read(self, stream: AsyncIterator[Any]) -> None:
        async for event in stream:
            self.seen.append(event)


QUIET = [
    local_cancel,
    several_turns,
    resubscribing,
    cancelled_between_turns,
    pushes,
    raising_and_replying,
]
"""In which nobody is overtaken, so that the guard has nothing to refuse either."""

PLAYS = [*QUIET, remote_cancel_and_subscriber, pushes_of_a_remote_cancel]
