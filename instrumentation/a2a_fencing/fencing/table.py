"""Highest tokens in a SQL table: one statement raises a token, whoever else does so at the moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import BigInteger, Column, Connection, Engine, MetaData, String, Table, func, select
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from a2a_fencing.fencing.errors import FenceUnavailableError
from a2a_fencing.fencing.token import FencingToken

_T = TypeVar("_T")

_DIALECTS = ("sqlite", "postgresql", "mysql", "mariadb")


class TableTokens:
    """Remembers the highest token per task in a table of the resource's database.

    Args:
        engine: A SQLAlchemy engine, for `raise_to`, or an async one, for `raise_to_async`. A blocking
            engine serves both: the event loop then waits for it on a thread.
        table_name: Name of the table.
        create_table: Create it where it is missing, at the first use.

    Raises:
        ValueError: The database is none of SQLite, PostgreSQL, MySQL and MariaDB.
    """

    def __init__(
        self,
        engine: Engine | AsyncEngine,
        *,
        table_name: str = "a2a_fencing_tokens",
        create_table: bool = True,
    ) -> None:
        if engine.dialect.name not in _DIALECTS:
            raise ValueError(f"fencing tokens need one of {', '.join(_DIALECTS)}")
        self._engine = engine
        self.table = Table(
            table_name,
            MetaData(),
            Column("subject", String(64), primary_key=True),
            Column("token", BigInteger, nullable=False),
            Column("task_id", String(255), nullable=False),
        )
        self._missing = create_table

    def raise_to(self, token: FencingToken) -> int:
        """See `HighestTokens`.

        Raises:
            FenceUnavailableError: The database does not answer.
            TypeError: The engine is an async one.
        """
        engine = self._engine
        if isinstance(engine, AsyncEngine):
            raise TypeError("an async engine can only be asked with raise_to_async")
        with _reaching():
            if self._missing:
                try:
                    self.table.create(engine, checkfirst=True)
                except DBAPIError:  # somebody else was faster
                    self.table.create(engine, checkfirst=True)
                self._missing = False
            with engine.begin() as connection:
                return self.raise_within(connection, token)

    async def raise_to_async(self, token: FencingToken) -> int:
        """See `HighestTokens`.

        Raises:
            FenceUnavailableError: The database does not answer.
        """
        engine = self._engine
        if isinstance(engine, Engine):
            return await asyncio.to_thread(self.raise_to, token)
        with _reaching():
            if self._missing:
                try:
                    await _run(engine, self._create)
                except DBAPIError:  # somebody else was faster
                    await _run(engine, self._create)
                self._missing = False
            return await _run(engine, lambda connection: self.raise_within(connection, token))

    def raise_within(self, connection: Connection, token: FencingToken) -> int:
        """The same inside a transaction of the resource's own, which should hold the effect as well.

        The row stays locked until that transaction ends, so that nobody takes the right away between
        the check and the effect.

        Raises:
            SQLAlchemyError: The table cannot be used.
        """
        table = self.table
        connection.execute(_raised(table, connection.dialect.name, token))
        highest = select(table.c.token).where(table.c.subject == token.subject).with_for_update()
        return int(connection.execute(highest).scalar_one())

    def _create(self, connection: Connection) -> None:
        self.table.create(connection, checkfirst=True)


def _raised(table: Table, dialect: str, token: FencingToken) -> Any:
    """The statement that stores a token or raises the stored one, in this database's words."""
    row = {"subject": token.subject, "token": token.value, "task_id": token.task_id[:255]}
    stored = table.c.token
    if dialect == "postgresql":
        new = postgresql.insert(table).values(row)
        return new.on_conflict_do_update(
            index_elements=["subject"], set_={"token": func.greatest(stored, new.excluded.token)}
        )
    if dialect == "sqlite":
        lite = sqlite.insert(table).values(row)
        return lite.on_conflict_do_update(
            index_elements=["subject"], set_={"token": func.max(stored, lite.excluded.token)}
        )
    my = mysql.insert(table).values(row)
    return my.on_duplicate_key_update(token=func.greatest(stored, my.inserted.token))


async def _run(engine: AsyncEngine, step: Callable[[Connection], _T]) -> _T:
    async with engine.begin() as connection:
        return await connection.run_sync(step)


@contextmanager
def _reaching() -> Iterator[None]:
    """Turns a database that does not answer into a fence that lets nobody through."""
    try:
        yield
    except (SQLAlchemyError, OSError) as error:
        # Whoever asked is told no more than that: where the table is, is not theirs to know.
        raise FenceUnavailableError(
            f"the highest fencing tokens cannot be reached ({type(error).__name__});"
            " nobody is let through until they can"
        ) from error
