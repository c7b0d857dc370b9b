"""Triggers that log every committed change of a task's row and of its version, whoever makes it.

A log row is written by the transaction it tells of, and so is committed or rolled back with it. Whoever
changes a row holds a lock on it until then: the sequence numbers of one row are in commit order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table, make_url, select
from sqlalchemy.ext.asyncio import create_async_engine

from support.oracle.labels import MARIADB_VARIABLE, SQLITE_FUNCTION

TASKS: Final = "tasks"
VERSIONS: Final = "task_versions"
INSERT, UPDATE, DELETE = "insert", "update", "delete"

_PREFIX: Final = "TASK_STATE_"

_LOG = Table(
    "oracle_log",
    MetaData(),
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("source", String(16), nullable=False),
    Column("op", String(8), nullable=False),
    Column("task_id", String(36), nullable=False),
    Column("owner", String(255)),
    Column("state", String(40)),
    Column("version", BigInteger),
    Column("who", String(80)),
)


@dataclass(frozen=True, slots=True)
class Change:
    """One committed change of one row.

    Attributes:
        seq: Orders the changes of one row as they were committed.
        source: `TASKS` or `VERSIONS`: whose row changed.
        op: `INSERT`, `UPDATE` or `DELETE`.
        task_id, owner: Of which task.
        state: State of the task's row after the change; None for versions and deletions.
        version: The task's version in this transaction, after the change; None when there is none.
        who: Label of the process that wrote.
    """

    seq: int
    source: str
    op: str
    task_id: str
    owner: str
    state: str | None
    version: int | None
    who: str


async def install(dsn: str) -> None:
    """Begins to log; the SDK's tables must exist."""
    engine = create_async_engine(dsn)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_LOG.metadata.create_all)
            for statement in _triggers(make_url(dsn).get_backend_name()):
                await connection.exec_driver_sql(statement)
    finally:
        await engine.dispose()


async def read_log(dsn: str) -> list[Change]:
    """All that was committed, in order."""
    engine = create_async_engine(dsn)
    try:
        async with engine.connect() as connection:
            rows = (await connection.execute(select(_LOG).order_by(_LOG.c.seq))).all()
    finally:
        await engine.dispose()
    return [
        Change(
            row.seq,
            row.source,
            row.op,
            row.task_id,
            row.owner or "",
            row.state.removeprefix(_PREFIX) if row.state is not None else None,
            row.version,
            row.who,
        )
        for row in rows
    ]


# --- the same trigger in three dialects ---

_STATE: Final = {
    "sqlite": "json_extract(NEW.status, '$.state')",
    "postgresql": "NEW.status->>'state'",
    "mysql": "json_value(NEW.status, '$.state')",
}
_WHO: Final = {
    "sqlite": f"{SQLITE_FUNCTION}()",
    "postgresql": "current_setting('application_name')",
    "mysql": f"coalesce({MARIADB_VARIABLE}, 'unlabelled')",
}


def _triggers(backend: str) -> Iterator[str]:
    for source in (TASKS, VERSIONS):
        for op in (INSERT, UPDATE, DELETE):
            name, body = f"oracle_{source}_{op}", _body(backend, source, op)
            if backend == "postgresql":
                yield f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$"
                body = f"EXECUTE FUNCTION {name}()"
            yield f"CREATE TRIGGER {name} AFTER {op} ON {source} FOR EACH ROW {body}"


def _body(backend: str, source: str, op: str) -> str:
    row = "OLD" if op == DELETE else "NEW"
    task_id = f"{row}.id" if source == TASKS else f"{row}.task_id"
    state = _STATE[backend] if source == TASKS and op != DELETE else "NULL"
    version = "NULL" if op == DELETE else "NEW.version"
    first = ""
    if source == TASKS:
        version = f"SELECT max(version) {{}} FROM task_versions WHERE task_id = {task_id}"
        if backend == "mysql":
            # Inside an INSERT the read would lock the row, and raw SQL and the SDK each other out.
            first = f"DECLARE found BIGINT; {version.format('INTO found')};"
            version = "found"
        else:
            version = f"({version.format('')})"
    insert = (
        "INSERT INTO oracle_log (source, op, task_id, owner, state, version, who) VALUES"
        f" ('{source}', '{op}', {task_id}, {row}.owner, {state}, {version}, {_WHO[backend]})"
    )
    end = "RETURN NULL; END" if backend == "postgresql" else "END"
    return f"BEGIN {first} {insert}; {end}"
