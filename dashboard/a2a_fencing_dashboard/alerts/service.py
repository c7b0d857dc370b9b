"""Every destination together: started and ended with the receiver, and never in its way."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence

import httpx

from a2a_fencing_dashboard.alerts.alertmanager import PATH, Alertmanager
from a2a_fencing_dashboard.alerts.delivery import ALERTMANAGER, WEBHOOK, Endpoint, Sleep, Tallies
from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.alerts.webhook import Webhook, destination
from a2a_fencing_dashboard.store.errors import StoreError
from a2a_fencing_dashboard.store.outbox import Outbox

_log = logging.getLogger(__name__)

_Destination = Webhook | Alertmanager


class Alerts:
    """Tells every destination what it is to be told.

    Attributes:
        tallies: How many messages, by destination and outcome.
    """

    def __init__(
        self,
        outbox: Outbox,
        settings: AlertSettings,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Sleep = asyncio.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Sends what `outbox` has, over `transport` (by default the network).

        `sleep` waits so many seconds between two attempts; `now` gives seconds since 1970.
        """
        self.tallies: Tallies = Counter()
        self._outbox = outbox
        self._settings = settings
        self._transport = transport
        self._sleep = sleep
        self._now = now
        self._ending = asyncio.Event()
        self._webhooks: list[Webhook] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def dropped(self) -> int:
        """How many changes some webhook was not told of, because too many waited."""
        return sum(webhook.dropped for webhook in self._webhooks)

    def waiting(self) -> int:
        """How many changes the webhook that is furthest behind has not been told of; asks the store."""
        return max((self._outbox.waiting(webhook.destination) for webhook in self._webhooks), default=0)

    def start(self) -> None:
        """Starts sending; from now on the store keeps what there is to tell.

        Raises:
            StoreError: The store cannot be used.
        """
        settings = self._settings
        self._outbox.listen([destination(url) for url in settings.webhooks])
        self._client = httpx.AsyncClient(timeout=settings.timeout_s, transport=self._transport)
        self._webhooks = [
            Webhook(url, self._endpoint(WEBHOOK, url), self._outbox, settings, self._now)
            for url in settings.webhooks
        ]
        managers = [
            Alertmanager(self._endpoint(ALERTMANAGER, url + PATH), self._outbox, settings, self._now)
            for url in settings.alertmanagers
        ]
        everything: Sequence[_Destination] = [*self._webhooks, *managers]
        self._tasks = [asyncio.create_task(self._keep_running(one)) for one in everything]

    async def close(self) -> None:
        """Tells what has just been found, as far as that takes no time; the rest waits in the store."""
        self._ending.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._settings.drain_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    def _endpoint(self, kind: str, url: str) -> Endpoint:
        return Endpoint(
            kind,
            url,
            self._client,
            self.tallies,
            attempts=self._settings.attempts,
            sleep=self._sleep,
        )

    async def _keep_running(self, one: _Destination) -> None:
        """What goes wrong here is said, and tried again; it must not end alerting."""
        while True:
            try:
                await one.run(self._pause)
                return
            except StoreError as error:
                _log.error("alerts wait: %s", error)
            except Exception as error:
                _log.error("alerts wait", exc_info=error)
            if await self._pause(self._settings.resend_s):
                return

    async def _pause(self, seconds: float) -> bool:
        """Waits, unless the end is near; returns whether it is."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._ending.wait(), seconds)
        return self._ending.is_set()
