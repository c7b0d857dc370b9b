from __future__ import annotations

from pathlib import Path

import pytest
from a2a.server.cluster import TaskVersion, VersionedDatabaseTaskStore
from a2a.server.context import ServerCallContext
from a2a.types import Task, TaskState, TaskStatus, TaskStatusUpdateEvent

from a2a_fencing_dashboard.demo.confirm import confirm
from a2a_fencing_dashboard.demo.database import DatabaseError, open_engine, prepare

CANCELED, COMPLETED = TaskState.TASK_STATE_CANCELED, TaskState.TASK_STATE_COMPLETED
WORKING = TaskState.TASK_STATE_WORKING


async def stored(dsn: str, task_id: str, *states: TaskState) -> None:
    """Stores a task in these states one after the other, each with its event."""
    engine = open_engine(dsn)
    store, context = VersionedDatabaseTaskStore(engine), ServerCallContext()
    version = TaskVersion.MISSING
    for state in states:
        status = TaskStatus(state=state)
        version = await store.save(
            Task(id=task_id, context_id="c", status=status),
            event=TaskStatusUpdateEvent(task_id=task_id, context_id="c", status=status),
            prev=None,
            prev_version=version,
            context=context,
        )
    await engine.dispose()


@pytest.fixture
def dsn(tmp_path: Path) -> str:
    dsn = f"sqlite+aiosqlite:///{tmp_path / 'tasks.sqlite'}"
    prepare(dsn)
    return dsn


async def test_what_the_event_log_announced_and_the_task_is_not(dsn: str) -> None:
    await stored(dsn, "overwritten", WORKING, CANCELED, COMPLETED)
    await stored(dsn, "cancelled", WORKING, CANCELED)
    result = await confirm(dsn, {"overwritten", "cancelled"}, {})
    assert result.confirmed == {"overwritten"}
    assert result.unconfirmed == {"cancelled"}


async def test_what_a_client_was_told_and_the_task_is_not(dsn: str) -> None:
    await stored(dsn, "a", WORKING, COMPLETED)
    await stored(dsn, "b", WORKING, COMPLETED)
    result = await confirm(dsn, {"a", "b"}, {"a": {"CANCELED"}, "b": {"COMPLETED"}})
    assert result.confirmed == {"a"}


async def test_a_task_that_is_not_stored_confirms_nothing(dsn: str) -> None:
    result = await confirm(dsn, {"nowhere"}, {})
    assert result.unconfirmed == {"nowhere"}


def test_tables_can_be_there_already(dsn: str) -> None:
    prepare(dsn)


@pytest.mark.parametrize(
    ("dsn", "complaint"),
    [
        ("tasks.sqlite", "Could not parse"),
        ("sqlite:///tasks.sqlite", "async driver"),
        ("mysql+nodriver://x/y", "nodriver"),
        ("sqlite+aiosqlite:////nowhere/tasks.sqlite", "unable to open"),
    ],
)
def test_a_database_that_cannot_be_used_is_one_line(dsn: str, complaint: str) -> None:
    with pytest.raises(DatabaseError, match=complaint) as caught:
        prepare(dsn)
    assert "\n" not in str(caught.value)
