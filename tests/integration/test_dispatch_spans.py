"""Dispatches without a word from the user: what instrumented clients do in an executor's context."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from a2a.server.tasks import BasePushNotificationSender, InMemoryPushNotificationConfigStore
from a2a.types.a2a_pb2 import SendMessageConfiguration, TaskPushNotificationConfig
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.instrumentation.utils import is_instrumentation_enabled
from opentelemetry.sdk.trace import sampling
from opentelemetry.trace import SpanKind

import a2a_fencing
from a2a_fencing import conventions as c
from a2a_fencing.testing import capture
from support.agents import CALL, between, run, serving
from support.cluster import message, until
from support.otlp_sink import otlp_sink
from support.tracing import Traced


@pytest.fixture(params=["sampled"])
def traced(request: pytest.FixtureRequest) -> Iterator[Traced]:
    ratio = 1.0 if request.param == "sampled" else 0.0
    found = Traced(sampling.ParentBased(sampling.TraceIdRatioBased(ratio)))
    with found.installed():
        yield found


@pytest.fixture
def instrumented_httpx(traced: Traced) -> Iterator[None]:
    HTTPXClientInstrumentor().instrument(tracer_provider=traced.provider)
    yield
    HTTPXClientInstrumentor().uninstrument()


class Server:
    """Answers with the statuses it was given, the last one for ever."""

    def __init__(self) -> None:
        self.statuses = [200]
        self.url = ""
        self.hold = threading.Event()
        self.hold.set()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found.hold.wait(10)
            status = found.statuses.pop(0) if len(found.statuses) > 1 else found.statuses[0]
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{http.server_address[1]}/charge?card=secret"
    yield found
    found.hold.set()
    http.shutdown()
    http.server_close()
    thread.join()


async def post(url: str) -> int:
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.post(url)).status_code


def told(history) -> list[tuple]:
    return [(f.name, f.phase, f.attempt, f.outcome) for f in history.of(c.DISPATCH)]


def ends(history) -> list[tuple]:
    return [(f.attempt, f.outcome) for f in history.of(c.DISPATCH) if f.phase == c.ENDED]


def starts(history) -> list:
    return [fact for fact in history.of(c.DISPATCH) if fact.phase == c.STARTED]


# --- a real client ---


async def test_a_request_of_an_instrumented_client_is_a_dispatch(
    traced: Traced, instrumented_httpx: None, server: Server
) -> None:
    async def step(context):
        assert await post(server.url) == 200

    with capture() as history:
        answer = await run(between(step))
    assert told(history) == [
        ("POST 127.0.0.1", c.STARTED, 1, None),
        ("POST 127.0.0.1", c.ENDED, 1, c.ACCEPTED),
    ]
    start, end = history.of(c.DISPATCH)
    execution = history.of(c.EXECUTION)[0]
    for fact in (start, end):
        assert (fact.task.task_id, fact.token, fact.execution_id) == (answer.id, 1, execution.id)
        assert (fact.key, fact.unparented, fact.dispatch_id) == (None, None, start.id)
    (span,) = (s for s in traced.exported.get_finished_spans() if s.kind is SpanKind.CLIENT)
    assert span.attributes["a2a.task.id"] == answer.id
    assert span.attributes["a2a.fencing.dispatch.id"] == start.id
    assert history.check().ok


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(412, c.DISPATCH_REJECTED), (429, c.DISPATCH_REJECTED), (500, c.UNKNOWN), (204, c.ACCEPTED)],
)
async def test_its_outcome_is_what_the_receiver_answered(
    traced: Traced, instrumented_httpx: None, server: Server, status: int, outcome: str
) -> None:
    server.statuses = [status]

    async def step(context):
        await post(server.url)

    with capture() as history:
        await run(between(step))
    assert ends(history) == [(1, outcome)]


async def test_a_receiver_that_is_not_there_was_not_reached(
    traced: Traced, instrumented_httpx: None
) -> None:
    async def step(context):
        with pytest.raises(httpx.ConnectError):
            await post("http://127.0.0.1:1/charge")

    with capture() as history:
        await run(between(step))
    assert ends(history) == [(1, c.DISPATCH_FAILED)]


async def test_a_request_that_is_cancelled_may_have_arrived(
    traced: Traced, instrumented_httpx: None, server: Server
) -> None:
    server.hold.clear()

    async def step(context):
        request = asyncio.create_task(post(server.url))

        async def began():
            return bool(history.of(c.DISPATCH))

        await until(began)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    with capture() as history:
        await run(between(step))
    assert ends(history) == [(1, c.UNKNOWN)]


async def test_a_client_that_tries_again_makes_attempts_of_one_dispatch(
    traced: Traced, instrumented_httpx: None, server: Server
) -> None:
    server.statuses = [503, 429, 200]

    async def step(context):
        for _ in range(5):  # three attempts, then two requests more that repeat nothing
            await post(server.url)

    with capture() as history:
        await run(between(step))
    assert [(f.attempt, f.dispatch_id) for f in starts(history)[:3]] == [
        (n, starts(history)[0].id) for n in (1, 2, 3)
    ]
    assert len({fact.dispatch_id for fact in starts(history)}) == 3
    assert ends(history) == [
        (1, c.UNKNOWN),
        (2, c.DISPATCH_REJECTED),
        (3, c.ACCEPTED),
        (1, c.ACCEPTED),
        (1, c.ACCEPTED),
    ]


async def test_requests_inside_the_users_block_are_its_attempts(
    traced: Traced, instrumented_httpx: None, server: Server
) -> None:
    server.statuses = [503, 200]

    async def step(context):
        async with a2a_fencing.dispatch("charge-card", key="order-17"):
            await post(server.url)
            await post(server.url)

    with capture() as history:
        await run(between(step))
    assert told(history) == [
        ("charge-card", c.STARTED, 1, None),
        ("charge-card", c.ENDED, 1, c.UNKNOWN),
        ("charge-card", c.STARTED, 2, None),
        ("charge-card", c.ENDED, 2, c.ACCEPTED),
    ]
    assert history.check().ok


async def test_the_user_has_the_last_word(
    traced: Traced, instrumented_httpx: None, server: Server
) -> None:
    async def step(context):
        async with a2a_fencing.dispatch("charge-card", key="order-17") as d:
            await post(server.url)
            d.rejected()  # 200 with a refusal in its body

    with capture() as history:
        await run(between(step))
    assert ends(history) == [(1, c.DISPATCH_REJECTED)]


async def test_two_requests_for_one_action_are_one_effect(
    traced: Traced, instrumented_httpx: None, server: Server
) -> None:
    async def step(context):
        async with a2a_fencing.dispatch("charge-card", key="order-17"):
            await post(server.url)  # for an access token, say
            await post(server.url)

    with capture() as history:
        await run(between(step))
    assert ends(history) == [(1, c.ACCEPTED)]
    assert history.check().ok


async def test_an_exception_after_an_accepted_request_leaves_the_action_unknown(
    traced: Traced, instrumented_httpx: None, server: Server
) -> None:
    async def step(context):
        with pytest.raises(LookupError):  # noqa: PT012 - the block is what is tested
            async with a2a_fencing.dispatch("charge-card", key="order-17"):
                await post(server.url)
                raise LookupError

    with capture() as history:
        await run(between(step))
    assert ends(history) == [(1, c.UNKNOWN)]


async def test_requests_of_tasks_and_threads_that_the_executor_started(
    traced: Traced, instrumented_httpx: None, server: Server
) -> None:
    def blocking() -> None:
        with httpx.Client(trust_env=False) as client:
            client.get(server.url)

    async def step(context):
        await asyncio.gather(post(server.url), post(server.url))
        await asyncio.create_task(post(server.url))
        await asyncio.to_thread(blocking)
        thread = threading.Thread(target=blocking)
        thread.start()
        await asyncio.to_thread(thread.join)
        with ThreadPoolExecutor(1) as pool:
            await asyncio.wrap_future(pool.submit(blocking))

    with capture() as history:
        await run(between(step))
    assert len(starts(history)) == 6
    assert {f.execution_id for f in starts(history)} == {history.of(c.EXECUTION)[0].id}
    assert {f.outcome for f in history.of(c.DISPATCH) if f.phase == c.ENDED} == {c.ACCEPTED}


async def test_what_is_requested_outside_an_execution_is_none_of_ours(
    traced: Traced, instrumented_httpx: None, server: Server
) -> None:
    async def step(context):
        pass

    with capture() as history:
        await run(between(step))
        await post(server.url)
    assert history.of(c.DISPATCH) == []
    assert all(
        "a2a.task.id" not in span.attributes
        for span in traced.exported.get_finished_spans()
        if span.kind is SpanKind.CLIENT
    )


# --- kinds of spans ---


async def test_what_is_and_what_is_no_dispatch(traced: Traced) -> None:
    async def step(context):
        with traced.client("publish orders", SpanKind.PRODUCER, **{"messaging.system": "kafka"}):
            pass
        with traced.client("chat model", **{"gen_ai.operation.name": "chat"}):
            pass
        with traced.client("SELECT", **{"db.system": "postgresql"}):
            pass
        with traced.client("GET", **{"db.system.name": "redis"}):
            pass
        with traced.client("receive", **{"messaging.operation.type": "receive"}):
            pass
        for kind in (SpanKind.INTERNAL, SpanKind.SERVER, SpanKind.CONSUMER):
            with traced.client("no call", kind):
                pass
        with traced.provider.get_tracer("a2a-python-sdk").start_as_current_span(
            "JsonRpcTransport.close", kind=SpanKind.CLIENT
        ):
            pass

    with capture(tracer=traced.provider.get_tracer(c.SCOPE)) as history:
        answer = await run(between(step))
    assert [fact.name for fact in starts(history)] == ["publish orders", "chat model"]
    in_execution = [
        span for span in traced.exported.get_finished_spans() if span.name in ("SELECT", "no call")
    ]
    assert len(in_execution) == 4
    assert {span.attributes["a2a.task.id"] for span in in_execution} == {answer.id}


async def test_a_client_inside_a_client_is_its_attempt(traced: Traced) -> None:
    http = {"http.request.method": "POST", "server.address": "llm.test"}

    async def step(context):
        with (
            traced.client("chat model", **{"gen_ai.operation.name": "chat"}),
            traced.client("retry loop", SpanKind.INTERNAL),
        ):
            for status in (503, 200):
                with traced.client("POST", **http) as span:
                    span.set_attribute("http.response.status_code", status)

    with capture() as history:
        await run(between(step))
    assert told(history) == [
        ("chat model", c.STARTED, 1, None),
        ("chat model", c.ENDED, 1, c.UNKNOWN),
        ("chat model", c.STARTED, 2, None),
        ("chat model", c.ENDED, 2, c.ACCEPTED),
    ]


async def test_a_client_that_says_no_to_a_200_was_not_accepted(traced: Traced) -> None:
    async def step(context):
        with (  # noqa: PT012 - the block is what is tested
            pytest.raises(LookupError),
            traced.client("tools/call", **{"mcp.method.name": "tools/call"}),
        ):
            with traced.client("POST", **{"http.request.method": "POST"}) as span:
                span.set_attribute("http.response.status_code", 200)
            raise LookupError

    with capture() as history:
        await run(between(step))
    assert ends(history) == [(1, c.UNKNOWN)]


# --- a lost parent ---


@contextmanager
def without_context() -> Iterator[None]:
    """As on a thread that nobody told where it belongs."""
    token = otel_context.attach(Context())
    try:
        yield
    finally:
        otel_context.detach(token)


async def test_a_call_whose_context_was_lost_is_listed_under_its_task_unparented(
    traced: Traced,
) -> None:
    async def step(context):
        # Begun as a root on purpose, in the executor's context.
        with traced.tracer.start_as_current_span("root", context=Context(), kind=SpanKind.CLIENT):
            pass
        # Only the trace came along, as through a queue in this process.
        with traced.client("inside", SpanKind.INTERNAL) as span:
            carried = trace.set_span_in_context(span, Context())
        with (
            without_context(),
            traced.tracer.start_as_current_span("queue", context=carried, kind=SpanKind.CLIENT),
        ):
            pass

    with capture(tracer=traced.provider.get_tracer(c.SCOPE)) as history:
        answer = await run(between(step))
    assert [fact.name for fact in starts(history)] == ["root", "queue"]
    for fact in history.of(c.DISPATCH):
        assert fact.unparented is True
        assert fact.task.task_id == answer.id
        assert (fact.execution_id, fact.token) == (None, None)


@pytest.mark.parametrize("told_apart", [True, False])
async def test_two_executions_in_one_trace_are_told_apart_only_by_their_own_spans(
    traced: Traced, told_apart: bool
) -> None:
    both_began, both_called = Barrier(2), Barrier(2)

    async def step(context):
        await both_began.wait()
        if told_apart:
            carried = trace.set_span_in_context(trace.get_current_span(), Context())
        else:
            with traced.client("inside", SpanKind.INTERNAL) as span:
                carried = trace.set_span_in_context(span, Context())
        with (
            without_context(),
            traced.tracer.start_as_current_span("call", context=carried, kind=SpanKind.CLIENT),
        ):
            pass
        await both_called.wait()

    with capture(tracer=traced.provider.get_tracer(c.SCOPE)) as history:
        handler = serving(between(step))
        with traced.client("the caller", SpanKind.INTERNAL):
            answers = await asyncio.gather(*(handler.on_message_send(message(), CALL) for _ in range(2)))
        await handler.aclose()
    found = starts(history)
    if told_apart:
        assert {fact.task.task_id for fact in found} == {answer.id for answer in answers}
        assert {fact.unparented for fact in found} == {None}
    else:
        assert found == []


class Barrier:
    """Lets nobody pass until all are there (asyncio has one from Python 3.11 on)."""

    def __init__(self, parties: int) -> None:
        self._missing = parties
        self._all = asyncio.Event()

    async def wait(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._all.set()
        await self._all.wait()


# --- sampling, switching ---


@pytest.mark.parametrize("traced", ["unsampled"], indirect=True)
async def test_a_trace_that_is_not_sampled_hides_no_dispatch(
    traced: Traced, instrumented_httpx: None, server: Server
) -> None:
    sent: dict[str, str] = {}

    async def step(context):
        assert await post(server.url) == 200
        with traced.client("query", **{"db.system": "postgresql"}):
            pass
        with traced.client("inside", SpanKind.INTERNAL) as span:
            assert not span.is_recording()
        with traced.client("call") as span:
            sent["flags"] = f"{span.get_span_context().trace_flags:02x}"

    with capture() as history:
        await run(between(step))
    assert [(f.name, f.outcome) for f in history.of(c.DISPATCH) if f.phase == c.ENDED] == [
        ("POST 127.0.0.1", c.ACCEPTED),
        ("call", c.ACCEPTED),
    ]
    assert traced.exported.get_finished_spans() == ()
    assert sent["flags"] in ("00", "02")  # receivers are told that it is not sampled
    # Off again, the sampler is the application's own.
    with traced.client("later") as span:
        assert not span.is_recording()


async def test_a_provider_that_is_set_up_later_is_watched_too(monkeypatch) -> None:
    async def step(context):
        with later.client("call"):
            pass

    with capture() as history:
        later = Traced(sampling.ALWAYS_ON)
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", later.provider)
        await run(between(step))
    later.provider.shutdown()
    assert len(starts(history)) == 1


async def test_switched_off_it_sees_nothing_and_switched_on_again_everything_once(
    traced: Traced,
) -> None:
    async def step(context):
        with traced.client("call"):
            pass

    for _ in range(2):
        with capture() as history:
            await run(between(step))
        assert len(starts(history)) == 1
        await run(between(step))
        assert len(history.of(c.DISPATCH)) == 2
    processors = traced.provider._active_span_processor._span_processors
    assert len(processors) == 2  # the exporter's and, once, ours


async def test_what_we_send_ourselves_is_no_dispatch(monkeypatch: pytest.MonkeyPatch) -> None:
    from urllib3 import HTTPConnectionPool

    enabled = []
    original = HTTPConnectionPool.urlopen

    def urlopen(self, *args, **kwargs):
        enabled.append(is_instrumentation_enabled())
        return original(self, *args, **kwargs)

    monkeypatch.setattr(HTTPConnectionPool, "urlopen", urlopen)

    async def step(context):
        with a2a_fencing.dispatch("call", durable=True):
            pass

    with otlp_sink() as sink:
        a2a_fencing.instrument(endpoint=sink.url)
        try:
            await run(between(step))
        finally:
            a2a_fencing.uninstrument()
    assert enabled
    assert not any(enabled)


async def test_a_span_that_nobody_ends_does_not_stay_for_ever(traced: Traced) -> None:
    from a2a_fencing.hooks import dispatch_spans

    async def step(context):
        for _ in range(dispatch_spans._OPEN_SPANS + 10):
            traced.tracer.start_span("forgotten", kind=SpanKind.CLIENT)

    with capture():
        await run(between(step))
    assert len(dispatch_spans._processor._calls) <= dispatch_spans._OPEN_SPANS
    dispatch_spans._processor._calls.clear()


# --- push notifications ---


async def test_a_push_is_a_dispatch_and_its_request_is_the_attempt(
    traced: Traced, instrumented_httpx: None, server: Server
) -> None:
    server.statuses = [200, 500]

    async def step(context):
        pass

    configs = InMemoryPushNotificationConfigStore()
    async with httpx.AsyncClient(trust_env=False) as client:
        sender = BasePushNotificationSender(client, configs)
        handler = serving(between(step), push_config_store=configs, push_sender=sender)
        request = message()
        request.configuration.CopyFrom(
            SendMessageConfiguration(
                task_push_notification_config=TaskPushNotificationConfig(url=server.url)
            )
        )
        with capture() as history:
            answer = await handler.on_message_send(request, CALL)

            async def released():
                return await handler._active_task_registry.get(answer.id) is None

            await until(released)
        await handler.aclose()
    pushes = [fact for fact in history.of(c.ANSWER) if fact.method == c.PUSH]
    assert [fact.outcome for fact in pushes] == [c.ACCEPTED, c.DISPATCH_FAILED]
    assert told(history) == [
        (c.PUSH, c.STARTED, 1, None),
        (c.PUSH, c.ENDED, 1, c.ACCEPTED),
        (c.PUSH, c.STARTED, 1, None),
        (c.PUSH, c.ENDED, 1, c.UNKNOWN),
    ]
    assert {fact.task.task_id for fact in history.of(c.DISPATCH)} == {answer.id}
