from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import httpx
import pytest

from a2a_fencing_dashboard.receiver.counts import Counts
from a2a_fencing_dashboard.receiver.forward import Forwarder
from a2a_fencing_dashboard.receiver.intake import Request
from a2a_fencing_dashboard.receiver.limits import Limits

pytestmark = pytest.mark.asyncio

REQUEST = Request("logs", "application/x-protobuf", "gzip", b"\x1f\x8bbody")
Answer = Callable[[httpx.Request], httpx.Response]


class Endpoint:
    """An endpoint that answers as a test wants, and a forwarder that sends to it."""

    def __init__(self, answer: Answer, **limits: float) -> None:
        self.seen: list[httpx.Request] = []
        self.waits: list[float] = []
        self.counts = Counts()
        self._answer = answer
        self.forwarder = Forwarder(
            "http://jaeger:4318/",
            Limits(**{"drain_s": 30.0} | limits),
            self.counts,
            transport=httpx.MockTransport(self._handle),
            sleep=self._wait,
        )

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        return self._answer(request)

    async def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def send(self, *requests: Request) -> None:
        """Sends requests on and waits until each is delivered or dropped."""
        self.forwarder.start()
        for request in requests:
            self.forwarder.send(request)
        await self.forwarder.close()


def accept(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200)


async def test_a_request_is_sent_on_as_it_came() -> None:
    endpoint = Endpoint(accept)

    await endpoint.send(REQUEST, Request("traces", "application/json", "", b"{}"))

    first, second = endpoint.seen
    assert (first.method, str(first.url)) == ("POST", "http://jaeger:4318/v1/logs")
    assert first.content == REQUEST.body
    assert first.headers["content-type"] == "application/x-protobuf"
    assert first.headers["content-encoding"] == "gzip"
    assert "authorization" not in first.headers
    assert (str(second.url), second.content) == ("http://jaeger:4318/v1/traces", b"{}")
    assert "content-encoding" not in second.headers
    assert (endpoint.counts.forwarded, endpoint.counts.forward_dropped) == (2, 0)


@pytest.mark.parametrize("trouble", [429, 502, 503, 504, httpx.ConnectError("refused")])
async def test_passing_trouble_is_tried_again(trouble: int | Exception) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if len(endpoint.seen) < 3:
            if isinstance(trouble, Exception):
                raise trouble
            return httpx.Response(trouble)
        return httpx.Response(200)

    endpoint = Endpoint(answer)

    await endpoint.send(REQUEST)

    assert len(endpoint.seen) == 3
    assert len(endpoint.waits) == 2
    assert (endpoint.counts.forwarded, endpoint.counts.forward_dropped) == (1, 0)


async def test_a_dead_endpoint_costs_counts_and_one_log_line(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    endpoint = Endpoint(refuse, forward_attempts=3)

    await endpoint.send(*[REQUEST] * 5)

    assert len(endpoint.seen) == 15
    assert (endpoint.counts.forwarded, endpoint.counts.forward_dropped) == (0, 5)
    (line,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "cannot forward to http://jaeger:4318: refused" in line.message


@pytest.mark.parametrize("status", [400, 401, 404, 500, 301])
async def test_a_refusal_is_final(status: int, caplog: pytest.LogCaptureFixture) -> None:
    endpoint = Endpoint(lambda request: httpx.Response(status))

    await endpoint.send(REQUEST)

    assert len(endpoint.seen) == 1
    assert (endpoint.counts.forwarded, endpoint.counts.forward_dropped) == (0, 1)
    assert f"answers {status}" in caplog.text


async def test_each_outage_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    bad = [True, True, False, True]
    endpoint = Endpoint(lambda request: httpx.Response(400 if bad[len(endpoint.seen) - 1] else 200))
    endpoint.forwarder.start()
    for _ in bad:
        endpoint.forwarder.send(REQUEST)
        await endpoint.forwarder._queue.join()
    await endpoint.forwarder.close()

    assert (endpoint.counts.forwarded, endpoint.counts.forward_dropped) == (1, 3)
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 2


@pytest.mark.parametrize(
    "limits", [{"forward_requests": 2}, {"forward_bytes": 2 * len(REQUEST.body) + 1}]
)
async def test_what_does_not_fit_into_the_queue_is_dropped(limits: dict[str, int]) -> None:
    endpoint = Endpoint(accept, **limits)

    # Nothing is awaited between them, so that nothing is sent yet.
    await endpoint.send(*[REQUEST] * 5)

    assert (endpoint.counts.forwarded, endpoint.counts.forward_dropped) == (2, 3)
    endpoint.forwarder.start()
    endpoint.forwarder.send(REQUEST)
    await endpoint.forwarder.close()
    assert endpoint.counts.forwarded == 3


async def test_what_is_not_sent_in_time_is_dropped_at_the_end() -> None:
    async def stuck(seconds: float) -> None:
        await asyncio.Event().wait()

    endpoint = Endpoint(lambda request: httpx.Response(503), drain_s=0.01)
    endpoint.forwarder._sleep = stuck

    await endpoint.send(*[REQUEST] * 9)

    assert (endpoint.counts.forwarded, endpoint.counts.forward_dropped) == (0, 9)
