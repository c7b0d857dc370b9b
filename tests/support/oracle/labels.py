"""Says on each database connection which process writes through it, for the triggers to record.

A label belongs to the connection and is set by the driver, so that neither hooks nor SDK have a part in
it. Processes of the cluster are named and have a pid; whoever writes past the SDK has a word.
"""

from __future__ import annotations

import os
from typing import Any, Final

from sqlalchemy import Engine, event

RAW_SQL: Final = "raw-sql"
"""The label of whoever writes past the SDK."""

SQLITE_FUNCTION: Final = "oracle_who"
MARIADB_VARIABLE: Final = "@oracle_who"


def replica_label(name: str, pid: int) -> str:
    """The label of one process of the cluster."""
    return f"{name}/{pid}"


def label_this_process(name: str) -> None:
    """Labels every connection that this process, a replica, opens from now on."""
    event.listen(Engine, "connect", _Labeller(replica_label(name, os.getpid())))


def label_engine(engine: Engine, label: str) -> None:
    """Labels the connections of one engine."""
    event.listen(engine, "connect", _Labeller(label))


class _Labeller:
    def __init__(self, label: str) -> None:
        self._label = label

    def __call__(self, connection: Any, record: object) -> None:
        if hasattr(connection, "create_function"):
            connection.create_function(SQLITE_FUNCTION, 0, lambda: self._label)
            return
        cursor = connection.cursor()
        if "asyncpg" in type(connection).__module__:
            cursor.execute(f"SET application_name = '{self._label}'")
        else:
            cursor.execute(f"SET {MARIADB_VARIABLE} = '{self._label}'")
        cursor.close()
        # PostgreSQL takes a SET back when its transaction is rolled back.
        connection.commit()
