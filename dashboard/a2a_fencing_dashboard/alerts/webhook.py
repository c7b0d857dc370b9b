"""Webhooks: what is in the outbox, in order, one message after the other."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable

from a2a_fencing_dashboard.alerts import message
from a2a_fencing_dashboard.alerts.delivery import Endpoint
from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.store.outbox import Outbox, Parcel

_log = logging.getLogger(__name__)

Pause = Callable[[float], Awaitable[bool]]
"""Waits so many seconds, or until the end is near; returns whether it is."""


def destination(url: str) -> str:
    """The name the outbox knows a webhook by; the URL itself may be a secret."""
    return f"webhook-{hashlib.sha256(url.encode()).hexdigest()[:32]}"


class Webhook:
    """One webhook. At most one message is held in memory; what waits, waits in the store."""

    def __init__(
        self,
        url: str,
        endpoint: Endpoint,
        outbox: Outbox,
        settings: AlertSettings,
        now: Callable[[], float],
    ) -> None:
        """Tells `endpoint` what `outbox` has for `url`; `now` gives seconds since 1970."""
        self.destination = destination(url)
        self.dropped = 0
        self._endpoint = endpoint
        self._outbox = outbox
        self._settings = settings
        self._now = now

    async def run(self, pause: Pause) -> None:
        """Tells what there is until the end is near and nothing is left."""
        settings = self._settings
        ending = False
        while True:
            await asyncio.to_thread(self._outbox.heed_notes)
            if await asyncio.to_thread(self._outbox.waiting, self.destination):
                ending = ending or await pause(settings.gather_s)
                while await self._tell_next():
                    pass
            elif ending:
                return
            ending = ending or await pause(settings.look_s)

    async def _tell_next(self) -> bool:
        """Tells one parcel; returns whether there was one."""
        outbox, settings = self._outbox, self._settings
        parcel = await asyncio.to_thread(outbox.parcel, self.destination, limit=settings.parcel)
        if parcel is None:
            return False
        self._miss(parcel.dropped)
        await self._send(parcel)
        await asyncio.to_thread(outbox.delivered, self.destination, parcel)
        return True

    async def _send(self, parcel: Parcel) -> None:
        settings = self._settings
        changes = message.telling(parcel.changes, settings.severities)
        if not changes:
            return
        content = message.body(
            changes,
            dropped=parcel.dropped,
            at=parcel.changes[-1].seen_unix_nano / 1e9,
            dashboard_url=settings.dashboard_url,
        )

        async def make() -> bytes:
            return content

        await self._endpoint.deliver(
            make, lambda body: message.headers(parcel.name, self._now(), body, settings.secret)
        )

    def _miss(self, dropped: int) -> None:
        if dropped:
            self.dropped += dropped
            _log.warning("%s will not hear of %d alerts: too many waited", self._endpoint.shown, dropped)
