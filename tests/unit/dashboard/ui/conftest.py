from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Store
from support.reports import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    opened = open_store(store_url)
    yield opened
    opened.close()


@pytest.fixture
def new_cluster() -> Callable[..., Cluster]:
    return Cluster
