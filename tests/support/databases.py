"""The databases that integration tests run on: SQLite always, the others where a server answers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

ENGINES = ("sqlite", "postgresql", "mariadb")

_SERVERS = {
    "postgresql": ("A2A_FENCING_TEST_POSTGRESQL", "postgresql+asyncpg://root@127.0.0.1:5432/test"),
    "mariadb": ("A2A_FENCING_TEST_MARIADB", "mysql+aiomysql://root@127.0.0.1:3306/test"),
}


@dataclass
class Database:
    """A database that one test has for itself."""

    name: str
    dsn: str

    async def run(self, statement: str, **values: Any) -> Any:
        """Runs one statement past the SDK; rows, if it gives any."""
        return await _run(self.dsn, statement, **values)


@contextmanager
def database(name: str, folder: Path) -> Iterator[Database]:
    """A fresh database on the named engine, or a skip that says why there is none."""
    if name == "sqlite":
        yield Database(name, f"sqlite+aiosqlite:///{folder}/tasks.db")
        return
    variable, default = _SERVERS[name]
    server = os.environ.get(variable, default)
    problem = _problem(server)
    if problem is not None:
        pytest.skip(f"no {name} at {server} ({problem}); set {variable}")
    own = f"a2a_fencing_{uuid4().hex[:12]}"
    asyncio.run(_run(server, f"CREATE DATABASE {own}"))
    try:
        dsn = make_url(server).set(database=own).render_as_string(hide_password=False)
        yield Database(name, dsn)
    finally:
        # A failed test may have left a connection open.
        force = " WITH (FORCE)" if name == "postgresql" else ""
        asyncio.run(_run(server, f"DROP DATABASE {own}{force}"))


async def _run(dsn: str, statement: str, **values: Any) -> Any:
    # CREATE DATABASE must not run inside a transaction.
    engine = create_async_engine(dsn, isolation_level="AUTOCOMMIT")
    try:
        async with engine.connect() as connection:
            result = await connection.execute(text(statement), values)
            return result.all() if result.returns_rows else None
    finally:
        await engine.dispose()


@lru_cache
def _problem(dsn: str) -> str | None:
    try:
        asyncio.run(asyncio.wait_for(_run(dsn, "SELECT 1"), 5))
    except Exception as error:
        return type(error).__name__
    return None
