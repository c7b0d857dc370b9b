from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.browser import chromium, growing, keep, open_page, serve, start
from support.databases import ENGINES, Database, database

__all__ = ["chromium", "db", "growing", "keep", "open_page", "serve", "start"]


@pytest.fixture(params=ENGINES)
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Each database in turn, empty and for the test alone."""
    with database(request.param, tmp_path) as found:
        yield found
