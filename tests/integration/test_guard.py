"""What the guard enforces, on every versioned store and with the SDK's accounting intact."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from a2a.server.agent_execution import active_task as sdk
from a2a.server.cluster import ConcurrentTaskModificationError, VersionedDatabaseTaskStore
from a2a.server.cluster.version import TaskVersion
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.types.a2a_pb2 import Task, TaskStatus
from sqlalchemy import event as sqlalchemy_event
from sqlalchemy.ext.asyncio import create_async_engine

import a2a_fencing
from a2a_fencing import conventions as c
from a2a_fencing import sdk_rules
from a2a_fencing.guard import Guard, in_force
from a2a_fencing.hooks.tasks import event_state, state_of
from a2a_fencing.instrumentor import A2AFencingInstrumentor
from a2a_fencing.testing import InMemoryVersionedTaskStore, capture
from support.cluster import (
    ScriptedExecutor,
    artifact,
    card,
    cluster,
    collect,
    idle,
    message,
    status,
    submitted,
    until,
)
from support.databases import Database, database

CALL = ServerCallContext()


@pytest.fixture
def sqlite(tmp_path):
    with database("sqlite", tmp_path) as found:
        yield found


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")


def task(state: str, task_id: str = "t") -> Task:
    return Task(id=task_id, context_id="ctx", status=TaskStatus(state=f"TASK_STATE_{state}"))


async def write(store, state: str, base: TaskVersion = TaskVersion.MISSING) -> TaskVersion:
    return await store.save(task(state), event=None, prev=None, prev_version=base, context=CALL)


class Spied(InMemoryVersionedTaskStore):
    """A store without the terminal rule that counts what reaches it."""

    def __init__(self) -> None:
        super().__init__(terminal_rule=False)
        self.saves = 0
        self.gets = 0

    async def save(self, *args, **kwargs):
        self.saves += 1
        return await super().save(*args, **kwargs)

    async def get(self, *args, **kwargs):
        self.gets += 1
        return await super().get(*args, **kwargs)


class Insists:
    """A mix-in of a store that saves on top of what it reloads, whoever was first."""

    async def save(self, task, *, prev_version, context, **others):
        try:
            return await super().save(task, prev_version=prev_version, context=context, **others)
        except ConcurrentTaskModificationError:
            base = (await self.get(task.id, context)).version
            return await super().save(task, prev_version=base, context=context, **others)


class InsistsInMemory(Insists, InMemoryVersionedTaskStore):
    pass


class InsistsOnDatabase(Insists, VersionedDatabaseTaskStore):
    pass


# --- the store rule ---


@pytest.mark.parametrize("state", ["WORKING", "COMPLETED", "CANCELED", "FAILED", "REJECTED"])
@pytest.mark.parametrize("final", ["COMPLETED", "CANCELED", "FAILED", "REJECTED"])
async def test_no_write_reaches_a_finished_task(final: str, state: str) -> None:
    store = Spied()
    with capture(guard="store") as history:
        first = await write(store, "WORKING")
        last = await write(store, final, first)
        with pytest.raises(ConcurrentTaskModificationError):
            await write(store, state, last)
    assert store.saves == 2
    assert store.gets == 0
    refused = history.of(c.WRITE)[-1]
    assert (refused.outcome, refused.reason) == (c.TERMINAL_REJECTED, c.TERMINAL)
    assert (refused.base_version, refused.base_state, refused.state) == (2, final, state)
    assert history.of(c.VIOLATION) == []
    assert history.check().ok
    assert state_of((await store.get("t", CALL)).task) == final


@pytest.mark.parametrize("kind", ["memory", "database"])
async def test_a_store_that_tries_again_on_what_it_reloads_is_held_back_too(
    sqlite: Database, kind: str
) -> None:
    engine = create_async_engine(sqlite.dsn)
    store = InsistsInMemory(terminal_rule=False) if kind == "memory" else InsistsOnDatabase(engine)
    with capture(guard="store") as history:
        first = await write(store, "WORKING")
        await write(store, "CANCELED", first)
        with pytest.raises(ConcurrentTaskModificationError):
            await write(store, "COMPLETED", first)
    refused = history.of(c.WRITE)[-1]
    assert (refused.outcome, refused.reason) == (c.TERMINAL_REJECTED, c.TERMINAL)
    assert (refused.base_version, refused.base_state) == (2, c.CANCELED)
    assert history.check().ok
    assert state_of((await store.get("t", CALL)).task) == c.CANCELED
    await engine.dispose()


async def test_without_the_guard_its_write_is_judged_by_what_it_stood_on() -> None:
    store = InsistsInMemory(terminal_rule=False)
    with capture() as history:
        first = await write(store, "WORKING")
        await write(store, "CANCELED", first)
        await write(store, "COMPLETED", first)
    last = history.of(c.WRITE)[-1]
    assert (last.base_version, last.base_state, last.version) == (2, c.CANCELED, 3)
    assert [finding.rule for finding in history.check().findings] == [c.TERMINAL_OVERWRITTEN]


async def test_a_task_that_a_save_has_started_is_held_back_when_it_saves_later() -> None:
    class Follows(InMemoryVersionedTaskStore):
        later: asyncio.Task[TaskVersion] | None = None

        async def save(self, task, **options):
            version = await super().save(task, **options)
            if state_of(task) == c.CANCELED:
                self.later = asyncio.create_task(self.follow(version))
            return version

        async def follow(self, version):
            await asyncio.sleep(0.01)
            return await write(self, "COMPLETED", version)

    store = Follows(terminal_rule=False)
    with capture(guard="store") as history:
        await write(store, "CANCELED", await write(store, "WORKING"))
        assert store.later is not None
        with pytest.raises(ConcurrentTaskModificationError):
            await store.later
    assert len(history.of(c.WRITE)) == 3


async def test_without_the_guard_the_same_write_is_stored() -> None:
    store = Spied()
    with capture() as history:
        first = await write(store, "WORKING")
        last = await write(store, "CANCELED", first)
        await write(store, "COMPLETED", last)
    assert store.saves == 3
    assert [fact.rule for fact in history.of(c.VIOLATION)] == [c.TERMINAL_OVERWRITTEN]


async def test_it_holds_on_every_database(db: Database) -> None:
    engine = create_async_engine(db.dsn)
    store = VersionedDatabaseTaskStore(engine)
    with capture(guard=True):
        first = await write(store, "WORKING")
        last = await write(store, "FAILED", first)
        for state in ("COMPLETED", "FAILED", "CANCELED"):
            with pytest.raises(ConcurrentTaskModificationError):
                await write(store, state, last)
    assert state_of((await store.get("t", CALL)).task) == c.FAILED
    await engine.dispose()


async def test_a_base_that_was_forgotten_costs_one_read() -> None:
    store = Spied()
    first = await write(store, "WORKING")
    last = await write(store, "CANCELED", first)
    with capture(guard="store"):  # knows nothing of what was written before
        with pytest.raises(ConcurrentTaskModificationError):
            await write(store, "COMPLETED", last)
        assert (store.saves, store.gets) == (2, 1)
        with pytest.raises(ConcurrentTaskModificationError):
            await write(store, "COMPLETED", last)
        assert (store.saves, store.gets) == (2, 1)


async def test_a_base_that_is_not_stored_any_more_is_left_to_the_store() -> None:
    store = Spied()
    first = await write(store, "WORKING")
    await write(store, "CANCELED", first)
    with capture(guard="store") as history, pytest.raises(ConcurrentTaskModificationError):
        await write(store, "COMPLETED", first)
    assert store.saves == 3
    (fact,) = history.of(c.WRITE)
    assert (fact.outcome, fact.reason) == (c.CONFLICT, c.STALE_BASE)


async def test_there_is_no_window_between_check_and_write() -> None:
    class Slow(InMemoryVersionedTaskStore):
        """Lets a rival write first, after the guard has looked."""

        async def save(self, task, **kwargs):
            if state_of(task) == c.COMPLETED:
                await InMemoryVersionedTaskStore.save(self, *rival[0], **rival[1])
            return await super().save(task, **kwargs)

    store = Slow(terminal_rule=False)
    with capture(guard="store"):
        first = await write(store, "WORKING")
        rival = (
            [task("CANCELED")],
            {"event": None, "prev": None, "prev_version": first, "context": CALL},
        )
        with pytest.raises(ConcurrentTaskModificationError):
            await write(store, "COMPLETED", first)
    assert state_of((await store.get("t", CALL)).task) == c.CANCELED


async def test_a_store_without_versions_is_not_covered_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = InMemoryTaskStore()
    with capture(guard=True), caplog.at_level(logging.WARNING, "a2a_fencing"):
        for state in ("CANCELED", "COMPLETED", "COMPLETED"):
            await store.save(task(state), CALL)
    assert len([r for r in caplog.records if "keeps no versions" in r.message]) == 1
    assert state_of(await store.get("t", CALL)) == c.COMPLETED


@contextmanager
def counted(engine) -> Iterator[list[str]]:
    """The SQL statements while the block runs."""
    statements: list[str] = []

    def note(connection, cursor, statement, *rest) -> None:
        statements.append(statement.split()[0])

    sqlalchemy_event.listen(engine.sync_engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        sqlalchemy_event.remove(engine.sync_engine, "before_cursor_execute", note)


async def test_an_accepted_write_takes_not_one_statement_more(db: Database) -> None:
    async def works(context, queue):
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "WORKING"))
        await queue.enqueue_event(artifact(context))
        await queue.enqueue_event(status(context, "COMPLETED"))

    async def statements(node) -> list[str]:
        with counted(node.engine) as seen:
            done = await node.handler.on_message_send(message(), CALL)
            await until(lambda: released(node, done.id))
        return seen

    async with cluster(db.dsn, works) as (node,):
        await statements(node)  # whatever the first task costs beyond the others
        bare = await statements(node)
        with capture():
            observed = await statements(node)
        with capture(guard=True):
            guarded = await statements(node)
    assert len(bare) > 8
    assert observed == bare
    assert guarded == bare


async def test_a_refusal_on_a_finished_task_takes_no_statement(db: Database) -> None:
    """The base is known, so the store is not called; without the guard the write would be stored."""
    engine = create_async_engine(db.dsn)
    store = VersionedDatabaseTaskStore(engine)
    with capture(guard=True) as history:
        first = await write(store, "WORKING")
        last = await write(store, "FAILED", first)
        with counted(engine) as seen:
            for state in ("COMPLETED", "FAILED"):
                with pytest.raises(ConcurrentTaskModificationError):
                    await write(store, state, last)
    refused = [fact.outcome for fact in history.of(c.WRITE)][-2:]
    assert (seen, refused) == ([], [c.TERMINAL_REJECTED] * 2)
    with counted(engine) as seen:
        await write(store, "COMPLETED", last)
    assert "UPDATE" in seen
    await engine.dispose()


async def test_a_conflict_takes_one_look_more_and_only_then(db: Database) -> None:
    """Of six causes of one exception, only a read of what is stored tells which it was."""
    engine = create_async_engine(db.dsn)
    store = VersionedDatabaseTaskStore(engine)
    last = await write(store, "WORKING")

    async def conflict() -> list[str]:
        nonlocal last
        base = await write(store, "WORKING", last)
        last = await write(store, "WORKING", base)
        with counted(engine) as seen, pytest.raises(ConcurrentTaskModificationError):
            await write(store, "COMPLETED", base)
        return seen

    await conflict()  # whatever the first one costs beyond the others
    bare = await conflict()
    with capture():
        observed = await conflict()
    with capture(guard=True):
        guarded = await conflict()
    with counted(engine) as one_look:
        await store.get("t", CALL)
    assert (bare, one_look) == (["UPDATE"], ["SELECT"])
    assert observed == guarded == bare + one_look
    await engine.dispose()


async def released(node, task_id: str) -> bool:
    return await node.handler._active_task_registry.get(task_id) is None


# --- the consumer rule ---


async def stale(db: Database, emit, guard: bool | str) -> tuple[list[str], list, list]:
    """A works, B cancels, A emits; returns A's stream's states, A's drops and what A left running."""
    working, cancelled = asyncio.Event(), asyncio.Event()
    task_id = ""

    async def work(context, queue):
        nonlocal task_id
        task_id = context.task_id
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "WORKING"))
        working.set()
        await cancelled.wait()
        await emit(context, queue)

    before = asyncio.all_tasks()
    with capture(guard=guard) as history:
        async with cluster(db.dsn, work, idle) as (a, b):
            stream = asyncio.create_task(collect(a.handler.on_message_send_stream(message(), CALL)))
            await asyncio.wait_for(working.wait(), 10)

            async def is_working() -> bool:
                stored = await b.stored(task_id)
                return stored is not None and state_of(stored.task) == c.WORKING

            await until(is_working)
            active = await a.handler._active_task_registry.get(task_id)
            await b.cancel(task_id)
            cancelled.set()
            events = await asyncio.wait_for(stream, 10)
            await until(lambda: released(a, task_id))
            for running in (active._producer_task, active._consumer_task):
                await asyncio.wait_for(asyncio.wait([running]), 10)
            assert state_of((await b.stored(task_id)).task) == c.CANCELED
            # Every event was taken off the account: nobody waits for this queue.
            await asyncio.wait_for(active._event_queue_agent.close(), 10)
    left = [t for t in asyncio.all_tasks() - before if not t.done()]
    states = [state for e in events if (state := event_state(e))]
    return states, history.of(c.DROPPED), left


async def test_what_a_stale_executor_still_emits_is_dropped_and_accounted_for(sqlite: Database) -> None:
    async def emit(context, queue):
        for _ in range(20):
            await queue.enqueue_event(artifact(context))
        await queue.enqueue_event(status(context, "COMPLETED"))

    states, drops, left = await stale(sqlite, emit, "consumer")
    assert states[-1] == c.CANCELED
    assert [fact.reason for fact in drops] == [c.STALE_EXECUTOR] + [c.FENCED_BY_GUARD] * 20
    assert [fact.event_kind for fact in drops[-2:]] == [c.ARTIFACT_EVENT, c.STATUS_EVENT]
    assert left == []


async def test_an_executor_that_swallows_its_cancellation_and_raises_ends_too(sqlite: Database) -> None:
    async def emit(context, queue):
        await queue.enqueue_event(artifact(context))
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await queue.enqueue_event(artifact(context))
        raise LookupError("swallowed")

    states, drops, left = await stale(sqlite, emit, True)
    assert states[-1] == c.CANCELED
    assert [fact.reason for fact in drops] == [c.STALE_EXECUTOR, c.FENCED_BY_GUARD]
    assert left == []


async def test_the_store_rule_alone_leaves_nobody_waiting_either(sqlite: Database) -> None:
    async def emit(context, queue):
        await queue.enqueue_event(artifact(context))
        await queue.enqueue_event(artifact(context))
        await queue.enqueue_event(status(context, "COMPLETED"))

    states, drops, left = await stale(sqlite, emit, "store")
    assert states[-1] == c.CANCELED
    assert [fact.reason for fact in drops] == [c.STALE_EXECUTOR] * 3
    assert left == []


async def test_the_next_turn_of_another_task_is_not_fenced(sqlite: Database) -> None:
    """A conflict that was reloaded and applied is no reason to drop what follows."""
    started, go_on = asyncio.Event(), asyncio.Event()
    task_id = ""

    async def work(context, queue):
        nonlocal task_id
        task_id = context.task_id
        await queue.enqueue_event(submitted(context))
        started.set()
        await go_on.wait()
        await queue.enqueue_event(artifact(context))
        await queue.enqueue_event(status(context, "COMPLETED"))

    with capture(guard=True) as history:
        async with cluster(sqlite.dsn, work, idle) as (a, b):
            request = asyncio.create_task(a.handler.on_message_send(message(), CALL))
            await started.wait()

            async def is_stored() -> bool:
                return await b.stored(task_id) is not None

            await until(is_stored)
            found = await b.stored(task_id)
            await b.store.save(
                found.task, event=None, prev=None, prev_version=found.version, context=CALL
            )
            go_on.set()
            done = await asyncio.wait_for(request, 10)
    assert event_state(done) == c.COMPLETED
    assert history.of(c.DROPPED) == []
    assert [w.outcome for w in history.of(c.WRITE)].count(c.CONFLICT) == 1


# --- switching ---


async def test_it_can_be_switched_while_the_server_runs(no_network: None) -> None:
    store = Spied()
    a2a_fencing.instrument()
    try:
        assert not a2a_fencing.guard()
        assert str(a2a_fencing.guard()) == "off: observing only"
        last = await write(store, "CANCELED", await write(store, "WORKING"))
        assert a2a_fencing.guard("store").rules == ("store",)
        with pytest.raises(ConcurrentTaskModificationError):
            await write(store, "COMPLETED", last)
        assert a2a_fencing.guard(True).rules == ("store", "consumer")
        assert A2AFencingInstrumentor().status().guard == in_force()
        a2a_fencing.guard(False)
        await write(store, "COMPLETED", last)
    finally:
        a2a_fencing.uninstrument()
    assert not a2a_fencing.guard()


async def test_a_heartbeat_says_which_rules_hold(no_network: None, monkeypatch) -> None:
    from a2a_fencing.heartbeat import Heartbeat
    from a2a_fencing.recorder import Recorder
    from a2a_fencing.replica import Replica

    beats = []
    guard = Guard(store=True)
    recorder = Recorder(Replica(), [lambda fact, span: beats.append(fact)])
    Heartbeat(recorder, executing=lambda: 0, lost=lambda: 0, guard=lambda: guard).beat()
    assert (beats[0].guard, beats[0].guard_rules) == (True, "store")
    guard = Guard()
    Heartbeat(recorder, executing=lambda: 0, lost=lambda: 0, guard=lambda: guard).beat()
    assert (beats[1].guard, beats[1].guard_rules) == (False, None)


@pytest.mark.parametrize(
    ("setting", "rules"),
    [("true", ("store", "consumer")), ("store", ("store",)), ("consumer", ("consumer",)), ("0", ())],
)
async def test_the_environment_switches_it_too(
    no_network: None, monkeypatch: pytest.MonkeyPatch, setting: str, rules: tuple[str, ...]
) -> None:
    monkeypatch.setenv("A2A_FENCING_GUARD", setting)
    a2a_fencing.instrument()
    try:
        assert a2a_fencing.guard().rules == rules
    finally:
        a2a_fencing.uninstrument()


async def test_what_cannot_be_switched_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match=r"call a2a_fencing\.instrument\(\) first"):
        a2a_fencing.guard(True)
    with pytest.raises(ValueError, match="expected true, false, store or consumer, not 'both'"):
        a2a_fencing.guard("both")
    with pytest.raises(ValueError, match="guard='both'"):
        a2a_fencing.instrument(guard="both")
    monkeypatch.setenv("A2A_FENCING_GUARD", "both")
    with pytest.raises(ValueError, match="A2A_FENCING_GUARD='both'"):
        a2a_fencing.instrument()


# --- an SDK that has the rules itself ---


@pytest.fixture
def tried_anew() -> Iterator[None]:
    sdk_rules.enforced.cache_clear()
    yield
    sdk_rules.enforced.cache_clear()


def test_this_sdk_has_neither_rule(tried_anew: None) -> None:
    assert sdk_rules.enforced() == frozenset()


def test_trying_makes_no_fact(tried_anew: None) -> None:
    with capture() as history:
        sdk_rules.enforced()
    assert history.facts == []


async def test_a_consumer_that_drops_by_itself_is_left_alone(
    tried_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = sdk.EventConsumer._process_event

    async def process(self, event):
        if self.active_task._is_finished.is_set():
            return
        await original(self, event)

    monkeypatch.setattr(sdk.EventConsumer, "_process_event", process)
    with capture(guard=True):
        assert in_force() == Guard(store=True, consumer=False, by_sdk=frozenset({"consumer"}))
        assert str(in_force()) == "store rule, consumer rule (by the SDK)"


async def test_a_store_that_refuses_by_itself_is_left_alone(
    sqlite: Database, tried_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = VersionedDatabaseTaskStore._save_once

    async def save_once(self, task, **kwargs):
        async with self._db.async_session_maker() as session:
            stored = await self._current_task(session, task.id, kwargs["owner"])
        if stored is not None and state_of(stored) in c.TERMINAL_STATES:
            raise ConcurrentTaskModificationError(task.id)
        return await original(self, task, **kwargs)

    monkeypatch.setattr(VersionedDatabaseTaskStore, "_save_once", save_once)
    engine = create_async_engine(sqlite.dsn)
    store, other = VersionedDatabaseTaskStore(engine), Spied()
    with capture(guard=True) as history:
        assert in_force() == Guard(store=True, consumer=True, by_sdk=frozenset({"store"}))
        assert "database store by the SDK" in str(in_force())
        for each in (store, other):
            last = await write(each, "CANCELED", await write(each, "WORKING"))
            with pytest.raises(ConcurrentTaskModificationError):
                await write(each, "COMPLETED", last)
    assert other.saves == 2
    assert [w.outcome for w in history.of(c.WRITE)].count(c.TERMINAL_REJECTED) == 2
    # Who asked the database why it refused: it was not held back before.
    assert [read.origin for read in history.of(c.READ)] == [c.REFUSAL_PROBE]
    await engine.dispose()


async def test_the_testing_store_has_the_rule_unless_told_otherwise() -> None:
    store = InMemoryVersionedTaskStore()
    last = await write(store, "CANCELED", await write(store, "WORKING"))
    with pytest.raises(ConcurrentTaskModificationError):
        await write(store, "COMPLETED", last)
    lax = InMemoryVersionedTaskStore(terminal_rule=False)
    last = await write(lax, "CANCELED", await write(lax, "WORKING"))
    await write(lax, "COMPLETED", last)
    for missing in (store, lax):
        with pytest.raises(ConcurrentTaskModificationError):
            await missing.save(task("CANCELED", "other"), prev_version=TaskVersion.MISSING, context=CALL)
        with pytest.raises(ConcurrentTaskModificationError):
            await missing.save(task("WORKING", "other"), prev_version=last, context=CALL)


async def test_the_testing_store_copies_in_and_out_and_serves_a_handler() -> None:
    async def works(context, queue):
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "COMPLETED"))

    store = InMemoryVersionedTaskStore()
    stored = task("WORKING")
    await store.save(stored, prev_version=TaskVersion.MISSING, context=CALL)
    stored.status.Clear()
    found = await store.get("t", CALL)
    assert state_of(found.task) == c.WORKING
    found.task.Clear()
    assert state_of((await store.get("t", CALL)).task) == c.WORKING
    await store.delete("t", CALL)
    assert await store.get("t", CALL) is None

    class Stream:
        async def publish(self, task_id, event):
            pass

    handler = DefaultRequestHandlerV2(ScriptedExecutor(works), store, card(), event_stream=Stream())
    with capture() as history:
        done = await handler.on_message_send(message(), CALL)
    await handler.aclose()
    assert event_state(done) == c.COMPLETED
    assert [(w.state, w.version, w.outcome) for w in history.of(c.WRITE)] == [
        ("SUBMITTED", 1, "accepted"),
        ("COMPLETED", 2, "accepted"),
    ]


async def test_an_older_consumer_that_cannot_be_seen_to_drop_is_never_taken_to(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Releases before the cluster mode apply events in one method."""

    async def process(self, event):
        await self._apply(event)

    monkeypatch.setattr(
        sdk.EventConsumer, "_apply", sdk.EventConsumer._process_event_inner, raising=False
    )
    monkeypatch.delattr(sdk.EventConsumer, "_process_event_inner")
    monkeypatch.setattr(sdk.EventConsumer, "_process_event", process)

    async def works(context, queue):
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(artifact(context))
        await queue.enqueue_event(status(context, "COMPLETED"))

    async with cluster(sqlite.dsn, works) as (node,):
        with capture(guard=True) as history:
            done = await node.handler.on_message_send(message(), CALL)
            await until(lambda: released(node, done.id))
    assert event_state(done) == c.COMPLETED
    assert history.of(c.DROPPED) == []
