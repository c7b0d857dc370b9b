"""Real clients, instrumented by OpenTelemetry or by themselves, against real servers on this machine.

What a user expects: one dispatch for one thing the agent did, and one attempt for each try of it. Where
a client's own span covers the HTTP requests it is made of, these are its attempts.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.trace import SpanKind

from a2a_fencing import conventions as c
from a2a_fencing.testing import capture
from support.agents import between, run
from support.tracing import Traced

OF_ONE_RELEASE = "no release of it here goes with the OpenTelemetry that the others need"
"""Instrumentations pin the very release of opentelemetry-instrumentation that they came with."""


@pytest.fixture
def traced() -> Iterator[Traced]:
    found = Traced()
    with found.installed():
        yield found


class Answers:
    """An HTTP server that gives these answers, the last one for ever."""

    def __init__(self) -> None:
        self.given: list[tuple[int, Any]] = [(200, {})]
        self.url = ""


@pytest.fixture
def answers() -> Iterator[Answers]:
    found = Answers()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            given = found.given
            status, content = given.pop(0) if len(given) > 1 else given[0]
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{http.server_address[1]}"
    yield found
    http.shutdown()
    http.server_close()
    thread.join()


async def dispatched(step: Any) -> list[tuple[int, str, int, str | None]]:
    """Runs the step in an executor: number of the dispatch, its name, and how each attempt ended."""
    with capture() as history:
        answer = await run(between(step))
    facts = history.of(c.DISPATCH)
    assert {fact.task.task_id for fact in facts if fact.task} <= {answer.id}
    assert not any(fact.unparented for fact in facts)
    numbers = {fact.dispatch_id: 0 for fact in facts}
    order = list(numbers)
    started = [(f.dispatch_id, f.attempt) for f in facts if f.phase == c.STARTED]
    ended = [f for f in facts if f.phase == c.ENDED]
    assert sorted(started) == sorted((f.dispatch_id, f.attempt) for f in ended)
    return [(order.index(f.dispatch_id), f.name, f.attempt, f.outcome) for f in ended]


# --- aiohttp ---


@pytest.fixture
def aiohttp(traced: Traced) -> Iterator[Any]:
    client = pytest.importorskip("aiohttp", reason=f"of its instrumentation, {OF_ONE_RELEASE}")
    instrumentation = pytest.importorskip(
        "opentelemetry.instrumentation.aiohttp_client", reason=OF_ONE_RELEASE
    )
    instrumentor = instrumentation.AioHttpClientInstrumentor()
    instrumentor.instrument(tracer_provider=traced.provider)
    yield client
    instrumentor.uninstrument()


async def test_aiohttp_requests_that_are_tried_again_are_one_dispatch(
    aiohttp: Any, answers: Answers
) -> None:
    answers.given = [(503, {}), (429, {}), (200, {})]

    async def step(context: Any) -> None:
        async with aiohttp.ClientSession() as session:
            for _ in range(4):  # three attempts, then a request that repeats nothing
                async with session.post(answers.url):
                    pass

    assert await dispatched(step) == [
        (0, "POST 127.0.0.1", 1, c.UNKNOWN),
        (0, "POST 127.0.0.1", 2, c.DISPATCH_REJECTED),
        (0, "POST 127.0.0.1", 3, c.ACCEPTED),
        (1, "POST 127.0.0.1", 1, c.ACCEPTED),
    ]


async def test_aiohttp_that_reaches_nobody_has_failed(aiohttp: Any) -> None:
    async def step(context: Any) -> None:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.post("http://127.0.0.1:1/")

    assert await dispatched(step) == [(0, "POST 127.0.0.1", 1, c.DISPATCH_FAILED)]


# --- gRPC ---


class Payments:
    """A gRPC service that ends each call with the next of these codes; None is success."""

    def __init__(self, grpc: Any) -> None:
        self.grpc = grpc
        self.codes: list[Any] = [None]
        self.address = ""
        self.calls = 0

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        grpc = self.grpc

        async def charge(request: bytes, context: Any) -> bytes:
            self.calls += 1
            code = self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]
            if code is not None:
                await context.abort(code, "")
            return b""

        server = grpc.aio.server()
        method = {"Charge": grpc.unary_unary_rpc_method_handler(charge)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Payments", method),))
        self.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        try:
            yield
        finally:
            await server.stop(None)

    async def charge(self, *options: tuple[str, str]) -> None:
        grpc = self.grpc
        async with grpc.aio.insecure_channel(self.address, options=options) as channel:
            await channel.unary_unary("/Payments/Charge")(b"")


@pytest.fixture
def payments(traced: Traced) -> Iterator[Payments]:
    grpc = pytest.importorskip("grpc")
    instrumentation = pytest.importorskip("opentelemetry.instrumentation.grpc", reason=OF_ONE_RELEASE)
    instrumentor = instrumentation.GrpcAioInstrumentorClient()
    instrumentor.instrument(tracer_provider=traced.provider)
    yield Payments(grpc)
    instrumentor.uninstrument()


async def test_grpc_calls_that_are_tried_again_are_one_dispatch(payments: Payments) -> None:
    code = payments.grpc.StatusCode
    payments.codes = [code.UNAVAILABLE, None, code.FAILED_PRECONDITION]

    async def step(context: Any) -> None:
        for fails in (True, False, True):
            if fails:
                with pytest.raises(payments.grpc.aio.AioRpcError):
                    await payments.charge()
            else:
                await payments.charge()

    async with payments.served():
        assert await dispatched(step) == [
            (0, "/Payments/Charge", 1, c.UNKNOWN),
            (0, "/Payments/Charge", 2, c.ACCEPTED),
            (1, "/Payments/Charge", 1, c.DISPATCH_REJECTED),
        ]


async def test_what_grpc_tries_again_below_its_span_is_one_attempt(payments: Payments) -> None:
    """Its retry policy lies below what the instrumentation sees; the outcome is that of the call."""
    payments.codes = [payments.grpc.StatusCode.UNAVAILABLE, None]
    retries = {
        "maxAttempts": 3,
        "initialBackoff": "0.01s",
        "maxBackoff": "0.01s",
        "backoffMultiplier": 1,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    config = json.dumps({"methodConfig": [{"name": [{}], "retryPolicy": retries}]})

    async def step(context: Any) -> None:
        await payments.charge(("grpc.service_config", config))

    async with payments.served():
        assert await dispatched(step) == [(0, "/Payments/Charge", 1, c.ACCEPTED)]
    assert payments.calls == 2


# --- an LLM client ---

COMPLETION = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "small",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}
    ],
}


@pytest.fixture
def openai(traced: Traced) -> Iterator[Any]:
    client = pytest.importorskip("openai")
    instrumentation = pytest.importorskip(
        "opentelemetry.instrumentation.genai.openai", reason=OF_ONE_RELEASE
    )
    instrumentor = instrumentation.OpenAIInstrumentor()
    instrumentor.instrument(tracer_provider=traced.provider)
    yield client
    instrumentor.uninstrument()


@pytest.fixture
def http_below(traced: Traced) -> Iterator[None]:
    """The HTTP client below LLM and MCP clients, instrumented too."""
    instrumentation = pytest.importorskip("opentelemetry.instrumentation.httpx")
    if not hasattr(instrumentation, "HTTPX2ClientInstrumentor"):
        pytest.skip("this instrumentation does not know httpx2")
    instrumentor = instrumentation.HTTPX2ClientInstrumentor()
    instrumentor.instrument(tracer_provider=traced.provider)
    yield
    instrumentor.uninstrument()


async def ask(openai: Any, answers: Answers) -> None:
    question = [{"role": "user", "content": "May I?"}]
    async with openai.AsyncOpenAI(api_key="none", base_url=answers.url, max_retries=2) as client:
        await client.chat.completions.create(model="small", messages=question)


async def test_a_chat_is_one_dispatch_and_its_requests_are_the_attempts(
    openai: Any, http_below: None, answers: Answers, traced: Traced
) -> None:
    answers.given = [(503, {}), (200, COMPLETION)]

    async def step(context: Any) -> None:
        await ask(openai, answers)

    assert await dispatched(step) == [
        (0, "chat small", 1, c.UNKNOWN),
        (0, "chat small", 2, c.ACCEPTED),
    ]
    spans = [span for span in traced.exported.get_finished_spans() if span.kind is SpanKind.CLIENT]
    assert len(spans) == 3
    assert len({span.attributes["a2a.fencing.dispatch.id"] for span in spans}) == 1


@pytest.mark.parametrize("below", [True, False], ids=["HTTP instrumented too", "the chat alone"])
async def test_a_chat_that_was_refused(
    openai: Any, answers: Answers, request: pytest.FixtureRequest, below: bool
) -> None:
    if below:
        request.getfixturevalue("http_below")
    answers.given = [(400, {})]

    async def step(context: Any) -> None:
        with pytest.raises(openai.BadRequestError):
            await ask(openai, answers)

    assert await dispatched(step) == [(0, "chat small", 1, c.DISPATCH_REJECTED)]


async def test_tries_that_no_span_tells_of_are_one_attempt(openai: Any, answers: Answers) -> None:
    """Without instrumentation of the HTTP client nobody sees how often the chat was sent."""
    answers.given = [(503, {}), (200, COMPLETION)]

    async def step(context: Any) -> None:
        await ask(openai, answers)

    assert await dispatched(step) == [(0, "chat small", 1, c.ACCEPTED)]


# --- MCP, whose SDK makes its own spans ---


@asynccontextmanager
async def tools() -> AsyncIterator[str]:
    """An MCP server over HTTP."""
    import uvicorn

    mcpserver = pytest.importorskip("mcp.server.mcpserver", reason="the MCP SDK makes spans from 2.0 on")
    server = mcpserver.MCPServer("payments")

    @server.tool()
    def charge_card(amount: int) -> str:
        return "charged"

    config = uvicorn.Config(server.streamable_http_app(), port=0, log_config=None, lifespan="on")
    running = uvicorn.Server(config)
    serving = asyncio.create_task(running.serve())
    while not running.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        running.should_exit = True
        await serving


@pytest.mark.parametrize("below", [True, False], ids=["HTTP instrumented too", "MCP alone"])
async def test_a_tool_call_is_one_dispatch(
    traced: Traced, request: pytest.FixtureRequest, below: bool
) -> None:
    mcp = pytest.importorskip("mcp.client.client", reason="the MCP SDK makes spans from 2.0 on")
    if below:
        request.getfixturevalue("http_below")

    async def step(context: Any) -> None:
        async with mcp.Client(url) as client:
            await client.call_tool("charge_card", {"amount": 3})

    async with tools() as url:
        found = await dispatched(step)
    assert [(attempt, outcome) for _, _, attempt, outcome in found] == [(1, c.ACCEPTED)] * len(found)
    names = [name for _, name, _, _ in found]
    assert names.count("MCP send tools/call charge_card") == 1
    assert all(name.startswith("MCP ") for name in names)  # no HTTP request beside them
