from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.alerts.service import Alerts
from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Store
from support.alerts import Send, World
from support.reports import Cluster, Task


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path}/facts.db")
    yield store
    store.close()


@pytest.fixture
def task(store: Store) -> Task:
    """A task without any fault."""
    cluster = Cluster()
    task = cluster.task("task-1")
    task.write(cluster.a, c.WORKING, None, 1)
    cluster.heartbeats()
    cluster.commit(store)
    return task


@pytest.fixture
def send(store: Store) -> Send:
    """Runs alerting while the block lasts; at its end everything that waits has been told."""

    @asynccontextmanager
    async def send(world: World | None = None, **settings: Any) -> AsyncIterator[World]:
        world = world or World()
        defaults = {"gather_s": 0.0, "look_s": 0.005, "drain_s": 30.0}
        alerts = Alerts(
            store.outbox,
            AlertSettings(**(defaults | settings)),
            transport=httpx.MockTransport(world.handle),
            sleep=world.sleep,
            now=lambda: world.now,
        )
        world.alerts = alerts
        alerts.start()
        yield world
        await alerts.close()

    return send
