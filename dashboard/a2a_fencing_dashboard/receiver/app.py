"""The receiver as an ASGI application: OTLP/HTTP in, facts in the store."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from a2a_fencing_dashboard.alerts.service import Alerts
from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.receiver.body import CONTENT_ENCODINGS
from a2a_fencing_dashboard.receiver.counts import Counts
from a2a_fencing_dashboard.receiver.errors import (
    Status,
    TooLargeError,
    TooSlowError,
    UnauthorizedError,
    UnsupportedError,
    status_of,
    status_of_http,
    text_of,
)
from a2a_fencing_dashboard.receiver.forward import Forwarder
from a2a_fencing_dashboard.receiver.intake import Intake, Request
from a2a_fencing_dashboard.receiver.limits import Limits
from a2a_fencing_dashboard.receiver.metrics import Metrics
from a2a_fencing_dashboard.receiver.otlp import answer
from a2a_fencing_dashboard.receiver.otlp.decode import ENCODINGS, JSON, SIGNALS
from a2a_fencing_dashboard.receiver.room import Guest, Room


class Receiver:
    """What the application works with.

    Attributes:
        counts: What it has done so far.
        limits: How much it takes on at once.
    """

    def __init__(
        self,
        ingest: Ingest,
        *,
        token: str | None = None,
        forward: str | None = None,
        limits: Limits | None = None,
        alerts: Alerts | None = None,
    ) -> None:
        """Stores through `ingest`; see `receiver.serve` for the others."""
        self.limits = limits or Limits()
        self._token = token.encode() if token else None
        self.counts = Counts()
        self._intake = Intake(ingest, self.limits, self.counts)
        self._forwarder = Forwarder(forward, self.limits, self.counts) if forward else None
        self._alerts = alerts or Alerts(ingest.store.outbox, AlertSettings())
        self._metrics = Metrics(ingest.store, ingest, self.counts, self._alerts)
        self._room = Room(requests=self.limits.pending_requests, size=self.limits.pending_bytes)

    def app(self) -> Starlette:
        """The ASGI application; its lifespan starts and drains the receiver."""
        return Starlette(
            routes=[
                *(
                    Route(f"/v1/{signal}", self._endpoint(signal), methods=["POST"])
                    for signal in SIGNALS
                ),
                Route("/healthz", self._health, methods=["GET"]),
                Route("/metrics", self._scrape, methods=["GET"]),
            ],
            exception_handlers={HTTPException: self._refused, Exception: self._failed},
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self._alerts.start()  # before the first fact, so that what it shows is told
        self._intake.start()
        if self._forwarder:
            self._forwarder.start()
        yield
        await self._intake.close()
        async with anyio.create_task_group() as ending:
            ending.start_soon(self._alerts.close)
            if self._forwarder:
                ending.start_soon(self._forwarder.close)

    def _endpoint(self, signal: str) -> Callable[[HttpRequest], Awaitable[Response]]:
        async def export(http: HttpRequest) -> Response:
            try:
                return await self._export(signal, http)
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it
            except Exception as error:
                return self._answer_error(http, status_of(error), text_of(error))

        return export

    async def _export(self, signal: str, http: HttpRequest) -> Response:
        self._authorize(http)
        content_type = _content_type(http)
        if content_type not in ENCODINGS:
            raise UnsupportedError(f"content type must be one of {', '.join(ENCODINGS)}")
        content_encoding = http.headers.get("content-encoding", "").lower()
        if content_encoding not in CONTENT_ENCODINGS:
            raise UnsupportedError(f"unknown content encoding {content_encoding!r}")
        with self._room.enter() as guest:
            body = await self._read(http, guest)
            request = Request(signal, content_type, content_encoding, body)
            stored = await self._intake.store(request)
        if self._forwarder:
            self._forwarder.send(request)
        return self._answer(200, answer.success(signal, content_type, stored.malformed), content_type)

    async def _read(self, http: HttpRequest, guest: Guest) -> bytes:
        limit = self.limits.body_bytes
        body = bytearray()
        try:
            with anyio.fail_after(self.limits.body_timeout_s):
                async for chunk in http.stream():
                    guest.take(len(chunk))
                    body += chunk
                    if len(body) > limit:
                        raise TooLargeError(f"the body has more than {limit} bytes")
        except TimeoutError:
            raise TooSlowError(
                f"the body did not arrive in {self.limits.body_timeout_s} seconds"
            ) from None
        return bytes(body)

    def _authorize(self, http: HttpRequest) -> None:
        if self._token is None:
            return
        scheme, _, token = http.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.encode(), self._token):
            raise UnauthorizedError("a bearer token is needed")

    async def _health(self, http: HttpRequest) -> Response:
        alive = self._intake.alive
        return JSONResponse({"status": "ok" if alive else "stopping"}, 200 if alive else 503)

    async def _scrape(self, http: HttpRequest) -> Response:
        try:
            self._authorize(http)
            body, content_type = await anyio.to_thread.run_sync(
                self._metrics.answer, http.headers.get("accept", "")
            )
        except Exception as error:
            status = status_of(error)
            return Response(text_of(error), status.http, status.headers, media_type="text/plain")
        return Response(body, headers={"content-type": content_type})

    async def _refused(self, http: HttpRequest, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        status = status_of_http(error.status_code, dict(error.headers or {}))
        return self._answer_error(http, status, error.detail)

    async def _failed(self, http: HttpRequest, error: Exception) -> Response:
        return self._answer_error(http, status_of(error), text_of(error))

    def _answer_error(self, http: HttpRequest, status: Status, text: str) -> Response:
        content_type = _content_type(http)
        if content_type not in ENCODINGS:
            content_type = JSON
        body = answer.failure(status.grpc, text, content_type)
        return self._answer(status.http, body, content_type, status.headers)

    def _answer(
        self, status: int, body: bytes, content_type: str, headers: dict[str, str] | None = None
    ) -> Response:
        self.counts.requests[status] += 1
        return Response(body, status, headers, media_type=content_type)


def _content_type(http: HttpRequest) -> str:
    return http.headers.get("content-type", "").partition(";")[0].strip().lower()
