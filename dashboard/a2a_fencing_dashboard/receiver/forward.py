"""Sending accepted requests on to another OTLP endpoint, beside everything else."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import httpx
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from a2a_fencing_dashboard.receiver.counts import Counts
from a2a_fencing_dashboard.receiver.intake import Request
from a2a_fencing_dashboard.receiver.limits import Limits

_log = logging.getLogger(__name__)

_WORKERS: Final = 4
_RETRYABLE: Final = frozenset({429, 502, 503, 504})


class _RefusedError(Exception):
    """The endpoint does not want this request."""


class _BusyError(Exception):
    """The endpoint asks to try again."""


class Forwarder:
    """A bounded queue in front of an endpoint; what it cannot take or deliver is counted and dropped."""

    def __init__(
        self,
        url: str,
        limits: Limits,
        counts: Counts,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Sends to `url`, an OTLP/HTTP base URL, over `transport` (by default the network).

        `sleep` waits so many seconds between two attempts.
        """
        self._url = url.rstrip("/")
        self._limits = limits
        self._counts = counts
        self._transport = transport
        self._sleep = sleep
        self._queue: asyncio.Queue[Request] = asyncio.Queue()
        self._bytes = 0
        self._failing = False
        self._workers: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Starts sending."""
        self._client = httpx.AsyncClient(
            timeout=self._limits.forward_timeout_s, transport=self._transport
        )
        self._workers = [asyncio.create_task(self._work()) for _ in range(_WORKERS)]

    def send(self, request: Request) -> None:
        """Takes a request to be sent on; never waits."""
        size = len(request.body)
        if (
            self._queue.qsize() >= self._limits.forward_requests
            or self._bytes + size > self._limits.forward_bytes
        ):
            self._drop("more requests arrive than it takes")
            return
        self._bytes += size
        self._queue.put_nowait(request)

    async def close(self) -> None:
        """Goes on sending for a moment, then drops the rest."""
        with contextlib.suppress(TimeoutError), anyio.fail_after(self._limits.drain_s):
            await self._queue.join()
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        await self._client.aclose()
        for _ in range(self._queue.qsize()):
            self._drop("the receiver stops")

    async def _work(self) -> None:
        while True:
            request = await self._queue.get()
            try:
                await self._deliver(request)
            except (httpx.HTTPError, _BusyError, _RefusedError) as error:
                self._drop(str(error) or type(error).__name__)
            except asyncio.CancelledError:
                self._drop("the receiver stops")
                raise
            else:
                self._counts.forwarded += 1
                self._failing = False
            finally:
                self._bytes -= len(request.body)
                self._queue.task_done()

    async def _deliver(self, request: Request) -> None:
        attempts = AsyncRetrying(
            retry=retry_if_exception_type((httpx.TransportError, _BusyError)),
            stop=stop_after_attempt(self._limits.forward_attempts),
            wait=wait_random_exponential(multiplier=0.5, max=10),
            sleep=self._sleep,
            reraise=True,
        )
        await attempts(self._post, request)

    async def _post(self, request: Request) -> None:
        headers = {"Content-Type": request.content_type}
        if request.content_encoding:
            headers["Content-Encoding"] = request.content_encoding
        response = await self._client.post(
            f"{self._url}/v1/{request.signal}", content=request.body, headers=headers
        )
        if response.status_code in _RETRYABLE:
            raise _BusyError(f"answers {response.status_code}")
        if not response.is_success:
            raise _RefusedError(f"answers {response.status_code}")

    def _drop(self, reason: str) -> None:
        self._counts.forward_dropped += 1
        if not self._failing:
            self._failing = True
            _log.warning(
                "cannot forward to %s: %s; until it works again this is counted, not logged",
                self._url,
                reason,
            )
