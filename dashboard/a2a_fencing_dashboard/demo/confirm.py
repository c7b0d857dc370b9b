"""Cross-checks what was reported against the demo's own database, which no hook writes to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from a2a.server.models import TaskEventModel, TaskModel
from a2a.types import StreamResponse, TaskState
from sqlalchemy import JSON, select, type_coerce
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.demo.database import open_engine

_CHUNK = 500
_PREFIX = "TASK_STATE_"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Which of the tasks were really told one end and stored with another.

    Attributes:
        confirmed: Tasks whose stored state differs from a final state that somebody was told.
        unconfirmed: The others.
    """

    confirmed: frozenset[str]
    unconfirmed: frozenset[str]


async def confirm(dsn: str, tasks: Collection[str], told: Mapping[str, Collection[str]]) -> Confirmation:
    """Compares the stored state of these tasks with what was said about them.

    Args:
        dsn: The demo's database.
        tasks: Ids of tasks that were reported as violated.
        told: States that the demo's clients were told of a task as its last. The event log in the
            database, from which other replicas answer their clients, counts as told too.
    """
    engine = open_engine(dsn)
    stored: dict[str, str] = {}
    said: dict[str, set[str]] = defaultdict(set)
    try:
        async with engine.connect() as db:
            for chunk in _chunks(tasks):
                stored |= await _stored_states(db, chunk)
                for task, state in await _logged_ends(db, chunk):
                    said[task].add(state)
    finally:
        await engine.dispose()
    for task in tasks:
        said[task].update(told.get(task, ()))
    confirmed = frozenset(task for task in tasks if said[task] - {stored.get(task)})
    return Confirmation(confirmed, frozenset(tasks) - confirmed)


async def _stored_states(db: AsyncConnection, tasks: Collection[str]) -> dict[str, str]:
    # The column is JSON, whatever the SDK's model says of its type.
    rows = await db.execute(
        select(TaskModel.id, type_coerce(TaskModel.status, JSON)).where(TaskModel.id.in_(tasks))
    )
    return {task: _state(status["state"]) for task, status in rows.all()}


async def _logged_ends(db: AsyncConnection, tasks: Collection[str]) -> list[tuple[str, str]]:
    rows = await db.execute(
        select(TaskEventModel.task_id, TaskEventModel.event_data).where(
            TaskEventModel.task_id.in_(tasks)
        )
    )
    ends = ((task, _event_state(data)) for task, data in rows.all())
    return [(task, state) for task, state in ends if state in c.TERMINAL_STATES]


def _event_state(data: bytes) -> str:
    event = StreamResponse.FromString(data)
    task = event.task if event.HasField("task") else event.status_update
    return _state(TaskState.Name(task.status.state))


def _state(name: str) -> str:
    return name.removeprefix(_PREFIX)


def _chunks(tasks: Collection[str]) -> Iterator[list[str]]:
    remaining = iter(tasks)
    while chunk := list(islice(remaining, _CHUNK)):
        yield chunk
