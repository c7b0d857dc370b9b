"""One logical write is one fact, whatever store it goes to and whatever layers it passes."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from pathlib import Path

import pytest
import wrapt
from a2a.server.cluster import (
    ConcurrentTaskModificationError,
    LegacyTaskStoreAdapter,
    StoredTask,
    TaskVersion,
    VersionedDatabaseTaskStore,
    VersionedTaskStore,
)
from a2a.server.context import ServerCallContext
from a2a.server.tasks.copying_task_store import CopyingTaskStoreAdapter
from a2a.server.tasks.database_task_store import DatabaseTaskStore
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.types.a2a_pb2 import Task, TaskState, TaskStatus
from sqlalchemy import delete
from sqlalchemy.ext.asyncio import create_async_engine

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors
from a2a_fencing.testing import capture
from support.databases import Database

CALL = ServerCallContext()


def task(state: str = "WORKING", task_id: str = "t1") -> Task:
    return Task(
        id=task_id,
        context_id="ctx",
        status=TaskStatus(state=TaskState.Value(f"TASK_STATE_{state}")),
    )


class Subclass(InMemoryTaskStore):
    async def save(self, task, context):
        await super().save(task, context)


PLAIN = {
    "in memory": InMemoryTaskStore,
    "in memory, live objects": lambda: InMemoryTaskStore(use_copying=False),
    "a copying adapter in front": lambda: CopyingTaskStoreAdapter(InMemoryTaskStore()),
    "a subclass that calls super": Subclass,
    "a proxy in front": lambda: wrapt.ObjectProxy(InMemoryTaskStore()),
}


@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN.keys())
async def test_plain_stores_say_that_they_keep_no_versions(make) -> None:
    store = make()
    with capture() as history:
        await store.save(task("SUBMITTED"), CALL)
        await store.save(task("COMPLETED"), CALL)
        await store.save(task("WORKING"), CALL)
    writes = [(w.state, w.base_state, w.version, w.versioned, w.outcome) for w in history.of(c.WRITE)]
    assert writes == [
        ("SUBMITTED", None, None, False, "accepted"),
        ("COMPLETED", "SUBMITTED", None, False, "accepted"),
        ("WORKING", "COMPLETED", None, False, "accepted"),
    ]
    assert [v.rule for v in history.of(c.VIOLATION)] == [c.TERMINAL_OVERWRITTEN]
    (store_name,) = {w.task.store for w in history.of(c.WRITE)}
    assert store_name.startswith(f"memory:{history.replica}/")


class Decorated:
    """A decorator that leaves an object in the class."""

    def __init__(self, method) -> None:
        self.method = method

    def __get__(self, store, owner=None):
        return self if store is None else functools.partial(self.method, store)

    def __call__(self, *args, **kwargs):
        return self.method(*args, **kwargs)


async def save_nowhere(self, task, context):
    self.saved = task


@pytest.mark.parametrize("method", [functools.partialmethod(save_nowhere), Decorated(save_nowhere)])
async def test_a_save_need_not_be_a_function(method) -> None:
    with capture() as history:
        store = type("Odd", (InMemoryTaskStore,), {"save": method})()
        await store.save(task(), CALL)
    assert store.saved == task()
    assert [fact.state for fact in history.of(c.WRITE)] == ["WORKING"]


async def test_four_layers_are_one_write() -> None:
    store = LegacyTaskStoreAdapter(CopyingTaskStoreAdapter(InMemoryTaskStore()))
    with capture() as history:
        version = await store.save(
            task(), event=None, prev=None, prev_version=TaskVersion.MISSING, context=CALL
        )
        await store.get("t1", CALL)
    assert version.is_missing
    (write,) = history.of(c.WRITE)
    assert (write.outcome, write.versioned, write.attempt) == (c.ACCEPTED, False, 1)


async def test_a_live_object_changed_by_two_is_judged_by_the_states_that_were_saved() -> None:
    store = InMemoryTaskStore(use_copying=False)
    await store.save(task("WORKING"), CALL)
    with capture() as history:
        worker, canceller = await store.get("t1", CALL), await store.get("t1", CALL)
        canceller.status.state = TaskState.TASK_STATE_CANCELED
        await store.save(canceller, CALL)
        worker.status.state = TaskState.TASK_STATE_COMPLETED
        await store.save(worker, CALL)
    assert [(w.state, w.base_state) for w in history.of(c.WRITE)] == [
        ("CANCELED", "WORKING"),
        ("COMPLETED", "CANCELED"),
    ]


async def test_a_mutated_prev_does_not_hide_the_base_state(tmp_path: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/t.db")
    store = VersionedDatabaseTaskStore(engine)
    with capture() as history:
        await store.save(
            task("REJECTED"),
            event=None, prev=None, prev_version=TaskVersion.MISSING, context=CALL,
        )  # fmt: skip
        stored = await store.get("t1", CALL)
        stored.task.status.state = TaskState.TASK_STATE_WORKING
        await store.save(
            stored.task, event=None, prev=stored.task, prev_version=stored.version, context=CALL
        )
    await engine.dispose()
    assert history.of(c.WRITE)[-1].base_state == c.REJECTED
    assert history.check().findings[0].rule == c.TERMINAL_OVERWRITTEN


async def test_two_store_objects_over_one_database_share_a_task_and_differ_as_writers(
    db: Database,
) -> None:
    engines = [create_async_engine(db.dsn) for _ in range(2)]
    one, two = (VersionedDatabaseTaskStore(engine) for engine in engines)
    with capture() as history:
        first = await one.save(
            task(), event=None, prev=None, prev_version=TaskVersion.MISSING, context=CALL
        )
        await two.save(task("COMPLETED"), event=None, prev=None, prev_version=first, context=CALL)
    for engine in engines:
        await engine.dispose()
    a, b = history.of(c.WRITE)
    assert a.task == b.task
    assert a.writer != b.writer
    assert "root@" not in a.task.store
    assert a.task.store.endswith("#tasks")


async def test_tables_owners_and_memories_are_id_spaces_of_their_own(db: Database) -> None:
    engine = create_async_engine(db.dsn)
    stores = [DatabaseTaskStore(engine), InMemoryTaskStore(), InMemoryTaskStore()]
    with capture() as history:
        for store in stores:
            await store.save(task("COMPLETED"), CALL)
    await engine.dispose()
    assert len({w.task for w in history.of(c.WRITE)}) == 3
    assert history.of(c.VIOLATION) == []


class Retrying(VersionedTaskStore):
    """Tries an inner store again until it has its way, as some do for cancels."""

    def __init__(self, inner: VersionedTaskStore) -> None:
        self._store = inner

    async def save(self, task, *, event=None, prev=None, prev_version, context):
        while True:
            try:
                return await self._store.save(
                    task, event=event, prev=prev, prev_version=prev_version, context=context
                )
            except ConcurrentTaskModificationError:
                prev_version = (await self._store.get(task.id, context)).version

    async def get(self, task_id, context):
        return await self._store.get(task_id, context)

    async def list(self, params, context):
        return await self._store.list(params, context)

    async def delete(self, task_id, context):
        await self._store.delete(task_id, context)


class RefusesTwice(VersionedTaskStore):
    """A fast rival writes twice while somebody tries to write once."""

    def __init__(self) -> None:
        self.version, self.state, self.rivals = 5, "WORKING", 2

    async def save(self, task, *, event=None, prev=None, prev_version, context):
        if self.rivals:
            self.rivals, self.version = self.rivals - 1, self.version + 1
            raise ConcurrentTaskModificationError(task.id)
        self.version += 1
        return TaskVersion(self.version)

    async def get(self, task_id, context):
        return StoredTask(task(self.state, task_id), TaskVersion(self.version))

    async def list(self, params, context): ...

    async def delete(self, task_id, context): ...


async def test_a_cancel_that_is_tried_three_times_is_one_write() -> None:
    with capture() as history:
        store = Retrying(RefusesTwice())
        await store.save(task("CANCELED"), prev_version=TaskVersion(5), context=CALL)
    (write,) = history.of(c.WRITE)
    assert (write.outcome, write.attempt, write.version) == (c.ACCEPTED, 3, 8)


class Translating(InMemoryTaskStore):
    """Stores, and then tells the caller something else."""

    async def save(self, task, context):
        await super().save(task, context)
        raise PermissionError("quota")


async def test_what_was_stored_and_what_the_caller_got_are_both_told() -> None:
    with capture() as history, pytest.raises(PermissionError):
        await Translating().save(task(), CALL)
    (write,) = history.of(c.WRITE)
    assert (write.outcome, write.error_type) == (c.ACCEPTED, "PermissionError")


class Refusing(InMemoryTaskStore):
    """Raises before anything is stored, by an exception that says nothing."""

    async def save(self, task, context):
        raise RuntimeError("no")


async def test_an_exception_that_is_no_clean_refusal_is_unknown() -> None:
    with capture() as history, pytest.raises(RuntimeError):
        await Refusing().save(task(), CALL)
    (write,) = history.of(c.WRITE)
    assert (write.outcome, write.error_type) == (c.UNKNOWN, "RuntimeError")


class Slow(InMemoryTaskStore):
    def __init__(self) -> None:
        super().__init__()
        self.entered = asyncio.Event()

    async def save(self, task, context):
        self.entered.set()
        await asyncio.Event().wait()


async def test_a_cancelled_save_is_unknown() -> None:
    with capture() as history:
        store = Slow()
        saving = asyncio.create_task(store.save(task(), CALL))
        await store.entered.wait()
        saving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saving
    (write,) = history.of(c.WRITE)
    assert (write.outcome, write.error_type) == (c.UNKNOWN, "CancelledError")


async def test_deletion_ends_an_incarnation(db: Database) -> None:
    engine = create_async_engine(db.dsn)
    store = VersionedDatabaseTaskStore(engine)
    with capture() as history:
        for _ in range(2):
            await store.save(
                task("COMPLETED"),
                event=None, prev=None, prev_version=TaskVersion.MISSING, context=CALL,
            )  # fmt: skip
            await store.delete("t1", CALL)
    await engine.dispose()
    assert [(f.kind, f.task.incarnation) for f in history.facts] == [
        ("write", 0), ("deleted", 0), ("write", 1), ("deleted", 1),
    ]  # fmt: skip
    assert history.check().findings == ()


class LosesTheAnswer(VersionedDatabaseTaskStore):
    """Deletes, or does not, and then hears that the connection broke."""

    deletes = True

    async def delete(self, task_id, context):
        if self.deletes:
            await super().delete(task_id, context)
        raise ConnectionError


@pytest.mark.parametrize("deletes", [True, False])
async def test_a_deletion_that_failed_is_told_when_the_task_is_gone(deletes: bool, db: Database) -> None:
    engine = create_async_engine(db.dsn)
    store = LosesTheAnswer(engine)
    store.deletes = deletes
    with capture() as history:
        await store.save(task(), event=None, prev=None, prev_version=TaskVersion.MISSING, context=CALL)
        with pytest.raises(ConnectionError):
            await store.delete("t1", CALL)
    await engine.dispose()
    assert [f.error_type for f in history.of(c.DELETED)] == ["ConnectionError"] * deletes
    assert [f.kind for f in history.facts if f.kind != c.DELETED] == [c.WRITE]


class LeavesTheRow(VersionedDatabaseTaskStore):
    """Deletes the versions, or does not, and loses the answer: the row was saved anew before."""

    deletes = True

    async def delete(self, task_id, context):
        if self.deletes:
            async with self._db.async_session_maker.begin() as session:
                await session.execute(delete(self._version_model))
        raise ConnectionError


@pytest.mark.parametrize("deletes", [True, False])
async def test_a_failed_deletion_is_told_when_only_the_row_was_saved_anew(
    deletes: bool, db: Database
) -> None:
    """The SDK deletes a task's row and its versions apart; versions are what a life is told by."""
    engine = create_async_engine(db.dsn)
    store = LeavesTheRow(engine)
    store.deletes = deletes
    with capture() as history:
        await first_save(store)
        with pytest.raises(ConnectionError):
            await store.delete("t1", CALL)
    await engine.dispose()
    assert [f.error_type for f in history.of(c.DELETED)] == ["ConnectionError"] * deletes


async def test_a_failed_deletion_of_a_row_that_never_had_a_version_is_not_told(db: Database) -> None:
    engine = create_async_engine(db.dsn)
    await DatabaseTaskStore(engine).save(task(), CALL)
    store = LosesTheAnswer(engine)
    store.deletes = False
    with capture() as history, pytest.raises(ConnectionError):
        await store.delete("t1", CALL)
    await engine.dispose()
    assert history.of(c.DELETED) == []


async def test_a_failed_deletion_is_not_told_because_a_save_overtook_the_look_at_it(
    db: Database,
) -> None:
    class Overtaken(LosesTheAnswer):
        async def get(self, task_id, context):
            stored = await super().get(task_id, context)
            await self.saves()
            return stored

    engine = create_async_engine(db.dsn)
    outside = contextvars.copy_context()
    store, other = Overtaken(engine), VersionedDatabaseTaskStore(engine)
    store.deletes = False
    with capture() as history:
        first = await first_save(other)

        async def saves() -> None:
            # As another request would, of which this one's context variables say nothing.
            save = other.save(task(), event=None, prev=None, prev_version=first, context=CALL)
            await outside.run(asyncio.ensure_future, save)

        store.saves = saves
        with pytest.raises(ConnectionError):
            await store.delete("t1", CALL)
    await engine.dispose()
    assert [(f.kind, f.version) for f in history.facts] == [(c.WRITE, 1), (c.WRITE, 2)]


async def test_a_failed_deletion_is_told_when_versions_begin_anew(db: Database) -> None:
    class Reborn(LosesTheAnswer):
        async def delete(self, task_id, context):
            await VersionedDatabaseTaskStore.delete(self, task_id, context)
            await db.run("INSERT INTO tasks SELECT * FROM kept")
            await db.run(
                "INSERT INTO task_versions (task_id, owner, version) SELECT id, owner, 1 FROM kept"
            )
            raise ConnectionError

    engine = create_async_engine(db.dsn)
    store = Reborn(engine)
    with capture() as history:
        first = await first_save(store)
        await store.save(task(), event=None, prev=None, prev_version=first, context=CALL)
        await db.run("CREATE TABLE kept AS SELECT * FROM tasks")
        with pytest.raises(ConnectionError):
            await store.delete("t1", CALL)
    await engine.dispose()
    assert len(history.of(c.DELETED)) == 1


async def first_save(store: VersionedTaskStore) -> TaskVersion:
    return await store.save(
        task(), event=None, prev=None, prev_version=TaskVersion.MISSING, context=CALL
    )


async def test_audit_sees_what_raw_sql_did(db: Database) -> None:
    engine = create_async_engine(db.dsn)
    store = VersionedDatabaseTaskStore(engine)
    with capture(audit=True) as history:
        first = await store.save(
            task(), event=None, prev=None, prev_version=TaskVersion.MISSING, context=CALL
        )
        await db.run("UPDATE tasks SET status = :status", status='{"state": "TASK_STATE_CANCELED"}')
        await store.save(task("COMPLETED"), event=None, prev=None, prev_version=first, context=CALL)
    await engine.dispose()
    audits = [(r.version, r.state) for r in history.of(c.READ) if r.origin == c.AUDIT]
    assert audits == [(1, c.CANCELED)]
    rules = {finding.rule for finding in history.check().findings}
    assert {c.UNSEEN_WRITER, c.TERMINAL_OVERWRITTEN} <= rules


async def test_a_broken_sink_is_counted_and_does_not_reach_the_host(caplog) -> None:
    from a2a_fencing import recorder
    from a2a_fencing.hooks import Hooks
    from a2a_fencing.replica import Replica

    def broken(fact, span):
        raise ZeroDivisionError

    replica = Replica()
    hooks = Hooks(replica.id)
    hooks.install()
    before = sum(internal_errors.counts().values())
    previous = recorder.activate(recorder.Recorder(replica, [broken]))
    try:
        store = InMemoryTaskStore()
        for _ in range(3):
            await store.save(task(), CALL)
        assert (await store.get("t1", CALL)).id == "t1"
    finally:
        recorder.activate(previous)
        hooks.remove()
    assert sum(internal_errors.counts().values()) == before + 3
    assert len([r for r in caplog.records if "went on without it" in r.message]) <= 1


async def test_what_a_save_left_is_known_though_its_task_was_forgotten_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from a2a_fencing.hooks import memory

    monkeypatch.setattr(memory.TaskMemory.__init__, "__defaults__", (4,))
    go_on = asyncio.Event()

    class Slow(InMemoryTaskStore):
        async def save(self, task, context):
            if task.id == "t1" and not go_on.is_set():
                await go_on.wait()
            await super().save(task, context)

    with capture() as history:
        store = Slow()
        saving = asyncio.create_task(store.save(task("COMPLETED"), CALL))
        await asyncio.sleep(0)
        for n in range(5):
            await store.save(task(task_id=f"other{n}"), CALL)
        go_on.set()
        await saving
        await store.save(task("WORKING"), CALL)
    assert [f.base_state for f in history.of(c.WRITE) if f.task.task_id == "t1"] == [None, "COMPLETED"]
    assert len(history.of(c.VIOLATION)) == 1


async def test_memory_stays_flat_over_many_tasks() -> None:
    from a2a_fencing.facts import TaskKey
    from a2a_fencing.hooks.memory import TaskMemory

    memory = TaskMemory(tasks=100)
    for n in range(10_000):
        key = TaskKey("s", "o", str(n))
        for version in range(20):
            memory.record(key).saw(version, "WORKING")
    assert len(memory) == 100
    assert memory.latest(TaskKey("s", "o", "5")) is None
    last = memory.record(TaskKey("s", "o", "9999")).states
    assert last[19] == "WORKING"
    assert 1 not in last
