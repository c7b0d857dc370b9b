"""Alertmanager: what stands is told again and again, and what no longer does is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timezone
from typing import Any, Final

import msgspec

from a2a_fencing_dashboard.alerts.delivery import Endpoint
from a2a_fencing_dashboard.alerts.links import alerts_link, task_link
from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.store.outbox import Outbox, Standing

PATH: Final = "/api/v2/alerts"
ALERT_NAME: Final = "A2AFencingViolation"
_OUTLIVES: Final = 4
"""After so many intervals without a word from us an Alertmanager ends an alert by itself."""
_LABEL: Final = 200
"""Characters of a run's label that become a label."""

Alert = dict[str, Any]
Labels = tuple[tuple[str, str], ...]


def labels_of(standing: Standing) -> Labels:
    """What makes it another alert. No ids: there would be one alert a task."""
    found = {
        "alertname": ALERT_NAME,
        "rule": standing.rule,
        "severity": standing.severity,
        "certainty": standing.certainty,
    }
    if standing.run:
        found["run"] = standing.run[:_LABEL]
    return tuple(found.items())


def alert(standing: Standing, *, starts: float, ends: float, dashboard_url: str | None) -> Alert:
    """Findings that have the labels in common, told by the newest of them."""
    newest = standing.newest
    many = f"{standing.count:,} findings stand" if standing.count > 1 else "1 finding stands"
    annotations = {
        "summary": f"{standing.rule} ({standing.certainty}): {many}",
        "explanation": newest.explanation,
        "task": newest.task.task_id,
    }
    url = task_link(dashboard_url, newest.task, standing.run)
    if url:
        annotations["task_url"] = url
    source = alerts_link(dashboard_url, standing.rule, standing.severity, standing.run)
    return {
        "labels": dict(labels_of(standing)),
        "annotations": annotations,
        "startsAt": _time(starts),
        "endsAt": _time(ends),
        **({"generatorURL": source} if source else {}),
    }


class Alertmanager:
    """One Alertmanager. Nothing is kept for it: it is told what stands, whatever it was told before."""

    def __init__(
        self, endpoint: Endpoint, outbox: Outbox, settings: AlertSettings, now: Callable[[], float]
    ) -> None:
        """Tells `endpoint` what stands in `outbox`; `now` gives seconds since 1970."""
        self._endpoint = endpoint
        self._outbox = outbox
        self._settings = settings
        self._now = now
        self._told: dict[Labels, Alert] = {}
        self._told_at = float("-inf")
        self._pulse: tuple[int, ...] | None = None

    async def run(self, pause: Callable[[float], Awaitable[bool]]) -> None:
        """Tells what stands until the end is near."""
        ending = False
        while True:
            if await self._is_due():
                ending = ending or await pause(self._settings.gather_s)
                await self._tell()
            elif ending:
                return
            ending = ending or await pause(self._settings.look_s)

    async def _is_due(self) -> bool:
        again = self._now() >= self._told_at + self._settings.resend_s
        if self._told and again:
            return True
        pulse = await asyncio.to_thread(self._outbox.pulse)
        if pulse == self._pulse:
            return False
        self._pulse = pulse
        return (await self._standing()).keys() != self._told.keys()

    async def _tell(self) -> None:
        sent: dict[Labels, Alert] = {}

        async def make() -> bytes:
            nonlocal sent
            sent = await self._alerts()
            ended = [
                {**old, "endsAt": _time(self._now())}
                for labels, old in self._told.items()
                if labels not in sent
            ]
            return msgspec.json.encode([*sent.values(), *ended])

        await self._endpoint.deliver(make, _no_headers)
        self._told = sent
        self._told_at = self._now()

    async def _alerts(self) -> dict[Labels, Alert]:
        now = self._now()
        ends = now + _OUTLIVES * self._settings.resend_s
        found = {}
        for labels, standing in (await self._standing()).items():
            old = self._told.get(labels)
            new = alert(
                standing,
                starts=standing.since_unix_nano / 1e9,
                ends=ends,
                dashboard_url=self._settings.dashboard_url,
            )
            # It goes on, though the first of its findings is past by now.
            found[labels] = new if old is None else new | {"startsAt": old["startsAt"]}
        return found

    async def _standing(self) -> dict[Labels, Standing]:
        since = int((self._now() - self._settings.stands_s) * 1e9)
        rows = await asyncio.to_thread(self._outbox.standing, since_unix_nano=since)
        return {labels_of(row): row for row in rows if row.severity in self._settings.severities}


def _no_headers(body: bytes) -> Mapping[str, str]:
    return {}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")
