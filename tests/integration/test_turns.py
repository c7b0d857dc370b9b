"""Requests, executions, streams and drops on the real SDK: who did what, for which request."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from typing import Any

import pytest
from a2a.server.cluster import ConcurrentTaskModificationError
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import LegacyRequestHandler
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.types.a2a_pb2 import GetTaskRequest, SubscribeToTaskRequest, TaskState
from a2a.utils.errors import TaskNotCancelableError
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from a2a_fencing import conventions as c
from a2a_fencing.hooks.tasks import event_state
from a2a_fencing.testing import History, capture
from support.cluster import (
    Node,
    ScriptedExecutor,
    artifact,
    card,
    cluster,
    collect,
    idle,
    message,
    status,
    submitted,
    until,
)
from support.databases import Database, database

CALL = ServerCallContext()
SMALL = 2
"""Room in a subscriber's queue, where a test fills it."""


@pytest.fixture
def sqlite(tmp_path):
    with database("sqlite", tmp_path) as found:
        yield found


@pytest.fixture
def small_sinks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The subscribers' queues made meanwhile, each with little room."""
    from a2a.server.events.event_queue_v2 import EventQueueSink

    made: list[Any] = []
    original = EventQueueSink.__init__

    def small(self, parent, max_queue_size=1024, evict_on_full=False):
        original(self, parent, SMALL if evict_on_full else max_queue_size, evict_on_full)
        if evict_on_full:
            made.append(self)

    monkeypatch.setattr(EventQueueSink, "__init__", small)
    return made


async def released(node: Node, task_id: str) -> None:
    async def gone() -> bool:
        return await node.handler._active_task_registry.get(task_id) is None

    await until(gone)


async def something_stored(history: History) -> None:
    """Waits until a write is told of."""

    async def told() -> bool:
        return bool(history.of(c.WRITE))

    await until(told)


def phases(history: History) -> list[str | None]:
    return [fact.phase for fact in history.of(c.EXECUTION)]


async def completes(context, queue):
    await queue.enqueue_event(submitted(context))
    await queue.enqueue_event(status(context, "COMPLETED"))


async def test_an_execution_has_a_start_an_end_and_the_version_it_began_at(sqlite: Database) -> None:
    async def asks(context, queue):
        if context.current_task is None:
            await queue.enqueue_event(submitted(context))
            await queue.enqueue_event(status(context, "INPUT_REQUIRED"))
        else:
            await queue.enqueue_event(status(context, "COMPLETED"))

    async with cluster(sqlite.dsn, asks) as (node,):
        with capture() as history:
            asked = await node.handler.on_message_send(message(), CALL)
            assert event_state(asked) == c.INPUT_REQUIRED
            done = await node.handler.on_message_send(
                message(task_id=asked.id, context_id=asked.context_id), CALL
            )
            assert event_state(done) == c.COMPLETED
            await released(node, asked.id)
    assert phases(history) == ["started", "finished", "started", "finished"]
    first, first_end, second, second_end = history.of(c.EXECUTION)
    assert (first.version, first.state) == (None, None)
    assert (second.version, second.state) == (2, c.INPUT_REQUIRED)
    assert (first.token, second.token) == (1, 3)
    assert first_end.execution_id == first.id
    assert second_end.execution_id == second.id
    assert history.check().findings == ()


async def test_an_executor_that_raises_and_one_that_is_cancelled(sqlite: Database) -> None:
    started = asyncio.Event()

    async def raises(context, queue):
        await queue.enqueue_event(submitted(context))
        raise LookupError("not for the wire")

    async def waits(context, queue):
        await queue.enqueue_event(submitted(context))
        started.set()
        await asyncio.Event().wait()

    async with cluster(sqlite.dsn, raises, waits) as (a, b):
        with capture() as history:
            with pytest.raises(LookupError):
                await a.handler.on_message_send(message(), CALL)
            stream = asyncio.create_task(collect(b.handler.on_message_send_stream(message(), CALL)))
            await started.wait()

            async def stored() -> bool:
                return len(history.of(c.WRITE)) >= 3

            await until(stored)
            task_id = history.of(c.WRITE)[-1].task.task_id
            await b.cancel(task_id)
            await stream
    raised = next(f for f in history.of(c.EXECUTION) if f.phase == c.RAISED)
    assert raised.error_type == "LookupError"
    assert c.CANCELLED in phases(history)
    assert "not for the wire" not in repr(history.facts)
    origins = {(w.state, w.origin) for w in history.of(c.WRITE)}
    assert (c.FAILED, c.FROM_CONSUMER_FAILURE) in origins
    assert (c.CANCELED, c.FROM_CANCEL_LOCAL) in origins
    assert history.check().findings == ()


async def test_two_turns_are_two_traces_and_no_save_is_in_the_wrong_one(sqlite: Database) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    requests = provider.get_tracer("http server")

    async def asks(context, queue):
        if context.current_task is None:
            await queue.enqueue_event(submitted(context))
            await queue.enqueue_event(status(context, "INPUT_REQUIRED"))
        else:
            await queue.enqueue_event(artifact(context))
            await queue.enqueue_event(status(context, "COMPLETED"))

    async with cluster(sqlite.dsn, asks) as (node,):
        with capture(tracer=provider.get_tracer(c.SCOPE)) as history:
            with requests.start_as_current_span("turn 1"):
                asked = await node.handler.on_message_send(message(), CALL)
            with requests.start_as_current_span("turn 2"):
                again = message(task_id=asked.id, context_id=asked.context_id)
                await node.handler.on_message_send(again, CALL)
            await released(node, asked.id)
    spans = {span.name: span for span in exporter.get_finished_spans() if span.name.startswith("turn")}
    trace_of = {f"{span.context.trace_id:032x}": name for name, span in spans.items()}
    saves = [(w.state, trace_of[w.trace_id]) for w in history.of(c.WRITE)]
    turn_2 = [state for state, turn in saves if turn == "turn 2"]
    assert [state for state, turn in saves if turn == "turn 1"] == [c.SUBMITTED, c.INPUT_REQUIRED]
    assert turn_2[-1] == c.COMPLETED
    assert c.SUBMITTED not in turn_2
    executions = {f.trace_id for f in history.of(c.EXECUTION)}
    assert executions == set(trace_of)
    # Few spans, named by what they do, each under the execution of its turn.
    names = {span.name for span in exporter.get_finished_spans()}
    assert names == {"turn 1", "turn 2", c.SPAN_EXECUTE, c.SPAN_SAVE}
    execute_ids = {s.context.span_id for s in exporter.get_finished_spans() if s.name == c.SPAN_EXECUTE}
    for span in exporter.get_finished_spans():
        if span.name == c.SPAN_SAVE:
            assert span.parent.span_id in execute_ids
            assert not span.status.description


async def test_a_late_event_on_a_closed_queue_is_dropped_although_enqueue_returns(
    sqlite: Database,
) -> None:
    late = asyncio.Event()
    queues = []

    async def leaves_a_child(context, queue):
        await completes(context, queue)
        queues.append((context, queue))

    async with cluster(sqlite.dsn, leaves_a_child) as (node,):
        with capture() as history:
            done = await node.handler.on_message_send(message(), CALL)
            await released(node, done.id)
            before = len(history.of(c.DROPPED))
            context, queue = queues[0]
            await queue.enqueue_event(status(context, "WORKING"))
            late.set()
            assert inspect.iscoroutinefunction(queue.enqueue_event)
        assert "enqueue_event" not in vars(queue)
        drops = history.of(c.DROPPED)[before:]
    assert [(d.reason, d.queue, d.state) for d in drops] == [(c.QUEUE_CLOSED, c.AGENT_QUEUE, c.WORKING)]
    assert before == 0
    assert history.check().findings == ()


async def test_aclose_tells_what_it_discards(sqlite: Database) -> None:
    blocked, release = asyncio.Event(), asyncio.Event()

    async def floods(context, queue):
        await queue.enqueue_event(submitted(context))
        blocked.set()
        for _ in range(3):
            await queue.enqueue_event(status(context, "WORKING"))
        await asyncio.Event().wait()

    async with cluster(sqlite.dsn, floods) as (node,):
        save = node.store._save_once

        async def slow_save(*args, **kwargs):
            await release.wait()
            return await save(*args, **kwargs)

        node.store._save_once = slow_save
        with capture() as history:
            stream = asyncio.create_task(collect(node.handler.on_message_send_stream(message(), CALL)))
            await blocked.wait()
            (active,) = node.handler._active_task_registry._active_tasks.values()

            async def queued() -> bool:
                return active._event_queue_agent.queue.qsize() >= 3

            await until(queued)
            await node.handler.aclose()
            stream.cancel()
    discarded = [d for d in history.of(c.DROPPED) if d.reason == c.DISCARDED_AT_CLOSE]
    assert len(discarded) == 3
    assert {d.event_kind for d in discarded} == {c.STATUS_EVENT}


async def test_a_task_that_would_replace_a_stored_one_is_dropped(sqlite: Database) -> None:
    async def repeats(context, queue):
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "COMPLETED"))

    async with cluster(sqlite.dsn, repeats) as (node,):
        with capture() as history:
            await node.handler.on_message_send(message(), CALL)
    assert [(d.reason, d.event_kind) for d in history.of(c.DROPPED)] == [
        (c.REPLACEMENT_IGNORED, c.TASK_EVENT)
    ]


async def test_an_evicted_subscriber_is_told_apart_from_one_that_ended(
    sqlite: Database, small_sinks: list[Any]
) -> None:
    go_on = asyncio.Event()

    async def floods(context, queue):
        await queue.enqueue_event(submitted(context))
        await go_on.wait()
        for _ in range(8):
            await queue.enqueue_event(status(context, "WORKING"))
        await queue.enqueue_event(status(context, "COMPLETED"))

    async with cluster(sqlite.dsn, floods) as (node,):
        with capture() as history:
            slow = node.handler.on_message_send_stream(message(), CALL)
            first = await anext(slow)
            go_on.set()

            async def finished() -> bool:
                stored = await node.stored(first.id)
                return event_state(stored.task) == c.COMPLETED

            await until(finished)
            rest = await collect(slow)
    assert all(event_state(event) != c.COMPLETED for event in rest)
    (answer,) = history.of(c.ANSWER)
    assert (answer.method, answer.ending) == (c.SEND_STREAMING_MESSAGE, c.END_EVICTED)
    assert [d.queue for d in history.of(c.DROPPED) if d.reason == c.SUBSCRIBER_EVICTED] == [
        c.SUBSCRIBER_QUEUE
    ]
    assert {f.rule for f in history.check().findings} == {c.STREAM_CUT}


async def test_an_eviction_shows_where_others_wrap_what_is_gathered(
    sqlite: Database, small_sinks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As OpenTelemetry's instrumentation of asyncio does."""
    gather = asyncio.gather

    async def wrapped(coroutine):
        return await coroutine

    monkeypatch.setattr(
        asyncio, "gather", lambda *awaitables, **options: gather(*map(wrapped, awaitables), **options)
    )
    await test_an_evicted_subscriber_is_told_apart_from_one_that_ended(sqlite, small_sinks)


async def test_a_client_that_leaves_with_its_queue_full_was_not_evicted(
    sqlite: Database, small_sinks: list[Any]
) -> None:
    go_on, release = asyncio.Event(), asyncio.Event()

    async def fills(context, queue):
        await queue.enqueue_event(submitted(context))
        await go_on.wait()
        for _ in range(SMALL):
            await queue.enqueue_event(status(context, "WORKING"))
        await release.wait()
        await queue.enqueue_event(status(context, "COMPLETED"))

    async with cluster(sqlite.dsn, fills) as (node,):
        with capture() as history:
            stream = node.handler.on_message_send_stream(message(), CALL)
            first = await anext(stream)
            (sink,) = small_sinks
            go_on.set()

            async def full() -> bool:
                return sink.queue.full()

            await until(full)
            await stream.aclose()
            release.set()
            await released(node, first.id)
    (answer,) = history.of(c.ANSWER)
    assert answer.ending == c.END_CLOSED
    assert history.of(c.DROPPED) == []


async def test_answers_say_which_method_told_whom_what(sqlite: Database) -> None:
    async with cluster(sqlite.dsn, completes) as (node,):
        with capture() as history:
            done = await node.handler.on_message_send(message(), CALL)
            await node.handler.on_get_task(GetTaskRequest(id=done.id), CALL)
            with pytest.raises(TaskNotCancelableError):
                await node.cancel(done.id)
    assert [(a.method, a.state, a.version, a.error_type) for a in history.of(c.ANSWER)] == [
        (c.SEND_MESSAGE, c.COMPLETED, 2, None),
        (c.GET_TASK, c.COMPLETED, 2, None),
        (c.CANCEL_TASK, None, None, "TaskNotCancelableError"),
    ]
    assert history.check().findings == ()


async def test_a_client_that_goes_away_cuts_nothing(sqlite: Database) -> None:
    release = asyncio.Event()

    async def waits(context, queue):
        await queue.enqueue_event(submitted(context))
        await release.wait()
        await queue.enqueue_event(status(context, "COMPLETED"))

    async with cluster(sqlite.dsn, waits) as (node,):
        with capture() as history:
            stream = node.handler.on_message_send_stream(message(), CALL)
            first = await anext(stream)
            await stream.aclose()
            release.set()
            await released(node, first.id)
    (answer,) = history.of(c.ANSWER)
    assert (answer.ending, answer.state) == (c.END_CLOSED, c.SUBMITTED)
    assert history.check().findings == ()


async def test_a_remote_subscriber_gets_a_snapshot_and_its_stream_ends_with_the_task(
    sqlite: Database,
) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def waits(context, queue):
        await queue.enqueue_event(submitted(context))
        started.set()
        await release.wait()
        await queue.enqueue_event(status(context, "COMPLETED"))

    async with cluster(sqlite.dsn, waits, idle) as (a, b):
        with capture() as history:
            sending = asyncio.create_task(a.handler.on_message_send(message(), CALL))
            await started.wait()
            await something_stored(history)
            task_id = history.of(c.WRITE)[0].task.task_id
            subscription = b.handler.on_subscribe_to_task(SubscribeToTaskRequest(id=task_id), CALL)
            snapshot = await anext(subscription)
            assert event_state(snapshot) == c.SUBMITTED
            release.set()
            await collect(subscription)
            await sending
    snapshots = [r for r in history.of(c.READ) if r.origin == c.SUBSCRIBER_SNAPSHOT]
    assert [(r.version, r.state) for r in snapshots] == [(1, c.SUBMITTED)]
    endings = {a.method: a.ending for a in history.of(c.ANSWER) if a.ending}
    assert endings == {c.SUBSCRIBE_TO_TASK: c.END_TERMINAL}


async def test_the_legacy_handler_is_observed_too() -> None:
    handler = LegacyRequestHandler(ScriptedExecutor(completes), InMemoryTaskStore(), card())
    with capture() as history:
        done = await handler.on_message_send(message(), CALL)
    assert event_state(done) == c.COMPLETED
    assert [(w.state, w.origin, w.event_kind) for w in history.of(c.WRITE)] == [
        (c.SUBMITTED, c.FROM_EXECUTOR, c.TASK_EVENT),
        (c.COMPLETED, c.FROM_EXECUTOR, c.STATUS_EVENT),
    ]
    assert phases(history) == ["started", "finished"]
    assert {f.task for f in history.of(c.EXECUTION)} == {f.task for f in history.of(c.WRITE)}
    assert [(a.method, a.state) for a in history.of(c.ANSWER)] == [(c.SEND_MESSAGE, c.COMPLETED)]


async def test_two_conflicts_in_a_row_lose_the_event_and_the_executor(sqlite: Database) -> None:
    go_on, started = asyncio.Event(), asyncio.Event()

    async def works(context, queue):
        await queue.enqueue_event(submitted(context))
        started.set()
        await go_on.wait()
        await queue.enqueue_event(artifact(context))
        await asyncio.Event().wait()

    async with cluster(sqlite.dsn, works, idle) as (a, b):
        with capture() as history:
            sending = asyncio.create_task(a.handler.on_message_send(message(), CALL))
            await started.wait()
            await something_stored(history)
            task_id = history.of(c.WRITE)[0].task.task_id
            save = a.store._save_once

            async def rival() -> None:
                current = await b.stored(task_id)
                await b.store.save(
                    current.task, event=None, prev=None, prev_version=current.version, context=CALL
                )

            async def rival_first(*args, **kwargs):
                # In a context of its own, as on another replica: it is no layer of this write.
                await contextvars.Context().run(asyncio.ensure_future, rival())
                return await save(*args, **kwargs)

            a.store._save_once = rival_first
            go_on.set()
            with pytest.raises(Exception, match="modified concurrently"):
                await sending
            a.store._save_once = save
    stale = [w for w in history.of(c.WRITE) if w.outcome == c.CONFLICT]
    assert [(w.reason, w.origin) for w in stale] == [
        (c.STALE_BASE, c.FROM_EXECUTOR),
        (c.STALE_BASE, c.FROM_EXECUTOR),
        (c.STALE_BASE, c.FROM_CONSUMER_FAILURE),
    ]
    assert [(d.reason, d.event_kind) for d in history.of(c.DROPPED)] == [
        (c.STALE_EXECUTOR, c.ARTIFACT_EVENT)
    ]
    assert ConcurrentTaskModificationError.__name__ not in {w.error_type for w in stale}


async def test_a_refusal_that_the_executor_passes_on_is_reloaded_and_no_event(sqlite: Database) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def gives_up(context, queue):
        await queue.enqueue_event(submitted(context))
        started.set()
        await go_on.wait()
        raise ConcurrentTaskModificationError(context.task_id)

    async with cluster(sqlite.dsn, gives_up, idle) as (a, b):
        with capture() as history:
            sending = asyncio.create_task(a.handler.on_message_send(message(), CALL))
            await started.wait()
            await something_stored(history)
            current = await b.stored(history.of(c.WRITE)[0].task.task_id)
            current.task.status.state = TaskState.TASK_STATE_CANCELED
            await b.store.save(
                current.task, event=None, prev=None, prev_version=current.version, context=CALL
            )
            go_on.set()
            await asyncio.wait([sending])
    reloads = [(r.version, r.state) for r in history.of(c.READ) if r.origin == c.RELOAD]
    assert reloads == [(2, c.CANCELED)]
    assert history.of(c.DROPPED) == []


async def test_each_push_says_what_a_webhook_was_told_and_whether_it_heard(sqlite: Database) -> None:
    import httpx
    from a2a.server.tasks import BasePushNotificationSender, InMemoryPushNotificationConfigStore
    from a2a.types.a2a_pb2 import SendMessageConfiguration, TaskPushNotificationConfig

    heard: list[str] = []

    def webhook(request: httpx.Request) -> httpx.Response:
        heard.append(request.url.path)
        return httpx.Response(200 if len(heard) == 1 else 500)

    configs = InMemoryPushNotificationConfigStore()
    client = httpx.AsyncClient(transport=httpx.MockTransport(webhook))
    sender = BasePushNotificationSender(client, configs)
    async with cluster(sqlite.dsn, completes) as (node,):
        node.handler._push_config_store = configs
        node.handler._push_sender = node.handler._active_task_registry._push_sender = sender
        request = message()
        request.configuration.CopyFrom(
            SendMessageConfiguration(
                task_push_notification_config=TaskPushNotificationConfig(url="http://hook.test/a")
            )
        )
        with capture() as history:
            done = await node.handler.on_message_send(request, CALL)
            await released(node, done.id)
    await client.aclose()
    pushes = [(a.state, a.event_kind, a.outcome) for a in history.of(c.ANSWER) if a.method == c.PUSH]
    assert pushes[-1] == (c.COMPLETED, c.STATUS_EVENT, "failed")
    assert "accepted" in {outcome for *_, outcome in pushes}
    assert {a.task for a in history.of(c.ANSWER)} == {history.of(c.WRITE)[0].task}
