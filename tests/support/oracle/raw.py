"""Somebody who repairs tasks with SQL, past the SDK, its versions and its rules."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Final

from sqlalchemy import JSON, Integer, String, column, select, table, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from a2a_fencing import conventions as c
from support.oracle.load import Tally

_TASKS: Final = table("tasks", column("id", String), column("status", JSON))
_VERSIONS: Final = table("task_versions", column("task_id", String), column("version", Integer))
_STATES: Final = (c.CANCELED, c.CANCELED, c.FAILED, c.WORKING, c.COMPLETED)


async def run_raw_sql(
    engine: AsyncEngine, tally: Tally, *, seed: int, every_s: float, stop: asyncio.Event
) -> None:
    """Sets the state of a recent task now and then, sometimes together with its version."""
    choice = random.Random(f"{seed}/raw sql")
    while not stop.is_set():
        await asyncio.sleep(every_s * choice.uniform(0.5, 1.5))
        recent: Sequence[str] = tuple(tally.recent)
        if recent:
            await _repair(engine, tally, choice.choice(recent), choice)


async def _repair(engine: AsyncEngine, tally: Tally, task_id: str, choice: random.Random) -> None:
    what = "raw SQL, version too" if choice.random() < 0.4 else "raw SQL"
    tally.did[what] += 1
    try:
        async with engine.begin() as connection:
            if what != "raw SQL":
                await connection.execute(
                    update(_VERSIONS)
                    .where(_VERSIONS.c.task_id == task_id)
                    .values(version=_VERSIONS.c.version + 1)
                )
            await _set_state(connection, task_id, choice.choice(_STATES))
    except DBAPIError as error:
        tally.failed[f"{what}: {type(error.orig).__name__}"] += 1


async def _set_state(connection: AsyncConnection, task_id: str, state: str) -> None:
    status = await connection.scalar(select(_TASKS.c.status).where(_TASKS.c.id == task_id))
    if status is not None:
        status["state"] = f"TASK_STATE_{state}"
        await connection.execute(update(_TASKS).where(_TASKS.c.id == task_id).values(status=status))
