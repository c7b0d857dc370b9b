from __future__ import annotations

import asyncio
import gzip
import logging
import threading
from collections.abc import AsyncIterator, Callable, Collection, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest
from google.protobuf import json_format
from google.rpc import code_pb2
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from starlette.types import ASGIApp

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.receiver.limits import Limits
from a2a_fencing_dashboard.store import StoreError
from a2a_fencing_dashboard.store.protocol import Span, Store, Window
from support.otlp_requests import JSON, PROTOBUF, encoded, logs, record, span, traces

ALWAYS = Window()
TASK = TaskKey("tasks", "alice", "7f3c")
FACTS = [
    Fact(
        id=f"api-0:{n}",
        kind=c.WRITE,
        time_unix_nano=n,
        replica="api-0",
        task=TASK,
        state=c.WORKING,
        version=n,
        outcome=c.ACCEPTED,
    )
    for n in range(1, 4)
]
MALFORMED = LogRecord(event_name="a2a.fencing.write")
BODY = logs(*map(record, FACTS))
both = pytest.mark.parametrize("content_type", [PROTOBUF, JSON])

pytestmark = pytest.mark.asyncio


async def post(
    http: httpx.AsyncClient,
    content: Any,
    content_type: str = PROTOBUF,
    path: str = "/v1/logs",
    **headers: str,
) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await http.post(path, content=content, headers={"content-type": content_type} | named)


def message(response: httpx.Response, kind: type) -> Any:
    """The body of an answer, which must be in the encoding that its content type says."""
    if response.headers["content-type"] == JSON:
        return json_format.Parse(response.content, kind())
    assert response.headers["content-type"] == PROTOBUF
    return kind.FromString(response.content)


async def post_each(http: httpx.AsyncClient, facts: Sequence[Fact]) -> list[httpx.Response]:
    """Sends each fact in a request of its own, all at once."""
    bodies = [logs(record(fact)).SerializeToString() for fact in facts]
    return await asyncio.gather(*(post(http, body) for body in bodies))


async def until(condition: Callable[[], bool]) -> None:
    """Lets others run until the condition holds."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0)


def refused(response: httpx.Response, status: int, code: int) -> str:
    assert response.status_code == status
    error = message(response, Status)
    assert error.code == code
    assert error.message
    assert "\n" not in error.message
    return error.message


# --- what is accepted


@both
async def test_facts_are_stored_before_the_answer(run, store: Store, content_type: str) -> None:
    async with run() as running:
        response = await post(running.http, encoded(BODY, content_type), content_type)
        assert store.facts_of(TASK) == FACTS

    assert response.status_code == 200
    assert not message(response, ExportLogsServiceResponse).HasField("partial_success")
    counts = running.receiver.counts
    assert (counts.facts, counts.duplicates, counts.commits) == (3, 0, 1)
    assert counts.requests == {200: 1}


@both
async def test_a_fact_counts_once_over_signals_and_repetitions(
    run, store: Store, content_type: str
) -> None:
    spans = encoded(traces(span(FACTS)), content_type)
    async with run() as running:
        for _ in range(2):
            await post(running.http, spans, content_type, "/v1/traces")
            response = await post(running.http, encoded(BODY, content_type), content_type)
            assert response.status_code == 200

    assert len(store.facts_of(TASK)) == 3
    assert len(store.spans_of(["0a" * 16])) == 1
    assert (running.receiver.counts.facts, running.receiver.counts.duplicates) == (3, 9)


@both
async def test_malformed_facts_are_told_and_the_rest_is_stored(
    run, store: Store, content_type: str
) -> None:
    request = logs(MALFORMED, record(FACTS[0]), MALFORMED)
    eventful = span([FACTS[1]], trace_id=b"")
    async with run() as running:
        told = await post(running.http, encoded(request, content_type), content_type)
        traced = await post(
            running.http, encoded(traces(eventful), content_type), content_type, "/v1/traces"
        )

    partial = message(told, ExportLogsServiceResponse).partial_success
    assert (told.status_code, partial.rejected_log_records) == (200, 2)
    assert partial.error_message.startswith("not stored: a2a.fencing.write: ")
    assert "and 1 more" in partial.error_message
    partial = message(traced, ExportTraceServiceResponse).partial_success
    assert (traced.status_code, partial.rejected_spans) == (200, 1)
    assert [fact.id for fact in store.facts_of(TASK)] == ["api-0:1", "api-0:2"]
    assert running.receiver.counts.malformed == 3


@both
async def test_nobody_can_say_that_facts_were_left_out(run, store: Store, content_type: str) -> None:
    mark = Fact(id="api-0:2", kind=c.OMITTED, time_unix_nano=1, replica="api-0", last=10**17)
    late = replace(FACTS[1], id="api-0:7")
    async with run() as running:
        told = await post(
            running.http, encoded(logs(record(FACTS[0]), record(mark)), content_type), content_type
        )
        await post(running.http, encoded(logs(record(late)), content_type), content_type)

    partial = message(told, ExportLogsServiceResponse).partial_success
    assert partial.rejected_log_records == 1
    assert [fact.id for fact in store.facts_of(TASK)] == ["api-0:1", "api-0:7"]
    assert store.overview(ALWAYS).missing == 5


@both
async def test_metrics_are_accepted_and_not_kept(run, store: Store, content_type: str) -> None:
    body = b'{"resourceMetrics": [{}]}' if content_type == JSON else b"\x0a\x00"
    async with run() as running:
        response = await post(running.http, body, content_type, "/v1/metrics")

    assert response.status_code == 200
    assert message(response, ExportMetricsServiceResponse) == ExportMetricsServiceResponse()
    assert store.data_version() == 0


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON"])
async def test_content_types_are_read_as_http_means_them(run, content_type: str) -> None:
    async with run() as running:
        assert (await post(running.http, b"{}", content_type)).status_code == 200


@pytest.mark.parametrize("encoding", ["gzip", "GZip"])
async def test_gzip_is_undone(run, store: Store, encoding: str) -> None:
    body = gzip.compress(BODY.SerializeToString())
    async with run() as running:
        response = await post(running.http, body, content_encoding=encoding)

    assert response.status_code == 200
    assert store.facts_of(TASK) == FACTS


async def test_health(run) -> None:
    async with run() as running:
        response = await running.http.get("/healthz")

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


# --- what is refused: each with its body, and nothing stored


@pytest.fixture
def untouched(store: Store):
    """Afterwards, what was stored before is all that is stored."""
    Ingest(store).add(FACTS[:1])
    before = store.data_version()
    yield
    assert store.data_version() == before
    assert store.facts_of(TASK) == FACTS[:1]


pytest_untouched = pytest.mark.usefixtures("untouched")


@pytest_untouched
@both
async def test_an_undecodable_body_is_400(run, content_type: str) -> None:
    whole = encoded(BODY, content_type)
    async with run() as running:
        for body in (whole[:-1], b"\xff" + whole, b"?"):
            response = await post(running.http, body, content_type)
            assert content_type in refused(response, 400, code_pb2.INVALID_ARGUMENT)


@pytest_untouched
@both
async def test_broken_gzip_is_400(run, content_type: str) -> None:
    body = gzip.compress(encoded(BODY, content_type))
    async with run() as running:
        for sent in (body[:-3], b"\x00" + body, encoded(BODY, content_type)):
            response = await post(running.http, sent, content_type, content_encoding="gzip")
            assert "gzip" in refused(response, 400, code_pb2.INVALID_ARGUMENT)


@pytest_untouched
@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "", "application/grpc"])
async def test_another_content_type_is_415(run, content_type: str) -> None:
    async with run() as running:
        response = await post(running.http, BODY.SerializeToString(), content_type)

    assert PROTOBUF in refused(response, 415, code_pb2.INVALID_ARGUMENT)
    assert response.headers["content-type"] == JSON


@pytest_untouched
@both
async def test_another_content_encoding_is_415(run, content_type: str) -> None:
    async with run() as running:
        response = await post(
            running.http, encoded(BODY, content_type), content_type, content_encoding="br"
        )

    assert "'br'" in refused(response, 415, code_pb2.INVALID_ARGUMENT)


@pytest_untouched
@both
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_another_method_is_405(run, method: str, content_type: str) -> None:
    async with run() as running:
        response = await running.http.request(method, "/v1/logs", headers={"content-type": content_type})

    refused(response, 405, code_pb2.UNIMPLEMENTED)
    assert response.headers["allow"] == "POST"


@pytest_untouched
@both
async def test_another_path_is_404(run, content_type: str) -> None:
    async with run() as running:
        for path in ("/", "/v1/profiles", "/v1/logs/more"):
            response = await post(running.http, encoded(BODY, content_type), content_type, path)
            refused(response, 404, code_pb2.NOT_FOUND)


@pytest_untouched
@both
async def test_a_large_body_is_413(run, content_type: str) -> None:
    body = encoded(BODY, content_type)
    async with run(limits=Limits(body_bytes=len(body) - 1)) as running:
        response = await post(running.http, body, content_type)

    refused(response, 413, code_pb2.RESOURCE_EXHAUSTED)


@pytest_untouched
@both
async def test_a_body_that_grows_large_is_413(run, content_type: str) -> None:
    body = encoded(BODY, content_type)
    packed = gzip.compress(body)
    assert len(packed) < len(body) - 1
    async with run(limits=Limits(body_bytes=len(body) - 1)) as running:
        response = await post(running.http, packed, content_type, content_encoding="gzip")

    assert "decompressed" in refused(response, 413, code_pb2.RESOURCE_EXHAUSTED)


SCOPE = {
    "type": "http",
    "method": "POST",
    "path": "/v1/logs",
    "raw_path": b"/v1/logs",
    "query_string": b"",
    "headers": [(b"content-type", PROTOBUF.encode())],
}


async def status_of_sending(app: ASGIApp, chunks: AsyncIterator[bytes]) -> int:
    """Sends a body piece by piece, as fast as the receiver takes it."""
    answer: list[MutableMapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": await anext(chunks), "more_body": True}

    async def send(part: MutableMapping[str, Any]) -> None:
        answer.append(part)

    await app(SCOPE, receive, send)
    return answer[0]["status"]


@pytest_untouched
async def test_no_more_of_a_large_body_is_read_than_the_limit(run) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * 1000

    async with run(limits=Limits(body_bytes=10_000)) as running:
        assert await status_of_sending(running.receiver.app(), endless()) == 413

    assert taken == 11


@pytest_untouched
async def test_a_body_that_does_not_arrive_is_408(run) -> None:
    async def stuck() -> AsyncIterator[bytes]:
        yield b"\x0a"
        await asyncio.Event().wait()

    async with run(limits=Limits(body_timeout_s=0.01)) as running:
        assert await status_of_sending(running.receiver.app(), stuck()) == 408


@pytest_untouched
async def test_a_sender_that_goes_away_does_no_harm(run, caplog: pytest.LogCaptureFixture) -> None:
    async with run() as running:
        app = running.receiver.app()

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(part: MutableMapping[str, Any]) -> None:
            pass

        await app(SCOPE, receive, send)

    assert not caplog.records


@pytest_untouched
@both
async def test_without_the_token_it_is_401(run, content_type: str) -> None:
    body = encoded(BODY, content_type)
    async with run(token="s3cret") as running:
        for headers in (
            {},
            {"authorization": "Bearer wrong"},
            {"authorization": "Basic s3cret"},
            {"authorization": "s3cret"},
            {"authorization": "Bearer s3cretx"},
            {"authorization": "Bearer ünï".encode("latin-1").decode("latin-1")},
        ):
            named = {"content-type": content_type} | headers
            raw = [(k.encode(), v.encode("latin-1")) for k, v in named.items()]
            response = await running.http.post("/v1/logs", content=body, headers=raw)
            refused(response, 401, code_pb2.UNAUTHENTICATED)
            assert response.headers["www-authenticate"] == "Bearer"


async def test_with_the_token_it_is_stored(run, store: Store) -> None:
    async with run(token="s3cret") as running:
        body = BODY.SerializeToString()
        response = await post(running.http, body, authorization="bearer s3cret")
        health = await running.http.get("/healthz")

    assert (response.status_code, health.status_code) == (200, 200)
    assert store.facts_of(TASK) == FACTS


# --- under pressure


class _SlowIngest(Ingest):
    """Stores when it is allowed to."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.began = threading.Event()
        self.may_go_on = threading.Event()
        self.sizes: list[int] = []

    def add(self, facts: Sequence[Fact], spans: Sequence[Span] = ()) -> int:
        if facts:
            self.began.set()
        assert self.may_go_on.wait(60)
        if facts:
            self.sizes.append(len(facts))
        return super().add(facts, spans)


@both
async def test_a_full_queue_is_503_and_the_rest_is_stored(run, store: Store, content_type: str) -> None:
    slow = _SlowIngest(store)
    body = encoded(BODY, content_type)
    async with run(slow, limits=Limits(pending_requests=2)) as running:
        waiting = [asyncio.create_task(post(running.http, body, content_type)) for _ in range(2)]
        await until(lambda: not running.receiver._room._requests)
        response = await post(running.http, body, content_type)
        refused(response, 503, code_pb2.UNAVAILABLE)
        assert int(response.headers["retry-after"]) >= 1
        slow.may_go_on.set()
        assert [(await task).status_code for task in waiting] == [200, 200]
        assert (await post(running.http, body, content_type)).status_code == 200

    assert store.facts_of(TASK) == FACTS
    assert running.receiver.counts.requests == {200: 3, 503: 1}


async def test_too_many_bytes_at_once_are_503(run, store: Store) -> None:
    body = BODY.SerializeToString()
    slow = _SlowIngest(store)
    async with run(slow, limits=Limits(pending_bytes=len(body) + 10)) as running:
        first = asyncio.create_task(post(running.http, body))
        await until(lambda: running.receiver._room._size <= 10)
        refused(await post(running.http, body), 503, code_pb2.UNAVAILABLE)
        slow.may_go_on.set()
        assert (await first).status_code == 200


async def test_requests_that_wait_share_a_commit(run, store: Store) -> None:
    slow = _SlowIngest(store)
    many = [replace(FACTS[0], id=f"api-1:{n}") for n in range(1, 11)]
    async with run(slow) as running:
        first = asyncio.create_task(post_each(running.http, many[:1]))
        await until(slow.began.is_set)
        others = asyncio.create_task(post_each(running.http, many[1:]))
        await until(lambda: running.receiver._intake._queue.qsize() == 9)
        slow.may_go_on.set()
        responses = [*await first, *await others]
        assert {response.status_code for response in responses} == {200}

    assert len(store.facts_of(TASK)) == 10
    assert slow.sizes == [1, 9]


async def test_a_large_group_is_split(run, store: Store) -> None:
    slow = _SlowIngest(store)
    slow.may_go_on.set()
    many = [replace(FACTS[0], id=f"api-1:{n}") for n in range(1, 11)]
    async with run(slow, limits=Limits(group_bytes=1)) as running:
        responses = await post_each(running.http, many)

    assert {response.status_code for response in responses} == {200}
    assert slow.sizes == [1] * 10


async def test_what_was_accepted_is_stored_before_the_end(run, store: Store) -> None:
    slow = _SlowIngest(store)
    async with run(slow) as running:
        task = asyncio.create_task(post(running.http, BODY.SerializeToString()))
        await until(lambda: running.receiver._room._requests < Limits().pending_requests)
        slow.may_go_on.set()

    assert (await task).status_code == 200
    assert store.facts_of(TASK) == FACTS


async def test_an_undecodable_request_does_not_spoil_its_group(run, store: Store) -> None:
    slow = _SlowIngest(store)
    async with run(slow) as running:
        tasks = [
            asyncio.create_task(post(running.http, content))
            for content in (b"\xff", BODY.SerializeToString(), b"\xff")
        ]
        slow.may_go_on.set()
        assert [(await task).status_code for task in tasks] == [400, 200, 400]

    assert store.facts_of(TASK) == FACTS


# --- when the store fails


class _FailingIngest(Ingest):
    """Fails as it is told to."""

    error: Exception | None = None
    only: str | None = None

    def add(self, facts: Collection[Fact], spans: Sequence[Span] = ()) -> int:
        if self.error and (self.only is None or any(fact.id == self.only for fact in facts)):
            raise self.error
        return super().add(facts, spans)


async def test_a_store_that_cannot_be_written_is_503_and_logged_once(
    run, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    failing = _FailingIngest(store)
    body = BODY.SerializeToString()
    async with run(failing) as running:
        failing.error = StoreError("cannot write to the store: disk full")
        for _ in range(3):
            response = await post(running.http, body)
            assert "disk full" in refused(response, 503, code_pb2.UNAVAILABLE)
            assert response.headers["retry-after"]
        failing.error = None
        assert (await post(running.http, body)).status_code == 200

    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert store.facts_of(TASK) == FACTS


async def test_a_request_we_stumble_over_is_500_and_does_not_spoil_its_group(
    run, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    failing = _FailingIngest(store)
    failing.error, failing.only = ZeroDivisionError("our insides"), "api-0:2"
    async with run(failing) as running:
        responses = await post_each(running.http, FACTS)
        assert [response.status_code for response in responses] == [200, 500, 200]
        assert "insides" not in refused(responses[1], 500, code_pb2.INTERNAL)
        assert (await running.http.get("/healthz")).status_code == 200

    assert store.facts_of(TASK) == [FACTS[0], FACTS[2]]
    assert [record.message for record in caplog.records] == ["a request cannot be stored"]
