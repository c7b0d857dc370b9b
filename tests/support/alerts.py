"""Destinations that answer as a test wants, and a clock that moves only when it is told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding
from a2a_fencing_dashboard.alerts.service import Alerts
from a2a_fencing_dashboard.store.protocol import Batch, FindingChange, Store
from support.reports import Task

NOW = 1_800_000_000
HOOK = "https://hooks.example/T0/secret-path"
MANAGER = "http://alertmanager:9093"


def finding(task: Task, rule: str = c.TERMINAL_OVERWRITTEN, key: str = "4") -> Finding:
    return Finding(rule, c.CRITICAL, c.PROVEN, task.key, ("a:1",), "It was overwritten.", key)


def appear(store: Store, *findings: Finding, at: float = NOW) -> None:
    store.commit(Batch(changes=[*map(FindingChange, findings)]), now_unix_nano=int(at * 1e9))


def retract(store: Store, *findings: Finding) -> None:
    changes = [FindingChange(one, retracted=True) for one in findings]
    store.commit(Batch(changes=changes), now_unix_nano=NOW * 10**9)


class World:
    """The other side: what it was sent, how long it was waited for, and what it answers next."""

    def __init__(self) -> None:
        self.now: float = NOW
        self.requests: list[httpx.Request] = []
        self.waits: list[float] = []
        self.answers: list[int | Exception | httpx.Response] = []
        self.alerts: Alerts
        self._arrived = asyncio.Condition()

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]

    @property
    def told(self) -> list[tuple[str, str]]:
        """(status, reason) of each finding in each message to a webhook."""
        return [(a["status"], a["reason"]) for body in self.bodies for a in body["data"]["alerts"]]

    async def handle(self, request: httpx.Request) -> httpx.Response:
        answer = self.answers.pop(0) if self.answers else 200
        async with self._arrived:
            self.requests.append(request)
            self._arrived.notify_all()
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else httpx.Response(answer)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)

    async def arrived(self, number: int) -> None:
        """Waits until so many requests have come in all."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= number)


Send = Callable[..., AbstractAsyncContextManager[World]]
