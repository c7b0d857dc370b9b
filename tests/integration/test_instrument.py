"""Switching on and off: any time, twice, under other people's wrappers, and back to what it was."""

from __future__ import annotations

import functools
import gc
import inspect
import logging
from collections import UserDict
from collections.abc import Mapping

import pytest
import wrapt
from a2a.server.agent_execution import AgentExecutor
from a2a.server.cluster.task_store import TaskVersion, VersionedTaskStore
from a2a.server.context import ServerCallContext
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.server.tasks.task_store import TaskStore
from a2a.types.a2a_pb2 import Task, TaskState, TaskStatus

import a2a_fencing
from a2a_fencing import conventions as c
from a2a_fencing import recorder
from a2a_fencing.hooks.patches import Patches
from a2a_fencing.instrumentor import A2AFencingInstrumentor
from a2a_fencing.testing import capture

CALL = ServerCallContext()


def task(task_id: str = "t", state: str = "WORKING") -> Task:
    return Task(
        id=task_id,
        context_id="ctx",
        status=TaskStatus(state=TaskState.Value(f"TASK_STATE_{state}")),
    )


def sdk_classes() -> list[type]:
    """Every class of the SDK that is loaded, and everything derived from one."""
    return [
        thing
        for thing in gc.get_objects()
        if issubclass(type(thing), type)
        and any(str(k.__module__).startswith("a2a.") for k in type.mro(thing))
    ]


def attributes() -> dict[tuple[type, str], object]:
    return {(cls, name): value for cls in sdk_classes() for name, value in vars(cls).items()}


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing configured, and nothing to send to."""
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")


def test_uninstrument_leaves_every_attribute_as_it_was(no_network: None) -> None:
    import a2a.server.request_handlers  # noqa: F401 - its classes are patched too

    before = attributes()
    a2a_fencing.instrument()
    changed = {where for where, value in attributes().items() if before.get(where) is not value}
    a2a_fencing.uninstrument()
    after = attributes()

    assert (InMemoryTaskStore, "save") in changed
    assert len(changed) > 20
    different = {
        where
        for where in before.keys() | after.keys()
        if before.get(where) is not after.get(where)
        # CPython keeps these caches itself and renews them whenever a class changes.
        and where[1] not in ("__abstractmethods__", "_abc_impl", "__weakref__")
    }
    assert different == set()


async def test_twice_is_once(no_network: None) -> None:
    a2a_fencing.instrument()
    a2a_fencing.instrument()
    active = recorder.active()
    assert active is not None
    before = active.last
    await InMemoryTaskStore().save(task(), CALL)
    assert active.last == before + 1
    a2a_fencing.uninstrument()
    a2a_fencing.uninstrument()
    assert recorder.active() is None


async def test_a_capture_inside_an_instrumented_process_records_each_fact_once(
    no_network: None, tmp_path
) -> None:
    from support.cluster import cluster, message, status, submitted

    async def completes(context, queue):
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "COMPLETED"))

    a2a_fencing.instrument()
    try:
        outer = recorder.active()
        async with cluster(f"sqlite+aiosqlite:///{tmp_path}/t.db", completes) as (node,):
            with capture() as history:
                before = outer.last
                await node.handler.on_message_send(message(), CALL)
                assert outer.last == before
            assert recorder.active() is outer
        kinds = sorted(fact.kind for fact in history.facts)
        assert kinds == ["answer", "execution", "execution", "write", "write"]
        assert history.check().ok
    finally:
        a2a_fencing.uninstrument()


async def test_a_wrapper_put_over_ours_survives_and_ours_goes(no_network: None) -> None:
    seen: list[str] = []

    def theirs(wrapped, instance, args, kwargs):
        seen.append("theirs")
        return wrapped(*args, **kwargs)

    original = InMemoryTaskStore.__dict__["save"]
    with capture() as history:
        outer = wrapt.FunctionWrapper(InMemoryTaskStore.__dict__["save"], theirs)
        InMemoryTaskStore.save = outer
        await InMemoryTaskStore().save(task(), CALL)
    try:
        assert len(history.of(c.WRITE)) == 1
        assert InMemoryTaskStore.__dict__["save"] is outer
        assert outer.__wrapped__ is original
        with capture() as again:
            await InMemoryTaskStore().save(task(), CALL)
        assert len(again.of(c.WRITE)) == 1
        assert len(history.of(c.WRITE)) == 1
        assert seen == ["theirs", "theirs"]
    finally:
        InMemoryTaskStore.save = original


async def test_a_class_that_took_a_hook_from_another_is_watched_the_next_time_too() -> None:
    class Owner(InMemoryTaskStore):
        async def save(self, *args, **kwargs):
            await super().save(*args, **kwargs)

    with capture() as history:

        class Borrower(InMemoryTaskStore):
            save = Owner.save

        # Owner's `super()` wants an Owner: what happens is told all the same.
        with pytest.raises(TypeError):
            await Borrower().save(task(), CALL)
    with capture() as again, pytest.raises(TypeError):
        await Borrower().save(task(), CALL)
    assert len(history.of(c.WRITE)) == len(again.of(c.WRITE)) == 1


def test_what_was_a_coroutine_function_is_one_for_whoever_asks() -> None:
    from a2a.server.agent_execution.active_task import ActiveTask
    from a2a.server.tasks.task_manager import TaskManager

    methods = (
        (TaskManager, "process"),
        (ActiveTask, "enqueue_request"),
        (InMemoryTaskStore, "save"),
        (InMemoryTaskStore, "get"),
    )
    signatures = [inspect.signature(getattr(owner, name)) for owner, name in methods]
    with capture():
        for (owner, name), signature in zip(methods, signatures, strict=True):
            method = getattr(owner, name)
            assert inspect.iscoroutinefunction(method)
            assert inspect.signature(method) == signature


async def test_a_closure_put_over_ours_gets_past_ours() -> None:
    original = InMemoryTaskStore.__dict__["save"]
    with capture() as history:
        ours = InMemoryTaskStore.save

        @functools.wraps(ours)
        async def theirs(self, *args, **kwargs):
            return await ours(self, *args, **kwargs)

        InMemoryTaskStore.save = theirs
    try:
        await InMemoryTaskStore().save(task(), CALL)
        assert history.facts == []
    finally:
        InMemoryTaskStore.save = original


async def test_classes_that_come_later_are_hooked_and_super_counts_once() -> None:
    with capture() as history:

        class Later(InMemoryTaskStore):
            async def save(self, task, context):
                await super().save(task, context)

        await Later().save(task(), CALL)
    (write,) = history.of(c.WRITE)
    assert write.outcome == c.ACCEPTED
    assert write.attempt == 1
    assert vars(Later)["save"].__class__ is type(lambda: None)


async def test_a_later_class_that_takes_arguments_still_can(no_network: None) -> None:
    with capture():

        class Named(InMemoryTaskStore):
            label = ""

            def __init_subclass__(cls, *, label: str = "", **kwargs):
                super().__init_subclass__(**kwargs)
                cls.label = label

        class Child(Named, label="x"):
            pass

    assert Child.label == "x"
    assert "__init_subclass__" not in vars(TaskStore)
    assert "__init_subclass__" not in vars(AgentExecutor)


async def test_abstract_methods_stay_abstract() -> None:
    with capture():
        with pytest.raises(TypeError):
            VersionedTaskStore()

        class Half(VersionedTaskStore):
            async def save(self, *args, **kwargs):
                return TaskVersion(1)

        with pytest.raises(TypeError):
            Half()


def test_a_bad_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_FENCING_HEARTBEAT_INTERVAL", "soon")
    with pytest.raises(ValueError, match="A2A_FENCING_HEARTBEAT_INTERVAL='soon'"):
        a2a_fencing.instrument()
    assert recorder.active() is None
    assert not A2AFencingInstrumentor().is_instrumented_by_opentelemetry


@pytest.mark.parametrize("interval", [0, -1, float("nan"), float("inf")])
def test_an_interval_that_cannot_be_waited_for_is_named(interval: float) -> None:
    with pytest.raises(ValueError, match="heartbeat_interval"):
        a2a_fencing.instrument(heartbeat_interval=interval)
    assert not A2AFencingInstrumentor().is_instrumented_by_opentelemetry


def test_otel_sdk_disabled_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    before = attributes()
    a2a_fencing.instrument()
    assert recorder.active() is None
    assert before.items() <= attributes().items()
    a2a_fencing.uninstrument()


def test_a_target_that_is_missing_is_reported_and_the_rest_works(
    no_network: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from a2a.server.agent_execution import active_task

    monkeypatch.delattr(active_task.EventConsumer, "_handle_initial_task")
    with caplog.at_level(logging.WARNING, "a2a_fencing"):
        a2a_fencing.instrument()
    try:
        assert A2AFencingInstrumentor().status().missing == ("EventConsumer._handle_initial_task",)
        assert len([r for r in caplog.records if "_handle_initial_task" in r.message]) == 1
    finally:
        a2a_fencing.uninstrument()


class Kept(UserDict[str, Task]):
    """A store that derives from no SDK class, but from one that much else derives from."""

    async def get(self, task_id, context):
        return super().get(task_id)


class Repository:
    def save(self, entity, context=None):
        return "saved"


class FirstTasks(Repository):
    pass


class SecondTasks(Repository):
    pass


class Users(Repository):
    pass


async def test_hooking_a_store_lets_alone_what_it_shares_with_other_classes() -> None:
    async def hook(wrapped, instance, args, kwargs):
        found = wrapped(*args, **kwargs)
        return "hooked", await found if inspect.isawaitable(found) else found

    patches = Patches()
    get, save = Mapping.__dict__["get"], Repository.__dict__["save"]
    try:
        patches.adopt(Kept, "get", hook)
        patches.adopt(FirstTasks, "save", hook)
        patches.adopt(SecondTasks, "save", hook)
        assert Mapping.__dict__["get"] is get
        assert await Kept(t=Task(id="t")).get("t", CALL) == ("hooked", Task(id="t"))
        assert await FirstTasks().save(Task()) == await SecondTasks().save(Task()) == ("hooked", "saved")
        assert Users().save("somebody") == "saved"
    finally:
        patches.undo()
    assert Repository.__dict__["save"] is save
