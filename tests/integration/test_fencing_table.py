"""Highest tokens in a table: the same answers on every database, also when many ask at once."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from sqlalchemy import create_engine, func, make_url, select
from sqlalchemy.ext.asyncio import create_async_engine

from a2a_fencing.facts import TaskKey
from a2a_fencing.fencing import (
    TOKEN_HEADER,
    Fence,
    FenceUnavailableError,
    FencingToken,
    SupersededTokenError,
)
from a2a_fencing.fencing.table import TableTokens
from support.databases import Database, database


def token(value: int, task_id: str = "t") -> FencingToken:
    return FencingToken.of(TaskKey("store", "owner", task_id), value)


async def test_it_only_grows(db: Database) -> None:
    engine = create_async_engine(db.dsn)
    tokens = TableTokens(engine)
    assert await tokens.raise_to_async(token(2)) == 2
    assert await tokens.raise_to_async(token(2)) == 2
    assert await tokens.raise_to_async(token(1)) == 2
    assert await tokens.raise_to_async(token(7)) == 7
    assert await tokens.raise_to_async(token(1, "other")) == 1
    hostile = token(3, "';DROP TABLE a2a_fencing_tokens;--\n" + "x" * 5000)
    assert await tokens.raise_to_async(hostile) == 3
    # Another process over the same table.
    again = TableTokens(create_async_engine(db.dsn))
    assert await again.raise_to_async(token(6)) == 7
    await again._engine.dispose()
    await engine.dispose()


async def test_whoever_asks_at_once_the_highest_wins_and_nobody_below_it_comes_later(
    db: Database,
) -> None:
    connect_args = {"timeout": 30} if db.name == "sqlite" else {}
    engines = [create_async_engine(db.dsn, connect_args=connect_args) for _ in range(3)]
    values = list(range(1, 31))
    Random(5).shuffle(values)
    answers = await asyncio.gather(
        *(TableTokens(engines[n % 3]).raise_to_async(token(value)) for n, value in enumerate(values))
    )
    assert all(answer >= value for value, answer in zip(values, answers, strict=True))
    assert await TableTokens(engines[0]).raise_to_async(token(1)) == 30
    assert (await db.run("SELECT count(*) FROM a2a_fencing_tokens"))[0][0] == 1
    for engine in engines:
        await engine.dispose()


@pytest.mark.parametrize(("name", "driver"), [("sqlite", "sqlite"), ("mariadb", "mysql+pymysql")])
def test_a_blocking_engine_serves_threads_and_event_loops(tmp_path, name: str, driver: str) -> None:
    with database(name, tmp_path) as db:
        engine = create_engine(make_url(db.dsn).set(drivername=driver))
        tokens = TableTokens(engine)
        assert tokens.raise_to(token(1)) == 1
        with ThreadPoolExecutor(4) as pool:
            assert max(pool.map(lambda value: tokens.raise_to(token(value)), range(1, 20))) == 19
        assert asyncio.run(tokens.raise_to_async(token(2))) == 19
        engine.dispose()


async def test_the_check_can_share_a_transaction_with_the_effect(db: Database) -> None:
    engine = create_async_engine(db.dsn)
    tokens = TableTokens(engine)
    await tokens.raise_to_async(token(3))
    async with engine.connect() as connection, connection.begin() as effect:
        assert await connection.run_sync(lambda c: tokens.raise_within(c, token(9))) == 9
        await effect.rollback()
    assert await tokens.raise_to_async(token(4)) == 4  # 9 was never remembered
    async with engine.connect() as connection:
        rows = await connection.scalar(select(func.count()).select_from(tokens.table))
    assert rows == 1
    await engine.dispose()


async def test_a_table_that_cannot_be_reached_lets_nobody_through(tmp_path) -> None:
    for dsn in (
        f"sqlite+aiosqlite:///{tmp_path}/missing/t.db",
        "postgresql+asyncpg://nobody:secret@127.0.0.1:1/none",
        "mysql+aiomysql://nobody:secret@127.0.0.1:1/none",
    ):
        engine = create_async_engine(dsn)
        fence = Fence(TableTokens(engine))
        with pytest.raises(FenceUnavailableError, match="cannot be reached") as e:
            await fence.admit_async({TOKEN_HEADER: token(1).to_header()})
        assert "secret" not in str(e.value)
        assert "127.0.0.1" not in str(e.value)
        await engine.dispose()


async def test_a_table_that_is_missing_and_must_not_be_made(tmp_path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/t.db")
    tokens = TableTokens(engine, create_table=False)
    with pytest.raises(FenceUnavailableError):
        await tokens.raise_to_async(token(1))
    await engine.dispose()


async def test_a_fence_over_a_table_refuses(db: Database) -> None:
    engine = create_async_engine(db.dsn)
    fence = Fence(TableTokens(engine))
    await fence.admit_async({TOKEN_HEADER: token(2).to_header()})
    with pytest.raises(SupersededTokenError):
        await fence.admit_async({TOKEN_HEADER: token(1).to_header()})
    with pytest.raises(TypeError, match="raise_to_async"):
        fence.admit({TOKEN_HEADER: token(2).to_header()})
    await engine.dispose()


def test_other_databases_are_named_an_error() -> None:
    class Dialect:
        name = "oracle"

    class Engine:
        dialect = Dialect()

    with pytest.raises(ValueError, match="sqlite, postgresql, mysql, mariadb"):
        TableTokens(Engine())
