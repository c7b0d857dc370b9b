from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.receiver.app import Receiver
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path}/facts.db")
    yield store
    store.close()


@dataclass
class Running:
    """A receiver and a client that talks to it without a network."""

    receiver: Receiver
    http: httpx.AsyncClient


Run = Callable[..., AbstractAsyncContextManager[Running]]


@pytest.fixture
def run(store: Store) -> Run:
    """Runs a receiver on the store while the block lasts; takes the settings of `Receiver`."""

    @asynccontextmanager
    async def run(ingest: Any = None, **settings: Any) -> AsyncIterator[Running]:
        receiver = Receiver(ingest or Ingest(store), **settings)
        app = receiver.app()
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://receiver") as http:
                yield Running(receiver, http)

    return run
