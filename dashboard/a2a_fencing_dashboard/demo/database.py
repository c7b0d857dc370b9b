"""The database that the demo's replicas share."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from a2a.server.cluster import DatabaseTaskEventStream, VersionedDatabaseTaskStore
from sqlalchemy import Connection, create_engine, event, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

_SQLITE_WAIT_S: Final = 30
"""How long a writer waits for SQLite's one write lock."""


class DatabaseError(Exception):
    """The database cannot be used; the text is one line."""


def open_engine(dsn: str) -> AsyncEngine:
    """Opens the database as a server with several processes would.

    Args:
        dsn: An async SQLAlchemy URL, such as ``sqlite+aiosqlite:///tasks.sqlite``.

    Raises:
        sqlalchemy.exc.ArgumentError: The URL cannot be read.
        ModuleNotFoundError: Its driver is not installed.
    """
    if not dsn.startswith("sqlite"):
        return create_async_engine(dsn)
    engine = create_async_engine(dsn, connect_args={"timeout": _SQLITE_WAIT_S})
    event.listen(engine.sync_engine, "connect", _configure_sqlite)
    event.listen(engine.sync_engine, "begin", _begin_with_the_write_lock)
    return engine


def _configure_sqlite(connection: Any, record: object) -> None:
    connection.isolation_level = None  # transactions begin below, not in the driver
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()


def _begin_with_the_write_lock(connection: Connection) -> None:
    # SQLite ignores FOR UPDATE. Left to the driver, the SDK's cancel would read and write in two
    # steps, and give a version that another replica had given meanwhile.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def prepare(dsn: str) -> None:
    """Creates the SDK's tables, once, before replicas would race for it.

    Raises:
        DatabaseError: The database cannot be used.
    """
    try:
        if dsn.startswith("sqlite+"):
            _try_sqlite(dsn)
        asyncio.run(_create_tables(dsn))
    except ModuleNotFoundError as error:
        raise DatabaseError(f"its driver is not installed: {error.name}") from error
    except (SQLAlchemyError, OSError) as error:
        reason = getattr(error, "orig", None) or error
        raise DatabaseError(str(reason).partition("\n")[0]) from error


def _try_sqlite(dsn: str) -> None:
    # aiosqlite leaves a thread behind when it cannot open a file, and that thread has the last word.
    engine = create_engine(make_url(dsn).set(drivername="sqlite"))
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA schema_version")
    engine.dispose()


async def _create_tables(dsn: str) -> None:
    engine = open_engine(dsn)
    try:
        await VersionedDatabaseTaskStore(engine).initialize()
        await DatabaseTaskEventStream(engine).initialize()
    finally:
        await engine.dispose()
