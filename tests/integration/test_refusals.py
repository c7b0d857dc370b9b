"""One SDK exception has six causes (DESIGN section 5): each is told apart, on every database."""

from __future__ import annotations

import asyncio
import contextvars

import pytest
from a2a.server.cluster import (
    ConcurrentTaskModificationError,
    TaskVersion,
    VersionedDatabaseTaskStore,
)
from a2a.server.context import ServerCallContext
from a2a.types.a2a_pb2 import Artifact, Part, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus
from sqlalchemy.exc import OperationalError

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact
from a2a_fencing.testing import History, capture
from support.cluster import cluster, idle
from support.databases import Database

ALICE = ServerCallContext()


class Named:
    is_authenticated = True

    def __init__(self, user_name: str) -> None:
        self.user_name = user_name


def as_user(name: str) -> ServerCallContext:
    return ServerCallContext.model_construct(
        state={}, user=Named(name), tenant="", requested_extensions=set()
    )


def task(state: str, *, artifacts: int = 0) -> Task:
    return Task(
        id="t1",
        context_id="ctx",
        status=TaskStatus(state=TaskState.Value(f"TASK_STATE_{state}")),
        artifacts=[Artifact(artifact_id=f"a{n}", parts=[Part(text="x")]) for n in range(artifacts)],
    )


async def save(store, what: Task, base: TaskVersion, context=ALICE, event=None) -> TaskVersion:
    return await store.save(what, event=event, prev=None, prev_version=base, context=context)


async def refused(store, *arguments, **keywords) -> None:
    with pytest.raises(ConcurrentTaskModificationError):
        await save(store, *arguments, **keywords)


def last_write(history: History) -> Fact:
    return history.of(c.WRITE)[-1]


def told(fact: Fact) -> tuple[str | None, str | None]:
    return fact.outcome, fact.reason


@pytest.fixture
async def store(db: Database):
    async with cluster(db.dsn, idle) as (node,):
        yield node.store


async def test_stale_base_a_rival_wrote(store) -> None:
    with capture() as history:
        first = await save(store, task("SUBMITTED"), TaskVersion.MISSING)
        await save(store, task("WORKING"), first)
        await refused(store, task("WORKING", artifacts=1), first)
    assert told(last_write(history)) == (c.CONFLICT, c.STALE_BASE)
    (probe,) = history.of(c.READ)
    assert (probe.origin, probe.version, probe.state) == (c.REFUSAL_PROBE, 2, c.WORKING)


async def test_a_second_first_write_is_a_rivals(store) -> None:
    with capture() as history:
        await save(store, task("SUBMITTED"), TaskVersion.MISSING)
        await refused(store, task("WORKING"), TaskVersion.MISSING)
    assert told(last_write(history)) == (c.CONFLICT, c.STALE_BASE)


async def test_terminal_an_artifact_on_a_canceled_task_carries_its_state(store) -> None:
    with capture() as history:
        first = await save(store, task("WORKING"), TaskVersion.MISSING)
        second = await save(store, task("CANCELED"), first)
        event = TaskArtifactUpdateEvent(task_id="t1", context_id="ctx")
        await refused(store, task("CANCELED", artifacts=1), second, event=event)
    write = last_write(history)
    assert told(write) == (c.TERMINAL_REJECTED, c.TERMINAL)
    assert write.event_kind == c.ARTIFACT_EVENT


async def test_terminal_a_cancel_of_a_finished_task_whatever_its_base(store) -> None:
    with capture() as history:
        first = await save(store, task("WORKING"), TaskVersion.MISSING)
        await save(store, task("COMPLETED"), first)
        await refused(store, task("CANCELED"), first)
    assert told(last_write(history)) == (c.TERMINAL_REJECTED, c.TERMINAL)


async def test_absent_a_cancel_of_what_is_not_stored(store) -> None:
    with capture() as history:
        await refused(store, task("CANCELED"), TaskVersion.MISSING)
    assert told(last_write(history)) == (c.CONFLICT, c.ABSENT)


async def test_absent_a_write_on_a_deleted_task(store) -> None:
    with capture() as history:
        first = await save(store, task("WORKING"), TaskVersion.MISSING)
        await store.delete("t1", ALICE)
        await refused(store, task("COMPLETED"), first)
    assert told(last_write(history)) == (c.CONFLICT, c.ABSENT)
    assert len(history.of(c.DELETED)) == 1


async def test_foreign_owner_and_the_owner_is_not_named(store) -> None:
    bob, mallory = as_user("bob-the-first"), as_user("mallory")
    with capture() as history:
        await save(store, task("WORKING"), TaskVersion.MISSING, bob)
        await refused(store, task("SUBMITTED"), TaskVersion.MISSING, mallory)
    write = last_write(history)
    assert told(write) == (c.CONFLICT, c.FOREIGN_OWNER)
    assert "bob-the-first" not in repr(write)


async def test_orphan_version_row_left_by_an_interrupted_delete(store, db: Database) -> None:
    await save(store, task("WORKING"), TaskVersion.MISSING)
    await db.run("DELETE FROM tasks")
    with capture() as history:
        await refused(store, task("SUBMITTED"), TaskVersion.MISSING)
    assert told(last_write(history)) == (c.CONFLICT, c.ORPHAN_VERSION_ROW)


class LosesTheAnswer(VersionedDatabaseTaskStore):
    """Commits, and then hears that the connection broke."""

    lose = False

    async def _save_once(self, *args, **kwargs):
        version = await super()._save_once(*args, **kwargs)
        if self.lose:
            self.lose = False
            raise OperationalError("COMMIT", {}, Exception("server closed the connection"))
        return version


async def test_own_commit_is_never_blamed_on_a_rival(db: Database) -> None:
    async with cluster(db.dsn, idle) as (node,):
        store = LosesTheAnswer(node.engine, retry_delay_s=0)
        with capture() as history:
            first = await save(store, task("WORKING"), TaskVersion.MISSING)
            store.lose = True
            await refused(store, task("WORKING", artifacts=1), first)
            second = (await store.get("t1", ALICE)).version
            await save(store, task("WORKING", artifacts=2), second)
    writes = [(w.outcome, w.reason, w.attempt, w.base_version, w.version) for w in history.of(c.WRITE)]
    assert writes == [
        (c.ACCEPTED, None, 1, None, 1),
        (c.UNKNOWN, None, 1, 1, None),
        (c.CONFLICT, c.OWN_COMMIT, 2, 1, 2),
        (c.ACCEPTED, None, 1, 2, 3),
    ]


async def test_an_error_after_the_commit_is_unknown_until_the_next_read(db: Database) -> None:
    async with cluster(db.dsn, idle) as (node,):
        store = LosesTheAnswer(node.engine, max_attempts=1)
        with capture() as history:
            first = await save(store, task("WORKING"), TaskVersion.MISSING)
            store.lose = True
            with pytest.raises(OperationalError):
                await save(store, task("COMPLETED"), first)
            assert told(last_write(history)) == (c.UNKNOWN, None)
            assert last_write(history).error_type == "OperationalError"
            await store.get("t1", ALICE)
            await store.get("t1", ALICE)
    (resolution,) = history.of(c.READ)
    assert (resolution.origin, resolution.version, resolution.state) == (c.RESOLUTION, 2, c.COMPLETED)


async def test_two_remote_cancels_with_the_same_content_are_rivals(store, db: Database) -> None:
    """Both write the same bytes on the same base; the loser must not take the winner's for its own."""
    async with cluster(db.dsn, idle) as (other,):
        with capture() as history:
            first = await save(store, task("WORKING"), TaskVersion.MISSING)
            await save(store, task("CANCELED"), first)
            await refused(other.store, task("CANCELED"), first)
    assert told(last_write(history)) == (c.TERMINAL_REJECTED, c.TERMINAL)


class OvertakenBeforeItsRetry(LosesTheAnswer):
    """A rival writes between the commit whose answer was lost and the retry."""

    async def _save_once(self, *args, **kwargs):
        try:
            return await super()._save_once(*args, **kwargs)
        except OperationalError:
            # Elsewhere, and so not a part of this save.
            await contextvars.Context().run(asyncio.create_task, self.rival())
            raise


async def test_a_retry_refused_because_of_a_rival_leaves_open_what_became_of_its_first_try(
    db: Database,
) -> None:
    async with cluster(db.dsn, idle, idle) as (node, other):
        store = OvertakenBeforeItsRetry(node.engine, retry_delay_s=0)
        with capture() as history:
            first = await save(store, task("WORKING"), TaskVersion.MISSING)

            async def rival() -> None:
                base = (await other.store.get("t1", ALICE)).version
                await save(other.store, task("CANCELED"), base)

            store.rival, store.lose = rival, True
            await refused(store, task("WORKING", artifacts=1), first)
    writes = [(w.state, w.outcome, w.reason, w.attempt) for w in history.of(c.WRITE)]
    assert writes == [
        (c.WORKING, c.ACCEPTED, None, 1),
        (c.CANCELED, c.ACCEPTED, None, 1),
        (c.WORKING, c.UNKNOWN, None, 1),
        (c.WORKING, c.CONFLICT, c.STALE_BASE, 2),
    ]
    assert history.check().verdict == c.FINE  # v2 is the first try's, as the rival's base shows


async def test_a_try_that_was_refused_before_is_no_open_one(db: Database) -> None:
    """An outer layer that tries again after a clean refusal leaves nothing open."""

    class TriesAgain(VersionedDatabaseTaskStore):
        async def _save_once(self, *args, **kwargs):
            try:
                return await super()._save_once(*args, **kwargs)
            except ConcurrentTaskModificationError:
                return await super()._save_once(*args, **kwargs)

        async def save(self, *args, **kwargs):
            try:
                return await super().save(*args, **kwargs)
            except ConcurrentTaskModificationError:
                return await super().save(*args, **kwargs)

    async with cluster(db.dsn, idle) as (node,):
        store = TriesAgain(node.engine)
        with capture() as history:
            first = await save(store, task("SUBMITTED"), TaskVersion.MISSING)
            await save(store, task("WORKING"), first)
            await refused(store, task("WORKING", artifacts=1), first)
    assert [w.outcome for w in history.of(c.WRITE)] == [c.ACCEPTED, c.ACCEPTED, c.CONFLICT]


async def test_a_refused_retry_that_cannot_be_explained_is_unknown(db: Database) -> None:
    class CannotBeRead(LosesTheAnswer):
        async def get(self, *args, **kwargs):
            raise asyncio.CancelledError

    async with cluster(db.dsn, idle) as (node,):
        store = CannotBeRead(node.engine, retry_delay_s=0)
        with capture() as history:
            first = await save(store, task("WORKING"), TaskVersion.MISSING)
            store.lose = True
            with pytest.raises(asyncio.CancelledError):
                await save(store, task("COMPLETED"), first)
    assert told(last_write(history)) == (c.UNKNOWN, None)


class Failing(VersionedDatabaseTaskStore):
    """Every try fails, with one and the same exception, as a driver's pool may hold it."""

    failed = 0
    tried: asyncio.Event | None = None
    error = OperationalError("COMMIT", {}, Exception("locked"))

    async def _save_once(self, *args, **kwargs):
        self.failed += 1
        if self.tried is not None:
            self.tried.set()
        raise self.error


async def test_tries_are_counted_where_each_fails_with_the_same_exception(db: Database) -> None:
    async with cluster(db.dsn, idle) as (node,):
        store = Failing(node.engine, retry_delay_s=0)
        with capture() as history, pytest.raises(OperationalError):
            await save(store, task("WORKING"), TaskVersion.MISSING)
    assert (last_write(history).outcome, last_write(history).attempt) == (c.UNKNOWN, store.failed)
    assert store.failed > 1


async def test_a_save_cancelled_in_the_pause_between_tries_had_no_second_one(db: Database) -> None:
    async with cluster(db.dsn, idle) as (node,):
        store = Failing(node.engine, retry_delay_s=60)
        store.tried = asyncio.Event()
        with capture() as history:
            saving = asyncio.create_task(save(store, task("WORKING"), TaskVersion.MISSING))
            await store.tried.wait()  # and in the same step on to the store's own sleep
            saving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await saving
    assert (last_write(history).outcome, last_write(history).attempt) == (c.UNKNOWN, 1)


async def test_an_outer_layer_that_fails_after_a_second_try_took_place_takes_nothing_back(
    db: Database,
) -> None:
    class FailsAtFirst(VersionedDatabaseTaskStore):
        tries = 0

        async def _save_once(self, *args, **kwargs):
            self.tries += 1
            if self.tries == 1:
                raise OperationalError("BEGIN", {}, Exception("locked"))
            return await super()._save_once(*args, **kwargs)

    class FailsAtLast(FailsAtFirst):
        async def save(self, *args, **kwargs):
            await super().save(*args, **kwargs)
            raise RuntimeError("a layer of its own")

    async with cluster(db.dsn, idle) as (node,):
        store = FailsAtLast(node.engine, retry_delay_s=0)
        with capture() as history, pytest.raises(RuntimeError):
            await save(store, task("WORKING"), TaskVersion.MISSING)
    write = last_write(history)
    assert (write.outcome, write.attempt, write.error_type) == (c.ACCEPTED, 2, "RuntimeError")
