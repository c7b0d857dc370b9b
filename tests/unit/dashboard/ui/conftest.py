from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import a2a_fencing_dashboard.ui
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Store
from a2a_fencing_dashboard.ui import links
from a2a_fencing_dashboard.ui.app import PAGES
from a2a_fencing_dashboard.ui.queries import Queries
from a2a_fencing_dashboard.ui.settings import Settings
from support.reports import Cluster

ENTRY = Path(a2a_fencing_dashboard.ui.__file__).parent / "entry" / "dashboard.py"


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


@pytest.fixture(autouse=True)
def fresh_caches():
    yield
    st.cache_resource.clear()


@pytest.fixture
def open_page(monkeypatch, store_url):
    """Opens a page at a query."""

    def opened(page=links.OVERVIEW, settings=None, /, **query):
        settings = settings or Settings(store_url)
        for name, value in settings.to_environment().items():
            monkeypatch.setenv(name, value)
        app = AppTest.from_file(str(ENTRY), default_timeout=60)
        app.query_params.update(query)
        # `switch_page` knows only pages that are files of their own.
        app._page_hash = calc_hash(PAGES[page].path)
        app.run()
        assert not app.exception, app.exception
        return app

    return opened


@pytest.fixture
def stored(cluster, store, freeze):
    """Stores what the cluster reported, all of it just now."""

    def commit(**options):
        cluster.heartbeats()
        cluster.commit(store, **options)
        freeze(cluster.now)

    return commit


@pytest.fixture
def freeze(monkeypatch):
    """Lets the pages see this moment as now."""
    return lambda now: monkeypatch.setattr(Queries, "now", lambda self: now)
