"""What goes wrong with us stays with us: endpoints that hang, queues that overflow, hooks that fail."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from a2a.server.context import ServerCallContext
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.types.a2a_pb2 import Task, TaskState, TaskStatus
from opentelemetry.sdk.resources import Resource

import a2a_fencing
from a2a_fencing import conventions as c
from a2a_fencing import internal_errors, recorder
from a2a_fencing.facts import Fact
from a2a_fencing.hooks.stores import StoreIdentities
from a2a_fencing.instrumentor import A2AFencingInstrumentor
from a2a_fencing.outbox import Outbox
from a2a_fencing.testing import capture
from support.cluster import cluster, message, status, submitted
from support.otlp_sink import otlp_sink

CALL = ServerCallContext()


async def completes(context, queue):
    await queue.enqueue_event(submitted(context))
    await queue.enqueue_event(status(context, "COMPLETED"))


class Called:
    """Holds a method, as a callback is held."""

    def __init__(self) -> None:
        self.store = Patched()
        self.callback = self.store.save


def test_hooked_methods_are_copied_and_pickled_as_before() -> None:
    with capture():
        called = Called()
        copied = copy.deepcopy(called)
        assert copied.callback.__self__ is copied.store is not called.store
        assert copy.copy(called.callback) == called.callback
        assert copy.deepcopy(InMemoryTaskStore.get) == InMemoryTaskStore.get
        method = Patched().save
        assert pickle.loads(pickle.dumps(method)).__self__.__class__ is Patched
        assert pickle.loads(pickle.dumps(Patched.save)) == Patched.save
        assert copy.deepcopy(Patched.__dict__["save"]) is Patched.__dict__["save"]
        assert copy.copy(Patched.__dict__["save"]) is Patched.__dict__["save"]


class Patched(InMemoryTaskStore):
    """A class that can be pickled by name."""

    def __init__(self) -> None:
        """Without what cannot be pickled anyway."""

    async def save(self, task, context):
        pass


class Hangs(InMemoryTaskStore):
    """A store that does not answer."""

    async def save(self, task, context):
        await asyncio.Event().wait()

    async def get(self, task_id, context):
        await asyncio.Event().wait()

    async def delete(self, task_id, context):
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("name", "audit"), [("save", True), ("save", False), ("get", False), ("delete", False)]
)
async def test_a_call_that_is_thrown_away_in_another_context_is_closed_in_silence(
    name: str, audit: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """As an event loop leaves it that ends before its tasks."""
    with capture(audit=audit):
        store = Hangs()
        call = store.save(Task(id="t"), CALL) if name == "save" else getattr(store, name)("t", CALL)
        contextvars.copy_context().run(call.send, None)
        call.close()
    assert caplog.records == []


async def test_an_endpoint_that_hangs_delays_nobody(tmp_path: Path) -> None:
    let_go = threading.Event()

    def hangs(path: str, before: int):
        let_go.wait(30)
        return 200, {}

    with otlp_sink(hangs) as sink:
        a2a_fencing.instrument(endpoint=sink.url)
        try:
            async with cluster(f"sqlite+aiosqlite:///{tmp_path}/t.db", completes) as (node,):
                for _ in range(5):
                    done = await node.handler.on_message_send(message(), CALL)
                    assert done.status.state == TaskState.TASK_STATE_COMPLETED
            # Five tasks are done and the endpoint has not answered once.
            assert sink.facts_in_logs() == []
            let_go.set()
            assert A2AFencingInstrumentor().flush(20)
        finally:
            let_go.set()
            a2a_fencing.uninstrument()
        facts = sink.facts_in_logs()
    assert sorted(fact.n for fact in facts) == list(range(1, len(facts) + 1))


def fact(n: int) -> Fact:
    return Fact(id=f"r:{n}", kind=c.READ, time_unix_nano=n, replica="r")


def test_what_the_bounded_queue_cannot_hold_is_counted() -> None:
    let_go = threading.Event()

    def hangs(path: str, before: int):
        let_go.wait(30)
        return 200, {}

    with otlp_sink(hangs) as sink:
        outbox = Outbox(sink.url + "/v1/logs", None, Resource({}), interval_s=0.01, capacity=10)
        try:
            for n in range(1, 101):
                outbox.take_fact(fact(n), None)
            let_go.set()
            assert outbox.flush(20)
        finally:
            let_go.set()
            outbox.close()
        received = len(sink.facts_in_logs())
    assert outbox.lost > 0
    assert received + outbox.lost == 100


async def test_a_fault_in_a_hook_is_swallowed_and_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")

    def fails(self, store):
        raise ZeroDivisionError

    a2a_fencing.instrument()
    try:
        monkeypatch.setattr(StoreIdentities, "of", fails)
        before = sum(internal_errors.counts().values())
        async with cluster(f"sqlite+aiosqlite:///{tmp_path}/t.db", completes) as (node,):
            done = await node.handler.on_message_send(message(), CALL)
            again = await node.handler.on_message_send(message(), CALL)
        assert {done.status.state, again.status.state} == {TaskState.TASK_STATE_COMPLETED}
        assert sum(internal_errors.counts().values()) > before
        logged = [record.message for record in caplog.records if "went on without it" in record.message]
        assert len(logged) == len(set(logged))
    finally:
        a2a_fencing.uninstrument()


class Silent(InMemoryTaskStore):
    """Keeps nothing, so that a million saves cost the store no memory."""

    async def save(self, task, context):
        pass


async def test_ten_thousand_tasks_leave_what_is_kept_of_them_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    a2a_fencing.instrument()
    try:
        run = A2AFencingInstrumentor()._run
        assert run is not None
        memory = run.hooks.stores._memory
        store = Silent()
        for n in range(10_000):
            done = Task(id=str(n), status=TaskStatus(state=TaskState.TASK_STATE_COMPLETED))
            await store.save(done, CALL)
        assert len(memory) <= 8192
        active = recorder.active()
        assert active is not None
        assert active.last >= 10_000
    finally:
        a2a_fencing.uninstrument()


_SERVER = """
import asyncio, json
from a2a.server.context import ServerCallContext
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.types.a2a_pb2 import Task
from a2a_fencing import recorder
active, kinds = recorder.active(), []
if active is not None:
    active._sinks += (lambda fact, span: kinds.append(fact.kind),)
asyncio.run(InMemoryTaskStore().save(Task(id="t"), ServerCallContext()))
print(json.dumps(kinds.count("write")))
"""


@pytest.mark.parametrize(
    ("variables", "writes"),
    [
        ({}, 1),
        ({"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "a2a_fencing"}, 0),
        ({"OTEL_SDK_DISABLED": "true"}, 0),
    ],
)
def test_opentelemetry_instrument_needs_no_code(
    variables: dict[str, str], writes: int, tmp_path: Path
) -> None:
    server = tmp_path / "server.py"
    server.write_text(_SERVER)
    command = Path(sys.executable).with_name("opentelemetry-instrument")
    quiet = {
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
    }
    done = subprocess.run(
        [command, sys.executable, server],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **quiet, **variables},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == writes
